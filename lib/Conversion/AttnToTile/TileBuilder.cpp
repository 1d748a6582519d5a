//===- TileBuilder.cpp - small tiles -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/TileBuilder.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

Value TileBuilder::splat(Value scalar, ArrayRef<int64_t> shape) {
  return tile::BroadcastOp::create(*this, RankedTensorType::get(shape, scalar.getType()), scalar);
}

Value TileBuilder::constant(double value, ArrayRef<int64_t> shape) {
  return splat(arith::ConstantOp::create(*this, getF32FloatAttr(value)), shape);
}

Value TileBuilder::rowsToTile(Value rows, int64_t columns) {
  auto type = cast<RankedTensorType>(rows.getType());
  return tile::BroadcastOp::create(
      *this, RankedTensorType::get({type.getDimSize(0), columns}, type.getElementType()), rows);
}

Value TileBuilder::isEqual(Value tile, double value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, tile, constant(value, shape));
}

Value TileBuilder::load(const ArgumentSlice &slice, ArrayRef<int64_t> shape) {
  Type element = cast<MemRefType>(slice.memref.getType()).getElementType();
  return tile::LoadOp::create(*this, RankedTensorType::get(shape, element), slice.memref,
                              slice.position);
}

Value TileBuilder::clampBelow(Value indices, Value first, Value size) {
  Value one = arith::ConstantIndexOp::create(*this, 1);
  Value last = createOrFold<arith::SubIOp>(createOrFold<arith::AddIOp>(first, size), one);
  return arith::MinSIOp::create(*this, indices,
                                splat(last, cast<RankedTensorType>(indices.getType()).getShape()));
}

Value TileBuilder::widen(Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType().isF32())
    return tile;
  return arith::ExtFOp::create(*this, type.clone(getF32Type()), tile);
}

Value TileBuilder::narrow(Value tile, Type element) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getElementType() == element)
    return tile;
  return arith::TruncFOp::create(*this, type.clone(element), tile);
}
