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

using namespace mlir;
using namespace attn;

/// The tensor of which `tile` is the slice of `blockN` keys, or of a run-time number, at [n0, 0],
/// or null.
static Value getTiledSource(Value tile, Value n0, int64_t blockN) {
  auto slice = tile.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || getConstantIntValue(slice.getMixedSizes()[0]).value_or(blockN) != blockN ||
      slice.getMixedOffsets()[0] != OpFoldResult(n0) ||
      !isConstantIntValue(slice.getMixedOffsets()[1], 0))
    return {};
  return slice.getSource();
}

/// `position` = origin + n0, as attn-tile-kv-loop wrote and canonicalization may have simplified
/// it.
static FailureOr<OpFoldResult> getOrigin(OpBuilder &builder, Value position, Value n0) {
  if (position == n0)
    return OpFoldResult(builder.getIndexAttr(0));
  auto apply = position.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return failure();
  // The sum is linear in n0 with coefficient 1; the origin is its value at n0 = 0.
  AffineMap map = apply.getAffineMap();
  OpFoldResult zero = builder.getIndexAttr(0);
  SmallVector<OpFoldResult> operands;
  for (Value operand : apply.getMapOperands())
    operands.push_back(operand == n0 ? zero : OpFoldResult(operand));
  return affine::makeComposedFoldedAffineApply(builder, apply.getLoc(), map, operands);
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
  if (!key || !value || step.getOrigin().empty())
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  FailureOr<OpFoldResult> origin = getOrigin(builder, step.getOrigin()[3], n0);
  if (failed(origin))
    return failure();
  return KVLoop{loop, step, key, value, loop.getUpperBound(), *blockN, *origin};
}
