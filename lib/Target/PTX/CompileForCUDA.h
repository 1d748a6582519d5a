//===- CompileForCUDA.h - kernels for an NVIDIA GPU -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTX_COMPILEFORCUDA_H
#define ATTN_TARGET_PTX_COMPILEFORCUDA_H

#include "lib/Pipelines/VisitDoor.h"
#include "lib/Target/PTX/EmitPTX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

struct CUDAOptions {
  /// The function to compile; empty when the module has just one.
  std::string entry;
  /// Query rows of a block, keys of a step; 0 lets the target's rule choose.
  int64_t blockM = 0, blockN = 0;
  /// Parts that the keys of a block are split into; more than 1 makes two kernels.
  int64_t splits = 1;
  /// Whether blocks of keys add to gradients of queries where they can.
  bool fused = false;
  /// Slots for the query heads of a key head (CompileOptions).
  int64_t pack = 0;
  /// Sizes of which sequences (CompileOptions): auto, short, long, few or narrow.
  std::string way = "auto";
  /// Whether blocks stay: true, false, or auto for the target's rule.
  std::string stay = "auto";
  /// Whether loops around loops, as those of blocks that stay, compute in each of their turns what
  /// those inside do not read.
  bool recompute = false;
  /// Whether consumers of a block begin apart, each with the first tile of keys that its rows need.
  bool apart = false;
  /// By which factor 2^slack maxima may lag; -1: every step scales; -2: the target's rule.
  int64_t slack = -2;
  /// Rows of the calls that a search times (CompileOptions).
  int64_t search = 0;
  /// Sees the module at every door.
  DoorVisitor visit;
};

/// Everything that a driver needs, and nothing that a driver made: the same on every machine.
struct CUDACode {
  std::string ptx;
  /// The kernels of the PTX in launch order.
  std::vector<KernelPlan> plans;
  /// Milliseconds in MLIR's passes, and from there to PTX.
  double passesMs = 0, ptxMs = 0;
};

/// The function that `entry` names (findEntry), alone: every function of a module becomes kernels,
/// so those that it does not use are removed.
llvm::Expected<mlir::func::FuncOp> isolateEntry(mlir::ModuleOp module, llvm::StringRef entry);

/// Compiles a function on tensors for a GPU, which need not be there. Lowers `module` in place;
/// what the entry does not use is removed first.
llvm::Expected<CUDACode> compileForCUDA(mlir::ModuleOp module, const CUDAOptions &options = {});

} // namespace attn

#endif // ATTN_TARGET_PTX_COMPILEFORCUDA_H
