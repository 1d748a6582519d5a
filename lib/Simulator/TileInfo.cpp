//===- TileInfo.cpp - what a program knows of a type of tiles ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Program.h"

using namespace llvm;
using mlir::Operation;
using mlir::RankedTensorType;

namespace attn::sim {

std::optional<Number> getNumber(mlir::Type type) {
  if (type.isF32())
    return Number::F32;
  if (type.isBF16())
    return Number::BF16;
  if (type.isF16())
    return Number::F16;
  if (mlir::isa<mlir::Float8E4M3FNType>(type))
    return Number::F8E4M3FN;
  if (mlir::isa<mlir::Float8E5M2Type>(type))
    return Number::F8E5M2;
  if (type.isIndex() || (type.isInteger() && type.getIntOrFloatBitWidth() <= 64))
    return Number::Integer;
  return std::nullopt;
}

/// The rows of a blocked layout that each warpgroup of so many warps holds.
static std::vector<std::vector<int64_t>> getBlockedRows(RankedTensorType type, int64_t warps) {
  tile::Layout layout = tile::getLayout(type);
  std::vector<std::vector<int64_t>> rows(std::max<int64_t>(1, layout.getNumWarps() / warps));
  for (int64_t row = 0; row < layout.getNumRows(); ++row)
    rows[std::min<int64_t>(layout.getOwner({row, 0}).warp / warps, rows.size() - 1)].push_back(row);
  return rows;
}

/// Of rank 1 or 2, and not too large.
static Error checkShape(Operation *op, RankedTensorType tile) {
  if (!tile.hasStaticShape() || tile.getRank() < 1 || tile.getRank() > 2)
    return makeOpError(op, "expected a tile of rank 1 or 2");
  int64_t rows = tile.getDimSize(0), columns = tile.getRank() > 1 ? tile.getDimSize(1) : 1;
  if (columns != 0 && rows > kMaxTileElements / columns)
    return makeOpError(op, "expected a tile of at most " + Twine(kMaxTileElements) +
                               " elements, got " + Twine(rows) + "x" + Twine(columns));
  return Error::success();
}

Expected<std::unique_ptr<TileInfo>> makeTileInfo(Operation *op, RankedTensorType tile,
                                                 int64_t threads) {
  if (Error error = checkShape(op, tile))
    return error;
  std::optional<Number> number = getNumber(tile.getElementType());
  if (!number)
    return makeOpError(op, "expected elements that are integers, indices or floats of at most "
                           "32 bits");
  auto info = std::make_unique<TileInfo>();
  info->number = *number;
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(tile.getElementType()))
    info->integerShift = 64 - integer.getWidth();
  info->rows = tile.getDimSize(0);
  info->isVector = tile.getRank() == 1;
  if (!info->isVector)
    info->columns = tile.getDimSize(1);
  auto row = mlir::dyn_cast_or_null<tile::RowAttr>(tile.getEncoding());
  if (mlir::isa_and_nonnull<tile::BlockedAttr>(row ? row.getOf() : tile.getEncoding())) {
    info->rowsOf = getBlockedRows(tile, threads / kLanes);
    info->warpgroups = info->rowsOf.size();
  } else if (tile.getEncoding()) {
    info->warpgroups = tile::getLayout(tile).getNumWarps() * kLanes / threads;
  }
  return info;
}

} // namespace attn::sim
