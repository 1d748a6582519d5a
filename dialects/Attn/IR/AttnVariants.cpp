//===- AttnVariants.cpp - building score and mask regions ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "dialects/Attn/IR/AttnDropout.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace attn;

namespace {
using P = arith::CmpIPredicate;

/// Short names for the few ops regions are made of.
struct RegionBuilder : ImplicitLocOpBuilder {
  RegionBuilder(OpBuilder &builder, Location loc) : ImplicitLocOpBuilder(loc, builder) {}

  Value index(int64_t value) { return arith::ConstantIndexOp::create(*this, value); }
  Value f32(double value) { return arith::ConstantOp::create(*this, getF32FloatAttr(value)); }
  Value add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
  Value cmp(P predicate, Value a, Value b) { return arith::CmpIOp::create(*this, predicate, a, b); }
  Value both(Value a, Value b) { return arith::AndIOp::create(*this, a, b); }
  Value either(Value a, Value b) { return arith::OrIOp::create(*this, a, b); }

  /// Row m in the coordinates of the keys: unchanged, or shifted so that the last row meets the
  /// last key.
  Value aligned(const Position &at, Alignment alignment) {
    if (alignment == Alignment::TopLeft)
      return at.m;
    return add(at.m, sub(at.keyLength, at.queryLength));
  }
  Value readIndex(Value tensor, ValueRange indices) {
    Value element = tensor::ExtractOp::create(*this, tensor, indices);
    return element.getType().isIndex()
               ? element
               : arith::IndexCastOp::create(*this, getIndexType(), element).getResult();
  }
  Value readF32(Value tensor, ValueRange indices) {
    Value element = tensor::ExtractOp::create(*this, tensor, indices);
    return element.getType().isF32()
               ? element
               : arith::ExtFOp::create(*this, getF32Type(), element).getResult();
  }
};
} // namespace

bool attn::isScoreVariant(Attribute variant) {
  return isa<SoftcapAttr, AlibiAttr, RelativeBiasAttr, DropoutAttr>(variant);
}

std::optional<SmallVector<CaptureRule>> attn::getCaptureRules(Attribute variant) {
  using Rules = SmallVector<CaptureRule>;
  if (isa<CausalAttr, WindowAttr, ChunkedAttr, SoftcapAttr>(variant))
    return Rules{};
  if (auto prefix = dyn_cast<PrefixAttr>(variant))
    return prefix.getLength() < 0 ? Rules{{"prefix lengths (B)", "B", false}} : Rules{};
  if (isa<DocumentAttr>(variant))
    return Rules{{"query ids (B, M)", "BM", false}, {"key ids (B, N)", "BN", false}};
  if (isa<KeyLengthAttr>(variant))
    return Rules{{"key lengths (B)", "B", false}};
  if (isa<AlibiAttr>(variant))
    return Rules{{"slopes (H)", "H", true}};
  if (isa<RelativeBiasAttr>(variant))
    return Rules{{"bias (H, R)", "HR", true}};
  if (isa<DropoutAttr>(variant))
    return Rules{{"seed (1)", "1", false}};
  return std::nullopt;
}

SmallVector<CaptureRule> attn::getCaptureRules(ScoredOpInterface op) {
  SmallVector<CaptureRule> rules;
  if (op.getVariantsAttr())
    for (Attribute variant : op.getVariantsAttr())
      llvm::append_range(rules, *getCaptureRules(variant));
  return rules;
}

Value attn::buildMask(OpBuilder &builder, Location loc, Attribute variant, const Position &at,
                      ValueRange captures) {
  RegionBuilder b(builder, loc);
  if (auto causal = dyn_cast<CausalAttr>(variant))
    return b.cmp(P::sle, at.n, b.aligned(at, causal.getAlignment()));
  if (auto window = dyn_cast<WindowAttr>(variant)) {
    Value row = b.aligned(at, window.getAlignment());
    Value keep;
    if (window.getLeft() >= 0)
      keep = b.cmp(P::sge, at.n, b.sub(row, b.index(window.getLeft())));
    if (window.getRight() >= 0) {
      Value right = b.cmp(P::sle, at.n, b.add(row, b.index(window.getRight())));
      keep = keep ? b.both(keep, right) : right;
    }
    return keep ? keep : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult();
  }
  if (auto prefix = dyn_cast<PrefixAttr>(variant)) {
    Value length =
        prefix.getLength() < 0 ? b.readIndex(captures[0], at.b) : b.index(prefix.getLength());
    Value causal = b.cmp(P::sle, at.n, b.aligned(at, prefix.getAlignment()));
    return b.either(b.cmp(P::slt, at.n, length), causal);
  }
  if (auto chunked = dyn_cast<ChunkedAttr>(variant)) {
    Value size = b.index(chunked.getSize());
    Value rowChunk = arith::FloorDivSIOp::create(b, b.aligned(at, chunked.getAlignment()), size);
    Value keyChunk = arith::FloorDivSIOp::create(b, at.n, size);
    return b.cmp(P::eq, keyChunk, rowChunk);
  }
  if (isa<DocumentAttr>(variant)) {
    Value row = tensor::ExtractOp::create(b, captures[0], ValueRange{at.b, at.m});
    Value key = tensor::ExtractOp::create(b, captures[1], ValueRange{at.b, at.n});
    if (row.getType() != key.getType()) {
      row = b.readIndex(captures[0], {at.b, at.m});
      key = b.readIndex(captures[1], {at.b, at.n});
    }
    return b.cmp(P::eq, row, key);
  }
  auto keyLength = cast<KeyLengthAttr>(variant);
  (void)keyLength;
  return b.cmp(P::slt, at.n, b.readIndex(captures[0], at.b));
}

Value attn::buildScore(OpBuilder &builder, Location loc, Attribute variant, Value s,
                       const Position &at, ValueRange captures) {
  RegionBuilder b(builder, loc);
  if (auto softcap = dyn_cast<SoftcapAttr>(variant)) {
    double cap = softcap.getCap().getValueAsDouble();
    Value scaled = arith::MulFOp::create(b, s, b.f32(1.0 / cap));
    return arith::MulFOp::create(b, math::TanhOp::create(b, scaled), b.f32(cap));
  }
  if (auto alibi = dyn_cast<AlibiAttr>(variant)) {
    Value slope = b.readF32(captures[0], at.h);
    Value distance = b.sub(b.aligned(at, alibi.getAlignment()), at.n);
    Value distanceInt = arith::IndexCastOp::create(b, b.getI32Type(), distance);
    Value distanceF32 = arith::SIToFPOp::create(b, b.getF32Type(), distanceInt);
    Value bias = arith::MulFOp::create(b, slope, math::AbsFOp::create(b, distanceF32));
    return arith::SubFOp::create(b, s, bias);
  }
  auto relative = cast<RelativeBiasAttr>(variant);
  // A region holds scalar arithmetic only: the extent R is computed in front of its op.
  OpBuilder outside(b.getInsertionBlock()->getParentOp());
  Value extent = outside.createOrFold<tensor::DimOp>(loc, captures[0], 1);
  Value last = b.sub(extent, b.index(1));
  Value distance =
      b.add(b.sub(b.aligned(at, relative.getAlignment()), at.n), b.index(relative.getOffset()));
  Value clamped = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, distance, last), b.index(0));
  return arith::AddFOp::create(b, s, b.readF32(captures[0], {at.h, clamped}));
}

namespace {
/// The values that a region yields: a score and its factor, or whether to keep. Null: none yet.
struct Yielded {
  Value result, factor;
};
} // namespace

/// Ends `region` with `extend` applied to what it yields so far.
static void extendRegion(RewriterBase &rewriter, Location loc, Region &region, TypeRange arguments,
                         function_ref<Yielded(Block &, Yielded)> extend) {
  OpBuilder::InsertionGuard guard(rewriter);
  Yielded current;
  if (region.empty()) {
    Block *block =
        rewriter.createBlock(&region, {}, arguments, SmallVector<Location>(arguments.size(), loc));
    rewriter.setInsertionPointToEnd(block);
  } else {
    auto yield = cast<YieldOp>(region.front().getTerminator());
    current = {yield.getResult(), yield.getFactor()};
    rewriter.setInsertionPoint(yield);
    rewriter.eraseOp(yield);
    rewriter.setInsertionPointToEnd(&region.front());
  }
  Yielded extended = extend(region.front(), current);
  YieldOp::create(rewriter, loc, extended.result, extended.factor);
}

/// A score variant changes the score, or multiplies the factor.
static Yielded buildYielded(OpBuilder &builder, Location loc, Attribute variant, Yielded current,
                            const Position &at, ValueRange captures) {
  auto dropout = dyn_cast<DropoutAttr>(variant);
  if (!dropout)
    return {buildScore(builder, loc, variant, current.result, at, captures), current.factor};
  Value factor = buildDropout(builder, loc, dropout, at, captures[0]);
  if (current.factor)
    factor = arith::MulFOp::create(builder, loc, current.factor, factor);
  return {current.result, factor};
}

namespace {
/// M or N of a batch: the size of the tensor, or how many rows the sequence has.
struct Length {
  Length(OpBuilder &builder, Location loc, Value tensor)
      : view(findRagged(tensor)),
        size(view ? builder.createOrFold<tensor::DimOp>(loc, view.getRows(), 0)
                  : builder.createOrFold<tensor::DimOp>(loc, tensor, 2)) {}

  Value emit(OpBuilder &builder, Location loc, Value batch) {
    if (!view)
      return size;
    return emitSequence(builder, loc, view.getOffsets(), size, getAsOpFoldResult(view.getUpTo()),
                        batch)
        .rows;
  }

  RaggedOp view;
  /// Of a view: of all its rows.
  Value size;
};
} // namespace

void attn::expandVariants(RewriterBase &rewriter, ScoredOpInterface op) {
  if (!op.getVariantsAttr())
    return;
  Location loc = op.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Length rows(rewriter, loc, op.getQuery()), keys(rewriter, loc, op.getKey());
  auto locate = [&](ValueRange p) {
    return Position{
        p[0], p[1], p[2], p[3], rows.emit(rewriter, loc, p[0]), keys.emit(rewriter, loc, p[0])};
  };
  Type index = rewriter.getIndexType(), f32 = rewriter.getF32Type();

  rewriter.modifyOpInPlace(op, [&] {
    ValueRange captures = op.getCaptures();
    for (Attribute variant : op.getVariantsAttr()) {
      ValueRange own = captures.take_front(getCaptureRules(variant)->size());
      captures = captures.drop_front(own.size());
      if (isScoreVariant(variant)) {
        extendRegion(rewriter, loc, op.getScore(), {f32, index, index, index, index},
                     [&](Block &block, Yielded current) {
                       ValueRange p = block.getArguments();
                       Position here = locate(p.drop_front());
                       if (!current.result)
                         current.result = p[0];
                       return buildYielded(rewriter, loc, variant, current, here, own);
                     });
        continue;
      }
      extendRegion(rewriter, loc, op.getMask(), {index, index, index, index},
                   [&](Block &block, Yielded current) -> Yielded {
                     ValueRange p = block.getArguments();
                     Position here = locate(p);
                     Value mask = buildMask(rewriter, loc, variant, here, own);
                     if (current.result)
                       mask = arith::AndIOp::create(rewriter, loc, current.result, mask);
                     return {mask, Value()};
                   });
    }
    op.getCapturesMutable().clear();
    op.removeVariantsAttr();
  });
}
