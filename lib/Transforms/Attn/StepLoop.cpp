//===- StepLoop.cpp - the loop over tiles of what runs ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/StepLoop.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

/// The vector or matrix of which `tile` is the slice of `tileSize` rows, or of a run-time number,
/// at n0, with all columns, or null.
static Value getTiledSource(Value tile, Value n0, int64_t tileSize) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.hasUnitStride() || slice.getMixedOffsets()[0] != OpFoldResult(n0) ||
      getConstantIntValue(slice.getMixedSizes()[0]).value_or(tileSize) != tileSize)
    return {};
  RankedTensorType source = slice.getSourceType();
  if (source.getRank() != slice.getType().getRank() || source.getRank() > 2)
    return {};
  if (source.getRank() == 2 &&
      (source.isDynamicDim(1) || source.getDimSize(1) != slice.getType().getDimSize(1) ||
       !isConstantIntValue(slice.getMixedOffsets()[1], 0)))
    return {};
  return slice.getSource();
}

/// `position` = origin + n0, as attn-tile-kv-loop wrote and canonicalization may have simplified
/// it.
static FailureOr<OpFoldResult> getOrigin(OpBuilder &builder, Value position, scf::ForOp loop) {
  Value n0 = loop.getInductionVar();
  if (position == n0)
    return OpFoldResult(builder.getIndexAttr(0));
  auto apply = position.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return failure();
  // The origin is the value at n0 = 0.
  AffineMap map = apply.getAffineMap();
  OpFoldResult zero = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> operands;
  unsigned numDims = map.getNumDims();
  AffineExpr none = builder.getAffineConstantExpr(0), some = builder.getAffineDimExpr(numDims),
             first = map.getResult(0), last = first;
  for (auto [i, operand] : llvm::enumerate(apply.getMapOperands())) {
    if (operand != n0 && !loop.isDefinedOutsideOfLoop(operand))
      return failure();
    operands.push_back(operand == n0 ? zero : OpFoldResult(operand));
    if (operand != n0)
      continue;
    AffineExpr variable =
        i < numDims ? builder.getAffineDimExpr(i) : builder.getAffineSymbolExpr(i - numDims);
    first = first.replace(variable, none);
    last = last.replace(variable, some);
  }
  if (simplifyAffineExpr(last - first - some, numDims + 1, map.getNumSymbols()) != none)
    return failure();
  return affine::makeComposedFoldedAffineApply(builder, apply.getLoc(), map, operands);
}

/// Whether nothing of the loop is lost when `step` alone is done again elsewhere: the other ops
/// only compute its tiles and positions, and what else it needs comes from outside.
static bool isOnlyStep(scf::ForOp loop, AbsorbingOpInterface step) {
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != step && (op.getNumRegions() != 0 || !isPure(&op)))
      return false;
  llvm::SetVector<Value> needed;
  getUsedValuesDefinedAbove(step->getRegions(), needed);
  auto destinations = cast<DestinationStyleOpInterface>(step.getOperation());
  SmallVector<OpOperand *> running = step.getRunningMutable();
  unsigned position = step.getOrigin().getBeginOperandIndex() + step.getRunningPosition();
  for (OpOperand &operand : step->getOpOperands())
    if (!destinations.isDpsInit(&operand) && !llvm::is_contained(running, &operand) &&
        operand.getOperandNumber() != position)
      needed.insert(operand.get());
  return llvm::all_of(needed, [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
}

FailureOr<StepLoop> attn::matchStepLoop(OpBuilder &builder, AbsorbingOpInterface step) {
  auto loop = dyn_cast<scf::ForOp>(step->getParentOp());
  if (!loop || loop.getNumRegionIterArgs() != step->getNumResults() ||
      !matchPattern(loop.getLowerBound(), m_Zero()))
    return failure();
  // A tile of a schedule has at most so many rows.
  constexpr int64_t largest = int64_t(1) << 30;
  auto tileSize = getConstantIntValue(loop.getStep());
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  if (!tileSize || *tileSize < 1 || *tileSize > largest ||
      !llvm::equal(yield.getOperands(), step->getResults()) ||
      !llvm::equal(cast<DestinationStyleOpInterface>(step.getOperation()).getDpsInits(),
                   ValueRange(loop.getRegionIterArgs())))
    return failure();
  Value n0 = loop.getInductionVar();
  SmallVector<Value, 4> sources;
  for (OpOperand *tile : step.getRunningMutable()) {
    sources.push_back(getTiledSource(tile->get(), n0, *tileSize));
    if (!sources.back() || !loop.isDefinedOutsideOfLoop(sources.back()))
      return failure();
  }
  if (step.getOrigin().empty() || !isOnlyStep(loop, step))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  FailureOr<OpFoldResult> origin =
      getOrigin(builder, step.getOrigin()[step.getRunningPosition()], loop);
  if (failed(origin))
    return failure();
  return StepLoop{loop, step, sources, loop.getUpperBound(), *tileSize, *origin, false, {}};
}
