//===- KVLoop.cpp - the loop over key tiles ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/KVLoop.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

/// The matrix of which `tile` is the slice of `blockN` keys, or of a run-time number, at [n0, 0],
/// with all columns, or null.
static Value getTiledSource(Value tile, Value n0, int64_t blockN) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || slice.getSourceType().getRank() != 2 || !slice.hasUnitStride() ||
      slice.getSourceType().isDynamicDim(1) ||
      slice.getSourceType().getDimSize(1) != slice.getType().getDimSize(1))
    return {};
  if (getConstantIntValue(slice.getMixedSizes()[0]).value_or(blockN) != blockN ||
      slice.getMixedOffsets()[0] != OpFoldResult(n0) ||
      !isConstantIntValue(slice.getMixedOffsets()[1], 0))
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
  // The sum is linear in n0 with coefficient 1; the origin is its value at n0 = 0.
  AffineMap map = apply.getAffineMap();
  OpFoldResult zero = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> operands;
  for (Value operand : apply.getMapOperands()) {
    if (operand != n0 && !loop.isDefinedOutsideOfLoop(operand))
      return failure();
    operands.push_back(operand == n0 ? zero : OpFoldResult(operand));
  }
  return affine::makeComposedFoldedAffineApply(builder, apply.getLoc(), map, operands);
}

/// Whether nothing of the loop is lost when `step` alone is done again elsewhere: the other ops
/// only compute its tiles and positions, and what else it needs comes from outside.
static bool isOnlyStep(scf::ForOp loop, OnlineAttentionOp step) {
  for (Operation &op : loop.getBody()->without_terminator())
    if (&op != step && (op.getNumRegions() != 0 || !isPure(&op)))
      return false;
  llvm::SetVector<Value> needed;
  getUsedValuesDefinedAbove(step->getRegions(), needed);
  needed.insert(step.getQuery());
  needed.insert(step.getScale());
  needed.insert_range(step.getOrigin().drop_back());
  return llvm::all_of(needed, [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
}

FailureOr<KVLoop> attn::matchKVLoop(OpBuilder &builder, OnlineAttentionOp step) {
  auto loop = dyn_cast<scf::ForOp>(step->getParentOp());
  if (!loop || loop.getNumRegionIterArgs() != 3 || !matchPattern(loop.getLowerBound(), m_Zero()))
    return failure();
  auto blockN = getConstantIntValue(loop.getStep());
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  if (!blockN || *blockN < 1 || !llvm::equal(yield.getOperands(), step->getResults()) ||
      !llvm::equal(step.getDpsInits(), ValueRange(loop.getRegionIterArgs())))
    return failure();
  Value n0 = loop.getInductionVar();
  Value key = getTiledSource(step.getKey(), n0, *blockN),
        value = getTiledSource(step.getValue(), n0, *blockN);
  if (!key || !value || step.getOrigin().empty() || !loop.isDefinedOutsideOfLoop(key) ||
      !loop.isDefinedOutsideOfLoop(value) || !isOnlyStep(loop, step))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  FailureOr<OpFoldResult> origin = getOrigin(builder, step.getOrigin()[3], loop);
  if (failed(origin))
    return failure();
  return KVLoop{loop, step, key, value, loop.getUpperBound(), *blockN, *origin};
}
