//===- PartialSums.cpp - sums of rows that stay apart by lanes ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/PartialSums.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

/// Adds the values that the loop carries in place `index`: one value at different times.
static void addCarried(scf::ForOp loop, unsigned index, SmallVectorImpl<Value> &sums) {
  llvm::append_values(sums, loop.getInitArgs()[index], loop.getRegionIterArg(index),
                      loop.getYieldedValues()[index], loop.getResult(index));
}

/// Adds what the sum is made from; false if something else makes it.
static bool followDefinition(Value sum, SmallVectorImpl<Value> &sums) {
  if (auto argument = dyn_cast<BlockArgument>(sum)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (loop)
      addCarried(loop, argument.getArgNumber() - loop.getNumInductionVars(), sums);
    return loop != nullptr;
  }
  unsigned number = cast<OpResult>(sum).getResultNumber();
  return TypeSwitch<Operation *, bool>(sum.getDefiningOp())
      .Case([&](scf::ForOp loop) {
        addCarried(loop, number, sums);
        return true;
      })
      .Case([&](scf::IfOp branch) {
        for (scf::YieldOp yield : {branch.thenYield(), branch.elseYield()})
          sums.push_back(yield.getOperand(number));
        return true;
      })
      .Case([&](OnlineAttentionOp step) {
        sums.push_back(step.getDpsInits()[2]);
        return number == 2;
      })
      // Of no other number than 0 four parts make one.
      .Case([](linalg::FillOp fill) { return matchPattern(fill.getInputs()[0], m_AnyZeroFloat()); })
      .Default([](Operation *) { return false; });
}

/// Adds what becomes of the sum; false if something else reads it.
static bool followUse(OpOperand &use, SmallVectorImpl<Value> &sums) {
  unsigned number = use.getOperandNumber();
  return TypeSwitch<Operation *, bool>(use.getOwner())
      .Case([&](scf::ForOp loop) {
        addCarried(loop, number - loop.getNumControlOperands(), sums);
        return true;
      })
      .Case([&](scf::YieldOp yield) {
        Operation *parent = yield->getParentOp();
        sums.push_back(parent->getResult(number));
        return isa<scf::ForOp, scf::IfOp>(parent);
      })
      .Case([&](OnlineAttentionOp step) {
        sums.push_back(step->getResult(2));
        return &use == &step.getDpsInitsMutable()[2];
      })
      .Case([&](NormalizeOp normalize) { return &use == &normalize.getRowSumMutable(); })
      .Default([](Operation *) { return false; });
}

DenseSet<Value> attn::findPartialSums(scf::ForallOp grid) {
  DenseSet<Value> sums;
  SmallVector<Value> worklist;
  bool isNarrow = true;
  grid.walk([&](OnlineAttentionOp step) {
    worklist.push_back(step->getResult(2));
    isNarrow &= step.getValue().getType().getDimSize(1) <= 128;
  });
  if (!isNarrow)
    return sums;
  while (!worklist.empty()) {
    Value sum = worklist.pop_back_val();
    if (!sums.insert(sum).second)
      continue;
    if (!followDefinition(sum, worklist) ||
        !llvm::all_of(sum.getUses(), [&](OpOperand &use) { return followUse(use, worklist); }))
      return {};
  }
  return sums;
}
