//===- PlantedFault.cpp - a fault that the fuzzer must find -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/PlantedFault.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attn::planted {
namespace {
struct DropTrueMask : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op.getMask().empty() ||
        !matchPattern(cast<YieldOp>(op.getMask().front().getTerminator()).getResult(), m_One()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getMask().getBlocks().clear(); });
    return success();
  }
};

struct DropIdentityScore : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op.getScore().empty() || cast<YieldOp>(op.getScore().front().getTerminator()).getResult() !=
                                     op.getScore().getArgument(0))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getScore().getBlocks().clear(); });
    return success();
  }
};

struct PlantedFaultPass : PassWrapper<PlantedFaultPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PlantedFaultPass)

  StringRef getArgument() const override { return "fuzz-planted-use-after-free"; }
  StringRef getDescription() const override { return "frees operations behind the driver's back"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<DropTrueMask, DropIdentityScore>(&getContext(), /*benefit=*/10);
    for (Dialect *dialect : getContext().getLoadedDialects())
      dialect->getCanonicalizationPatterns(patterns);
    for (RegisteredOperationName op : getContext().getRegisteredOperations())
      op.getCanonicalizationPatterns(patterns, &getContext());
    (void)applyPatternsGreedily(getOperation(), std::move(patterns));
  }
};
} // namespace

void registerPlantedFault() { PassRegistration<PlantedFaultPass>(); }

} // namespace attn::planted
