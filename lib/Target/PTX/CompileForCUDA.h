//===- CompileForCUDA.h - kernels for an NVIDIA GPU -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_PTX_COMPILEFORCUDA_H
#define ATTN_LIB_TARGET_PTX_COMPILEFORCUDA_H

#include "lib/Pipelines/VisitDoor.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Target/PTX/EmitPTX.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace attn {

struct CUDAOptions {
  /// The function to compile; empty when the module has just one.
  std::string entry;
  /// The machine to compile for, by its name; empty for the one that the module names, or else the
  /// default.
  std::string target;
  /// The words of the schedule that somebody has said.
  Overrides schedule;
  /// Whether blocks of keys add to gradients of queries where they can.
  bool fused = false;
  /// Slots for the query heads of a key head (CompileOptions).
  int64_t pack = 0;
  /// Which ways the function has: auto, lengths, short, long, few, narrow or groups
  /// (attn-make-ways).
  std::string way = "lengths";
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

/// Makes the ways of the entry: room 1. Names them in the order in which calls try them; the last
/// is for all calls. Removes first what the entry does not use.
llvm::Expected<std::vector<WayPlan>> makeWays(mlir::ModuleOp module, const CUDAOptions &options);

/// Lowers what makeWays made to a room: all ways, or the one of a name.
llvm::Error lowerWays(mlir::ModuleOp module, const CUDAOptions &options, Room last,
                      std::optional<std::string> only = std::nullopt);

/// Compiles what makeWays made for a GPU, which need not be there: all ways, or the one of a name.
/// Lowers `module` in place.
llvm::Expected<CUDACode> compileWays(mlir::ModuleOp module, const CUDAOptions &options,
                                     std::optional<std::string> only = std::nullopt);

/// Compiles all ways of a function on tensors.
llvm::Expected<CUDACode> compileForCUDA(mlir::ModuleOp module, const CUDAOptions &options = {});

} // namespace attn

#endif // ATTN_LIB_TARGET_PTX_COMPILEFORCUDA_H
