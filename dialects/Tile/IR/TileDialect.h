//===- TileDialect.h - the tile dialect: attributes and types ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_TILE_IR_TILEDIALECT_H
#define ATTN_DIALECTS_TILE_IR_TILEDIALECT_H

#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Tile/IR/Layout.h"
#include "lib/Machine/Swizzle.h"
#include "lib/Schedule/Schedule.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TensorEncoding.h"

#include "dialects/Tile/IR/TileEnums.h.inc"

#include "dialects/Tile/IR/TileDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/IR/TileAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/IR/TileTypes.h.inc"

namespace attn::tile {

/// The attribute of LLVM functions whose products and sums round one after the other.
inline constexpr llvm::StringLiteral kUnfusedAttrName = "attn-unfused";

/// How many blocks of the kernel that the op is, or stands in, a multiprocessor has at a time.
int64_t getResident(mlir::Operation *op);
/// The shared memory that each of them may have.
int64_t getMostSharedBytes(mlir::Operation *op);

/// The layout of a register tile. The encoding is one of this dialect's, verified against the type.
Layout getLayout(mlir::RankedTensorType type);

/// Whether the type is a register tile whose layout is decided.
/// Whether `tile.convert_layout` has a form: nothing moves, or only within the quads of an
/// accumulator that becomes chunked.
bool isConvertible(mlir::RankedTensorType from, mlir::RankedTensorType to);
bool hasLayout(mlir::Type type);

} // namespace attn::tile

#endif // ATTN_DIALECTS_TILE_IR_TILEDIALECT_H
