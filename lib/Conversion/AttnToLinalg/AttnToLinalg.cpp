//===- AttnToLinalg.cpp - convert-attn-to-linalg -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Conversion/AttnToLinalg/Reference.h"
#include "lib/Conversion/AttnToLinalg/WidenRegion.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOLINALGPASS
#include "lib/Conversion/AttnToLinalg/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;
using OFRs = SmallVector<OpFoldResult>;

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

ScoreReference::ScoreReference(Reference &b, ScoredOpInterface op)
    : op(op), origin(op.getMixedOrigin()) {
  OFRs q = tensor::getMixedSizes(b, b.getLoc(), op.getQuery()),
       k = tensor::getMixedSizes(b, b.getLoc(), op.getKey());
  heads = getValueOrCreateConstantIndexOp(b, b.getLoc(), q[1]);
  keyHeads = getValueOrCreateConstantIndexOp(b, b.getLoc(), k[1]);
  scale =
      op.getScale() ? b.toReal(op.getScale()) : b.number(1.0 / std::sqrt(double(op.getHeadDim())));
  bhmn = {q[0], q[1], q[2], k[2]};
  bhm = {q[0], q[1], q[2]};
}

Value ScoreReference::keyHead(Reference &r, Value head) {
  return arith::DivUIOp::create(r, arith::MulIOp::create(r, head, keyHeads), heads);
}

Value ScoreReference::products(Reference &b, Value rows, Value keys) {
  constexpr int64_t B = 0, H = 1, M = 2, N = 3, D = 4;
  return b.loop(rows, b.filled(bhmn, b.number(0.0)), {{B, H, M, D}, {B, H, M, N}},
                {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction},
                [&](Reference &r, ValueRange args) -> Value {
                  Value key = tensor::ExtractOp::create(
                      r, keys,
                      ValueRange{r.index(B), keyHead(r, r.index(H)), r.index(N), r.index(D)});
                  return arith::AddFOp::create(
                      r, args[1], arith::MulFOp::create(r, r.toReal(args[0]), r.toReal(key)));
                });
}

SmallVector<Value> ScoreReference::positions(Reference &r) {
  SmallVector<Value> at;
  for (unsigned i = 0; i < 4; ++i)
    at.push_back(r.position(i, origin[i]));
  return at;
}

/// The view of sequences that a whole tensor is, scaled or not. Rows of a slice of one all count.
static RaggedOp getSequences(Value tensor) {
  auto scaled = tensor.getDefiningOp<ScaledOp>();
  return (scaled ? scaled.getSource() : tensor).getDefiningOp<RaggedOp>();
}

Value ScoreReference::score(Reference &r, Value product) {
  SmallVector<Value> at = positions(r);
  Value score = arith::MulFOp::create(r, product, scale);
  if (!op.getScore().empty())
    score = inlineWidened(r, op.getScore(), {score, at[0], at[1], at[2], at[3]}, r.real);
  if (mayExceedLargestScore(op.getScore()))
    score = emitBoundedScore(r, r.getLoc(), score);
  Value keep;
  if (!op.getMask().empty())
    keep = inlineWidened(r, op.getMask(), at, r.real);
  // s20: a row that its sequence does not have takes no part.
  for (auto [tensor, dim] : {std::pair<Value, unsigned>{op.getQuery(), 2}, {op.getKey(), 3}})
    if (RaggedOp view = getSequences(tensor)) {
      Value rows = emitSequence(r, r.getLoc(), view, r.index(0)).rows;
      Value exists = arith::CmpIOp::create(r, arith::CmpIPredicate::slt, r.index(dim), rows);
      keep = keep ? arith::AndIOp::create(r, keep, exists).getResult() : exists;
    }
  return keep ? r.select(keep, score, r.lowest()) : score;
}

Value ScoreReference::factors(Reference &b, Value products) {
  if (!getFactor(op.getScore()))
    return {};
  SmallVector<int64_t> all = {0, 1, 2, 3};
  return b.loop({}, products, {all}, SmallVector<It>(4, It::parallel),
                [&](Reference &r, ValueRange args) {
                  SmallVector<Value> at = positions(r);
                  Value product = arith::MulFOp::create(r, args[0], scale);
                  return inlineWidened(r, op.getScore(), {product, at[0], at[1], at[2], at[3]},
                                       r.real, /*contribute=*/nullptr, /*yielded=*/1);
                });
}

Value ScoreReference::multiply(Reference &b, Value factors, Value by) {
  if (!factors)
    return by;
  SmallVector<int64_t> all = {0, 1, 2, 3};
  return b.loop(factors, by, {all, all}, SmallVector<It>(4, It::parallel),
                [](Reference &r, ValueRange args) -> Value {
                  return arith::MulFOp::create(r, args[0], args[1]);
                });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// s17: what a log-sum-exp loses where it is stored, in the type of `result`; 0 where it is
/// infinite.
static Value defineLow(Reference &b, Value lse, Value result, ArrayRef<int64_t> dims) {
  Type stored = getElementTypeOrSelf(result.getType());
  SmallVector<int64_t> rows(dims);
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), lse);
  return b.loop(lse, b.filled(sizes, b.number(0.0)), {rows, rows},
                SmallVector<It>(rows.size(), It::parallel),
                [&](Reference &r, ValueRange args) -> Value {
                  Value held = args[0];
                  if (held.getType() != stored)
                    held = arith::TruncFOp::create(r, stored, held);
                  Value whole = arith::MulFOp::create(r, args[0], r.number(double(kF32Log2e)));
                  Value low = arith::SubFOp::create(r, whole, r.toRoundedBase2(held));
                  Value isNumber = arith::CmpFOp::create(r, arith::CmpFPredicate::ORD, low, low);
                  return r.select(isNumber, low, r.number(0.0));
                });
}

/// The results (output, lse, lse_low) of the op, in the arithmetic type. In one piece, since a
/// reader compares it with s1 to s6.
static SmallVector<Value> defineAttention(Reference &b, AttentionOp op) {
  constexpr int64_t B = 0, H = 1, M = 2, N = 3;
  ScoreReference scores(b, op);
  const OFRs &q = scores.bhm;
  Value zero = b.number(0.0);

  // s1: S = sum_d Q K
  Value s = scores.products(b, op.getQuery(), op.getKey());

  // s2, s3: T = score(scale * S), -inf where the mask drops it
  SmallVector<It> elementwise(4, It::parallel);
  SmallVector<int64_t> all = {B, H, M, N}, rows = {B, H, M};
  Value t = b.loop({}, s, {all}, elementwise,
                   [&](Reference &r, ValueRange args) { return scores.score(r, args[0]); });

  // s4: softmax over the kept n, the sink joins the denominator
  SmallVector<It> reduceN = {It::parallel, It::parallel, It::parallel, It::reduction};
  SmallVector<It> perRow(3, It::parallel);
  auto sink = [&](Reference &r) -> Value {
    SmallVector<Value> indices = {r.index(H)};
    if (op.getSink().getType().getRank() == 2)
      indices.push_back(r.index(M));
    return r.toReal(tensor::ExtractOp::create(r, op.getSink(), indices));
  };
  Value max = b.filled(scores.bhm, b.lowest());
  if (op.getSink())
    max = b.loop({}, max, {rows}, perRow, [&](Reference &r, ValueRange) { return sink(r); });
  max = b.loop(t, max, {all, rows}, reduceN, [&](Reference &r, ValueRange args) -> Value {
    return arith::MaximumFOp::create(r, args[0], args[1]);
  });
  Value p = b.loop(max, t, {rows, all}, elementwise, [&](Reference &r, ValueRange args) -> Value {
    Value power = math::ExpOp::create(r, arith::SubFOp::create(r, args[1], args[0]));
    return r.select(r.isLowest(args[1]), r.number(0.0), power);
  });
  Value sum = b.filled(scores.bhm, zero);
  if (op.getSink())
    sum = b.loop(max, sum, {rows, rows}, perRow, [&](Reference &r, ValueRange args) -> Value {
      Value power = math::ExpOp::create(r, arith::SubFOp::create(r, sink(r), args[0]));
      // A sink of +inf is the whole sum, though inf - inf is none.
      Value isMax = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, sink(r), args[0]);
      power = r.select(isMax, r.number(1.0), power);
      return r.select(r.isLowest(sink(r)), r.number(0.0), power);
    });
  sum = b.loop(p, sum, {all, rows}, reduceN, [&](Reference &r, ValueRange args) -> Value {
    return arith::AddFOp::create(r, args[0], args[1]);
  });

  // s15: what multiplies values is P * F
  p = scores.multiply(b, scores.factors(b, s), p);

  // s5, s6: O = P V / L, 0 where nothing is kept; lse = log L
  OFRs bhmd = {q[0], q[1], q[2], b.getIndexAttr(op.getValueDim())};
  constexpr int64_t Dv = 3, Nr = 4;
  Value o =
      b.loop(p, b.filled(bhmd, zero), {{B, H, M, Nr}, {B, H, M, Dv}},
             {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction},
             [&](Reference &r, ValueRange args) -> Value {
               Value value = tensor::ExtractOp::create(
                   r, op.getValue(),
                   ValueRange{r.index(B), scores.keyHead(r, r.index(H)), r.index(Nr), r.index(Dv)});
               // A dropped key contributes nothing, whatever its value holds.
               Value dropped =
                   arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
               Value term = arith::MulFOp::create(r, args[0], r.toReal(value));
               return arith::AddFOp::create(r, args[1], r.select(dropped, r.number(0.0), term));
             });
  o = b.loop(sum, o, {rows, all}, elementwise, [&](Reference &r, ValueRange args) -> Value {
    Value none = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
    return r.select(none, r.number(0.0), arith::DivFOp::create(r, args[1], args[0]));
  });
  SmallVector<Value> results = {o};
  if (op.getLse())
    results.push_back(
        b.loop(sum, max, {rows, rows}, perRow, [&](Reference &r, ValueRange args) -> Value {
          Value none = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
          return r.select(none, r.lowest(),
                          arith::AddFOp::create(r, args[1], math::LogOp::create(r, args[0])));
        }));
  if (op.getLseLow())
    results.push_back(defineLow(b, results[1], op.getLse(), rows));
  return results;
}

static SmallVector<Value> defineMerge(Reference &b, MergeOp op) {
  int64_t rank = cast<ShapedType>(op.getPartialLse().getType()).getRank();
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), op.getPartial());
  OFRs rowSizes(sizes.begin() + 1, sizes.end() - 1), outSizes(sizes.begin() + 1, sizes.end());
  SmallVector<int64_t> parts = llvm::to_vector(llvm::seq<int64_t>(rank)),
                       rows(parts.begin() + 1, parts.end());
  SmallVector<int64_t> elements = llvm::to_vector(llvm::seq<int64_t>(rank + 1));
  SmallVector<int64_t> outputs(elements.begin() + 1, elements.end());
  SmallVector<It> iterators(rank, It::parallel);
  iterators[0] = It::reduction;
  // s17: these numbers hold both parts of a logarithm
  Value logarithms = op.getPartialLse();
  if (Value low = op.getPartialLow())
    logarithms = b.loop(
        {logarithms, low}, b.filled(tensor::getMixedSizes(b, b.getLoc(), low), b.number(0.0)),
        {parts, parts, parts}, SmallVector<It>(rank, It::parallel),
        [](Reference &r, ValueRange args) -> Value {
          Value whole = arith::AddFOp::create(r, r.toRoundedBase2(args[0]), r.toReal(args[1]));
          return arith::DivFOp::create(r, whole, r.number(double(kF32Log2e)));
        });
  // s7: weights exp(lse_s - max), 0 for a part that kept nothing
  Value max = b.loop(logarithms, b.filled(rowSizes, b.lowest()), {parts, rows}, iterators,
                     [&](Reference &r, ValueRange args) -> Value {
                       return arith::MaximumFOp::create(r, r.toReal(args[0]), args[1]);
                     });
  auto weight = [](Reference &r, Value lse, Value max) -> Value {
    Value power = math::ExpOp::create(r, arith::SubFOp::create(r, lse, max));
    // A part of +inf is the whole, though inf - inf is none.
    Value isMax = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, lse, max);
    return r.select(r.isLowest(lse), r.number(0.0), r.select(isMax, r.number(1.0), power));
  };
  Value sum =
      b.loop({logarithms, max}, b.filled(rowSizes, b.number(0.0)), {parts, rows, rows}, iterators,
             [&](Reference &r, ValueRange args) -> Value {
               return arith::AddFOp::create(r, weight(r, r.toReal(args[0]), args[1]), args[2]);
             });
  iterators.push_back(It::parallel);
  Value o = b.loop({op.getPartial(), logarithms, max}, b.filled(outSizes, b.number(0.0)),
                   {elements, parts, rows, outputs}, iterators,
                   [&](Reference &r, ValueRange args) -> Value {
                     Value w = weight(r, r.toReal(args[1]), args[2]);
                     Value empty = r.isLowest(r.toReal(args[1]));
                     Value term = arith::MulFOp::create(r, w, r.toReal(args[0]));
                     return arith::AddFOp::create(r, args[3], r.select(empty, r.number(0.0), term));
                   });
  SmallVector<int64_t> outAll = llvm::to_vector(llvm::seq<int64_t>(rank)),
                       rowAll(outAll.begin(), outAll.end() - 1);
  o = b.loop(sum, o, {rowAll, outAll}, SmallVector<It>(rank, It::parallel),
             [&](Reference &r, ValueRange args) -> Value {
               Value none =
                   arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
               return r.select(none, r.number(0.0), arith::DivFOp::create(r, args[1], args[0]));
             });
  SmallVector<Value> results = {o};
  if (op.getLse())
    results.push_back(b.loop(
        sum, max, {rowAll, rowAll}, SmallVector<It>(rank - 1, It::parallel),
        [&](Reference &r, ValueRange args) -> Value {
          Value none = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
          Value lse = arith::AddFOp::create(r, args[1], math::LogOp::create(r, args[0]));
          return r.select(none, r.lowest(), lse);
        }));
  if (op.getLseLow())
    results.push_back(defineLow(b, results[1], op.getLse(), rowAll));
  return results;
}

/// Passes of room 1 have to be done.
static LogicalResult checkRegions(Operation *op) {
  auto scored = dyn_cast<ScoredOpInterface>(op);
  if (!scored)
    return success();
  if (scored.getVariantsAttr())
    return op->emitOpError("expected score and mask regions, got variants (attn-expand-variants "
                           "turns them into regions)");
  if (!isa<AttentionOp, AttentionGradDeltaOp>(op) && !scored.getScore().empty() &&
      op->getRegions().back().empty())
    return op->emitOpError("expected a grad region beside the score region, got none "
                           "(attn-derive-score writes it)");
  return success();
}

namespace {
struct ConvertAttnToLinalgPass
    : RoomPass<attn::impl::ConvertAttnToLinalgPassBase<ConvertAttnToLinalgPass>,
               anyOf(Room::Problem, Room::Grid), Room::Online> {
  using RoomPass::RoomPass;

  void replace(IRRewriter &rewriter, Operation *op,
               function_ref<SmallVector<Value>(Reference &)> define) {
    rewriter.setInsertionPoint(op);
    Reference reference(op->getLoc(), rewriter,
                        f64 ? FloatType(rewriter.getF64Type()) : rewriter.getF32Type());
    SmallVector<Value> results = define(reference), replacements;
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
      auto type = cast<RankedTensorType>(result.getType());
      Value converted = reference.convert(value, type.getElementType());
      if (converted.getType() != type)
        converted = tensor::CastOp::create(reference, type, converted);
      replacements.push_back(converted);
    }
    rewriter.replaceOp(op, replacements);
  }

  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    WalkResult walk = getOperation()->walk([&](Operation *op) {
      if (failed(checkRegions(op)))
        return WalkResult::interrupt();
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineAttention(b, attention); });
      } else if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineAttentionGrad(b, gradient); });
      } else if (auto rows = dyn_cast<RowDeltaOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineRowDelta(b, rows); });
      } else if (auto delta = dyn_cast<AttentionGradDeltaOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineGradDelta(b, delta); });
      } else if (auto query = dyn_cast<AttentionGradQueryOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineGradQuery(b, query); });
      } else if (auto keys = dyn_cast<AttentionGradKeyValueOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineGradKeyValue(b, keys); });
      } else if (auto merge = dyn_cast<MergeOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineMerge(b, merge); });
      } else if (auto assume = dyn_cast<AssumeOp>(op)) {
        rewriter.replaceOp(op, assume.getSource());
      }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    // Views after the ops that read them, which ask views for the rows that there are.
    getOperation()->walk([&](Operation *op) {
      bool isMoved = isa<AppendOp, RotaryOp>(op);
      if (!isMoved && !isa<PagedOp, RaggedOp, PlaceOp, ScaledOp>(op))
        return;
      rewriter.setInsertionPoint(op);
      Reference reference(op->getLoc(), rewriter, rewriter.getF64Type());
      Value view = isMoved ? defineMovedRows(reference, op) : defineView(reference, op);
      Type type = op->getResult(0).getType();
      if (view.getType() != type)
        view = tensor::CastOp::create(reference, type, view);
      rewriter.replaceOp(op, view);
    });
    return success();
  }
};
} // namespace
