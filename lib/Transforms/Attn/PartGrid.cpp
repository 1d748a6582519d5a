//===- PartGrid.cpp - grids with a part as their first index ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/PartGrid.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;

SmallVector<Attribute> attn::getBlockMapping(MLIRContext *context, unsigned rank, bool headsFirst) {
  using gpu::MappingId;
  SmallVector<MappingId> ids = {MappingId::LinearDim3, MappingId::LinearDim2, MappingId::LinearDim1,
                                MappingId::LinearDim0};
  if (headsFirst)
    ids = {MappingId::LinearDim2, MappingId::LinearDim1, MappingId::LinearDim0,
           MappingId::LinearDim3};
  return llvm::map_to_vector(ArrayRef(ids).take_back(rank), [&](MappingId id) {
    return Attribute(gpu::GPUBlockMappingAttr::get(context, id));
  });
}

scf::ForallOp attn::addParts(RewriterBase &rewriter, scf::ForallOp grid, OpFoldResult parts,
                             ValueRange partials, bool headsFirst, bool slots) {
  auto extend = [](SmallVector<OpFoldResult> bounds, OpFoldResult first) {
    bounds.insert(bounds.begin(), first);
    return bounds;
  };
  rewriter.setInsertionPoint(grid);
  SmallVector<OpFoldResult> ends = grid.getMixedUpperBound();
  if (slots)
    ends[0] = rewriter.getIndexAttr(1);
  auto mapping =
      rewriter.getArrayAttr(getBlockMapping(rewriter.getContext(), /*rank=*/4, headsFirst));
  auto split = scf::ForallOp::create(
      rewriter, grid.getLoc(), extend(grid.getMixedLowerBound(), rewriter.getIndexAttr(0)),
      extend(ends, parts), extend(grid.getMixedStep(), rewriter.getIndexAttr(1)), partials,
      mapping);
  SmallVector<Value> arguments(split.getInductionVars());
  arguments.erase(arguments.begin());
  llvm::append_range(arguments, grid.getOutputs());
  rewriter.eraseOp(split.getTerminator());
  rewriter.mergeBlocks(grid.getBody(), split.getBody(), arguments);
  return split;
}
