//===- RegionWork.cpp - what score and mask regions ask of a tile ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/RegionWork.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/GPUMath/GPUMath.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace attn;

namespace {
/// What a value differs over within a tile, as a set of bits.
enum Variation : unsigned { None = 0, Rows = 1, Keys = 2, Scores = Rows | Keys };
} // namespace

/// A division of 64 bits, which takes a dozen registers.
static bool isWideDivision(Operation *op) {
  return isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
             arith::CeilDivUIOp, arith::RemUIOp, arith::RemSIOp>(op) &&
         op->getResult(0).getType().isInteger(64);
}

/// Whether an op reads a sorted table, which is what tells rows where they stand in a whole.
static bool readsSorted(Operation &op) {
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  return extract && extract.getTensor().getDefiningOp<AssumeOp>();
}

/// Whether an op adds a number of the call to a position, which is as well as the position.
static bool shiftsPosition(Operation &op) {
  auto add = dyn_cast<arith::AddIOp>(op);
  auto isOutside = [&](Value value) {
    return value.getParentRegion() != op.getParentRegion() && !matchPattern(value, m_Constant());
  };
  return add && isa<BlockArgument>(add.getLhs()) &&
         add.getLhs().getParentRegion() == op.getParentRegion() && isOutside(add.getRhs());
}

static void measure(Region &region, RegionWork &work) {
  if (region.empty())
    return;
  DenseMap<Value, unsigned> variations;
  // The row and the key are the last two arguments; scores and their gradients come before the
  // four.
  ValueRange positions = region.getArguments().take_back(2);
  variations[positions[0]] = Rows;
  variations[positions[1]] = Keys;
  DenseSet<Value> distances = findDistances(region);
  auto isShared = [&](Value index) {
    return variations.lookup(index) == None || distances.contains(index);
  };
  for (Value score : region.getArguments().drop_back(4))
    variations[score] = Scores;
  bool hasFactor = bool(getFactor(region));
  DenseSet<Operation *> origins =
      hasFactor ? findOrigins(region, /*yielded=*/0) : DenseSet<Operation *>();
  for (Operation &op : region.front().without_terminator()) {
    unsigned variation = None;
    for (Value operand : op.getOperands())
      variation |= variations.lookup(operand);
    for (Value result : op.getResults())
      variations[result] = variation;
    work.isLong |= isLongMath(&op) || (variation == Scores && isWideDivision(&op));
    bool isGather = variation != None && isa<tensor::ExtractOp>(op);
    bool isOfRows = isGather && variation == Rows && readsSorted(op);
    if (isGather)
      work.gathersRowsAlone = isOfRows && (work.gathersRowsAlone || !work.gathers);
    work.gathers |= isGather;
    work.tables += isGather && readsSorted(op);
    work.shifts += shiftsPosition(op);
    if (isOfRows)
      continue;
    work.gathersApart |= isGather && !llvm::all_of(op.getOperands(), isShared);
    // A factor is made behind the maximum, for a few scores at a time: what it reads is all that
    // waits.
    if (hasFactor && !origins.contains(&op) && !isGather)
      continue;
    auto isCondition = [](Type type) { return type.isInteger(1); };
    work.rowConditions += variation == Rows && llvm::any_of(op.getResultTypes(), isCondition);
    work.scoreConditions += variation == Scores && isa<arith::CmpIOp>(op);
    if (variation == Keys && shiftsPosition(op))
      continue;
    work.weight += variation == Scores ? (isGather ? 7 : 1) : variation == Keys ? 3 : 0;
  }
}

RegionWork attn::measureRegion(Region &region) {
  RegionWork work;
  measure(region, work);
  return work;
}

RegionWork attn::measureRegions(Operation *op) {
  RegionWork work;
  for (Region &region : op->getRegions())
    measure(region, work);
  return work;
}

/// The op of `score` that computes what `op` does, if operands are `same`; or null.
static Operation *findTwin(Operation *op, Region &score, const DenseMap<Value, Value> &same) {
  auto isSame = [&](Value ofGrad, Value ofScore) {
    auto it = same.find(ofGrad);
    return success((it == same.end() ? ofGrad : it->second) == ofScore);
  };
  for (Operation &other : score.front().without_terminator())
    if (OperationEquivalence::isEquivalentTo(op, &other, isSame, /*markEquivalent=*/nullptr,
                                             OperationEquivalence::IgnoreLocations))
      return &other;
  return nullptr;
}

int64_t attn::countKeptScores(Region &score, Region &grad) {
  if (score.empty() || grad.empty())
    return 0;
  // The gradient of what the score yields is the second argument; positions are the last four.
  DenseMap<Value, Value> same{{grad.getArgument(0), score.getArgument(0)}};
  for (auto [ofGrad, ofScore] :
       llvm::zip(grad.getArguments().take_back(4), score.getArguments().take_back(4)))
    same[ofGrad] = ofScore;
  DenseSet<Value> kept;
  for (Operation &op : grad.front()) {
    Operation *twin = op.hasTrait<OpTrait::IsTerminator>() ? nullptr : findTwin(&op, score, same);
    if (twin) {
      for (auto [ofGrad, ofScore] : llvm::zip(op.getResults(), twin->getResults()))
        same[ofGrad] = ofScore;
      continue;
    }
    for (Value operand : op.getOperands())
      if (Value value = same.lookup(operand);
          value && !value.getType().isIndex() && !matchPattern(value, m_Constant()))
        kept.insert(value);
  }
  return kept.size();
}
