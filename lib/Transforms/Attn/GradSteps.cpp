//===- GradSteps.cpp - gradients as steps over tiles ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/GradSteps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Target.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include <cmath>

using namespace mlir;
using namespace attn;

void attn::copyRegions(Operation *from, Operation *to) {
  to->setDiscardableAttrs(from->getDiscardableAttrDictionary());
  IRMapping mapping;
  for (auto [source, dest] : llvm::zip_equal(from->getRegions(), to->getRegions()))
    source.cloneInto(&dest, mapping);
}

static Value emitEmpty(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
                       Value elementsOf) {
  return tensor::EmptyOp::create(builder, loc, sizes,
                                 cast<RankedTensorType>(elementsOf.getType()).getElementType());
}

void attn::makeRowSteps(RewriterBase &rewriter, RowDeltaOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto reduce = [&](Value value) {
    return value ? dropBatchAndHead(rewriter, loc, value) : Value();
  };
  Value output = reduce(op.getOutput()), gradient = reduce(op.getDOutput());
  Value lse = reduce(op.getLse()), low = reduce(op.getLseLow()), lseGradient = reduce(op.getDLse());
  OpFoldResult rows = getRows(rewriter, loc, output);
  SmallVector<Value> outs;
  for (Value result : op->getResults())
    outs.push_back(emitEmpty(rewriter, loc, {rows}, result));
  auto step = GradRowsOp::create(rewriter, loc, ValueRange(outs).getTypes(), output, gradient, lse,
                                 low, lseGradient, outs[0], outs[1], low ? outs[2] : Value());
  if (Attribute roundsUp = op->getAttr(kRoundsUpAttrName))
    step->setAttr(kRoundsUpAttrName, roundsUp);
  for (auto [result, reduced] : llvm::zip_equal(op->getResults(), step->getResults()))
    replaceReduced(rewriter, result, reduced);
  rewriter.eraseOp(op);
}

Value attn::emitScale(OpBuilder &builder, ScoredOpInterface op) {
  if (op.getScale())
    return op.getScale();
  return arith::ConstantOp::create(
      builder, op.getLoc(), builder.getF32FloatAttr(1.0 / std::sqrt(double(op.getHeadDim()))));
}

template <typename OpT> static SmallVector<Value> getOrigin(OpBuilder &builder, OpT op) {
  return getValueOrCreateConstantIndexOp(builder, op.getLoc(), op.getMixedOrigin());
}

void attn::takeRegions(OpBuilder &builder, Operation *from, Operation *to, Region &score,
                       Value negLow2) {
  to->setDiscardableAttrs(from->getDiscardableAttrDictionary());
  // Every step has a grad region; what derives nothing has none to give.
  for (auto [source, dest] : llvm::zip(from->getRegions(), to->getRegions()))
    dest.takeBody(source);
  // As attn-online-softmax makes the scores.
  bool isExact = negLow2 && isForGPU(from);
  if (score.empty() || !(isExact || mayExceedLargestScore(score)))
    return;
  auto yield = cast<YieldOp>(score.front().getTerminator());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(yield);
  yield.getResultMutable().assign(emitBoundedScore(builder, yield.getLoc(), yield.getResult()));
}

/// The sum, scaled and rounded to the elements of `gradient`, in its place; nothing if it is not
/// wanted.
static void endSum(RewriterBase &rewriter, Location loc, Value gradient, OpFoldResult rows,
                   Value sum, Value scale) {
  if (!gradient)
    return;
  int64_t columns = cast<RankedTensorType>(sum.getType()).getDimSize(1);
  Value out = emitEmpty(rewriter, loc, {rows, rewriter.getIndexAttr(columns)}, gradient);
  auto end = GradEndOp::create(rewriter, loc, TypeRange(out.getType()), sum, scale, out);
  replaceReduced(rewriter, gradient, end->getResult(0));
}

void attn::makeDeltaSteps(RewriterBase &rewriter, AttentionGradDeltaOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto reduce = [&](Value value) {
    return value ? dropBatchAndHead(rewriter, loc, value) : Value();
  };
  Value query = reduce(op.getQuery()), key = reduce(op.getKey()), value = reduce(op.getValue());
  Value gradient = reduce(op.getDOutput()), negLse2 = reduce(op.getNegLse2()),
        delta = reduce(op.getDelta()), negLow2 = reduce(op.getNegLow2()),
        lseGradient = reduce(op.getDLse());
  OpFoldResult rows = getRows(rewriter, loc, query);
  Value sums[] = {emitFill(rewriter, loc, {rows}, 0), emitFill(rewriter, loc, {rows}, 0)};
  auto step = GradDeltaStepOp::create(rewriter, loc, ValueRange(sums).getTypes(), query, key, value,
                                      gradient, negLse2, delta, negLow2, emitScale(rewriter, op),
                                      getOrigin(rewriter, op), sums[0], sums[1]);
  takeRegions(rewriter, op, step, step.getScore(), op.getNegLow2());
  rewriter.setInsertionPointAfter(step);
  Value sink;
  if (op.getSink())
    sink = tensor::ExtractOp::create(rewriter, loc, op.getSink(),
                                     ValueRange{arith::ConstantIndexOp::create(rewriter, loc, 0)});
  Value out = emitEmpty(rewriter, loc, {rows}, op.getExactDelta());
  auto end = GradDeltaEndOp::create(rewriter, loc, TypeRange(out.getType()), step->getResult(0),
                                    step->getResult(1), negLse2, delta, lseGradient, sink, out);
  replaceReduced(rewriter, op.getExactDelta(), end->getResult(0));
  rewriter.eraseOp(op);
}

void attn::makeQuerySteps(RewriterBase &rewriter, AttentionGradQueryOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  auto reduce = [&](Value value) {
    return value ? dropBatchAndHead(rewriter, loc, value) : Value();
  };
  Value query = reduce(op.getQuery()), key = reduce(op.getKey()), value = reduce(op.getValue());
  Value gradient = reduce(op.getDOutput()), negLse2 = reduce(op.getNegLse2()),
        delta = reduce(op.getDelta()), negLow2 = reduce(op.getNegLow2());
  OpFoldResult rows = getRows(rewriter, loc, query);
  Value acc = emitFill(rewriter, loc, {rows, rewriter.getIndexAttr(op.getHeadDim())}, 0);
  Value scale = emitScale(rewriter, op);
  auto step =
      GradQueryStepOp::create(rewriter, loc, TypeRange(acc.getType()), query, key, value, gradient,
                              negLse2, delta, negLow2, scale, getOrigin(rewriter, op), acc);
  takeRegions(rewriter, op, step, step.getScore(), op.getNegLow2());
  rewriter.setInsertionPointAfter(step);
  endSum(rewriter, loc, op.getDQuery(), rows, step->getResult(0), scale);
  rewriter.eraseOp(op);
}

/// Head `head` of (1, g, X, Y) as (X, Y), of (1, g, X) as (X).
static Value sliceHead(OpBuilder &builder, Location loc, Value value, Value head) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0)),
      strides(sizes.size(), builder.getIndexAttr(1));
  offsets[1] = head;
  sizes[1] = builder.getIndexAttr(1);
  auto reduced = RankedTensorType::get(type.getShape().drop_front(2), type.getElementType());
  return tensor::ExtractSliceOp::create(builder, loc, reduced, value, offsets, sizes, strides);
}

/// The heads of a group run one after the other, so that keys and values keep their f32 sums.
void attn::makeKeyValueSteps(RewriterBase &rewriter, AttentionGradKeyValueOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Value key = dropBatchAndHead(rewriter, loc, op.getKey()),
        value = dropBatchAndHead(rewriter, loc, op.getValue());
  OpFoldResult keys = getRows(rewriter, loc, key);
  Value sums[] = {emitFill(rewriter, loc, {keys, rewriter.getIndexAttr(op.getHeadDim())}, 0),
                  emitFill(rewriter, loc, {keys, rewriter.getIndexAttr(op.getValueDim())}, 0)};
  Value scale = emitScale(rewriter, op);
  SmallVector<Value> origin = getOrigin(rewriter, op);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
  OpFoldResult size = tensor::getMixedSize(rewriter, loc, op.getQuery(), 1);
  if (auto slice = op.getQuery().getDefiningOp<tensor::ExtractSliceOp>())
    size = slice.getMixedSizes()[1];
  Value heads = getValueOrCreateConstantIndexOp(rewriter, loc, size);
  auto loop = scf::ForOp::create(rewriter, loc, zero, heads, one, sums);
  rewriter.setInsertionPointToStart(loop.getBody());
  auto ofHead = [&](Value whole) {
    return whole ? sliceHead(rewriter, loc, whole, loop.getInductionVar()) : Value();
  };
  Value query = ofHead(op.getQuery()), gradient = ofHead(op.getDOutput()),
        negLse2 = ofHead(op.getNegLse2()), delta = ofHead(op.getDelta()),
        negLow2 = ofHead(op.getNegLow2());
  origin[1] = arith::AddIOp::create(rewriter, loc, origin[1], loop.getInductionVar());
  ValueRange running = loop.getRegionIterArgs();
  auto step =
      GradKeyValueStepOp::create(rewriter, loc, running.getTypes(), query, key, value, gradient,
                                 negLse2, delta, negLow2, scale, origin, running[0], running[1]);
  takeRegions(rewriter, op, step, step.getScore(), op.getNegLow2());
  rewriter.setInsertionPointAfter(step);
  scf::YieldOp::create(rewriter, loc, step->getResults());
  rewriter.setInsertionPointAfter(loop);
  endSum(rewriter, loc, op.getDKey(), keys, loop.getResult(0), scale);
  endSum(rewriter, loc, op.getDValue(), keys, loop.getResult(1), /*scale=*/Value());
  rewriter.eraseOp(op);
}
