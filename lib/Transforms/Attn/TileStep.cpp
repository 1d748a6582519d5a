//===- TileStep.cpp - one step of a loop over tiles --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

ValueRange attn::emitTileStep(OpBuilder &builder, AbsorbingOpInterface op, ValueRange sources,
                              OpFoldResult origin, Value n0, OpFoldResult size, ValueRange state,
                              bool withMask) {
  Location loc = op.getLoc();
  auto tile = [&](Value source) -> Value {
    int64_t rank = cast<RankedTensorType>(source.getType()).getRank();
    SmallVector<OpFoldResult> offsets(rank, builder.getIndexAttr(0)),
        sizes = {size}, strides(rank, builder.getIndexAttr(1));
    offsets[0] = n0;
    for (int64_t i = 1; i < rank; ++i)
      sizes.push_back(tensor::getMixedSize(builder, loc, source, i));
    return tensor::ExtractSliceOp::create(builder, loc, source, offsets, sizes, strides);
  };
  AffineExpr a, b;
  bindSymbols(builder.getContext(), a, b);
  SmallVector<OpFoldResult> position = getOriginOrZeros(op.getOrigin(), builder.getContext());
  position[op.getRunningPosition()] =
      affine::makeComposedFoldedAffineApply(builder, loc, a + b, {origin, n0});
  SmallVector<Value> at = getValueOrCreateConstantIndexOp(builder, loc, position);
  SmallVector<Value> tiles = llvm::map_to_vector(sources, tile);
  auto step = cast<AbsorbingOpInterface>(builder.cloneWithoutRegions(*op));
  for (auto [operand, value] : llvm::zip_equal(step.getRunningMutable(), tiles))
    operand->set(value);
  step.getOriginMutable().assign(at);
  cast<DestinationStyleOpInterface>(step.getOperation()).getDpsInitsMutable().assign(state);
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), step->getRegions()))
    if (withMask || &from != &op.getMask())
      from.cloneInto(&to, mapping);
  return step->getResults();
}

OpFoldResult attn::emitTileSize(OpBuilder &builder, Location loc, int64_t tileSize, Value n0,
                                OpFoldResult n) {
  AffineExpr start, length;
  bindDims(builder.getContext(), start);
  bindSymbols(builder.getContext(), length);
  auto map = AffineMap::get(1, 1, {builder.getAffineConstantExpr(tileSize), length - start},
                            builder.getContext());
  return affine::makeComposedFoldedAffineMin(builder, loc, map, {n0, n});
}
