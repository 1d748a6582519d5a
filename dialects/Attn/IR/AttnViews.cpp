//===- AttnViews.cpp - what views say of the tensors that they show -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

std::optional<ArgumentSize> attn::findArgumentSize(Value size) {
  auto dim = size.getDefiningOp<tensor::DimOp>();
  std::optional<int64_t> index = dim ? dim.getConstantIndex() : std::nullopt;
  return index ? findArgumentSize(dim.getSource(), *index) : std::nullopt;
}

std::optional<ArgumentSize> attn::findArgumentSize(Value value, int64_t dim) {
  int64_t multiplier = 1;
  if (auto pack = value.getDefiningOp<PackHeadsOp>()) {
    value = dim == 1 ? pack.getKey() : pack.getSource();
    multiplier = dim == 2 ? pack.getSlots() : 1;
  }
  if (auto paged = value.getDefiningOp<PagedOp>()) {
    multiplier *= dim == 2 ? paged.getPageSize() : 1;
    std::tie(value, dim) = paged.getSizeSource(dim);
  } else if (auto ragged = value.getDefiningOp<RaggedOp>()) {
    if (dim == 2) {
      std::optional<ArgumentSize> most = findArgumentSize(ragged.getUpTo());
      if (most)
        most->multiplier *= multiplier;
      return most;
    }
    if (auto offsets = dyn_cast<BlockArgument>(ragged.getOffsets()); offsets && dim == 0)
      return ArgumentSize{offsets, 0, multiplier, /*less=*/1};
    // (T, H, D) of (B, H, M, D).
    value = dim == 0 ? Value() : ragged.getRows();
    dim = dim == 1 ? 1 : 2;
  }
  auto argument = dyn_cast_if_present<BlockArgument>(value);
  auto type = argument ? dyn_cast<RankedTensorType>(argument.getType()) : RankedTensorType();
  // Upstream verifies no dimension that tensor.dim asks for.
  if (!type || dim < 0 || dim >= type.getRank())
    return std::nullopt;
  return ArgumentSize{argument, dim, multiplier};
}

Value attn::lookThroughSlices(Value value) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    value = slice.getSource();
  return value;
}

RaggedOp attn::findRagged(Value value) {
  value = lookThroughSlices(value);
  if (auto scaled = value.getDefiningOp<ScaledOp>())
    value = scaled.getSource();
  if (auto pack = value.getDefiningOp<PackHeadsOp>())
    value = pack.getSource();
  return value.getDefiningOp<RaggedOp>();
}

OpFoldResult attn::emitSize(OpBuilder &builder, Location loc, PagedOp view, int64_t dim) {
  auto [source, from] = view.getSizeSource(dim);
  OpFoldResult size = tensor::getMixedSize(builder, loc, source, from);
  if (dim != 2)
    return size;
  return builder.createOrFold<arith::MulIOp>(
      loc, getValueOrCreateConstantIndexOp(builder, loc, size),
      arith::ConstantIndexOp::create(builder, loc, view.getPageSize()));
}

OpFoldResult attn::emitSize(OpBuilder &builder, Location loc, RaggedOp view, int64_t dim) {
  if (dim == 2)
    return view.getUpTo();
  Value from = dim == 0 ? view.getOffsets() : view.getRows();
  // (T, H, D) of (B, H, M, D).
  OpFoldResult size = tensor::getMixedSize(builder, loc, from, dim == 3 ? 2 : dim);
  if (dim != 0)
    return size;
  return builder.createOrFold<arith::SubIOp>(loc,
                                             getValueOrCreateConstantIndexOp(builder, loc, size),
                                             arith::ConstantIndexOp::create(builder, loc, 1));
}

Sequence attn::emitSequence(OpBuilder &builder, Location loc, Value offsets, OpFoldResult total,
                            OpFoldResult most, OpFoldResult batch) {
  Type element = getElementTypeOrSelf(offsets.getType());
  Value end = getValueOrCreateConstantIndexOp(builder, loc, total);
  end = arith::IndexCastOp::create(builder, loc, element, end);
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(element, 0)).getResult();
  // Clamped in their own type, which may be wider than an index is on a device.
  auto read = [&](Value index) {
    Value offset = tensor::ExtractOp::create(builder, loc, offsets, index);
    offset = arith::MaxSIOp::create(builder, loc, offset, zero);
    offset = arith::MinSIOp::create(builder, loc, offset, end);
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), offset).getResult();
  };
  Value at = getValueOrCreateConstantIndexOp(builder, loc, batch);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value begin = read(at);
  Value next = read(arith::AddIOp::create(builder, loc, at, one));
  next = arith::MaxSIOp::create(builder, loc, next, begin);
  Value rows = arith::SubIOp::create(builder, loc, next, begin);
  // Neither is negative, and the analysis of masks sees that a size bounds the number.
  return {begin, arith::MinUIOp::create(builder, loc, rows,
                                        getValueOrCreateConstantIndexOp(builder, loc, most))};
}

Sequence attn::emitSequence(OpBuilder &builder, Location loc, RaggedOp view, OpFoldResult batch) {
  return emitSequence(builder, loc, view.getOffsets(),
                      tensor::getMixedSize(builder, loc, view.getRows(), 0),
                      getAsOpFoldResult(view.getUpTo()), batch);
}
