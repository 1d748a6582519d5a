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
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/DiagonalKeys.h"
#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/StepRanges.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_LISTTILESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A step's loop over key tiles, and the grid (B, H, M tiles) around it.
struct Listed {
  StepLoop over;
  scf::ForallOp grid;
  /// Of the block.
  OpFoldResult rows;
  /// Whether the list is another one for each batch, head and tile of rows.
  std::array<bool, 3> differs = {false, false, true};

  Region &getMask() { return over.step.getMask(); }
};

/// The list of the block's tile of rows, read in a block of the attention.
struct List {
  Value tiles, counts;
  SmallVector<Value> position;
};
} // namespace

//===----------------------------------------------------------------------------------------===//
// What a list depends on
//===----------------------------------------------------------------------------------------===//

/// What a list is made from besides the number of keys.
static SmallVector<Value> getInputs(Listed &listed) {
  SmallVector<Value> inputs;
  Region &mask = listed.getMask();
  ValueRange origin = listed.over.step.getOrigin();
  for (unsigned dim : {0u, 1u, 2u})
    if (dim == 2 || !mask.getArgument(dim).use_empty())
      inputs.push_back(origin[dim]);
  if (auto first = dyn_cast<Value>(listed.over.origin))
    inputs.push_back(first);
  if (auto rows = dyn_cast<Value>(listed.rows))
    inputs.push_back(rows);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(mask, captured);
  llvm::append_range(inputs, captured);
  return inputs;
}

/// The grid and what the list differs over, or a reason why there can be none.
static FailureOr<Listed> matchListed(OpBuilder &builder, OnlineAttentionOp step, StringRef &why) {
  FailureOr<StepLoop> over = matchStepLoop(builder, step);
  why = "not in a loop made by attn-tile-kv-loop";
  if (failed(over))
    return failure();
  builder.setInsertionPoint(over->loop);
  Listed listed{*over, over->loop->getParentOfType<scf::ForallOp>(),
                getRows(builder, step.getLoc(), step.getQuery())};
  why = "not in a grid over (B, H, M tiles)";
  if (!isGridOverTiles(listed.grid) || over->loop->getBlock() != listed.grid.getBody())
    return failure();
  why = "there is no mask";
  if (step.getMask().empty())
    return failure();
  why = "the list would depend on what only a block of the attention computes";
  llvm::SmallDenseSet<Value> indices, none;
  for (Value input : getInputs(listed))
    if (failed(collectIndices(input, listed.grid, indices)))
      return failure();
  if (failed(collectIndices(over->length, listed.grid, none)) || !none.empty())
    return failure();
  listed.differs = getDifferences(listed.grid, indices);
  return listed;
}

//===----------------------------------------------------------------------------------------===//
// The grids before
//===----------------------------------------------------------------------------------------===//

static Value emitConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// A slice of one tile of rows' part of a grid's result, from `offset` on.
static tensor::ExtractSliceOp emitSlice(OpBuilder &builder, Location loc, Value tensor,
                                        ArrayRef<OpFoldResult> tileOfRows, OpFoldResult offset,
                                        OpFoldResult size) {
  SmallVector<OpFoldResult> offsets(tileOfRows), sizes(4, builder.getIndexAttr(1)),
      strides(4, builder.getIndexAttr(1));
  offsets.push_back(offset);
  sizes.back() = size;
  int64_t length = getConstantIntValue(size).value_or(ShapedType::kDynamic);
  auto type = RankedTensorType::get({length}, builder.getI32Type());
  return tensor::ExtractSliceOp::create(builder, loc, type, tensor, offsets, sizes, strides);
}

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
  Value rows = getValueOrCreateConstantIndexOp(builder, loc, copyFolded(listed.rows));
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

  // The analysis counts keys from the loop's first.
  builder.setInsertionPoint(op);
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
static scf::ForallOp emitGrids(OpBuilder &builder, Listed &listed) {
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

//===----------------------------------------------------------------------------------------===//
// The loops over lists
//===----------------------------------------------------------------------------------------===//

/// Steps on the tiles [begin, end) of the list, all of them whole.
static ValueRange emitLoop(OpBuilder &builder, const StepLoop &over, const List &list, Value begin,
                           Value end, bool withMask, ValueRange state) {
  Location loc = over.loop->getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, emitConstant(builder, loc, 1), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = emitReadBefore(builder, loc, list.tiles, list.position, loop.getInductionVar());
  ValueRange next =
      emitTileStep(builder, over.step, over.sources, over.origin, n0,
                   builder.getIndexAttr(over.tileSize), loop.getRegionIterArgs(), withMask);
  if (withMask && over.keepsDiagonal)
    setKeptKeys(next, kKeepsDiagonal);
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

/// The tiles of the list, the first on its own: it is certain to be there, if any is, and it alone
/// may be short.
static SmallVector<Value> emitListed(OpBuilder &builder, const StepLoop &over, const List &list,
                                     Value numCut, ValueRange inits) {
  Location loc = over.loop->getLoc();
  Value zero = emitConstant(builder, loc, 0), one = emitConstant(builder, loc, 1);
  Value first = emitReadBefore(builder, loc, list.tiles, list.position, zero);
  ValueRange state = emitPartialStep(builder, over, first, inits);
  state = emitLoop(builder, over, list, one, numCut, /*withMask=*/true, state);
  Value numWhole = emitReadBefore(builder, loc, list.counts, list.position, one);
  Value end = getValueOrCreateConstantIndexOp(builder, loc,
                                              tensor::getMixedSize(builder, loc, list.tiles, 3));
  Value begin = arith::SubIOp::create(builder, loc, end, numWhole);
  return SmallVector<Value>(emitLoop(builder, over, list, begin, end, /*withMask=*/false, state));
}

static void listTiles(RewriterBase &rewriter, Listed &listed) {
  scf::ForallOp lists = emitGrids(rewriter, listed);
  StepLoop &over = listed.over;
  over.keepsDiagonal = keepsDiagonal(over);
  Location loc = over.loop.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(over.loop);
  List list{lists.getResult(0), lists.getResult(1),
            getTileBefore(rewriter, listed.grid, listed.differs)};
  Value zero = emitConstant(rewriter, loc, 0);
  Value numCut = emitReadBefore(rewriter, loc, list.counts, list.position, zero);
  Value hasTiles = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, zero, numCut);
  ValueRange inits = over.loop.getInitArgs();
  auto any = scf::IfOp::create(rewriter, loc, inits.getTypes(), hasTiles, /*withElseRegion=*/true);
  rewriter.setInsertionPointToEnd(any.elseBlock());
  scf::YieldOp::create(rewriter, loc, inits);
  rewriter.setInsertionPointToEnd(any.thenBlock());
  scf::YieldOp::create(rewriter, loc, emitListed(rewriter, over, list, numCut, inits));
  rewriter.replaceOp(over.loop, any.getResults());
}

namespace {
struct ListTilesPass
    : RoomPass<attn::impl::ListTilesPassBase<ListTilesPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineAttentionOp> steps;
    getOperation()->walk([&](OnlineAttentionOp step) {
      auto schedule = step->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      if (schedule && schedule->lists)
        steps.push_back(step);
    });
    for (OnlineAttentionOp step : steps) {
      StringRef why;
      rewriter.setInsertionPoint(step);
      FailureOr<Listed> listed = matchListed(rewriter, step, why);
      if (succeeded(listed))
        listTiles(rewriter, *listed);
      else
        remark::missed(step.getLoc(), remark::RemarkOpts::name("list-tiles").category("attn"))
            << ("tiles are not listed: " + why).str();
    }
    return success();
  }
};
} // namespace
