//===- Fragments.cpp - tiles that lie as warps have them ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Global.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

Value attn::tile::emitFragmentTile(OpBuilder &builder, Location loc, const GlobalArgument &global,
                                   ValueRange indices) {
  SmallVector<Value> first(indices);
  first[first.size() - 2] = first[first.size() - 1] = i32(builder, loc, 0);
  return emitAddress(builder, loc, global, first);
}

Value attn::tile::emitFragmentAddress(OpBuilder &builder, Location loc,
                                      const GlobalArgument &global, ValueRange indices) {
  Type i32Type = builder.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  auto toNumber = [&](Value index) {
    return index.getType() == i32Type
               ? index
               : builder.createOrFold<arith::IndexCastOp>(loc, i32Type, index);
  };
  Value row = toNumber(indices[indices.size() - 2]), column = toNumber(indices.back());
  auto bits = [&](Value value, int64_t right, int64_t mask, int64_t left) {
    value = builder.createOrFold<arith::ShRUIOp>(loc, value, constant(right));
    value = builder.createOrFold<arith::AndIOp>(loc, value, constant(mask));
    return builder.createOrFold<arith::ShLIOp>(loc, value, constant(left));
  };
  Value warp =
      builder.createOrFold<arith::ShRUIOp>(loc, row, constant(llvm::Log2_64(kFragmentRows)));
  Value position = builder.createOrFold<arith::MulIOp>(
      loc, warp, constant(kFragmentRows * global.type.getShape().back()));
  // The block, the lane by its row and its pair of columns, and which of the lane's elements.
  for (Value part : {bits(column, 3, -1, 7), bits(row, 0, 7, 4), bits(column, 1, 3, 2),
                     bits(row, 3, 1, 1), bits(column, 0, 1, 0)})
    position = builder.createOrFold<arith::AddIOp>(loc, position, part);
  Value tile = emitFragmentTile(builder, loc, global, indices);
  return LLVM::GEPOp::create(builder, loc, tile.getType(), builder.getF32Type(), tile,
                             ValueRange{position});
}

FailureOr<FragmentPlace> attn::tile::findFragments(Operation *op, const PatternContext &context,
                                                   RankedTensorType type,
                                                   const GlobalArgument &global,
                                                   OpBuilder &builder) {
  auto acc = dyn_cast_if_present<AccAttr>(type.getEncoding());
  ArrayRef<int64_t> whole = global.type.getShape().take_back(2);
  if (!acc || acc.getUnit().form == attn::Product::Form::Tensor || type.getDimSize(0) < whole[0] ||
      type.getDimSize(1) != whole[1] ||
      type.getDimSize(0) != getLayout(type).getNumWarps() * kFragmentRows)
    return op->emitOpError("expected whole tiles in #tile.acc, with 16 rows for each warp, "
                           "where memory has tile.fragments, got ")
           << type;
  Location loc = op->getLoc();
  FragmentPlace place;
  place.numBytes = kFragmentRows * type.getDimSize(1) * 4;
  Value row = context.getThreadPosition(builder, op, getLayout(type)).row;
  Value warp =
      LLVM::LShrOp::create(builder, loc, row, i32(builder, loc, llvm::Log2_64(kFragmentRows)));
  place.warpBytes = LLVM::MulOp::create(builder, loc, warp, i32(builder, loc, place.numBytes));
  if (type.getDimSize(0) != whole[0])
    place.isInside = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, warp,
                                          i32(builder, loc, whole[0] / kFragmentRows));
  place.laneBytes =
      LLVM::ShlOp::create(builder, loc, context.getLane(builder, op), i32(builder, loc, 4));
  return place;
}
