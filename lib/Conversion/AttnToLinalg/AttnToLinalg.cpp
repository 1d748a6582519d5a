//===- AttnToLinalg.cpp - convert-attn-to-linalg -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Conversion/AttnToLinalg/WidenRegion.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOLINALGPASS
#include "lib/Conversion/AttnToLinalg/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;
using OFRs = SmallVector<OpFoldResult>;

namespace {
/// Builds the definition of one op, in the arithmetic type `real`.
struct Reference : ImplicitLocOpBuilder {
  Reference(Location loc, OpBuilder &builder, FloatType real)
      : ImplicitLocOpBuilder(loc, builder), real(real) {}

  FloatType real;

  Value number(double value) { return arith::ConstantOp::create(*this, getFloatAttr(real, value)); }
  Value lowest() {
    return arith::ConstantOp::create(
        *this, getFloatAttr(real, APFloat::getInf(real.getFloatSemantics(), true)));
  }
  Value widen(Value x) {
    unsigned width = x.getType().getIntOrFloatBitWidth();
    return width < real.getWidth() ? arith::ExtFOp::create(*this, real, x).getResult() : x;
  }
  Value isLowest(Value x) {
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, x, lowest());
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(*this, condition, a, b);
  }
  Value index(unsigned dim) { return linalg::IndexOp::create(*this, dim); }
  Value position(unsigned dim, OpFoldResult origin) {
    return createOrFold<arith::AddIOp>(index(dim),
                                       getValueOrCreateConstantIndexOp(*this, getLoc(), origin));
  }

  /// A tensor of the given sizes filled with `value`.
  Value filled(ArrayRef<OpFoldResult> sizes, Value value) {
    Value empty = tensor::EmptyOp::create(*this, sizes, value.getType());
    return linalg::FillOp::create(*this, value, empty).getResult(0);
  }

  /// out = body(ins..., out), looping over the dimensions of `iterators`; maps are projections, one
  /// per operand.
  Value loop(ValueRange ins, Value out, ArrayRef<SmallVector<int64_t>> projections,
             ArrayRef<It> iterators, function_ref<Value(Reference &, ValueRange)> body) {
    SmallVector<AffineMap> maps;
    for (const SmallVector<int64_t> &dims : projections) {
      SmallVector<AffineExpr> exprs =
          llvm::map_to_vector(dims, [&](int64_t d) { return getAffineDimExpr(d); });
      maps.push_back(AffineMap::get(iterators.size(), 0, exprs, getContext()));
    }
    return linalg::GenericOp::create(*this, TypeRange{out.getType()}, ins, out, maps, iterators,
                                     [&](OpBuilder &builder, Location loc, ValueRange args) {
                                       Reference inner(loc, builder, real);
                                       linalg::YieldOp::create(inner, body(inner, args));
                                     })
        .getResult(0);
  }

  /// The tensor with another float element type.
  Value convert(Value tensor, Type element) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getElementType() == element)
      return tensor;
    Value out =
        tensor::EmptyOp::create(*this, tensor::getMixedSizes(*this, getLoc(), tensor), element);
    SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(type.getRank()));
    SmallVector<It> iterators(type.getRank(), It::parallel);
    return loop(tensor, out, {all, all}, iterators, [&](Reference &b, ValueRange args) -> Value {
      if (args[0].getType().getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth())
        return arith::TruncFOp::create(b, element, args[0]);
      return arith::ExtFOp::create(b, element, args[0]);
    });
  }
};
} // namespace

/// The results (output, lse) of the op, in the arithmetic type.
static SmallVector<Value> defineAttention(Reference &b, AttentionOp op) {
  constexpr int64_t B = 0, H = 1, M = 2, N = 3, D = 4;
  Location loc = b.getLoc();
  OFRs q = tensor::getMixedSizes(b, loc, op.getQuery()),
       k = tensor::getMixedSizes(b, loc, op.getKey());
  OFRs origin = op.getMixedOrigin();
  Value heads = getValueOrCreateConstantIndexOp(b, loc, q[1]);
  Value keyHeads = getValueOrCreateConstantIndexOp(b, loc, k[1]);
  Value scale =
      op.getScale() ? b.widen(op.getScale()) : b.number(1.0 / std::sqrt(double(op.getHeadDim())));

  // Head h reads key head h / (H / Hkv) = h * Hkv / H.
  auto keyHead = [&](Reference &r) -> Value {
    return arith::DivUIOp::create(r, arith::MulIOp::create(r, r.index(H), keyHeads), heads);
  };

  // s1: S = sum_d Q K
  OFRs bhmn = {q[0], q[1], q[2], k[2]}, bhm = {q[0], q[1], q[2]};
  Value zero = b.number(0.0);
  Value s =
      b.loop(op.getQuery(), b.filled(bhmn, zero), {{B, H, M, D}, {B, H, M, N}},
             {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction},
             [&](Reference &r, ValueRange args) -> Value {
               Value key = tensor::ExtractOp::create(
                   r, op.getKey(), ValueRange{r.index(B), keyHead(r), r.index(N), r.index(D)});
               return arith::AddFOp::create(
                   r, args[1], arith::MulFOp::create(r, r.widen(args[0]), r.widen(key)));
             });

  // s2, s3: T = score(scale * S), -inf where the mask drops it
  SmallVector<It> elementwise(4, It::parallel);
  SmallVector<int64_t> all = {B, H, M, N}, rows = {B, H, M};
  Value t = b.loop({}, s, {all}, elementwise, [&](Reference &r, ValueRange args) -> Value {
    SmallVector<Value> at;
    for (unsigned i = 0; i < 4; ++i)
      at.push_back(r.position(i, origin[i]));
    Value score = arith::MulFOp::create(r, args[0], scale);
    if (!op.getScore().empty())
      score = inlineWidened(r, op.getScore(), {score, at[0], at[1], at[2], at[3]}, r.real);
    if (mayExceedLargestScore(op.getScore()))
      score = emitBoundedScore(r, r.getLoc(), score);
    if (op.getMask().empty())
      return score;
    return r.select(inlineWidened(r, op.getMask(), at, r.real), score, r.lowest());
  });

  // s4: softmax over the kept n, the sink joins the denominator
  SmallVector<It> reduceN = {It::parallel, It::parallel, It::parallel, It::reduction};
  SmallVector<It> perRow(3, It::parallel);
  auto sink = [&](Reference &r) -> Value {
    return r.widen(tensor::ExtractOp::create(r, op.getSink(), ValueRange{r.index(H)}));
  };
  Value max = b.filled(bhm, b.lowest());
  if (op.getSink())
    max = b.loop({}, max, {rows}, perRow, [&](Reference &r, ValueRange) { return sink(r); });
  max = b.loop(t, max, {all, rows}, reduceN, [&](Reference &r, ValueRange args) -> Value {
    return arith::MaximumFOp::create(r, args[0], args[1]);
  });
  Value p = b.loop(max, t, {rows, all}, elementwise, [&](Reference &r, ValueRange args) -> Value {
    Value power = math::ExpOp::create(r, arith::SubFOp::create(r, args[1], args[0]));
    return r.select(r.isLowest(args[1]), r.number(0.0), power);
  });
  Value sum = b.filled(bhm, zero);
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

  // s5, s6: O = P V / L, 0 where nothing is kept; lse = log L
  OFRs bhmd = {q[0], q[1], q[2], b.getIndexAttr(op.getValueDim())};
  constexpr int64_t Dv = 3, Nr = 4;
  Value o =
      b.loop(p, b.filled(bhmd, zero), {{B, H, M, Nr}, {B, H, M, Dv}},
             {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction},
             [&](Reference &r, ValueRange args) -> Value {
               Value value = tensor::ExtractOp::create(
                   r, op.getValue(), ValueRange{r.index(B), keyHead(r), r.index(Nr), r.index(Dv)});
               // A dropped key contributes nothing, whatever its value holds.
               Value dropped =
                   arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, args[0], r.number(0.0));
               Value term = arith::MulFOp::create(r, args[0], r.widen(value));
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
  // s7: weights exp(lse_s - max), 0 for a part that kept nothing
  Value max = b.loop(op.getPartialLse(), b.filled(rowSizes, b.lowest()), {parts, rows}, iterators,
                     [&](Reference &r, ValueRange args) -> Value {
                       return arith::MaximumFOp::create(r, r.widen(args[0]), args[1]);
                     });
  auto weight = [](Reference &r, Value lse, Value max) -> Value {
    Value power = math::ExpOp::create(r, arith::SubFOp::create(r, lse, max));
    // A part of +inf is the whole, though inf - inf is none.
    Value isMax = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, lse, max);
    return r.select(r.isLowest(lse), r.number(0.0), r.select(isMax, r.number(1.0), power));
  };
  Value sum =
      b.loop({op.getPartialLse(), max}, b.filled(rowSizes, b.number(0.0)), {parts, rows, rows},
             iterators, [&](Reference &r, ValueRange args) -> Value {
               return arith::AddFOp::create(r, weight(r, r.widen(args[0]), args[1]), args[2]);
             });
  iterators.push_back(It::parallel);
  Value o = b.loop({op.getPartial(), op.getPartialLse(), max}, b.filled(outSizes, b.number(0.0)),
                   {elements, parts, rows, outputs}, iterators,
                   [&](Reference &r, ValueRange args) -> Value {
                     Value w = weight(r, r.widen(args[1]), args[2]);
                     Value empty = r.isLowest(r.widen(args[1]));
                     Value term = arith::MulFOp::create(r, w, r.widen(args[0]));
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
  return results;
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
      if (auto attention = dyn_cast<AttentionOp>(op)) {
        if (attention.getVariantsAttr()) {
          op->emitOpError("expected score and mask regions, got variants (attn-expand-variants "
                          "turns them into regions)");
          return WalkResult::interrupt();
        }
        replace(rewriter, op, [&](Reference &b) { return defineAttention(b, attention); });
      } else if (auto merge = dyn_cast<MergeOp>(op)) {
        replace(rewriter, op, [&](Reference &b) { return defineMerge(b, merge); });
      } else if (auto assume = dyn_cast<AssumeOp>(op)) {
        rewriter.replaceOp(op, assume.getSource());
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};
} // namespace
