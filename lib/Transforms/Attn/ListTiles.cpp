//===- ListTiles.cpp - attn-list-tiles ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Three grids instead of one, with tensors between them. B' and H' are 1 unless the mask reads b
// and h:
//
//   status (B', H', M tiles, N tiles)   what the mask keeps of each tile; a block for each
//   tiles  (B', H', M tiles, N tiles)   first keys: the first tile, then those that the mask cuts;
//                                       from the end, those that it keeps whole
//   counts (B', H', M tiles, 2)         how many there are of either kind
//
// Where reads of cells and closed forms tell the status of each tile, there is no first grid
// (ComputeLists.cpp). Such lists are those of rows that a block of keys needs, too.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/ListLoops.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_LISTTILESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// What a list depends on
//===----------------------------------------------------------------------------------------===//

/// What a list is made from besides the number of tiles.
static SmallVector<Value> getInputs(Listed &listed) {
  SmallVector<Value> inputs;
  Region &mask = listed.getMask();
  ValueRange origin = listed.over.step.getOrigin();
  for (unsigned dim : {0u, 1u, listed.getFixedPosition()})
    if (dim > 1 || !mask.getArgument(dim).use_empty())
      inputs.push_back(origin[dim]);
  if (auto first = dyn_cast<Value>(listed.over.origin))
    inputs.push_back(first);
  if (auto owned = dyn_cast<Value>(listed.owned))
    inputs.push_back(owned);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(mask, captured);
  llvm::append_range(inputs, captured);
  return inputs;
}

/// Whether the number is 0 where the indices are.
static bool startsAtZero(Value value, ValueRange indices) {
  if (llvm::is_contained(indices, value) || isConstantIntValue(value, 0))
    return true;
  auto starts = [&](Value operand) { return startsAtZero(operand, indices); };
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp>(op))
    return llvm::all_of(op->getOperands(), starts);
  if (isa_and_nonnull<arith::MulIOp>(op))
    return llvm::any_of(op->getOperands(), starts);
  auto apply = dyn_cast_or_null<affine::AffineApplyOp>(op);
  if (!apply)
    return false;
  AffineMap map = apply.getAffineMap();
  AffineExpr result = map.getResult(0), zero = getAffineConstantExpr(0, map.getContext());
  for (auto [i, operand] : llvm::enumerate(apply.getMapOperands()))
    if (starts(operand))
      result = result.replace(i < map.getNumDims()
                                  ? getAffineDimExpr(i, map.getContext())
                                  : getAffineSymbolExpr(i - map.getNumDims(), map.getContext()),
                              zero);
  return simplifyAffineExpr(result, map.getNumDims(), map.getNumSymbols()) == zero;
}

/// Whether a grid in front knows the head of a turn: heads are numbered from the first of the
/// query.
static bool knowsHead(Listed &listed) {
  Value query = getWhole(listed.over.sources[0]);
  SmallVector<Value> indices(listed.grid.getInductionVars());
  indices.push_back(listed.heads.getInductionVar());
  return cast<RankedTensorType>(query.getType()).getRank() == 4 &&
         !listed.grid->isAncestor(query.getParentRegion()->getParentOp()) &&
         startsAtZero(listed.over.step.getOrigin()[1], indices);
}

/// The grid and what the list differs over, or a reason why there can be none.
static LogicalResult matchListed(OpBuilder &builder, AbsorbingOpInterface step, Listed &listed,
                                 StringRef &why) {
  FailureOr<StepLoop> over = matchStepLoop(builder, step);
  why = "not in a loop made by attn-tile-kv-loop";
  if (failed(over))
    return failure();
  builder.setInsertionPoint(over->loop);
  listed.over = *over;
  listed.grid = over->loop->getParentOfType<scf::ForallOp>();
  listed.owned = getRows(builder, step.getLoc(), step.getFixed());
  // Heads that share keys follow one another in a block of keys.
  auto heads = dyn_cast<scf::ForOp>(over->loop->getParentOp());
  if (listed.rowsRun() && heads)
    listed.heads = heads;
  why = "not in a grid over (B, H, tiles)";
  Operation *around = listed.heads ? listed.heads.getOperation() : over->loop.getOperation();
  if (!isGridOverTiles(listed.grid) || around->getBlock() != listed.grid.getBody())
    return failure();
  why = "there is no mask";
  if (step.getMask().empty())
    return failure();
  why = "the list would depend on what only a block of the attention computes";
  llvm::SmallDenseSet<Value> indices, none;
  for (Value input : getInputs(listed)) {
    // Of a head the grid in front knows nothing but its number.
    if (listed.heads && input == step.getOrigin()[1])
      listed.differs[1] = true;
    else if (failed(collectIndices(input, listed.grid, indices)))
      return failure();
  }
  Value keyHead = listed.grid.getInductionVars()[1];
  if (failed(collectIndices(over->length, listed.grid, none)) || !none.empty() ||
      (listed.heads && (indices.contains(keyHead) || !knowsHead(listed))))
    return failure();
  auto differs = getDifferences(listed.grid, indices);
  differs[1] |= listed.differs[1];
  listed.differs = differs;
  listed.tile = getTile(*over);
  listed.cases = TileCases::analyze(step.getMask(), listed.tile, factOf,
                                    listed.rowsRun() ? MaskAxis::Rows : MaskAxis::Keys);
  listed.isComputed = areDecided(listed.cases);
  listed.part = listed.tile;
  std::optional<Cell> cell = findCell(step.getMask());
  if (!listed.isComputed && cell && !isa<OnlineAttentionOp>(step)) {
    listed.part = getPart(listed.tile, *cell);
    listed.cases = TileCases::analyze(step.getMask(), listed.part, factOf,
                                      listed.rowsRun() ? MaskAxis::Rows : MaskAxis::Keys);
    listed.isComputed = areDecided(listed.cases);
  }
  why = "only votes tell which tiles the mask keeps, and only steps of the softmax have them";
  return success(listed.isComputed || isa<OnlineAttentionOp>(step));
}

//===----------------------------------------------------------------------------------------===//
// The grids before
//===----------------------------------------------------------------------------------------===//

/// What the mask keeps of the tile of `rows` and `keys` at the indices of the block.
static void emitStatus(OpBuilder &builder, Listed &listed, scf::ForallOp grid, Value keys) {
  StepLoop &over = listed.over;
  Location loc = over.loop.getLoc();
  Region &mask = listed.getMask();
  SmallVector<Value> ivs = grid.getInductionVars();
  Value n = ivs.front();
  ivs.erase(ivs.begin());
  IRMapping mapping;
  mapping.map(ValueRange(listed.grid.getInductionVars()), ValueRange(ivs));
  auto copy = [&](Value value) { return copyInto(builder, mapping, value, listed.grid); };
  auto copyFolded = [&](OpFoldResult value) {
    return isa<Value>(value) ? OpFoldResult(copy(cast<Value>(value))) : value;
  };
  SmallVector<Value> origin(4, emitConstant(builder, loc, 0));
  for (unsigned dim : {0u, 1u, 2u})
    if (dim == 2 || !mask.getArgument(dim).use_empty())
      origin[dim] = copy(over.step.getOrigin()[dim]);
  Value rows = getValueOrCreateConstantIndexOp(builder, loc, copyFolded(listed.owned));
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(mask, captured);
  llvm::for_each(captured, copy);

  Value size = getValueOrCreateConstantIndexOp(builder, loc,
                                               emitTileSize(builder, loc, over.tileSize, n, keys));
  auto slice =
      emitSlice(builder, loc, grid.getRegionOutArgs()[0], getTileOfRows(builder, loc, grid),
                emitQuotient(builder, loc, n, over.tileSize), builder.getIndexAttr(1));
  auto op = TileStatusOp::create(builder, loc, TypeRange{slice.getType()}, rows, size, origin,
                                 slice, over.tileSize);
  mask.cloneInto(&op.getMask(), mapping);

  // What the mask reads once a tile is a scalar of the block, which bounds what it may keep.
  builder.setInsertionPoint(op);
  Value at[] = {origin[0], origin[1], origin[2], n};
  setConditions(op.getMask(), listed.tile, emitConditions(builder, op.getMask(), listed.tile, at));

  // The analysis counts keys from the loop's first.
  auto probe = cast<TileStatusOp>(builder.clone(*op));
  builder.setInsertionPoint(probe);
  OpFoldResult first = copyFolded(over.origin);
  shiftMask(builder, loc, probe.getMask(), /*position=*/3, first);
  MaskTiles known = MaskTiles::analyze(probe.getMask(), factOf);
  if (!known.isUndecided()) {
    Value end = arith::AddIOp::create(builder, loc, origin[2], rows);
    MaskTiles::Ranges ranges =
        known.emitRanges(builder, loc, {origin[0], origin[1], origin[2], end, keys}, over.tileSize);
    auto compare = [&](arith::CmpIPredicate predicate, Value bound) {
      return arith::CmpIOp::create(builder, loc, predicate, n, bound);
    };
    Value mayKeep =
        arith::AndIOp::create(builder, loc, compare(arith::CmpIPredicate::sge, ranges.begin),
                              compare(arith::CmpIPredicate::slt, ranges.end));
    op.getKeysMutable().assign(
        arith::SelectOp::create(builder, loc, mayKeep, size, emitConstant(builder, loc, 0)));
  }
  AffineExpr x, y;
  bindSymbols(builder.getContext(), x, y);
  origin[3] = getValueOrCreateConstantIndexOp(
      builder, loc, affine::makeComposedFoldedAffineApply(builder, loc, x + y, {first, n}));
  op.getOriginMutable().assign(origin);
  probe.erase();
  emitInsert(builder, loc, grid, op->getResult(0), slice);
}

/// The lists of a tile of rows.
static void emitLists(OpBuilder &builder, Listed &listed, scf::ForallOp grid, Value status) {
  Location loc = listed.over.loop.getLoc();
  SmallVector<OpFoldResult> at = getTileOfRows(builder, loc, grid);
  OpFoldResult zero = builder.getIndexAttr(0);
  auto sliceAll = [&](Value tensor) {
    return emitSlice(builder, loc, tensor, at, zero, tensor::getMixedSize(builder, loc, tensor, 3));
  };
  auto tiles = sliceAll(grid.getRegionOutArgs()[0]), counts = sliceAll(grid.getRegionOutArgs()[1]);
  auto op = ListTilesOp::create(builder, loc, TypeRange{tiles.getType(), counts.getType()},
                                sliceAll(status), tiles, counts, listed.over.tileSize);
  emitInsert(builder, loc, grid, op->getResult(0), tiles);
  emitInsert(builder, loc, grid, op->getResult(1), counts);
}

/// The two grids in front of the attention's; the second is returned.
static scf::ForallOp emitVotedLists(OpBuilder &builder, Listed &listed) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(listed.grid);
  Location loc = listed.over.loop.getLoc();
  IRMapping mapping;
  Value keys = copyInto(builder, mapping, listed.over.length, listed.grid);
  SmallVector<OpFoldResult> ends = getEndsBefore(listed.grid, listed.differs),
                            steps = listed.grid.getMixedStep();
  OpFoldResult numTiles = emitCeilDiv(builder, loc, keys, listed.over.tileSize);
  auto emitEmpty = [&](OpFoldResult last) {
    return emitEmptyBefore(builder, listed.grid, listed.differs, last);
  };
  Value empty = emitEmpty(numTiles), tiles = emitEmpty(numTiles),
        counts = emitEmpty(builder.getIndexAttr(2));
  // The tiles of keys come first: blocks side by side read the same keys.
  SmallVector<OpFoldResult> statusEnds(ends), statusSteps(steps);
  statusEnds.insert(statusEnds.begin(), OpFoldResult(keys));
  statusSteps.insert(statusSteps.begin(), builder.getIndexAttr(listed.over.tileSize));
  scf::ForallOp status = emitGridBefore(builder, loc, statusEnds, statusSteps, empty);
  emitStatus(builder, listed, status, keys);
  builder.setInsertionPointAfter(status);
  scf::ForallOp lists = emitGridBefore(builder, loc, ends, steps, {tiles, counts});
  emitLists(builder, listed, lists, status.getResult(0));
  return lists;
}

static void listTiles(RewriterBase &rewriter, Listed &listed) {
  AbsorbingOpInterface step = listed.over.step;
  remark::passed(step.getLoc(), remark::RemarkOpts::name("list-tiles").category("attn"))
      << describe(listed);
  scf::ForallOp lists =
      listed.isComputed ? emitComputedLists(rewriter, listed) : emitVotedLists(rewriter, listed);
  emitLoopsOverLists(rewriter, listed, lists);
}

namespace {
struct ListTilesPass
    : RoomPass<attn::impl::ListTilesPassBase<ListTilesPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<AbsorbingOpInterface> steps;
    getOperation()->walk([&](AbsorbingOpInterface step) {
      auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      if (schedule && schedule->lists)
        steps.push_back(step);
    });
    for (AbsorbingOpInterface step : steps) {
      StringRef why;
      Listed listed;
      rewriter.setInsertionPoint(step);
      if (succeeded(matchListed(rewriter, step, listed, why)))
        listTiles(rewriter, listed);
      else
        remark::missed(step.getLoc(), remark::RemarkOpts::name("list-tiles").category("attn"))
            << ("tiles are not listed: " + why).str();
    }
    return success();
  }
};
} // namespace
