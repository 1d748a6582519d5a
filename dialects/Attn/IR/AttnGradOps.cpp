//===- AttnGradOps.cpp - simple interfaces of the gradients' ops ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attn;

/// Those that are there.
static SmallVector<Value> filterNull(ArrayRef<Value> values) {
  return llvm::filter_to_vector(values, [](Value value) { return bool(value); });
}

SmallVector<Value> AttentionGradOp::getMatrices() {
  return filterNull({getQuery(), getKey(), getValue(), getOutput(), getDOutput(), getDQuery(),
                     getDKey(), getDValue()});
}

SmallVector<Value> AttentionGradQueryOp::getMatrices() {
  return filterNull({getQuery(), getKey(), getValue(), getDOutput(), getDQuery()});
}

SmallVector<Value> AttentionGradDeltaOp::getMatrices() {
  return {getQuery(), getKey(), getValue(), getDOutput()};
}

SmallVector<Value> AttentionGradKeyValueOp::getMatrices() {
  return filterNull({getQuery(), getKey(), getValue(), getDOutput(), getDKey(), getDValue()});
}

//===----------------------------------------------------------------------===//
// Shapes: a gradient has the shape of what it is a gradient of
//===----------------------------------------------------------------------===//

/// Appends the sizes of `source` where its gradient is wanted.
static void reifyLike(OpBuilder &builder, Value gradient, Value source,
                      ReifiedRankedShapedTypeDims &shapes) {
  if (gradient)
    shapes.push_back(tensor::getMixedSizes(builder, source.getLoc(), source));
}

static void reifyLike(OpBuilder &builder, ValueRange gradients, ValueRange sources,
                      ReifiedRankedShapedTypeDims &shapes) {
  for (auto [gradient, source] : llvm::zip_equal(gradients, sources))
    reifyLike(builder, gradient, source, shapes);
}

LogicalResult AttentionGradOp::reifyResultShapes(OpBuilder &builder,
                                                 ReifiedRankedShapedTypeDims &shapes) {
  reifyLike(builder, getDQuery(), getQuery(), shapes);
  reifyLike(builder, getDKey(), getKey(), shapes);
  reifyLike(builder, getDValue(), getValue(), shapes);
  reifyLike(builder, getDSink(), getSink(), shapes);
  reifyLike(builder, getDWrt(), getWrt(), shapes);
  return success();
}

LogicalResult AttentionGradQueryOp::reifyResultShapes(OpBuilder &builder,
                                                      ReifiedRankedShapedTypeDims &shapes) {
  reifyLike(builder, getDQuery(), getQuery(), shapes);
  reifyLike(builder, getDWrt(), getWrt(), shapes);
  return success();
}

LogicalResult AttentionGradKeyValueOp::reifyResultShapes(OpBuilder &builder,
                                                         ReifiedRankedShapedTypeDims &shapes) {
  reifyLike(builder, getDKey(), getKey(), shapes);
  reifyLike(builder, getDValue(), getValue(), shapes);
  reifyLike(builder, getDWrt(), getWrt(), shapes);
  return success();
}

LogicalResult RowDeltaOp::reifyResultShapes(OpBuilder &builder,
                                            ReifiedRankedShapedTypeDims &shapes) {
  reifyLike(builder, getNegLse2(), getLse(), shapes);
  reifyLike(builder, getDelta(), getLse(), shapes);
  if (getNegLow2())
    reifyLike(builder, getNegLow2(), getLse(), shapes);
  return success();
}

LogicalResult AttentionGradDeltaOp::reifyResultShapes(OpBuilder &builder,
                                                      ReifiedRankedShapedTypeDims &shapes) {
  reifyLike(builder, getExactDelta(), getDelta(), shapes);
  return success();
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

namespace {
/// Nothing reads a gradient: do not compute it.
struct DropUnusedGradients : OpRewritePattern<AttentionGradOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionGradOp op, PatternRewriter &rewriter) const override {
    TypedValue<RankedTensorType> gradients[] = {op.getDQuery(), op.getDKey(), op.getDValue(),
                                                op.getDSink()};
    auto properties = op.getProperties();
    SmallVector<Type> types;
    SmallVector<Value> kept;
    for (auto [i, gradient] : llvm::enumerate(gradients)) {
      bool isKept = gradient && !gradient.use_empty();
      properties.resultSegmentSizes[i] = isKept;
      if (isKept)
        kept.push_back(gradient);
    }
    llvm::append_range(kept, op.getDWrt());
    // Without any result the op is dead, which is for others to find.
    if (kept.empty() || kept.size() == op->getNumResults())
      return failure();
    auto narrow =
        AttentionGradOp::create(rewriter, op.getLoc(), TypeRange(ValueRange(kept)),
                                op.getOperands(), op->getDiscardableAttrDictionary().getValue());
    narrow.getProperties() = properties;
    for (auto [from, to] : llvm::zip_equal(op->getRegions(), narrow->getRegions()))
      rewriter.inlineRegionBefore(from, to, to.end());
    for (auto [from, to] : llvm::zip_equal(kept, narrow->getResults()))
      rewriter.replaceAllUsesWith(from, to);
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::populateGradFolds(RewritePatternSet &patterns) {
  patterns.add<DropUnusedGradients>(patterns.getContext());
}
