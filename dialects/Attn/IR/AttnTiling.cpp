//===- AttnTiling.cpp - TilingInterface of the attn ops ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iteration domains, in the alphabet of the dialect:
//   attention         (B, H, M)   parallel; N is not a loop before the softmax is online
//   online_attention  (M, N)      parallel, reduction
//   normalize         (M)         parallel
//   merge             (...)       the dimensions of lse, parallel
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnTiling.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

using OFRs = SmallVector<OpFoldResult>;

Value attn::extractTile(OpBuilder &builder, Location loc, Value source,
                        ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
                        SmallVectorImpl<Operation *> &slices) {
  OFRs strides(offsets.size(), builder.getIndexAttr(1));
  auto op = tensor::ExtractSliceOp::create(builder, loc, source, offsets, sizes, strides);
  slices.push_back(op);
  return op;
}

OpFoldResult attn::addPositions(OpBuilder &builder, Location loc, OpFoldResult a, OpFoldResult b) {
  AffineExpr x, y;
  bindSymbols(builder.getContext(), x, y);
  return affine::makeComposedFoldedAffineApply(builder, loc, x + y, {a, b});
}

SmallVector<Range> attn::rangesOf(OpBuilder &builder, ArrayRef<OpFoldResult> sizes) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return llvm::map_to_vector(sizes, [&](OpFoldResult size) { return Range{zero, size, one}; });
}

/// A clone of `op` with other operands, whose results have the types of its destinations.
static Operation *cloneOnTiles(OpBuilder &builder, Operation *op, TypeRange results,
                               ValueRange operands) {
  IRMapping mapping;
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(results);
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions())
    region.cloneInto(state.addRegion(), mapping);
  return builder.create(state);
}

//===----------------------------------------------------------------------===//
// AttentionOp: (B, H, M)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> AttentionOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(3, utils::IteratorType::parallel);
}

SmallVector<Range> AttentionOp::getIterationDomain(OpBuilder &builder) {
  OFRs sizes = tensor::getMixedSizes(builder, getLoc(), getQuery());
  sizes.pop_back();
  return rangesOf(builder, sizes);
}

LogicalResult attn::getKeyHeads(OpBuilder &builder, ScoredOpInterface op, OpFoldResult offset,
                                OpFoldResult size, OpFoldResult &keyOffset, OpFoldResult &keySize) {
  Location loc = op->getLoc();
  OpFoldResult heads = tensor::getMixedSize(builder, loc, op.getQuery(), 1);
  OpFoldResult keyHeads = tensor::getMixedSize(builder, loc, op.getKey(), 1);
  if (isConstantIntValue(size, 1)) {
    AffineExpr h, hkv, total;
    bindSymbols(builder.getContext(), h, hkv, total);
    keySize = builder.getIndexAttr(1);
    if (isConstantIntValue(heads, 1)) {
      keyOffset = builder.getIndexAttr(0);
      return success();
    }
    if (isEqualConstantIntOrValue(heads, keyHeads) || op.getQuery().getDefiningOp<PackHeadsOp>()) {
      keyOffset = offset;
      return success();
    }
    if (isConstantIntValue(keyHeads, 0))
      return op->emitOpError("expected a head of keys or more, got none");
    OpFoldResult group = affine::makeComposedFoldedAffineApply(
        builder, loc, total.floorDiv(hkv), {builder.getIndexAttr(0), keyHeads, heads});
    keyOffset =
        affine::makeComposedFoldedAffineApply(builder, loc, h.floorDiv(hkv), {offset, group});
    return success();
  }
  if (isConstantIntValue(offset, 0) && isEqualConstantIntOrValue(size, heads)) {
    keyOffset = offset;
    keySize = keyHeads;
    return success();
  }
  return op->emitOpError("expected a tile of one head or of all heads");
}

FailureOr<TilingResult> AttentionOp::getTiledImplementation(OpBuilder &builder,
                                                            ArrayRef<OpFoldResult> offsets,
                                                            ArrayRef<OpFoldResult> sizes) {
  if (getVariantsAttr())
    return emitOpError("expected score and mask regions, got variants: a tile does not know the "
                       "problem's M and N");
  Location loc = getLoc();
  OpFoldResult zero = builder.getIndexAttr(0);
  OpFoldResult keyHead, keyHeads;
  if (failed(getKeyHeads(builder, *this, offsets[1], sizes[1], keyHead, keyHeads)))
    return failure();

  SmallVector<Operation *> slices;
  OpFoldResult n = tensor::getMixedSize(builder, loc, getKey(), 2);
  OpFoldResult d = builder.getIndexAttr(getHeadDim()), dv = builder.getIndexAttr(getValueDim());
  Value query = extractTile(builder, loc, getQuery(), {offsets[0], offsets[1], offsets[2], zero},
                            {sizes[0], sizes[1], sizes[2], d}, slices);
  Value key = extractTile(builder, loc, getKey(), {offsets[0], keyHead, zero, zero},
                          {sizes[0], keyHeads, n, d}, slices);
  Value value = extractTile(builder, loc, getValue(), {offsets[0], keyHead, zero, zero},
                            {sizes[0], keyHeads, n, dv}, slices);
  Value sink;
  if (getSink()) {
    size_t rank = getSink().getType().getRank();
    sink =
        extractTile(builder, loc, getSink(), offsets.slice(1, rank), sizes.slice(1, rank), slices);
  }

  SmallVector<Value> origin;
  for (auto [i, position] : llvm::enumerate(getMixedOrigin()))
    origin.push_back(getValueOrCreateConstantIndexOp(
        builder, loc, i < 3 ? addPositions(builder, loc, position, offsets[i]) : position));

  auto queryType = cast<RankedTensorType>(query.getType());
  SmallVector<int64_t> shape(queryType.getShape());
  shape[3] = getValueDim();
  Type output = RankedTensorType::get(shape, getOutput().getType().getElementType());
  shape.pop_back();
  auto ofRows = [&](Value whole) {
    return whole ? Type(RankedTensorType::get(shape, getElementTypeOrSelf(whole.getType())))
                 : Type();
  };
  auto tiled = AttentionOp::create(builder, loc, output, ofRows(getLse()), ofRows(getLseLow()),
                                   query, key, value, getScale(), sink, origin,
                                   /*captures=*/ValueRange(), /*variants=*/ArrayAttr());
  tiled->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
  IRMapping mapping;
  getScore().cloneInto(&tiled.getScore(), mapping);
  getMask().cloneInto(&tiled.getMask(), mapping);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult AttentionOp::getResultTilePosition(OpBuilder &builder, unsigned resultNumber,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes, OFRs &resultOffsets,
                                                 OFRs &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  if (resultNumber == 0) {
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(builder.getIndexAttr(getValueDim()));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// OnlineAttentionOp: (M, N)
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> OnlineAttentionOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel, utils::IteratorType::reduction};
}

SmallVector<Range> OnlineAttentionOp::getIterationDomain(OpBuilder &builder) {
  return rangesOf(builder, {tensor::getMixedSize(builder, getLoc(), getQuery(), 0),
                            tensor::getMixedSize(builder, getLoc(), getKey(), 0)});
}

/// The op on rows [m, m + rows) and keys [n, n + keys), with the given running state for those
/// rows.
static FailureOr<TilingResult> tileOnline(OpBuilder &builder, OnlineAttentionOp op, OpFoldResult m,
                                          OpFoldResult rows, OpFoldResult n, OpFoldResult keys,
                                          ValueRange state, SmallVector<Operation *> slices) {
  Location loc = op.getLoc();
  OpFoldResult zero = builder.getIndexAttr(0);
  auto width = [&](Value v) { return tensor::getMixedSize(builder, loc, v, 1); };
  SmallVector<Value> operands = {
      extractTile(builder, loc, op.getQuery(), {m, zero}, {rows, width(op.getQuery())}, slices),
      extractTile(builder, loc, op.getKey(), {n, zero}, {keys, width(op.getKey())}, slices),
      extractTile(builder, loc, op.getValue(), {n, zero}, {keys, width(op.getValue())}, slices),
      op.getScale()};
  OFRs origin = op.getMixedOrigin();
  origin[2] = addPositions(builder, loc, origin[2], m);
  origin[3] = addPositions(builder, loc, origin[3], n);
  for (OpFoldResult position : origin)
    operands.push_back(getValueOrCreateConstantIndexOp(builder, loc, position));
  llvm::append_range(operands, state);
  auto tiled = OnlineAttentionOp::create(
      builder, loc, state.getTypes(), operands[0], operands[1], operands[2], op.getScale(),
      ValueRange(operands).slice(4, 4), state[0], state[1], state[2]);
  tiled->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  op.getScore().cloneInto(&tiled.getScore(), mapping);
  op.getMask().cloneInto(&tiled.getMask(), mapping);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

FailureOr<TilingResult> OnlineAttentionOp::getTiledImplementation(OpBuilder &builder,
                                                                  ArrayRef<OpFoldResult> offsets,
                                                                  ArrayRef<OpFoldResult> sizes) {
  Location loc = getLoc();
  OpFoldResult zero = builder.getIndexAttr(0);
  OpFoldResult dv = tensor::getMixedSize(builder, loc, getAcc(), 1);
  SmallVector<Operation *> slices;
  SmallVector<Value> state = {
      extractTile(builder, loc, getAcc(), {offsets[0], zero}, {sizes[0], dv}, slices),
      extractTile(builder, loc, getRowMax(), {offsets[0]}, {sizes[0]}, slices),
      extractTile(builder, loc, getRowSum(), {offsets[0]}, {sizes[0]}, slices)};
  return tileOnline(builder, *this, offsets[0], sizes[0], offsets[1], sizes[1], state, slices);
}

/// acc takes the tile's rows and all of Dv, row_max and row_sum the rows; N is reduced away.
static void getRowPosition(OpBuilder &builder, Location loc, Value acc, unsigned resultNumber,
                           OpFoldResult offset, OpFoldResult size, OFRs &resultOffsets,
                           OFRs &resultSizes) {
  resultOffsets = {offset};
  resultSizes = {size};
  if (resultNumber == 0) {
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(tensor::getMixedSize(builder, loc, acc, 1));
  }
}

LogicalResult OnlineAttentionOp::getResultTilePosition(OpBuilder &builder, unsigned resultNumber,
                                                       ArrayRef<OpFoldResult> offsets,
                                                       ArrayRef<OpFoldResult> sizes,
                                                       OFRs &resultOffsets, OFRs &resultSizes) {
  getRowPosition(builder, getLoc(), getAcc(), resultNumber, offsets[0], sizes[0], resultOffsets,
                 resultSizes);
  return success();
}

//===----------------------------------------------------------------------===//
// OnlineAttentionOp: partial reductions over N
//
// A split of N gives each part its own running state: (S, M, Dv), (S, M), (S, M). Joining states is
// the same algebra as absorbing tiles: rescale to the common maximum and add.
//===----------------------------------------------------------------------===//

static LogicalResult checkSplitsKeysOnly(OnlineAttentionOp op,
                                         const SetVector<unsigned> &reductionDims,
                                         ReductionTilingStrategy strategy) {
  if (reductionDims.size() != 1 || reductionDims[0] != 1)
    return op.emitOpError("expected a partial reduction over N alone");
  if (strategy != ReductionTilingStrategy::PartialReductionOuterParallel)
    return op.emitOpError("expected N split into parallel parts");
  return success();
}

FailureOr<SmallVector<Value>> OnlineAttentionOp::generateInitialTensorForPartialReduction(
    OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> tileSizes,
    const SetVector<unsigned> & /*reductionDims*/) {
  // The parts' states start from the neutral element; the op's own initial state joins at the
  // merge.
  OpFoldResult parts = tileSizes[1];
  OFRs acc = tensor::getMixedSizes(builder, loc, getAcc());
  OFRs row = {parts, acc[0]};
  acc.insert(acc.begin(), parts);
  Type f32 = builder.getF32Type();
  auto fill = [&](const OFRs &sizes, double value) -> Value {
    Value empty = tensor::EmptyOp::create(builder, loc, sizes, f32);
    Value constant = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value));
    return linalg::FillOp::create(builder, loc, constant, empty).getResult(0);
  };
  return SmallVector<Value>{fill(acc, 0.0), fill(row, -std::numeric_limits<double>::infinity()),
                            fill(row, 0.0)};
}

FailureOr<TilingResult> OnlineAttentionOp::tileToPartialReduction(
    OpBuilder &builder, Location loc, ReductionTilingStrategy strategy, ValueRange init,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims, ArrayRef<OpFoldResult> splitReductionIvs) {
  if (failed(checkSplitsKeysOnly(*this, reductionDims, strategy)))
    return failure();
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  SmallVector<Operation *> slices;
  SmallVector<Value> state;
  for (auto [i, value] : llvm::enumerate(init)) {
    OFRs partOffsets = {splitReductionIvs[0], offsets[0]}, partSizes = {one, sizes[0]};
    // Dv from the parts, (S, M, Dv): a caller may have put them in the place of the op's own state
    // already.
    if (i == 0) {
      partOffsets.push_back(zero);
      partSizes.push_back(tensor::getMixedSize(builder, loc, value, 2));
    }
    auto type = cast<RankedTensorType>(value.getType());
    auto full = tensor::ExtractSliceOp::inferResultType(type, partSizes);
    auto reduced = RankedTensorType::get(full.getShape().drop_front(), full.getElementType());
    OFRs strides(partOffsets.size(), one);
    auto part = tensor::ExtractSliceOp::create(builder, loc, reduced, value, partOffsets, partSizes,
                                               strides);
    slices.push_back(part);
    state.push_back(part);
  }
  return tileOnline(builder, *this, offsets[0], sizes[0], offsets[1], sizes[1], state, slices);
}

LogicalResult OnlineAttentionOp::getPartialResultTilePosition(
    OpBuilder &builder, unsigned resultNumber, ReductionTilingStrategy strategy,
    ArrayRef<OpFoldResult> offsets, ArrayRef<OpFoldResult> sizes,
    const SetVector<unsigned> &reductionDims, ArrayRef<OpFoldResult> splitReductionIvs,
    OFRs &resultOffsets, OFRs &resultSizes) {
  if (failed(checkSplitsKeysOnly(*this, reductionDims, strategy)))
    return failure();
  getRowPosition(builder, getLoc(), getAcc(), resultNumber, offsets[0], sizes[0], resultOffsets,
                 resultSizes);
  resultOffsets.insert(resultOffsets.begin(), splitReductionIvs[0]);
  resultSizes.insert(resultSizes.begin(), builder.getIndexAttr(1));
  return success();
}

FailureOr<MergeResult>
OnlineAttentionOp::mergeReductions(OpBuilder &builder, Location loc, ValueRange partial,
                                   const SetVector<unsigned> & /*reductionDims*/) {
  // max = max_s row_max[s]; then sums of states scaled by exp2(row_max[s] - max). In one piece:
  // four loops that share their maps.
  MLIRContext *context = builder.getContext();
  AffineExpr s, m, d;
  bindDims(context, s, m, d);
  auto map2 = [&](ArrayRef<AffineExpr> results) { return AffineMap::get(2, 0, results, context); };
  auto map3 = [&](ArrayRef<AffineExpr> results) { return AffineMap::get(3, 0, results, context); };
  using It = utils::IteratorType;

  auto rowMax = linalg::GenericOp::create(
      builder, loc, TypeRange{getRowMax().getType()}, ValueRange{partial[1]},
      ValueRange{getRowMax()}, ArrayRef<AffineMap>{map2({s, m}), map2({m})},
      ArrayRef<It>{It::reduction, It::parallel}, [](OpBuilder &b, Location l, ValueRange args) {
        linalg::YieldOp::create(b, l,
                                arith::MaximumFOp::create(b, l, args[0], args[1]).getResult());
      });
  Value max = rowMax.getResult(0);
  // exp2(from - to), 0 where `from` is -inf: a state that kept nothing, whose difference may be
  // NaN.
  auto weight = [](OpBuilder &b, Location l, Value from, Value to) -> Value {
    Value zero = arith::ConstantOp::create(b, l, b.getF32FloatAttr(0.0f));
    Value lowest = arith::ConstantOp::create(
        b, l,
        b.getFloatAttr(b.getF32Type(), APFloat::getInf(APFloat::IEEEsingle(), /*Negative=*/true)));
    Value power = math::Exp2Op::create(b, l, arith::SubFOp::create(b, l, from, to));
    Value empty = arith::CmpFOp::create(b, l, arith::CmpFPredicate::OEQ, from, lowest);
    return arith::SelectOp::create(b, l, empty, zero, power);
  };
  auto rescale = [&](Value state, bool isAcc) -> Value {
    SmallVector<AffineMap> maps = isAcc ? SmallVector<AffineMap>{map2({s}), map2({s}), map2({s, m})}
                                        : SmallVector<AffineMap>{map2({s}), map2({s}), map2({s})};
    SmallVector<It> iterators(isAcc ? 2 : 1, It::parallel);
    if (!isAcc)
      for (AffineMap &map : maps)
        map = AffineMap::get(1, 0, {builder.getAffineDimExpr(0)}, context);
    return linalg::GenericOp::create(
               builder, loc, TypeRange{state.getType()}, ValueRange{getRowMax(), max},
               ValueRange{state}, maps, iterators,
               [&](OpBuilder &b, Location l, ValueRange args) {
                 Value w = weight(b, l, args[0], args[1]);
                 linalg::YieldOp::create(b, l, arith::MulFOp::create(b, l, args[2], w).getResult());
               })
        .getResult(0);
  };
  auto absorb = [&](Value part, Value state, bool isAcc) -> Value {
    SmallVector<AffineMap> maps =
        isAcc ? SmallVector<AffineMap>{map3({s, m}), map3({m}), map3({s, m, d}), map3({m, d})}
              : SmallVector<AffineMap>{map2({s, m}), map2({m}), map2({s, m}), map2({m})};
    SmallVector<It> iterators(isAcc ? 3 : 2, It::parallel);
    iterators[0] = It::reduction;
    return linalg::GenericOp::create(
               builder, loc, TypeRange{state.getType()}, ValueRange{partial[1], max, part},
               ValueRange{state}, maps, iterators,
               [&](OpBuilder &b, Location l, ValueRange args) {
                 Value w = weight(b, l, args[0], args[1]);
                 Value term = arith::MulFOp::create(b, l, args[2], w);
                 linalg::YieldOp::create(b, l,
                                         arith::AddFOp::create(b, l, args[3], term).getResult());
               })
        .getResult(0);
  };
  Value acc = absorb(partial[0], rescale(getAcc(), /*isAcc=*/true), /*isAcc=*/true);
  Value sum = absorb(partial[2], rescale(getRowSum(), /*isAcc=*/false), /*isAcc=*/false);
  return MergeResult{{rowMax, acc.getDefiningOp(), sum.getDefiningOp()}, {acc, max, sum}};
}

//===----------------------------------------------------------------------===//
// NormalizeOp: (M), and MergeOp: the dimensions of lse
//===----------------------------------------------------------------------===//

SmallVector<utils::IteratorType> NormalizeOp::getLoopIteratorTypes() {
  return {utils::IteratorType::parallel};
}

SmallVector<Range> NormalizeOp::getIterationDomain(OpBuilder &builder) {
  return rangesOf(builder, {tensor::getMixedSize(builder, getLoc(), getAcc(), 0)});
}

FailureOr<TilingResult> NormalizeOp::getTiledImplementation(OpBuilder &builder,
                                                            ArrayRef<OpFoldResult> offsets,
                                                            ArrayRef<OpFoldResult> sizes) {
  SmallVector<Operation *> slices;
  SmallVector<Value> operands;
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!type) {
      operands.push_back(operand.get());
      continue;
    }
    OFRs position = {offsets[0]}, extent = {sizes[0]};
    if (type.getRank() == 2) {
      position.push_back(builder.getIndexAttr(0));
      extent.push_back(tensor::getMixedSize(builder, getLoc(), operand.get(), 1));
    }
    operands.push_back(extractTile(builder, getLoc(), operand.get(), position, extent, slices));
  }
  TypeRange types = ValueRange(operands).take_back(getNumDpsInits()).getTypes();
  Operation *tiled = cloneOnTiles(builder, *this, types, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult NormalizeOp::getResultTilePosition(OpBuilder &builder, unsigned resultNumber,
                                                 ArrayRef<OpFoldResult> offsets,
                                                 ArrayRef<OpFoldResult> sizes, OFRs &resultOffsets,
                                                 OFRs &resultSizes) {
  getRowPosition(builder, getLoc(), getAcc(), resultNumber, offsets[0], sizes[0], resultOffsets,
                 resultSizes);
  return success();
}

SmallVector<utils::IteratorType> MergeOp::getLoopIteratorTypes() {
  return SmallVector<utils::IteratorType>(getPartialLse().getType().getRank() - 1,
                                          utils::IteratorType::parallel);
}

SmallVector<Range> MergeOp::getIterationDomain(OpBuilder &builder) {
  OFRs sizes = tensor::getMixedSizes(builder, getLoc(), getPartialLse());
  return rangesOf(builder, ArrayRef<OpFoldResult>(sizes).drop_front());
}

FailureOr<TilingResult> MergeOp::getTiledImplementation(OpBuilder &builder,
                                                        ArrayRef<OpFoldResult> offsets,
                                                        ArrayRef<OpFoldResult> sizes) {
  SmallVector<Operation *> slices;
  SmallVector<Value> operands;
  OpFoldResult zero = builder.getIndexAttr(0);
  for (OpOperand &operand : getOperation()->getOpOperands()) {
    Value source = operand.get();
    OFRs position(offsets), extent(sizes);
    bool isPartial = !isDpsInit(&operand);
    bool hasColumns = source == getPartial() || source == getOutput();
    if (hasColumns) {
      int64_t last = cast<ShapedType>(source.getType()).getRank() - 1;
      position.push_back(zero);
      extent.push_back(tensor::getMixedSize(builder, getLoc(), source, last));
    }
    if (isPartial) {
      position.insert(position.begin(), zero);
      extent.insert(extent.begin(), tensor::getMixedSize(builder, getLoc(), source, 0));
    }
    operands.push_back(extractTile(builder, getLoc(), source, position, extent, slices));
  }
  TypeRange types = ValueRange(operands).take_back(getNumDpsInits()).getTypes();
  Operation *tiled = cloneOnTiles(builder, *this, types, operands);
  return TilingResult{{tiled}, SmallVector<Value>(tiled->getResults()), slices};
}

LogicalResult MergeOp::getResultTilePosition(OpBuilder &builder, unsigned resultNumber,
                                             ArrayRef<OpFoldResult> offsets,
                                             ArrayRef<OpFoldResult> sizes, OFRs &resultOffsets,
                                             OFRs &resultSizes) {
  resultOffsets.assign(offsets.begin(), offsets.end());
  resultSizes.assign(sizes.begin(), sizes.end());
  if (resultNumber == 0) {
    resultOffsets.push_back(builder.getIndexAttr(0));
    resultSizes.push_back(
        tensor::getMixedSize(builder, getLoc(), getOutput(), getOutput().getType().getRank() - 1));
  }
  return success();
}
