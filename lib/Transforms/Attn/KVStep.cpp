//===- KVStep.cpp - one step of the loop over key tiles ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/KVStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

ValueRange attn::emitKVStep(OpBuilder &builder, OnlineAttentionOp op, Value key, Value value,
                            OpFoldResult origin, Value n0, OpFoldResult size, ValueRange state,
                            bool withMask) {
  Location loc = op.getLoc();
  auto tile = [&](Value source) -> Value {
    OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
    OpFoldResult width = tensor::getMixedSize(builder, loc, source, 1);
    return tensor::ExtractSliceOp::create(builder, loc, source, ArrayRef<OpFoldResult>{n0, zero},
                                          ArrayRef<OpFoldResult>{size, width},
                                          ArrayRef<OpFoldResult>{one, one});
  };
  AffineExpr a, b;
  bindSymbols(builder.getContext(), a, b);
  SmallVector<OpFoldResult> position = op.getMixedOrigin();
  position[3] = affine::makeComposedFoldedAffineApply(builder, loc, a + b, {origin, n0});
  SmallVector<Value> at = getValueOrCreateConstantIndexOp(builder, loc, position);
  auto step =
      OnlineAttentionOp::create(builder, loc, state.getTypes(), op.getQuery(), tile(key),
                                tile(value), op.getScale(), at, state[0], state[1], state[2]);
  step->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  op.getScore().cloneInto(&step.getScore(), mapping);
  if (withMask)
    op.getMask().cloneInto(&step.getMask(), mapping);
  return step->getResults();
}

OpFoldResult attn::emitTileSize(OpBuilder &builder, Location loc, int64_t blockN, Value n0,
                                OpFoldResult n) {
  AffineExpr start, length;
  bindDims(builder.getContext(), start);
  bindSymbols(builder.getContext(), length);
  auto map = AffineMap::get(1, 1, {builder.getAffineConstantExpr(blockN), length - start},
                            builder.getContext());
  return affine::makeComposedFoldedAffineMin(builder, loc, map, {n0, n});
}
