//===- FoldFactors.cpp - tile-fold-factors -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score is scaled, changed by what somebody wrote, and multiplied by log2(e) for the exponential:
// an instruction of each element for each factor, in the inner loop. A factor that is one number
// for the whole tile is folded into the one before it, once for the tile. A product that is added
// to something becomes a multiply-add here and not in the assembler, which would do it too, later.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include <cmath>

namespace attn::tile {
#define GEN_PASS_DEF_FOLDFACTORSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Whether the value is a tile of f32: a row of numbers has few.
static bool isTile(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 2 && type.getElementType().isF32();
}

/// The one number that fills the tile, or null.
static Value getNumber(Value tile) {
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  return broadcast && broadcast.getSource().getType().isF32() ? broadcast.getSource() : Value();
}

namespace {
/// The product of a tile and one number.
struct Scaled {
  Value tile, number;
};
} // namespace

static std::optional<Scaled> getScaled(Value value) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || !isTile(value))
    return std::nullopt;
  if (Value number = getNumber(product.getRhs()))
    return Scaled{product.getLhs(), number};
  if (Value number = getNumber(product.getLhs()))
    return Scaled{product.getRhs(), number};
  return std::nullopt;
}

/// Whether a product with both loses nothing that two products keep: of two constants, whether it
/// is a normal number. A number that only the launch knows may be anything, so that the constant
/// must not move it by much.
static bool canFold(Value number, Value other) {
  std::optional<float> a = getConstantF32(number), b = getConstantF32(other);
  if (a && b)
    return std::isnormal(*a * *b);
  std::optional<float> factor = a ? a : b;
  return factor && 0x1p-16f <= std::abs(*factor) && std::abs(*factor) <= 2;
}

static Value emitNumber(OpBuilder &b, Location loc, float value) {
  return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
}

static Value emitProduct(OpBuilder &b, Location loc, Value number, Value other) {
  std::optional<float> x = getConstantF32(number), y = getConstantF32(other);
  if (x && y)
    return emitNumber(b, loc, *x * *y);
  return arith::MulFOp::create(b, loc, number, other);
}

/// The tile times both numbers.
static Value emitScaled(OpBuilder &b, Location loc, Scaled scaled, Value other) {
  Value number = emitProduct(b, loc, scaled.number, other);
  Value factor = BroadcastOp::create(b, loc, scaled.tile.getType(), number);
  return arith::MulFOp::create(b, loc, scaled.tile, factor);
}

namespace {
/// (x a) b to x (a b).
struct ProductPattern : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    std::optional<Scaled> outer = getScaled(op);
    std::optional<Scaled> inner = outer ? getScaled(outer->tile) : std::nullopt;
    if (!inner || !outer->tile.hasOneUse() || !canFold(inner->number, outer->number))
      return failure();
    rewriter.replaceOp(op, emitScaled(rewriter, op.getLoc(), *inner, outer->number));
    return success();
  }
};

/// x / a to x (1 / a), as GPUs divide.
struct QuotientPattern : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    std::optional<float> divisor = getConstantF32(getNumber(op.getRhs()));
    if (!isTile(op) || !divisor || !std::isnormal(*divisor) || !std::isnormal(1 / *divisor))
      return failure();
    Value inverse = emitNumber(rewriter, op.getLoc(), 1 / *divisor);
    Value factor = BroadcastOp::create(rewriter, op.getLoc(), op.getType(), inverse);
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), factor);
    return success();
  }
};

/// (x a + y b) c to x (a c) + y (b c), where x or y may be missing: a factor less for each element.
template <typename OpT> struct SumPattern : OpRewritePattern<arith::MulFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::MulFOp op, PatternRewriter &rewriter) const override {
    std::optional<Scaled> outer = getScaled(op);
    auto sum = outer ? outer->tile.getDefiningOp<OpT>() : OpT();
    if (!sum || !sum->hasOneUse() || !getConstantF32(outer->number))
      return failure();
    auto takes = [&](Value term) {
      Value number = getNumber(term);
      if (std::optional<Scaled> scaled = getScaled(term); scaled && term.hasOneUse())
        number = scaled->number;
      return number && canFold(number, outer->number);
    };
    if (!takes(sum.getLhs()) || !takes(sum.getRhs()))
      return failure();
    Location loc = op.getLoc();
    auto emitTerm = [&](Value term) -> Value {
      if (std::optional<Scaled> scaled = getScaled(term))
        return emitScaled(rewriter, loc, *scaled, outer->number);
      Value number = emitProduct(rewriter, loc, getNumber(term), outer->number);
      return BroadcastOp::create(rewriter, loc, op.getType(), number);
    };
    Value left = emitTerm(sum.getLhs()), right = emitTerm(sum.getRhs());
    rewriter.replaceOpWithNewOp<OpT>(op, left, right);
    return success();
  }
};

/// x y + z as one instruction, but for products of bounded scores: gradients round them as the
/// forward pass does.
struct AddPattern : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    if (!isTile(op))
      return failure();
    for (auto [term, other] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}})
      if (auto product = term.getDefiningOp<arith::MulFOp>();
          product && term.hasOneUse() && !attn::isBoundedScore(product.getLhs())) {
        rewriter.replaceOpWithNewOp<math::FmaOp>(op, product.getLhs(), product.getRhs(), other);
        return success();
      }
    return failure();
  }
};

/// z - x a as one instruction: the number changes its sign once for the tile.
struct SubtractPattern : OpRewritePattern<arith::SubFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SubFOp op, PatternRewriter &rewriter) const override {
    std::optional<Scaled> scaled = getScaled(op.getRhs());
    if (!scaled || !op.getRhs().hasOneUse())
      return failure();
    Location loc = op.getLoc();
    std::optional<float> constant = getConstantF32(scaled->number);
    Value negated = constant ? emitNumber(rewriter, loc, -*constant)
                             : arith::NegFOp::create(rewriter, loc, scaled->number).getResult();
    Value factor = BroadcastOp::create(rewriter, loc, op.getType(), negated);
    rewriter.replaceOpWithNewOp<math::FmaOp>(op, scaled->tile, factor, op.getLhs());
    return success();
  }
};

struct FoldFactorsPass : KernelPass<attn::tile::impl::FoldFactorsPassBase<FoldFactorsPass>,
                                    attn::Room::Tile, attn::Room::Tile> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet folding(context), fusing(context);
    folding
        .add<ProductPattern, QuotientPattern, SumPattern<arith::AddFOp>, SumPattern<arith::SubFOp>>(
            context);
    fusing.add<AddPattern, SubtractPattern>(context);
    folds = std::move(folding);
    fuses = std::move(fusing);
    return success();
  }

  /// A multiply-add takes no other factor: first all are folded. Where rows of a fixed split have
  /// one number for a head, packed rows have many (s22).
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getSchedule().fixedSplit >
        0)
      return success();
    (void)applyPatternsGreedily(kernel, folds);
    (void)applyPatternsGreedily(kernel, fuses);
    return success();
  }

  FrozenRewritePatternSet folds, fuses;
};
} // namespace
