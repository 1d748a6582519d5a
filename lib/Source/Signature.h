//===- Signature.h - the host's view of a function --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SOURCE_SIGNATURE_H
#define ATTN_LIB_SOURCE_SIGNATURE_H

#include "lib/Support/Array.h"
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

/// The function called `entry`, or the only public one when that is empty. A module without it, or
/// with a choice, is an error.
llvm::Expected<mlir::func::FuncOp> findEntry(mlir::ModuleOp module, llvm::StringRef entry);

} // namespace attn

#endif // ATTN_LIB_SOURCE_SIGNATURE_H
