//===- TileConditions.cpp - what a mask reads once a tile ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/TileConditions.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/RegionWork.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <numeric>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// Where tiles begin
//===----------------------------------------------------------------------------------------===//

/// Whether the position is known to be a multiple of `size`.
static bool isMultipleOf(OpFoldResult position, int64_t size) {
  if (auto constant = getConstantIntValue(position))
    return *constant % size == 0;
  auto value = cast<Value>(position);
  if (auto index = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<LoopLikeOpInterface>(index.getOwner()->getParentOp());
    std::optional<SmallVector<Value>> ivs = loop ? loop.getLoopInductionVars() : std::nullopt;
    const auto *number = ivs ? llvm::find(*ivs, value) : nullptr;
    if (!ivs || number == ivs->end())
      return false;
    size_t i = number - ivs->begin();
    auto begins = loop.getLoopLowerBounds(), steps = loop.getLoopSteps();
    return begins && steps && isMultipleOf((*begins)[i], size) && isMultipleOf((*steps)[i], size);
  }
  if (auto sum = value.getDefiningOp<arith::AddIOp>())
    return isMultipleOf(sum.getLhs(), size) && isMultipleOf(sum.getRhs(), size);
  auto apply = value.getDefiningOp<affine::AffineApplyOp>();
  if (!apply)
    return false;
  // The same map of multiples.
  AffineMap map = apply.getAffineMap();
  AffineExpr result = map.getResult(0);
  for (auto [i, operand] : llvm::enumerate(apply.getMapOperands())) {
    bool isDim = i < map.getNumDims();
    AffineExpr name = isDim ? getAffineDimExpr(i, map.getContext())
                            : getAffineSymbolExpr(i - map.getNumDims(), map.getContext());
    if (isMultipleOf(operand, size))
      result = result.replace(name, name * size);
  }
  return simplifyAffineExpr(result, map.getNumDims(), map.getNumSymbols()).isMultipleOf(size);
}

Cell attn::getTile(StepLoop &over) {
  auto schedule = over.step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  bool rowsRun = over.step.getRunningPosition() == 2;
  if (!schedule || over.step.getOrigin().size() != 4)
    return {};
  Cell tile =
      rowsRun ? Cell{over.tileSize, schedule->blockN} : Cell{schedule->blockM, over.tileSize};
  Value fixed = over.step.getOrigin()[rowsRun ? 3 : 2];
  bool areAligned = tile.rows > 0 && tile.keys > 0 && isConstantIntValue(over.origin, 0) &&
                    isMultipleOf(fixed, rowsRun ? tile.keys : tile.rows);
  return areAligned ? tile : Cell{};
}

Cell attn::getPart(Cell tile, Cell cell) {
  // More reads take as long as to evaluate a mask by element.
  constexpr int64_t most = 8;
  if (tile.rows <= 0 || tile.keys <= 0)
    return {};
  Cell part = {std::gcd(tile.rows, cell.rows), std::gcd(tile.keys, cell.keys)};
  return (tile.rows / part.rows) * (tile.keys / part.keys) <= most ? part : Cell{};
}

//===----------------------------------------------------------------------------------------===//
// Conditions as scalars
//===----------------------------------------------------------------------------------------===//

static Value keepInside(OpBuilder &builder, Location loc, Value index, Value tensor, int64_t dim) {
  Value size = builder.createOrFold<tensor::DimOp>(loc, tensor, dim);
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0),
        one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last = builder.createOrFold<arith::SubIOp>(loc, size, one);
  index = builder.createOrFold<arith::MinSIOp>(loc, index, last);
  return builder.createOrFold<arith::MaxSIOp>(loc, index, zero);
}

/// The value of the region, computed at the insertion point.
static Value emitValue(OpBuilder &builder, Region &region, Value value, IRMapping &mapping,
                       bool inRegion) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op || !region.isAncestor(op->getParentRegion()))
    return value;
  for (Value operand : op->getOperands())
    mapping.map(operand, emitValue(builder, region, operand, mapping, inRegion));
  auto read = dyn_cast<tensor::ExtractOp>(op);
  if (!read || inRegion)
    return builder.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  SmallVector<Value> indices;
  for (auto [dim, index] : llvm::enumerate(read.getIndices())) {
    Value place = mapping.lookup(index);
    indices.push_back(mayBeOutside(index, read.getTensor(), dim)
                          ? keepInside(builder, op->getLoc(), place, read.getTensor(), dim)
                          : place);
  }
  return tensor::ExtractOp::create(builder, op->getLoc(), mapping.lookup(read.getTensor()),
                                   indices);
}

SmallVector<Value, 3> attn::emitConditions(OpBuilder &builder, Region &mask, Cell tile,
                                           ValueRange at, bool inRegion) {
  IRMapping mapping;
  mapping.map(mask.getArguments(), at);
  SmallVector<Value, 3> values;
  for (Value condition : getCaseConditions(mask, tile))
    values.push_back(emitValue(builder, mask, condition, mapping, inRegion));
  return values;
}

Value attn::emitIsCase(OpBuilder &builder, Location loc, const TileCases::Case &each,
                       ValueRange conditions) {
  Value isCase;
  for (auto [holds, condition] : llvm::zip_equal(each.holds, conditions)) {
    Value same = condition;
    if (!holds) {
      Value yes = arith::ConstantOp::create(builder, loc, builder.getBoolAttr(true));
      same = arith::XOrIOp::create(builder, loc, condition, yes);
    }
    isCase = isCase ? arith::AndIOp::create(builder, loc, isCase, same).getResult() : same;
  }
  return isCase;
}

void attn::setConditions(Region &mask, Cell tile, ValueRange values) {
  for (auto [condition, value] : llvm::zip_equal(getCaseConditions(mask, tile), values))
    condition.replaceAllUsesWith(value);
  eraseUnused(mask);
}

void attn::setConditions(Region &mask, Cell tile, ArrayRef<bool> holds) {
  auto builder = OpBuilder::atBlockBegin(&mask.front());
  SmallVector<Value> constants;
  for (bool each : holds)
    constants.push_back(
        arith::ConstantOp::create(builder, mask.getLoc(), builder.getBoolAttr(each)));
  setConditions(mask, tile, constants);
}

void attn::simplifyMask(Region &mask, Cell tile, const TileCases &cases) {
  if (cases.getConditions().empty() || cases.getCases().size() != 1)
    return;
  const TileCases::Case &only = cases.getCases().front();
  if (!only.tiles.isAlwaysFull())
    return setConditions(mask, tile, only.holds);
  mask.dropAllReferences();
  mask.getBlocks().clear();
}

OwningOpRef<Operation *> attn::copyMask(Region &mask, IRMapping &mapping) {
  OwningOpRef<Operation *> copy = mask.getParentOp()->cloneWithoutRegions();
  copy.get()->setOperands({});
  mask.cloneInto(&copy.get()->getRegion(mask.getRegionNumber()), mapping);
  return copy;
}

bool attn::areDecided(const TileCases &cases) {
  return !cases.getConditions().empty() &&
         llvm::none_of(cases.getCases(), [](const TileCases::Case &each) {
           return each.tiles.knowsNoFullTile() && measureRegion(*each.mask).gathers;
         });
}

OwningOpRef<Operation *> attn::copyInCell(ScoredOpInterface op, Cell cell) {
  TileCases cases = TileCases::analyze(op.getMask(), cell, factOf);
  if (!areDecided(cases))
    return nullptr;
  OwningOpRef<Operation *> copy = op->clone();
  Region &mask = cast<ScoredOpInterface>(copy.get()).getMask();
  if (cases.getCases().size() <= 1) {
    simplifyMask(mask, cell, cases);
    return copy;
  }
  const auto *most = llvm::max_element(cases.getCases(), [](const auto &a, const auto &b) {
    return measureRegion(*a.mask).weight < measureRegion(*b.mask).weight;
  });
  setConditions(mask, cell, most->holds);
  return copy;
}
