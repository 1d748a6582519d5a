//===- TileBuilder.h - small tiles -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_TILEBUILDER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_TILEBUILDER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// A part of a kernel argument: `position` is global and has the argument's rank; the tile covers
/// the last dimensions.
struct ArgumentSlice {
  mlir::Value memref;
  llvm::SmallVector<mlir::Value> position;
  /// Elements of the dimensions the slice keeps, as values of index type.
  llvm::SmallVector<mlir::Value> sizes;
};

/// Lanes of a quad, which share a row.
inline constexpr int64_t kQuadLanes = 4;

/// A builder that knows how tiles are made from scalars and rows.
class TileBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  mlir::Value splat(mlir::Value scalar, llvm::ArrayRef<int64_t> shape);
  /// Of f32.
  mlir::Value constant(double value, llvm::ArrayRef<int64_t> shape);
  mlir::Value rowsToTile(mlir::Value rows, int64_t columns);
  mlir::Value isEqual(mlir::Value tile, double value);
  mlir::Value load(const ArgumentSlice &slice, llvm::ArrayRef<int64_t> shape);
  /// The lesser of each index and first + size - 1.
  mlir::Value clampBelow(mlir::Value indices, mlir::Value first, mlir::Value size);
  /// Of floats, to f32.
  mlir::Value widen(mlir::Value tile);
  mlir::Value narrow(mlir::Value tile, mlir::Type element);
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_TILEBUILDER_H
