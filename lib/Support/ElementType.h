//===- ElementType.h - MLIR's element types as those of arrays --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A header only: the runtime uses this library too, and links no MLIR.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_ELEMENTTYPE_H
#define ATTN_LIB_SUPPORT_ELEMENTTYPE_H

#include "lib/Support/Array.h"
#include "mlir/IR/BuiltinTypes.h"

namespace attn {

/// The element kind of a type, or nothing if arrays cannot hold it.
inline std::optional<ElementKind> getElementKind(mlir::Type type) {
  if (type.isF16())
    return ElementKind::F16;
  if (type.isBF16())
    return ElementKind::BF16;
  if (type.isF32())
    return ElementKind::F32;
  if (type.isF64())
    return ElementKind::F64;
  if (mlir::isa<mlir::Float8E4M3FNType>(type))
    return ElementKind::F8E4M3FN;
  if (mlir::isa<mlir::Float8E5M2Type>(type))
    return ElementKind::F8E5M2;
  if (type.isIndex())
    return ElementKind::I64;
  auto integer = mlir::dyn_cast<mlir::IntegerType>(type);
  if (!integer)
    return std::nullopt;
  switch (integer.getWidth()) {
  case 1:
    return ElementKind::I1;
  case 8:
    return ElementKind::I8;
  case 32:
    return ElementKind::I32;
  case 64:
    return ElementKind::I64;
  default:
    return std::nullopt;
  }
}

} // namespace attn

#endif // ATTN_LIB_SUPPORT_ELEMENTTYPE_H
