//===- ExpandMath.cpp - attn-cpu-expand-math ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_CPUEXPANDMATHPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// 2^x = exp(x ln 2), for which there is a polynomial.
namespace {
struct Exp2ToExp : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op, PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32() || !isa<FloatType, VectorType>(type))
      return failure();
    TypedAttr ln2 = rewriter.getF32FloatAttr(0.693147180559945f);
    if (auto vector = dyn_cast<VectorType>(type))
      ln2 = DenseElementsAttr::get(vector, Attribute(ln2));
    Value factor = arith::ConstantOp::create(rewriter, op.getLoc(), ln2);
    Value x = arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), factor);
    rewriter.replaceOpWithNewOp<math::ExpOp>(op, x);
    return success();
  }
};

struct CPUExpandMathPass
    : RoomPass<attn::impl::CPUExpandMathPassBase<CPUExpandMathPass>, Room::Vectors, Room::Vectors> {
  LogicalResult transform() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Exp2ToExp>(&getContext());
    populateMathPolynomialApproximationPatterns(patterns);
    arith::populateExpandBFloat16Patterns(patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    return applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};
} // namespace
