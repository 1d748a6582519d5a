//===- AttnCacheOps.cpp - rows on their way into caches, and their constraints by number ------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "dialects/Attn/IR/AttnVerifiers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attn;

#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnCacheOps.cpp.inc"

static bool isWord(Type type) { return type.isSignlessInteger(32) || type.isSignlessInteger(64); }

/// rows_c1: numbers of rows are (T) of signless i32 or i64, one for each row
static LogicalResult checkNumbers(Operation *op, StringRef name, ShapedType numbers,
                                  ShapedType source) {
  if (failed(checkRank(op, name, numbers, 1, "(T)")) ||
      failed(checkElement(op, name, numbers, isWord, "i32 or i64")))
    return failure();
  return checkExtent(op, "T", "source", source.getDimSize(0), name, numbers.getDimSize(0));
}

/// rows_c2: the source is (T, H, D) of f16, bf16 or f32, with a compile-time constant D above zero
static LogicalResult checkSource(Operation *op, ShapedType source) {
  if (failed(checkRank(op, "source", source, 3, "(T, H, D)")) ||
      failed(checkElement(op, "source", source, isStorageFloat, "f16, bf16 or f32")))
    return failure();
  if (source.isDynamicDim(2) || source.getDimSize(2) == 0)
    return op->emitOpError("expected a static D above 0, got ") << source;
  return success();
}

/// rows_c3: cos and sin are (L, R / 2) of f16, bf16 or f32, of one shape and type, with a
/// compile-time constant R from 2 to D
static LogicalResult checkTables(Operation *op, ShapedType cos, ShapedType sin, ShapedType source) {
  for (auto [name, table] : {std::pair<StringRef, ShapedType>("cos", cos), {"sin", sin}})
    if (failed(checkRank(op, name, table, 2, "(L, R / 2)")) ||
        failed(checkElement(op, name, table, isStorageFloat, "f16, bf16 or f32")))
      return failure();
  if (cos.getElementType() != sin.getElementType() ||
      !agree(cos.getDimSize(0), sin.getDimSize(0)) || cos.getDimSize(1) != sin.getDimSize(1))
    return op->emitOpError("expected sin to have the type of cos, got ") << sin << " and " << cos;
  int64_t pairs = cos.getDimSize(1);
  if (ShapedType::isDynamic(pairs) || pairs == 0 || pairs > source.getDimSize(2) / 2)
    return op->emitOpError("expected 1 to ")
           << source.getDimSize(2) / 2 << " columns of cos, half of D at most, got " << cos;
  return success();
}

//===----------------------------------------------------------------------===//
// attn.rotary
//===----------------------------------------------------------------------===//

LogicalResult RotaryOp::verify() {
  ShapedType source = getSource().getType(), output = getOutput().getType();
  if (failed(checkSource(*this, source)) ||
      failed(checkNumbers(*this, "positions", getPositions().getType(), source)) ||
      failed(checkTables(*this, getCos().getType(), getSin().getType(), source)))
    return failure();
  // rotary_c1: output has the shape and the elements of the source
  if (failed(checkRank(*this, "output", output, 3, "(T, H, D)")))
    return failure();
  for (auto [dim, name] : {std::pair<int64_t, StringRef>(0, "T"), {1, "H"}, {2, "D"}})
    if (failed(checkExtent(*this, name, "source", source.getDimSize(dim), "output",
                           output.getDimSize(dim))))
      return failure();
  if (source.getElementType() != output.getElementType() || output.isDynamicDim(2))
    return emitOpError("expected source and output of one element type and D, got ")
           << source << " and " << output;
  return verifyDestinations(*this);
}

MutableOperandRange RotaryOp::getDpsInitsMutable() { return getOutputMutable(); }

void RotaryOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/false, effects);
}

LogicalResult RotaryOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

//===----------------------------------------------------------------------===//
// attn.append
//===----------------------------------------------------------------------===//

LogicalResult AppendOp::verify() {
  ShapedType source = getSource().getType(), dest = getDest().getType();
  if (failed(checkSource(*this, source)) ||
      failed(checkNumbers(*this, "slots", getSlots().getType(), source)))
    return failure();
  // append_c1: dest is (Np, P, Hkv, D), with Hkv, D and elements of the source
  if (failed(checkRank(*this, "dest", dest, 4, "(Np, P, Hkv, D)")) ||
      failed(
          checkExtent(*this, "Hkv", "source", source.getDimSize(1), "dest", dest.getDimSize(2))) ||
      failed(checkExtent(*this, "D", "source", source.getDimSize(2), "dest", dest.getDimSize(3))))
    return failure();
  if (source.getElementType() != dest.getElementType())
    return emitOpError("expected source and dest of one element type, got ")
           << source << " and " << dest;
  if (dest.isDynamicDim(3))
    return emitOpError("expected a static D of dest, got ") << dest;
  // append_c2: positions, cos and sin come together, and interleaved with them
  bool has = bool(getPositions());
  if (bool(getCos()) != has || bool(getSin()) != has || (getInterleaved() && !has))
    return emitOpError("expected positions, cos and sin together, got some of them");
  if (has && (failed(checkNumbers(*this, "positions", getPositions().getType(), source)) ||
              failed(checkTables(*this, getCos().getType(), getSin().getType(), source))))
    return failure();
  return verifyDestinations(*this);
}

MutableOperandRange AppendOp::getDpsInitsMutable() { return getDestMutable(); }

void AppendOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  // Rows of no slot stay as they are, so that the destination counts as read.
  getBufferEffects(*this, /*readsInits=*/true, effects);
}

LogicalResult AppendOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

namespace {
/// Rows are turned on their way, not before it: they are read and written once.
struct FoldRotary : OpRewritePattern<AppendOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AppendOp op, PatternRewriter &rewriter) const override {
    auto rotary = op.getSource().getDefiningOp<RotaryOp>();
    if (!rotary || op.getPositions() || rotary.getSource().getType() != op.getSource().getType())
      return failure();
    rewriter.replaceOpWithNewOp<AppendOp>(op, op->getResultTypes(), rotary.getSource(),
                                          op.getSlots(), rotary.getPositions(), rotary.getCos(),
                                          rotary.getSin(), op.getDest(), rotary.getInterleaved());
    return success();
  }
};
} // namespace

void AppendOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<FoldRotary>(context);
}

std::optional<MovedRows> MovedRows::find(Operation *op) {
  if (auto append = dyn_cast_or_null<AppendOp>(op))
    return MovedRows{append.getSource(), append.getSlots(), append.getPositions(),  append.getCos(),
                     append.getSin(),    append.getDest(),  append.getInterleaved()};
  if (auto rotary = dyn_cast_or_null<RotaryOp>(op))
    return MovedRows{rotary.getSource(),     {},
                     rotary.getPositions(),  rotary.getCos(),
                     rotary.getSin(),        rotary.getOutput(),
                     rotary.getInterleaved()};
  return std::nullopt;
}
