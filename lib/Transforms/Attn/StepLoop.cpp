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

/// Whether n0 and the number that `map` makes of `operands` add up to `length`.
static bool endsAt(AffineMap map, ValueRange operands, Value n0, Value length) {
  MLIRContext *context = map.getContext();
  unsigned numDims = map.getNumDims();
  SmallVector<Value> all(operands.take_front(numDims));
  llvm::append_values(all, n0, length);
  llvm::append_range(all, operands.drop_front(numDims));
  AffineExpr rest = map.getResult(0) + getAffineDimExpr(numDims, context) -
                    getAffineDimExpr(numDims + 1, context);
  map = AffineMap::get(numDims + 2, map.getNumSymbols(), rest);
  affine::fullyComposeAffineMapAndOperands(&map, &all);
  affine::canonicalizeMapAndOperands(&map, &all);
  // One value may be a dimension and a symbol: as its first dimension each stands once.
  SmallVector<AffineExpr> once = llvm::map_to_vector(all, [&](Value value) {
    return getAffineDimExpr(llvm::find(all, value) - all.begin(), context);
  });
  ArrayRef<AffineExpr> exprs(once);
  map = map.replaceDimsAndSymbols(exprs.take_front(map.getNumDims()),
                                  exprs.drop_front(map.getNumDims()), all.size(), 0);
  return simplifyAffineExpr(map.getResult(0), all.size(), 0) == getAffineConstantExpr(0, context);
}

/// Whether `size` is that of a tile of [0, length) at n0: `tileSize`, or the least of it and what
/// is left.
static bool isSizeOfTile(OpFoldResult size, Value n0, Value length, int64_t tileSize) {
  if (auto constant = getConstantIntValue(size))
    return *constant == tileSize;
  auto least = cast<Value>(size).getDefiningOp<affine::AffineMinOp>();
  if (!least)
    return false;
  AffineMap map = least.getAffineMap();
  return llvm::all_of(llvm::seq(map.getNumResults()), [&](unsigned i) {
    auto constant = dyn_cast<AffineConstantExpr>(map.getResult(i));
    return constant ? constant.getValue() == tileSize
                    : endsAt(map.getSubMap(i), least.getOperands(), n0, length);
  });
}

/// The vector or matrix of which `tile` is the tile at n0 of [0, length), with all columns, or
/// null.
static Value getTiledSource(Value tile, Value n0, Value length, int64_t tileSize) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !slice.hasUnitStride() || slice.getMixedOffsets()[0] != OpFoldResult(n0) ||
      !isSizeOfTile(slice.getMixedSizes()[0], n0, length, tileSize))
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
    sources.push_back(getTiledSource(tile->get(), n0, loop.getUpperBound(), *tileSize));
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
  return StepLoop{loop, step, sources, loop.getUpperBound(), *tileSize, *origin, /*partEnds=*/{}};
}
