//===- ComputeLists.cpp - lists of tiles from reads of cells ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A block mask's tensor tells by one read whether a tile is skip, and what else the mask is tells
// in closed form whether the tile is partial or full: keep[h, m / 128, n / 128] under a causal mask
// is a read for each tile. A block of the first grid computes the status of `kTiles` tiles of a
// list, whose reads do not wait for each other; a block of the second makes the list.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/ListLoops.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

Value attn::emitConstant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

tensor::ExtractSliceOp attn::emitSlice(OpBuilder &builder, Location loc, Value tensor,
                                       ArrayRef<OpFoldResult> tile, OpFoldResult offset,
                                       OpFoldResult size) {
  SmallVector<OpFoldResult> offsets(tile), sizes(4, builder.getIndexAttr(1)),
      strides(4, builder.getIndexAttr(1));
  offsets.push_back(offset);
  sizes.back() = size;
  int64_t length = getConstantIntValue(size).value_or(ShapedType::kDynamic);
  auto type = RankedTensorType::get({length}, builder.getI32Type());
  return tensor::ExtractSliceOp::create(builder, loc, type, tensor, offsets, sizes, strides);
}

/// How many tiles a block computes the status of.
static constexpr int64_t kTiles = 16;

namespace {
/// What a block of the grid knows of a part of the rows, or keys, that it owns.
struct Owned {
  /// Where it begins, and for each case the bounds of what runs.
  Value begin;
  SmallVector<MaskTiles::Ranges> ranges;
};

/// What it knows before its first tile.
struct Known {
  /// Of the first element of a tile, but for the position that runs.
  SmallVector<Value> origin;
  OwningOpRef<Operation *> copy;
  Region *mask;
  TileCases cases;
  SmallVector<Owned> parts;
};
} // namespace

/// Copies the mask into a block of the grid, with bounds of its cases in front.
static Known emitKnown(OpBuilder &builder, Listed &listed, IRMapping &mapping, Value length) {
  AbsorbingOpInterface step = listed.over.step;
  Location loc = step.getLoc();
  Region &mask = listed.getMask();
  auto copy = [&](Value value) { return copyInto(builder, mapping, value, listed.grid); };
  unsigned fixed = listed.getFixedPosition();
  Known known;
  known.origin.assign(4, emitConstant(builder, loc, 0));
  for (unsigned dim : {0u, 1u, fixed})
    if (dim > 1 || !mask.getArgument(dim).use_empty())
      known.origin[dim] = copy(step.getOrigin()[dim]);
  Value owned = isa<Value>(listed.owned) ? copy(cast<Value>(listed.owned)) : Value();
  if (!owned)
    owned = getValueOrCreateConstantIndexOp(builder, loc, listed.owned);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(mask, captured);
  llvm::for_each(captured, copy);
  known.copy = copyMask(mask, mapping);
  known.mask = &known.copy.get()->getRegion(mask.getRegionNumber());
  bool rowsRun = listed.rowsRun();
  known.cases = TileCases::analyze(*known.mask, listed.part, factOf,
                                   rowsRun ? MaskAxis::Rows : MaskAxis::Keys);
  Value first = known.origin[fixed], end = arith::AddIOp::create(builder, loc, first, owned);
  int64_t size = rowsRun ? listed.part.keys : listed.part.rows,
          all = rowsRun ? listed.tile.keys : listed.tile.rows,
          running = rowsRun ? listed.part.rows : listed.part.keys;
  for (int64_t offset = 0; offset < all; offset += size) {
    // A part that is not there is like the last of what is.
    auto emitAt = [&](int64_t place, Value most) -> Value {
      Value at = arith::AddIOp::create(builder, loc, first, emitConstant(builder, loc, place));
      return arith::MinSIOp::create(builder, loc, at, most);
    };
    Owned part{first, {}};
    Value partEnd = end;
    if (size < all) {
      Value last = arith::SubIOp::create(builder, loc, end, emitConstant(builder, loc, 1));
      part.begin = emitAt(offset, last);
      partEnd = emitAt(offset + size, end);
    }
    MaskBlock block = {known.origin[0], known.origin[1], part.begin, partEnd, length};
    for (const TileCases::Case &each : known.cases.getCases())
      part.ranges.push_back(each.tiles.emitRanges(builder, loc, block, running));
    known.parts.push_back(std::move(part));
  }
  return known;
}

/// Whether begin <= tile < end.
static Value emitIsIn(OpBuilder &builder, Location loc, Value tile, Value begin, Value end) {
  Value isBefore = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, tile, end);
  if (isConstantIntValue(begin, 0))
    return isBefore;
  Value isBehind = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, tile, begin);
  return arith::AndIOp::create(builder, loc, isBehind, isBefore);
}

/// The status of the tile at `first` in a case: 0 nothing, 1 something, 2 everything; 1 for that
/// too where one loop visits all tiles, at the front of the list.
static Value emitCaseStatus(OpBuilder &builder, Location loc, const MaskTiles &tiles,
                            const MaskTiles::Ranges &ranges, int64_t size, Value first,
                            bool isOneLoop) {
  Value none = emitConstant(builder, loc, 0), some = emitConstant(builder, loc, 1),
        all = emitConstant(builder, loc, 2), status = some;
  if (ranges.mayHaveFull && !isOneLoop)
    status = arith::SelectOp::create(
        builder, loc, emitIsIn(builder, loc, first, ranges.fullBegin, ranges.fullEnd), all, some);
  Value isLive = emitIsIn(builder, loc, first, ranges.begin, ranges.end);
  Value next = arith::AddIOp::create(builder, loc, first, emitConstant(builder, loc, size));
  if (Value isPiece = MaskTiles::emitTileIsLive(builder, loc, ranges, first, next))
    isLive = arith::AndIOp::create(builder, loc, isLive, isPiece);
  return arith::SelectOp::create(builder, loc, isLive, status, none);
}

/// The status of a part at `first` of what runs. Parts after the last tile's first position read
/// what is there, and no case keeps any of them.
static Value emitPartStatus(OpBuilder &builder, Listed &listed, Known &known, const Owned &part,
                            Value first, Value last) {
  Location loc = first.getLoc();
  SmallVector<Value> at(known.origin);
  at[listed.getFixedPosition()] = part.begin;
  at[listed.over.step.getRunningPosition()] = arith::MinSIOp::create(builder, loc, first, last);
  auto conditions = emitConditions(builder, *known.mask, listed.part, at);
  Value status = emitConstant(builder, loc, 0);
  bool isOneLoop = visitsInOneLoop(listed);
  int64_t size = listed.rowsRun() ? listed.part.rows : listed.part.keys;
  for (auto [each, ranges] : llvm::zip_equal(known.cases.getCases(), part.ranges)) {
    Value here = emitCaseStatus(builder, loc, each.tiles, ranges, size, first, isOneLoop);
    Value isCase = emitIsCase(builder, loc, each, conditions);
    status = arith::SelectOp::create(builder, loc, isCase, here, status);
  }
  return status;
}

/// The status of the tile at `first`: that of its parts if all have the same, or 1.
static Value emitTileStatus(OpBuilder &builder, Listed &listed, Known &known, Value first,
                            Value last) {
  Location loc = first.getLoc();
  int64_t size = listed.rowsRun() ? listed.part.rows : listed.part.keys;
  Value status, some = emitConstant(builder, loc, 1);
  for (const Owned &part : known.parts)
    for (int64_t offset = 0; offset < listed.over.tileSize; offset += size) {
      Value at =
          builder.createOrFold<arith::AddIOp>(loc, first, emitConstant(builder, loc, offset));
      Value here = emitPartStatus(builder, listed, known, part, at, last);
      if (!status) {
        status = here;
        continue;
      }
      Value isSame = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, status, here);
      status = arith::SelectOp::create(builder, loc, isSame, status, some);
    }
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), status);
}

namespace {
/// What the two grids have in common.
struct Before {
  /// Of what runs, and tiles of it.
  Value length;
  OpFoldResult numTiles;
  /// Over the batches and heads that lists differ for, and tiles of what blocks own.
  SmallVector<OpFoldResult> ends, steps;
};
} // namespace

/// Memory for so many numbers of each list.
static Value emitEmpty(OpBuilder &builder, Location loc, const Before &before, OpFoldResult count) {
  SmallVector<OpFoldResult> shape(before.ends);
  shape.back() = emitCeilDiv(builder, loc, shape.back(), *getConstantIntValue(before.steps.back()));
  shape.push_back(count);
  return tensor::EmptyOp::create(builder, loc, shape, builder.getI32Type());
}

/// A scalar of the listed step's grid in a block of another: the head of a turn in a block of keys
/// is an index there.
static IRMapping mapIndices(Listed &listed, scf::ForallOp grid) {
  IRMapping mapping;
  SmallVector<Value> from = listed.grid.getInductionVars(), all = grid.getInductionVars();
  ArrayRef<Value> to = ArrayRef(all).take_back(3);
  mapping.map(from, to);
  if (listed.heads)
    mapping.map(listed.over.step.getOrigin()[1], to[1]);
  return mapping;
}

/// (B', H', tiles, numTiles rounded up): the status of each tile.
static Value emitStatuses(OpBuilder &builder, Listed &listed, const Before &before) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = listed.over.loop.getLoc();
  int64_t size = listed.over.tileSize, perBlock = kTiles * size;
  OpFoldResult chunks = emitCeilDiv(builder, loc, before.length, perBlock);
  AffineExpr x;
  bindSymbols(builder.getContext(), x);
  Value out = emitEmpty(builder, loc, before,
                        affine::makeComposedFoldedAffineApply(
                            builder, loc, x.ceilDiv(perBlock) * kTiles, {before.length}));
  SmallVector<OpFoldResult> ends(before.ends), steps(before.steps);
  ends.insert(ends.begin(), chunks);
  steps.insert(steps.begin(), builder.getIndexAttr(1));
  scf::ForallOp grid = emitGridBefore(builder, loc, ends, steps, out);
  IRMapping mapping = mapIndices(listed, grid);
  Known known = emitKnown(builder, listed, mapping, before.length);
  auto multiply = [&](Value a, int64_t b) -> Value {
    return arith::MulIOp::create(builder, loc, a, emitConstant(builder, loc, b));
  };
  Value last = arith::SubIOp::create(builder, loc, before.length, emitConstant(builder, loc, 1));
  Value chunk = grid.getInductionVars().front(), begin = multiply(chunk, perBlock);
  SmallVector<Value> statuses;
  for (int64_t i : llvm::seq(kTiles)) {
    Value first =
        builder.createOrFold<arith::AddIOp>(loc, begin, emitConstant(builder, loc, i * size));
    statuses.push_back(emitTileStatus(builder, listed, known, first, last));
  }
  Value numbers = tensor::FromElementsOp::create(builder, loc, statuses);
  SmallVector<OpFoldResult> offsets = getTileOfRows(builder, loc, grid),
                            sizes(4, builder.getIndexAttr(1)), strides(sizes);
  offsets.push_back(multiply(chunk, kTiles));
  sizes.back() = builder.getIndexAttr(kTiles);
  builder.setInsertionPointToEnd(grid.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(builder, loc, numbers, grid.getRegionOutArgs()[0], offsets,
                                        sizes, strides);
  return grid.getResult(0);
}

static scf::ForallOp emitLists(OpBuilder &builder, Listed &listed, const Before &before,
                               Value statuses) {
  Location loc = listed.over.loop.getLoc();
  OpFoldResult two = builder.getIndexAttr(2), zero = builder.getIndexAttr(0);
  Value tiles = emitEmpty(builder, loc, before, before.numTiles),
        counts = emitEmpty(builder, loc, before, two);
  scf::ForallOp grid = emitGridBefore(builder, loc, before.ends, before.steps, {tiles, counts});
  SmallVector<OpFoldResult> at = getTileOfRows(builder, loc, grid);
  auto status = emitSlice(builder, loc, statuses, at, zero, before.numTiles),
       ofTiles = emitSlice(builder, loc, grid.getRegionOutArgs()[0], at, zero, before.numTiles),
       ofCounts = emitSlice(builder, loc, grid.getRegionOutArgs()[1], at, zero, two);
  auto op = ListTilesOp::create(builder, loc, TypeRange{ofTiles.getType(), ofCounts.getType()},
                                status, ofTiles, ofCounts, listed.over.tileSize);
  emitInsert(builder, loc, grid, op->getResult(0), ofTiles);
  emitInsert(builder, loc, grid, op->getResult(1), ofCounts);
  return grid;
}

scf::ForallOp attn::emitComputedLists(OpBuilder &builder, Listed &listed) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(listed.grid);
  Location loc = listed.over.loop.getLoc();
  IRMapping outside;
  Before before;
  before.length = copyInto(builder, outside, listed.over.length, listed.grid);
  before.numTiles = emitCeilDiv(builder, loc, before.length, listed.over.tileSize);
  before.ends = getEndsBefore(listed.grid, listed.differs);
  before.steps = listed.grid.getMixedStep();
  if (listed.heads && listed.differs[1])
    before.ends[1] = tensor::getMixedSize(builder, loc, getWhole(listed.over.sources[0]), 1);
  Value statuses = emitStatuses(builder, listed, before);
  return emitLists(builder, listed, before, statuses);
}
