//===- ReductionPatterns.cpp - how a program of attention is made smaller -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Upstream's reducer takes whole ops away. Most of an attention is inside of one op, so these
// patterns take parts off it, one at a time. Each asks the tester itself: upstream would keep or
// drop all parts of an op together.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnReduce/ReductionPatterns.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnVariants.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Reducer/ReductionPatternInterface.h"
#include "mlir/Reducer/Tester.h"

using namespace mlir;

namespace attn {

/// Whether the program shows its fault still once `change` was made to a copy of the op.
static bool isInteresting(const Tester &tester, Operation *op,
                          llvm::function_ref<void(Operation *)> change) {
  auto module = op->getParentOfType<ModuleOp>();
  if (!module)
    return false;
  IRMapping mapping;
  OwningOpRef<ModuleOp> copy = cast<ModuleOp>(module->clone(mapping));
  change(mapping.lookup(op));
  return succeeded(verify(*copy)) &&
         tester.isInteresting(*copy).first == Tester::Interestingness::True;
}

/// Takes one variant off with the tensors that it alone reads.
static void dropVariant(Operation *op, unsigned index) {
  auto scored = cast<ScoredOpInterface>(op);
  SmallVector<Attribute> kept(scored.getVariantsAttr().getValue());
  unsigned first = 0;
  for (Attribute variant : ArrayRef(kept).take_front(index))
    first += getCaptureRules(variant)->size();
  unsigned count = getCaptureRules(kept[index])->size();
  if (count)
    scored.getCapturesMutable().erase(first, count);
  kept.erase(kept.begin() + index);
  if (kept.empty())
    scored.removeVariantsAttr();
  else
    op->setAttr("variants", ArrayAttr::get(op->getContext(), kept));
}

/// Lets the query stand for the output. Null where their types differ or other results are used.
static Value getBypass(ScoredOpInterface op) {
  auto isUnused = [](Value result) { return result.use_empty(); };
  bool isPossible = op->getNumResults() > 0 &&
                    op->getResult(0).getType() == op.getQuery().getType() &&
                    llvm::all_of(op->getResults().drop_front(), isUnused);
  return isPossible ? op.getQuery() : Value();
}

static void bypass(Operation *op) {
  op->getResult(0).replaceAllUsesWith(getBypass(cast<ScoredOpInterface>(op)));
  op->erase();
}

namespace {

struct DropPart : OpInterfaceRewritePattern<ScoredOpInterface> {
  DropPart(MLIRContext *context, const Tester &tester)
      : OpInterfaceRewritePattern(context), tester(tester) {}

  LogicalResult matchAndRewrite(ScoredOpInterface op, PatternRewriter &rewriter) const override {
    if (Value query = getBypass(op); query && isInteresting(tester, op, bypass)) {
      rewriter.replaceAllUsesWith(op->getResult(0), query);
      rewriter.eraseOp(op);
      return success();
    }
    auto attempt = [&](llvm::function_ref<void(Operation *)> change) {
      if (!isInteresting(tester, op, change))
        return false;
      rewriter.modifyOpInPlace(op, [&] { change(op); });
      return true;
    };
    if (ArrayAttr variants = op.getVariantsAttr())
      for (unsigned index = 0; index < variants.size(); ++index)
        if (attempt([&](Operation *at) { dropVariant(at, index); }))
          return success();
    auto dropScore = [](Operation *at) {
      cast<ScoredOpInterface>(at).getScore().getBlocks().clear();
    };
    auto dropMask = [](Operation *at) {
      cast<ScoredOpInterface>(at).getMask().getBlocks().clear();
    };
    if ((!op.getScore().empty() && attempt(dropScore)) ||
        (!op.getMask().empty() && attempt(dropMask)))
      return success();
    return failure();
  }

  const Tester &tester;
};

struct AttnReduction : DialectReductionPatternInterface {
  explicit AttnReduction(Dialect *dialect) : DialectReductionPatternInterface(dialect) {}

  void populateReductionPatterns(RewritePatternSet &) const override {}
  void populateReductionPatternsWithTester(RewritePatternSet &patterns,
                                           Tester &tester) const override {
    patterns.add<DropPart>(patterns.getContext(), tester);
  }
};

} // namespace

void registerReductionPatterns(DialectRegistry &registry) {
  registry.addExtension(
      +[](MLIRContext *, AttnDialect *dialect) { dialect->addInterfaces<AttnReduction>(); });
}

} // namespace attn
