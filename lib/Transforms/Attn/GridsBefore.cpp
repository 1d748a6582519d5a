//===- GridsBefore.cpp - what grids in front of a grid compute for its blocks ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/GridsBefore.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

bool attn::isGridOverTiles(scf::ForallOp grid) {
  if (!grid || grid.getRank() != 3 || !grid.getMapping() ||
      !llvm::all_of(grid.getMixedLowerBound(), isZeroInteger))
    return false;
  SmallVector<OpFoldResult> steps = grid.getMixedStep();
  return getConstantIntValue(steps.pop_back_val()).value_or(0) > 0 &&
         llvm::all_of(steps, isOneInteger);
}

/// What the op reads: operands, and what its regions capture.
static SmallVector<Value> getInputs(Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  SmallVector<Value> inputs(op->getOperands());
  llvm::append_range(inputs, captured);
  return inputs;
}

LogicalResult attn::collectIndices(Value value, scf::ForallOp grid,
                                   llvm::SmallDenseSet<Value> &indices) {
  if (!grid->isAncestor(value.getParentRegion()->getParentOp()))
    return success();
  Operation *op = value.getDefiningOp();
  if (!op) {
    indices.insert(value);
    return success(llvm::is_contained(grid.getInductionVars(), value));
  }
  bool isSearch = isa<scf::WhileOp>(op) && isMemoryEffectFree(op);
  if (!isSearch && (op->getNumRegions() != 0 || !isPure(op)))
    return failure();
  return failure(llvm::any_of(
      getInputs(op), [&](Value input) { return failed(collectIndices(input, grid, indices)); }));
}

Value attn::copyInto(OpBuilder &builder, IRMapping &mapping, Value value, scf::ForallOp grid) {
  if (Value mapped = mapping.lookupOrNull(value))
    return mapped;
  if (!grid->isAncestor(value.getParentRegion()->getParentOp()))
    return value;
  Operation *op = value.getDefiningOp();
  for (Value input : getInputs(op))
    copyInto(builder, mapping, input, grid);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

std::array<bool, 3> attn::getDifferences(scf::ForallOp grid,
                                         const llvm::SmallDenseSet<Value> &indices) {
  SmallVector<Value> ivs = grid.getInductionVars();
  return {indices.contains(ivs[0]), indices.contains(ivs[1]), true};
}

SmallVector<OpFoldResult> attn::getEndsBefore(scf::ForallOp grid,
                                              const std::array<bool, 3> &differs) {
  SmallVector<OpFoldResult> ends = grid.getMixedUpperBound();
  for (auto [end, differ] : llvm::zip_equal(ends, differs))
    if (!differ)
      end = Builder(grid.getContext()).getIndexAttr(1);
  return ends;
}

Value attn::emitEmptyBefore(OpBuilder &builder, scf::ForallOp grid,
                            const std::array<bool, 3> &differs, OpFoldResult count) {
  Location loc = grid.getLoc();
  SmallVector<OpFoldResult> shape = getEndsBefore(grid, differs);
  shape.back() =
      emitCeilDiv(builder, loc, shape.back(), *getConstantIntValue(grid.getMixedStep().back()));
  shape.push_back(count);
  return tensor::EmptyOp::create(builder, loc, shape, builder.getI32Type());
}

scf::ForallOp attn::emitGridBefore(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> ends,
                                   ArrayRef<OpFoldResult> steps, ValueRange outs) {
  using Id = gpu::MappingId;
  SmallVector<Attribute> ids;
  for (Id id : {Id::LinearDim3, Id::LinearDim2, Id::LinearDim1, Id::LinearDim0})
    ids.push_back(gpu::GPUBlockMappingAttr::get(builder.getContext(), id));
  auto mapping = builder.getArrayAttr(ArrayRef(ids).take_back(ends.size()));
  SmallVector<OpFoldResult> begins(ends.size(), builder.getIndexAttr(0));
  auto grid = scf::ForallOp::create(builder, loc, begins, ends, steps, outs, mapping);
  builder.setInsertionPoint(grid.getTerminator());
  return grid;
}

SmallVector<OpFoldResult> attn::getTileOfRows(OpBuilder &builder, Location loc,
                                              scf::ForallOp grid) {
  SmallVector<OpFoldResult> at = getAsOpFoldResult(grid.getInductionVars());
  at.erase(at.begin(), at.end() - 3);
  at.back() =
      emitQuotient(builder, loc, at.back(), *getConstantIntValue(grid.getMixedStep().back()));
  return at;
}

SmallVector<Value> attn::getTileBefore(OpBuilder &builder, scf::ForallOp grid,
                                       const std::array<bool, 3> &differs) {
  Location loc = grid.getLoc();
  SmallVector<OpFoldResult> tile = getTileOfRows(builder, loc, grid);
  for (auto [index, differ] : llvm::zip_equal(tile, differs))
    if (!differ)
      index = builder.getIndexAttr(0);
  return getValueOrCreateConstantIndexOp(builder, loc, tile);
}

Value attn::emitReadBefore(OpBuilder &builder, Location loc, Value tensor, ArrayRef<Value> tile,
                           Value at) {
  SmallVector<Value> indices(tile);
  indices.push_back(at);
  Value element = tensor::ExtractOp::create(builder, loc, tensor, indices);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), element);
}

void attn::emitInsert(OpBuilder &builder, Location loc, scf::ForallOp grid, Value result,
                      tensor::ExtractSliceOp slice) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(grid.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(builder, loc, result, slice.getSource(),
                                        slice.getMixedOffsets(), slice.getMixedSizes(),
                                        slice.getMixedStrides());
}

OpFoldResult attn::emitCeilDiv(OpBuilder &builder, Location loc, OpFoldResult value,
                               int64_t divisor) {
  AffineExpr x;
  bindSymbols(builder.getContext(), x);
  return affine::makeComposedFoldedAffineApply(builder, loc, x.ceilDiv(divisor), {value});
}

OpFoldResult attn::emitQuotient(OpBuilder &builder, Location loc, OpFoldResult value,
                                int64_t divisor) {
  AffineExpr x;
  bindSymbols(builder.getContext(), x);
  return affine::makeComposedFoldedAffineApply(builder, loc, x.floorDiv(divisor), {value});
}
