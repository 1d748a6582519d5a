//===- OnlineSoftmax.cpp - attn-online-softmax -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GradSteps.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Target.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

namespace attn {
#define GEN_PASS_DEF_ONLINESOFTMAXPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The factor of the dot products, with log2(e) folded in when no score region comes between it and
/// the exponential.
static Value getBase2Scale(OpBuilder &builder, AttentionOp op) {
  double factor = op.getScore().empty() ? 1.0 / M_LN2 : 1.0;
  Location loc = op.getLoc();
  // Gradients that are given lse_low have the same product of two f32.
  if (!op.getScale() && !op.getLseLow())
    return arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(factor / std::sqrt(double(op.getHeadDim()))));
  Value scale = emitScale(builder, op);
  if (factor == 1.0)
    return scale;
  Value log2e = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(factor));
  return arith::MulFOp::create(builder, loc, scale, log2e);
}

/// Makes the score region yield in base 2, where finite scores stay finite. With `isExact`
/// gradients are to multiply as this does: a product of a bounded score is one that nothing is
/// folded into.
static void scaleYieldedScore(OpBuilder &builder, Region &score, bool isExact) {
  if (score.empty())
    return;
  auto yield = cast<YieldOp>(score.front().getTerminator());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(yield);
  Location loc = yield.getLoc();
  Value result = yield.getResult();
  if (isExact || mayExceedLargestScore(score))
    result = emitBoundedScore(builder, loc, result);
  Value log2e = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(1.0 / M_LN2));
  yield.getResultMutable().assign(arith::MulFOp::create(builder, loc, result, log2e).getResult());
}

static void makeOnline(RewriterBase &rewriter, AttentionOp op) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  Value query = dropBatchAndHead(rewriter, loc, op.getQuery());
  Value key = dropBatchAndHead(rewriter, loc, op.getKey());
  Value value = dropBatchAndHead(rewriter, loc, op.getValue());
  OpFoldResult m = getRows(rewriter, loc, query), dv = rewriter.getIndexAttr(op.getValueDim());
  Type f32 = rewriter.getF32Type();

  auto fill = [&](ArrayRef<OpFoldResult> sizes, float constant) {
    return emitFill(rewriter, loc, sizes, constant);
  };
  SmallVector<Value> state = {fill({m, dv}, 0.0f),
                              fill({m}, -std::numeric_limits<float>::infinity()), fill({m}, 0.0f)};
  SmallVector<Value> origin;
  for (OpFoldResult position : op.getMixedOrigin())
    origin.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, position));

  auto online =
      OnlineAttentionOp::create(rewriter, loc, ValueRange(state).getTypes(), query, key, value,
                                getBase2Scale(rewriter, op), origin, state[0], state[1], state[2]);
  online->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  online.getScore().takeBody(op.getScore());
  online.getMask().takeBody(op.getMask());
  scaleYieldedScore(rewriter, online.getScore(), op.getLseLow() && isForGPU(op));

  Value sink;
  if (op.getSink() && op.getSink().getType().getRank() == 2)
    sink = dropFirst(rewriter, loc, op.getSink(), 1);
  else if (op.getSink())
    sink = tensor::ExtractOp::create(rewriter, loc, op.getSink(),
                                     ValueRange{arith::ConstantIndexOp::create(rewriter, loc, 0)});
  SmallVector<Value> outs = {
      tensor::EmptyOp::create(rewriter, loc, {m, dv}, op.getOutput().getType().getElementType())};
  while (outs.size() < op->getNumResults())
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, {m}, f32));
  auto normalize =
      NormalizeOp::create(rewriter, loc, ValueRange(outs).getTypes(), online->getResult(0),
                          online->getResult(1), online->getResult(2), sink, outs[0],
                          op.getLse() ? outs[1] : Value(), op.getLseLow() ? outs[2] : Value());
  for (auto [result, reduced] : llvm::zip_equal(op->getResults(), normalize->getResults()))
    replaceReduced(rewriter, result, reduced);
  rewriter.eraseOp(op);
}

namespace {
struct OnlineSoftmaxPass
    : RoomPass<attn::impl::OnlineSoftmaxPassBase<OnlineSoftmaxPass>, Room::Grid, Room::Online> {
  LogicalResult transform() override {
    WalkResult precise = getOperation()->walk([&](Operation *op) -> WalkResult {
      if (!isa<ScoredOpInterface, RowDeltaOp>(op))
        return WalkResult::advance();
      SmallVector<Type> types(op->getResultTypes());
      llvm::append_range(types, op->getOperandTypes());
      for (Type type : types)
        if (getElementTypeOrSelf(type).isF64())
          return op->emitOpError("expected f16, bf16 or f32 results, got ")
                 << type << " (f64 is for the reference: convert-attn-to-linalg)";
      return WalkResult::advance();
    });
    if (precise.wasInterrupted())
      return failure();
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](AttentionOp op) { makeOnline(rewriter, op); });
    getOperation()->walk([&](RowDeltaOp op) { makeRowSteps(rewriter, op); });
    getOperation()->walk([&](AttentionGradDeltaOp op) { makeDeltaSteps(rewriter, op); });
    WalkResult captured = getOperation()->walk([&](AttentionGradQueryOp op) -> WalkResult {
      if (!op.getWrt().empty())
        return makeCapturedSteps(rewriter, op);
      makeQuerySteps(rewriter, op);
      return success();
    });
    if (captured.wasInterrupted())
      return failure();
    getOperation()->walk([&](AttentionGradKeyValueOp op) { makeKeyValueSteps(rewriter, op); });
    return success();
  }
};
} // namespace
