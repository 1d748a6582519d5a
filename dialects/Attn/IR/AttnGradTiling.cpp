//===- AttnGradTiling.cpp - TilingInterface of the gradients in two passes ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iteration domains, all parallel:
//
//     row_delta                 (B, H, M)
//     attention_grad_delta      (B, H, M)     as the next
//     attention_grad_query      (B, H, M)     the sum over N is not a loop before its steps are
//     attention_grad_key_value  (B, Hkv, N)   nor is the sum over M and the heads of a group
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnTiling.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

using OFRs = SmallVector<OpFoldResult>;

static SmallVector<utils::IteratorType> threeParallel() {
  return SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel);
}

/// The sizes of the first three dimensions.
static SmallVector<Range> firstThree(OpBuilder &builder, Value tensor) {
  OFRs sizes = tensor::getMixedSizes(builder, tensor.getLoc(), tensor);
  return rangesOf(builder, ArrayRef(sizes).take_front(3));
}

/// Appends a dimension that is not tiled.
static OFRs withColumns(OpBuilder &builder, ArrayRef<OpFoldResult> positions, int64_t last) {
  OFRs all(positions);
  all.push_back(builder.getIndexAttr(last));
  return all;
}

static RankedTensorType withElement(Value shape, Value element) {
  return cast<RankedTensorType>(shape.getType())
      .clone(cast<RankedTensorType>(element.getType()).getElementType());
}

//===----------------------------------------------------------------------===//
// RowDeltaOp: (B, H, M)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> RowDeltaOp::getLoopIteratorTypes() { return threeParallel(); }

SmallVector<Range> RowDeltaOp::getIterationDomain(OpBuilder &builder) {
  return firstThree(builder, getOutput());
}

FailureOr<TilingResult> RowDeltaOp::getTiledImplementation(OpBuilder &builder,
                                                           ArrayRef<OpFoldResult> offsets,
                                                           ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  SmallVector<Operation *> slices;
  OpFoldResult columns = tensor::getMixedSize(builder, loc, getOutput(), 3);
  OFRs starts = withColumns(builder, offsets, 0), counts(sizes);
  counts.push_back(columns);
  auto rows = [&](Value source) -> Value {
    return source ? extractTile(builder, loc, source, offsets, sizes, slices) : Value();
  };
  Value output = extractTile(builder, loc, getOutput(), starts, counts, slices);
  Value gradient = extractTile(builder, loc, getDOutput(), starts, counts, slices);
  Value lse = rows(getLse()), low = rows(getLseLow()), lseGradient = rows(getDLse());
  auto tiled = RowDeltaOp::create(
      builder, loc, withElement(lse, getNegLse2()), withElement(lse, getDelta()),
      low ? Type(withElement(lse, getNegLow2())) : Type(), output, gradient, lse, low, lseGradient);
  tiled->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult RowDeltaOp::getResultTilePosition(OpBuilder &, unsigned,
                                                ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes, OFRs &resultOffsets,
                                                OFRs &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  return success();
}

//===----------------------------------------------------------------------===//
// All passes
//===----------------------------------------------------------------------===//

namespace {
/// A tile of the problem: rows of query heads, keys of key heads.
struct ProblemTile {
  /// First batch, query head, row; and how many.
  OFRs rowOffsets, rowSizes;
  /// First batch, key head, key; and how many.
  OFRs keyOffsets, keySizes;
};
} // namespace

/// The operands of an op on a tile, up to `scale` and `wrt`; null for a neg_low2 that is not there.
template <typename OpT>
static SmallVector<Value> sliceOperands(OpBuilder &builder, OpT op, const ProblemTile &tile,
                                        SmallVectorImpl<Operation *> &slices) {
  Location loc = op.getLoc();
  auto matrix = [&](Value source, ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes) {
    int64_t columns = cast<RankedTensorType>(source.getType()).getDimSize(3);
    return extractTile(builder, loc, source, withColumns(builder, offsets, 0),
                       withColumns(builder, sizes, columns), slices);
  };
  auto rows = [&](Value source) {
    return extractTile(builder, loc, source, tile.rowOffsets, tile.rowSizes, slices);
  };
  Value query = matrix(op.getQuery(), tile.rowOffsets, tile.rowSizes);
  Value key = matrix(op.getKey(), tile.keyOffsets, tile.keySizes);
  Value value = matrix(op.getValue(), tile.keyOffsets, tile.keySizes);
  Value gradient = matrix(op.getDOutput(), tile.rowOffsets, tile.rowSizes);
  Value negLse2 = rows(op.getNegLse2()), delta = rows(op.getDelta());
  Value negLow2 = op.getNegLow2() ? rows(op.getNegLow2()) : Value();
  return {query, key, value, gradient, negLse2, delta, negLow2};
}

/// The global position of the tile's first element.
template <typename OpT>
static SmallVector<Value> shiftOrigin(OpBuilder &builder, OpT op, const ProblemTile &tile) {
  OpFoldResult starts[] = {tile.rowOffsets[0], tile.rowOffsets[1], tile.rowOffsets[2],
                           tile.keyOffsets[2]};
  SmallVector<Value> origin;
  for (auto [position, start] : llvm::zip_equal(op.getMixedOrigin(), starts))
    origin.push_back(getValueOrCreateConstantIndexOp(
        builder, op.getLoc(), addPositions(builder, op.getLoc(), position, start)));
  return origin;
}

template <typename OpT> static LogicalResult checkTileable(OpT op) {
  if (op.getWrt().empty())
    return success();
  return op.emitOpError("expected no gradients of captured tensors, got ")
         << op.getWrt().size() << ": they are sums over all tiles";
}

/// Attributes and regions of the whole op.
template <typename OpT>
static TilingResult finishTile(OpT op, OpT tiled, ArrayRef<Operation *> slices) {
  tiled->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), tiled->getRegions()))
    from.cloneInto(&to, mapping);
  return {{tiled}, SmallVector<Value>(tiled->getResults()), SmallVector<Operation *>(slices)};
}

/// Rows, and all keys of theirs.
template <typename OpT>
static FailureOr<ProblemTile> getTileOfRows(OpBuilder &builder, OpT op,
                                            ArrayRef<OpFoldResult> offsets,
                                            ArrayRef<OpFoldResult> sizes) {
  OpFoldResult keyHead, keyHeads, zero = builder.getIndexAttr(0);
  if (failed(getKeyHeads(builder, op, offsets[1], sizes[1], keyHead, keyHeads)))
    return failure();
  OpFoldResult keys = tensor::getMixedSize(builder, op.getLoc(), op.getKey(), 2);
  return ProblemTile{
      OFRs(offsets), OFRs(sizes), {offsets[0], keyHead, zero}, {sizes[0], keyHeads, keys}};
}

//===----------------------------------------------------------------------===//
// AttentionGradDeltaOp: (B, H, M)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> AttentionGradDeltaOp::getLoopIteratorTypes() {
  return threeParallel();
}

SmallVector<Range> AttentionGradDeltaOp::getIterationDomain(OpBuilder &builder) {
  return firstThree(builder, getQuery());
}

FailureOr<TilingResult> AttentionGradDeltaOp::getTiledImplementation(OpBuilder &builder,
                                                                     ArrayRef<OpFoldResult> offsets,
                                                                     ArrayRef<OpFoldResult> sizes) {
  FailureOr<ProblemTile> tile = getTileOfRows(builder, *this, offsets, sizes);
  if (failed(tile))
    return failure();
  Location loc = getLoc();
  SmallVector<Operation *> slices;
  SmallVector<Value> in = sliceOperands(builder, *this, *tile, slices);
  Value lseGradient =
      getDLse() ? extractTile(builder, loc, getDLse(), offsets, sizes, slices) : Value();
  Value sink =
      getSink() ? extractTile(builder, loc, getSink(), offsets[1], sizes[1], slices) : Value();
  auto tiled = AttentionGradDeltaOp::create(
      builder, loc, withElement(in[5], getExactDelta()), in[0], in[1], in[2], in[3], in[4], in[5],
      in[6], lseGradient, getScale(), sink, shiftOrigin(builder, *this, *tile));
  return finishTile(*this, tiled, slices);
}

LogicalResult AttentionGradDeltaOp::getResultTilePosition(OpBuilder &, unsigned,
                                                          ArrayRef<OpFoldResult> offsets,
                                                          ArrayRef<OpFoldResult> sizes,
                                                          OFRs &resultOffsets, OFRs &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionGradQueryOp: (B, H, M)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> AttentionGradQueryOp::getLoopIteratorTypes() {
  return threeParallel();
}

SmallVector<Range> AttentionGradQueryOp::getIterationDomain(OpBuilder &builder) {
  return firstThree(builder, getQuery());
}

FailureOr<TilingResult> AttentionGradQueryOp::getTiledImplementation(OpBuilder &builder,
                                                                     ArrayRef<OpFoldResult> offsets,
                                                                     ArrayRef<OpFoldResult> sizes) {
  if (failed(checkTileable(*this)))
    return failure();
  FailureOr<ProblemTile> tile = getTileOfRows(builder, *this, offsets, sizes);
  if (failed(tile))
    return failure();
  SmallVector<Operation *> slices;
  SmallVector<Value> in = sliceOperands(builder, *this, *tile, slices);
  auto tiled = AttentionGradQueryOp::create(
      builder, getLoc(), withElement(in[0], getDQuery()), TypeRange(), in[0], in[1], in[2], in[3],
      in[4], in[5], in[6], getScale(), shiftOrigin(builder, *this, *tile), /*wrt=*/ValueRange());
  return finishTile(*this, tiled, slices);
}

LogicalResult AttentionGradQueryOp::getResultTilePosition(OpBuilder &builder, unsigned,
                                                          ArrayRef<OpFoldResult> offsets,
                                                          ArrayRef<OpFoldResult> sizes,
                                                          OFRs &resultOffsets, OFRs &resultSizes) {
  resultOffsets = withColumns(builder, offsets, 0);
  resultSizes = withColumns(builder, sizes, getHeadDim());
  return success();
}

//===----------------------------------------------------------------------===//
// AttentionGradKeyValueOp: (B, Hkv, N)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> AttentionGradKeyValueOp::getLoopIteratorTypes() {
  return threeParallel();
}

SmallVector<Range> AttentionGradKeyValueOp::getIterationDomain(OpBuilder &builder) {
  return firstThree(builder, getKey());
}

/// Query heads that read key heads [offset, offset + size): a group when the tile is one head, all
/// when it is all.
static LogicalResult getQueryHeads(OpBuilder &builder, AttentionGradKeyValueOp op,
                                   OpFoldResult offset, OpFoldResult size, OpFoldResult &firstHead,
                                   OpFoldResult &heads) {
  Location loc = op.getLoc();
  OpFoldResult allHeads = tensor::getMixedSize(builder, loc, op.getQuery(), 1);
  OpFoldResult keyHeads = tensor::getMixedSize(builder, loc, op.getKey(), 1);
  if (isConstantIntValue(offset, 0) && isEqualConstantIntOrValue(size, keyHeads)) {
    firstHead = offset;
    heads = allHeads;
    return success();
  }
  if (!isConstantIntValue(size, 1))
    return op.emitOpError("expected a tile of one key head or of all key heads");
  if (isConstantIntValue(keyHeads, 0))
    return op.emitOpError("expected a head of keys or more, got none");
  AffineExpr first, total, hkv;
  bindSymbols(builder.getContext(), first, total, hkv);
  heads = affine::makeComposedFoldedAffineApply(builder, loc, total.floorDiv(hkv),
                                                {offset, allHeads, keyHeads});
  bindSymbols(builder.getContext(), first, total);
  firstHead = affine::makeComposedFoldedAffineApply(builder, loc, first * total, {offset, heads});
  return success();
}

FailureOr<TilingResult>
AttentionGradKeyValueOp::getTiledImplementation(OpBuilder &builder, ArrayRef<OpFoldResult> offsets,
                                                ArrayRef<OpFoldResult> sizes) {
  OpFoldResult head, heads, zero = builder.getIndexAttr(0);
  if (failed(checkTileable(*this)) ||
      failed(getQueryHeads(builder, *this, offsets[1], sizes[1], head, heads)))
    return failure();
  OpFoldResult rows = tensor::getMixedSize(builder, getLoc(), getQuery(), 2);
  ProblemTile tile = {
      {offsets[0], head, zero}, {sizes[0], heads, rows}, OFRs(offsets), OFRs(sizes)};
  SmallVector<Operation *> slices;
  SmallVector<Value> in = sliceOperands(builder, *this, tile, slices);
  auto tiled = AttentionGradKeyValueOp::create(
      builder, getLoc(), getDKey() ? Type(withElement(in[1], getDKey())) : Type(),
      getDValue() ? Type(withElement(in[2], getDValue())) : Type(), TypeRange(), in[0], in[1],
      in[2], in[3], in[4], in[5], in[6], getScale(), shiftOrigin(builder, *this, tile),
      /*wrt=*/ValueRange());
  return finishTile(*this, tiled, slices);
}

LogicalResult AttentionGradKeyValueOp::getResultTilePosition(OpBuilder &builder, unsigned number,
                                                             ArrayRef<OpFoldResult> offsets,
                                                             ArrayRef<OpFoldResult> sizes,
                                                             OFRs &resultOffsets,
                                                             OFRs &resultSizes) {
  resultOffsets = withColumns(builder, offsets, 0);
  bool isKey = getResult(number) == getDKey();
  resultSizes = withColumns(builder, sizes, isKey ? getHeadDim() : getValueDim());
  return success();
}
