//===- Compile.h - kernels for the processor --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_COMPILE_H
#define ATTN_LIB_TARGET_CPU_COMPILE_H

#include "lib/Pipelines/VisitDoor.h"
#include "lib/Schedule/Schedule.h"
#include "lib/Source/Signature.h"
#include "lib/Target/CPU/Jit.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attn {

/// The code of a function, not linked yet.
struct CPUCode {
  KernelSignature signature;
  /// Of each argument: whether it is read element by element, so that its last stride is any too.
  llvm::SmallVector<bool> hasAnyStrides;
  std::unique_ptr<llvm::MemoryBuffer> object;
  JitTimings timings;
  /// The time in MLIR passes.
  double passesMs = 0;
};

/// A compiled function. It is called through its packed form with
///   1. the function's arguments in order: tensors as memrefs of any strides but the last, which is
///      1 in matrices unless `hasAnyStrides` says otherwise; scalars by value,
///   2. then one memref for each result, which the kernel fills.
/// It returns nothing, writes no argument, keeps no pointer and no state, and may be called from
/// any number of threads at once.
struct CompiledKernel {
  KernelSignature signature;
  /// Of each argument: whether it is read element by element, so that its last stride is any too.
  llvm::SmallVector<bool> hasAnyStrides;
  std::unique_ptr<Jit> jit;
  Jit::PackedFn function = nullptr;
  /// The time in MLIR passes; that in LLVM is in the Jit.
  double passesMs = 0;
  /// A key=value list of what was chosen ("BM=64 BN=128"), shown to the user.
  std::string description;
};

struct CPUOptions {
  JitOptions jit;
  /// The function to compile; empty when the module has just one public function.
  std::string entry;
  /// The words of the schedule that somebody has said.
  Overrides schedule;
  /// Sees the module at the doors of rooms 1 to 3.
  DoorVisitor visit;
};

/// Compiles a function on tensors for the processor, up to an object file. Lowers `module` in
/// place.
llvm::Expected<CPUCode> emitForCPU(mlir::ModuleOp module, const CPUOptions &options);

/// The function of that name in a linked object of emitForCPU.
llvm::Expected<Jit::PackedFn> lookupFunction(const Jit &jit, llvm::StringRef name);

/// Compiles and links. Lowers `module` in place.
llvm::Expected<std::unique_ptr<CompiledKernel>> compileForCPU(mlir::ModuleOp module,
                                                              const CPUOptions &options);

/// Compiles the definition of the same function, slow and obvious, evaluated in f64. Its signature
/// says what to call it with: results of attention are f64, as others are evaluated and then
/// rounded to their types; arguments keep their types or are f64 too, and are
/// converted by the caller. Lowers `module` in place.
llvm::Expected<std::unique_ptr<CompiledKernel>> compileReference(mlir::ModuleOp module,
                                                                 const CPUOptions &options);

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_COMPILE_H
