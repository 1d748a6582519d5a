//===- Compile.h - kernels for the processor --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TARGET_CPU_COMPILE_H
#define ATTN_TARGET_CPU_COMPILE_H

#include "lib/Pipelines/VisitDoor.h"
#include "lib/Support/Array.h"
#include "lib/Target/CPU/Jit.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// The type of an argument or result. A scalar has no shape; an index is a scalar of I64.
struct ValueType {
  ElementKind kind = ElementKind::F32;
  bool isScalar = false;
  /// Negative extents are dynamic.
  llvm::SmallVector<int64_t, 4> shape;
};

/// The host's view of a function.
struct KernelSignature {
  std::string name;
  llvm::SmallVector<ValueType> arguments;
  llvm::SmallVector<ValueType> results;

  /// The same function with every floating-point type replaced.
  KernelSignature withFloatsAs(ElementKind kind) const;
};

/// The signature of a function on ranked tensors and scalars; otherwise an error that names the
/// argument or result.
llvm::Expected<KernelSignature> getSignature(mlir::func::FuncOp function);

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
  /// Query rows of a block, keys of a step; 0 lets the CPU's rule choose.
  int64_t blockM = 0, blockN = 0;
  /// Parts that the keys of a block are split into.
  int64_t splits = 1;
  /// Sees the module at the doors of rooms 1 to 3.
  DoorVisitor visit;
};

/// Finds the function that the options name. A module without it, or with a choice, is an error.
llvm::Expected<mlir::func::FuncOp> findEntry(mlir::ModuleOp module, llvm::StringRef entry);

/// Compiles a function on tensors for the processor. Lowers `module` in place.
llvm::Expected<std::unique_ptr<CompiledKernel>> compileForCPU(mlir::ModuleOp module,
                                                              const CPUOptions &options);

/// Compiles the definition of the same function, slow and obvious, evaluated in f64. Its signature
/// says what to call it with: results are f64; arguments keep their types or are f64 too, and are
/// converted by the caller. Lowers `module` in place.
llvm::Expected<std::unique_ptr<CompiledKernel>> compileReference(mlir::ModuleOp module,
                                                                 const CPUOptions &options);

} // namespace attn

#endif // ATTN_TARGET_CPU_COMPILE_H
