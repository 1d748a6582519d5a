//===- ListTiles.cpp - the tiles that a mask keeps, on tiles ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

namespace {
/// Arithmetic on indices, and lists of i32 in memory.
struct Numbers {
  TileBuilder &b;

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value negate(Value x) {
    return arith::XOrIOp::create(b, x, arith::ConstantOp::create(b, b.getBoolAttr(true)));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }

  SmallVector<Value> getPosition(const ArgumentSlice &slice, Value place) {
    SmallVector<Value> position(slice.position);
    position.back() = add(position.back(), place);
    return position;
  }
  void store(Value number, const ArgumentSlice &slice, Value place) {
    Value element = arith::IndexCastOp::create(b, b.getI32Type(), number);
    memref::StoreOp::create(b, element, slice.memref, getPosition(slice, place));
  }
  Value load(const ArgumentSlice &slice, Value place) {
    Value element = memref::LoadOp::create(b, slice.memref, getPosition(slice, place));
    return arith::IndexCastOp::create(b, b.getIndexType(), element);
  }
};
} // namespace

/// The destinations, or the operands, as slices of memory.
static FailureOr<SmallVector<ArgumentSlice>> findSlices(BlockConverter &block, Operation *op,
                                                        ValueRange values) {
  SmallVector<ArgumentSlice> slices;
  for (Value value : values) {
    const ArgumentSlice *slice = block.findSlice(value);
    if (!slice)
      return op->emitOpError("expected operands that are slices of the grids' results, got ")
             << value.getType();
    slices.push_back(*slice);
  }
  return slices;
}

//===----------------------------------------------------------------------------------------===//
// One tile
//===----------------------------------------------------------------------------------------===//

/// Columns of which a thread evaluates its part of the mask before the block votes: what it reads
/// of all of them at once would fill its registers.
static constexpr int64_t kVoteColumns = 64;

/// Evaluates the mask on all of the tile, and lets the block vote.
static Value emitVotes(BlockConverter &block, TileStatusOp op, ArrayRef<Value> at, Value rows,
                       Value keys) {
  TileBuilder &b = block.builder;
  Numbers numbers{b};
  Value some, all;
  for (int64_t first = 0, size = op.getSize(); first < size; first += kVoteColumns) {
    auto shape =
        RankedTensorType::get({block.rows, std::min(kVoteColumns, size - first)}, b.getIndexType());
    // Rows that are not there are like the last one, and so are keys.
    Value m = b.clampBelow(tile::CoordOp::create(b, shape, 0, at[2]), at[2], rows);
    Value column = numbers.add(at[3], numbers.constant(first));
    Value n = b.clampBelow(tile::CoordOp::create(b, shape, 1, column), at[3], keys);
    Value keep = inlineRegion(block, op.getMask(), {at[0], at[1], m, n}, shape);
    if (!keep)
      return {};
    b.setLoc(op.getLoc());
    Value any = tile::VoteOp::create(b, b.getI1Type(), tile::Quantifier::Any, keep);
    Value every = tile::VoteOp::create(b, b.getI1Type(), tile::Quantifier::All, keep);
    some = some ? arith::OrIOp::create(b, some, any).getResult() : any;
    all = all ? numbers.both(all, every) : every;
  }
  Value isWhole = numbers.compare(arith::CmpIPredicate::eq, keys, numbers.constant(op.getSize()));
  Value ofSome = numbers.select(some, numbers.constant(1), numbers.constant(0));
  return numbers.select(numbers.both(all, isWhole), numbers.constant(2), ofSome);
}

/// A thread evaluates its part of the mask at once, on a tile of the grid's rows.
static LogicalResult checkTile(BlockConverter &block, TileStatusOp op) {
  int64_t most = plan::getMachine(op).product.columns, size = op.getSize();
  if (size > most)
    return op.emitOpError("expected tiles of at most ") << most << " keys, got " << size;
  int64_t rows = getConstantIntValue(op.getRows()).value_or(0);
  if (rows > block.rows)
    return op.emitOpError("expected at most the grid's ") << block.rows << " rows, got " << rows;
  return success();
}

LogicalResult attn::convertTileStatus(BlockConverter &block, TileStatusOp op) {
  TileBuilder &b = block.builder;
  if (failed(checkTile(block, op)))
    return failure();
  Numbers numbers{b};
  FailureOr<SmallVector<ArgumentSlice>> slices = findSlices(block, op, op.getStatus());
  SmallVector<Value> at;
  for (OpFoldResult position : op.getMixedOrigin())
    at.push_back(block.lookup(op, position));
  Value rows = block.lookup(op, op.getRows()), keys = block.lookup(op, op.getKeys());
  if (failed(slices) || !rows || !keys || llvm::is_contained(at, Value()))
    return failure();
  // Whatever rows there are: a block has one.
  Value zero = numbers.constant(0);
  Value hasKeys = numbers.compare(arith::CmpIPredicate::sgt, keys, zero);
  auto branch = scf::IfOp::create(b, b.getIndexType(), hasKeys, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(branch.thenBlock());
    Value status = emitVotes(block, op, at, rows, keys);
    if (!status)
      return failure();
    scf::YieldOp::create(b, status);
    b.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(b, zero);
  }
  numbers.store(branch.getResult(0), slices->front(), zero);
  block.setStored(op->getResult(0), slices->front());
  return success();
}

//===----------------------------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------------------------===//

/// Appends the tile with number `tile` at the front or at the end, and returns how many there are.
static SmallVector<Value> emitTile(Numbers &numbers, ArrayRef<ArgumentSlice> slices, Value tile,
                                   int64_t size, ValueRange counts) {
  TileBuilder &b = numbers.b;
  const ArgumentSlice &tiles = slices[1];
  Value zero = numbers.constant(0), one = numbers.constant(1);
  Value status = numbers.load(slices[0], tile);
  Value isKept = numbers.compare(arith::CmpIPredicate::ne, status, zero);
  Value isWhole = numbers.compare(arith::CmpIPredicate::eq, status, numbers.constant(2));
  // The first of all goes to the front.
  Value isNotFirst = numbers.compare(arith::CmpIPredicate::ne, counts[0], zero);
  Value goesBack = numbers.both(isWhole, isNotFirst);
  Value goesFront = numbers.both(isKept, numbers.negate(goesBack));
  Value back = numbers.sub(numbers.sub(tiles.sizes.front(), one), counts[1]);
  auto branch = scf::IfOp::create(b, isKept, /*withElseRegion=*/false);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    Value key = arith::MulIOp::create(b, tile, numbers.constant(size));
    numbers.store(key, tiles, numbers.select(goesBack, back, counts[0]));
  }
  return {numbers.add(counts[0], numbers.select(goesFront, one, zero)),
          numbers.add(counts[1], numbers.select(goesBack, one, zero))};
}

LogicalResult attn::convertListTiles(BlockConverter &block, ListTilesOp op) {
  TileBuilder &b = block.builder;
  Numbers numbers{b};
  FailureOr<SmallVector<ArgumentSlice>> slices =
      findSlices(block, op, {op.getStatus(), op.getTiles(), op.getCounts()});
  if (failed(slices))
    return failure();
  Value zero = numbers.constant(0), one = numbers.constant(1);
  Value numTiles = slices->front().sizes.front();
  Value zeros[] = {zero, zero};
  auto loop = scf::ForOp::create(b, zero, numTiles, one, zeros);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(loop.getBody());
    // From the last to the first.
    Value tile = numbers.sub(numbers.sub(numTiles, one), loop.getInductionVar());
    scf::YieldOp::create(b,
                         emitTile(numbers, *slices, tile, op.getSize(), loop.getRegionIterArgs()));
  }
  for (auto [place, count] : llvm::zip_equal(ValueRange{zero, one}, loop.getResults()))
    numbers.store(count, slices->back(), place);
  block.setStored(op->getResult(0), (*slices)[1]);
  block.setStored(op->getResult(1), slices->back());
  return success();
}
