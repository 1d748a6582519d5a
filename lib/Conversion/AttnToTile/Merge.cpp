//===- Merge.cpp - partial results on tiles -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   max    = max_s lse_s
//   total  = sum_s 2^((lse_s - max) log2 e)
//   acc    = sum_s 2^((lse_s - max) log2 e) * partial_s
//   output = acc / total, lse = max + ln total                    a row that no part has: 0, -inf
//
// Few query rows are a few kilobytes of each part, so that a merge takes as long as it waits for
// memory. One loop reads each part once, several parts a turn: their loads first, which wait
// together, then the arithmetic. Sums of earlier turns are scaled to the turn's maximum; parts are
// added in ascending order, and in one turn as if the maximum had come first.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

/// The most registers in which a thread keeps the parts of a turn, and the most parts. More parts
/// would wait for memory together than its latency needs.
constexpr int64_t kRegistersInFlight = 128, kMostParts = 16;
/// Parts that are read together or not at all where their number is known at the launch. One branch
/// for each part would keep the addresses of one apart from those of the next.
constexpr int64_t kGroup = 4;

/// Checks that the operands of a merge fit the tiles of this room.
static LogicalResult checkMerge(MergeOp op, bool areSlices) {
  ShapedType type = op.getPartial().getType();
  if (!areSlices)
    return op.emitOpError("expected partial results to be slices of the kernel's arguments");
  if (type.isDynamicDim(type.getRank() - 1))
    return op.emitOpError("expected a static Dv, got ") << type;
  return success();
}

/// Parts that a turn takes: as many as registers hold, and turns of about the same length.
static int64_t getPartsOfTurn(MergeOp op, int64_t rows) {
  ArrayRef<int64_t> shape = op.getPartial().getType().getShape();
  const Machine &machine = plan::getMachine(op);
  int64_t warpgroups = std::max<int64_t>(1, rows / machine.getWarpgroupRows());
  int64_t registers = llvm::divideCeil(rows * shape.back(), machine.warpgroupThreads * warpgroups);
  int64_t most = std::clamp<int64_t>(kRegistersInFlight / registers, 1, kMostParts);
  if (ShapedType::isDynamic(shape.front()))
    return most;
  int64_t parts = std::max<int64_t>(1, shape.front()), turns = llvm::divideCeil(parts, most);
  // A larger cache only adds parts to those of a turn.
  if (auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      schedule && schedule->fixedSplit > 0)
    return std::min(parts, most);
  return llvm::divideCeil(parts, turns);
}

namespace {
/// Of each row: the greatest lse so far; the sums relative to it of the weights and of the output;
/// and, where parts have it, what that lse lost to rounding.
struct MergeState {
  Value max, total, acc, low;
  SmallVector<Value> getValues() const {
    return low ? SmallVector<Value>{max, total, acc, low} : SmallVector<Value>{max, total, acc};
  }
  static MergeState get(ValueRange values) {
    return {values[0], values[1], values[2], values.size() > 3 ? values[3] : Value()};
  }
};

/// The rows of a block, all parts of them.
class MergeRecipe {
public:
  /// `partialLow` is null where there is none.
  MergeRecipe(BlockConverter &block, MergeOp op, const ArgumentSlice &partial,
              const ArgumentSlice &partialLse, const ArgumentSlice *partialLow)
      : block(block), b(block.builder), op(op), partial(partial), partialLse(partialLse),
        partialLow(partialLow), columns(op.getPartial().getType().getShape().back()),
        row(RankedTensorType::get({block.rows}, b.getF32Type())),
        tile(RankedTensorType::get({block.rows, columns}, b.getF32Type())), rows(row.getShape()),
        count(getPartsOfTurn(op, block.rows)) {}

  void emit();

private:
  /// The logarithm of its sum is natural, or where `low` has what it lost to rounding, of base 2.
  struct Part {
    Value lse, values, low;

    SmallVector<Value> getValues() const {
      return low ? SmallVector<Value>{lse, values, low} : SmallVector<Value>{lse, values};
    }
    static Part get(ValueRange values) {
      return {values[0], values[1], values.size() > 2 ? values[2] : Value()};
    }
  };
  Part loadPart(Value part);
  Value load(const ArgumentSlice &slice, Value part, RankedTensorType type);
  SmallVector<Part> loadParts(Value first, int64_t size, int64_t least);
  SmallVector<Part> loadGroup(Value first, int64_t size);
  SmallVector<Part> loadTurn(Value first);
  /// Relative to `offset`, whose low part is `offsetLow`.
  Value emitWeight(Value lse, Value low, Value offset, Value offsetLow);
  /// The part that the greater of two lost to rounding.
  Value emitGreaterLow(const MergeState &state, const Part &part);
  Value emitIsEmpty(Value max) { return b.isEqual(max, kLowest); }
  /// The number to which exponents are relative; finite where no part has anything.
  Value emitOffset(Value max) {
    return arith::SelectOp::create(b, emitIsEmpty(max), b.constant(0.0, rows), max);
  }
  MergeState emitTurn(Value first, const MergeState &state);

  BlockConverter &block;
  TileBuilder &b;
  MergeOp op;
  const ArgumentSlice &partial, &partialLse, *partialLow;
  int64_t columns;
  RankedTensorType row, tile;
  ArrayRef<int64_t> rows;
  /// Parts of a turn.
  int64_t count;
};
} // namespace

Value MergeRecipe::load(const ArgumentSlice &slice, Value part, RankedTensorType type) {
  SmallVector<Value> position = slice.position;
  position.front() = b.createOrFold<arith::AddIOp>(position.front(), part);
  Type element = cast<MemRefType>(slice.memref.getType()).getElementType();
  Value loaded = tile::LoadOp::create(b, type.clone(element), slice.memref, position);
  return b.widen(loaded);
}

MergeRecipe::Part MergeRecipe::loadPart(Value part) {
  Value lse = load(partialLse, part, row), values = load(partial, part, tile);
  if (!partialLow)
    return {lse, values, {}};
  return {toBase2(b, lse), values, load(*partialLow, part, row)};
}

/// Some parts from `first`, the first `least` of which are there. Others may be the last again,
/// with nothing in it.
SmallVector<MergeRecipe::Part> MergeRecipe::loadParts(Value first, int64_t size, int64_t least) {
  SmallVector<Part> loaded;
  Value parts = partial.sizes.front(), one = arith::ConstantIndexOp::create(b, 1);
  SmallVector<Value> isThere(size);
  for (int64_t index = 0; index < size; ++index) {
    Value offset = arith::ConstantIndexOp::create(b, index);
    Value part = b.createOrFold<arith::AddIOp>(first, offset);
    if (index >= least) {
      isThere[index] = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, part, parts);
      part = arith::MinSIOp::create(b, part, b.createOrFold<arith::SubIOp>(parts, one));
    }
    loaded.push_back(loadPart(part));
  }
  for (auto [part, condition] : llvm::zip_equal(loaded, isThere))
    if (condition)
      part.lse =
          arith::SelectOp::create(b, b.splat(condition, rows), part.lse, b.constant(kLowest, rows));
  return loaded;
}

/// The same, or nothing where not even the first is there.
SmallVector<MergeRecipe::Part> MergeRecipe::loadGroup(Value first, int64_t size) {
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, first, partial.sizes.front());
  SmallVector<Type> types, ofPart = {row, tile};
  if (partialLow)
    ofPart.push_back(row);
  for (int64_t index = 0; index < size; ++index)
    llvm::append_range(types, ofPart);
  auto branch = scf::IfOp::create(b, types, isThere, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto yield = [&](Block *block, llvm::function_ref<SmallVector<Part>()> make) {
    b.setInsertionPointToStart(block);
    SmallVector<Value> values;
    for (const Part &part : make())
      llvm::append_range(values, part.getValues());
    scf::YieldOp::create(b, values);
  };
  yield(branch.thenBlock(), [&] { return loadParts(first, size, /*least=*/1); });
  yield(branch.elseBlock(), [&] {
    Part nothing = {b.constant(kLowest, rows), b.constant(0.0, tile.getShape()),
                    partialLow ? b.constant(0.0, rows) : Value()};
    return SmallVector<Part>(size, nothing);
  });
  SmallVector<Part> loaded;
  for (int64_t index = 0; index < size; ++index)
    loaded.push_back(Part::get(branch.getResults().slice(index * ofPart.size(), ofPart.size())));
  return loaded;
}

/// All loads before anything waits for one of them.
SmallVector<MergeRecipe::Part> MergeRecipe::loadTurn(Value first) {
  int64_t parts = op.getPartial().getType().getDimSize(0);
  // In every turn there are at least as many as in the last.
  if (!ShapedType::isDynamic(parts))
    return loadParts(first, count, /*least=*/parts == 0 ? 0 : (parts - 1) % count + 1);
  SmallVector<Part> loaded = loadParts(first, std::min(count, kGroup), /*least=*/1);
  for (int64_t index = kGroup; index < count; index += kGroup) {
    Value begin =
        arith::AddIOp::create(b, first, arith::ConstantIndexOp::create(b, index).getResult());
    llvm::append_range(loaded, loadGroup(begin, std::min(count - index, kGroup)));
  }
  return loaded;
}

Value MergeRecipe::emitGreaterLow(const MergeState &state, const Part &part) {
  auto isAbove = [&](Value x, Value y) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, y);
  };
  Value low = arith::MaximumFOp::create(b, state.low, part.low);
  low = arith::SelectOp::create(b, isAbove(state.max, part.lse), state.low, low);
  return arith::SelectOp::create(b, isAbove(part.lse, state.max), part.low, low);
}

Value MergeRecipe::emitWeight(Value lse, Value low, Value offset, Value offsetLow) {
  Value exponent = arith::SubFOp::create(b, lse, offset);
  if (!partialLow)
    exponent = arith::MulFOp::create(b, exponent, b.constant(1.0 / M_LN2, rows));
  // A part that is infinite, of a sink that is, is the whole, though inf - inf is none.
  Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse, offset);
  exponent = arith::SelectOp::create(b, isMax, b.constant(0.0, rows), exponent);
  // Low parts are as large as what high ones cannot hold: neither is a weight by itself.
  if (low)
    exponent = arith::AddFOp::create(b, exponent, arith::SubFOp::create(b, low, offsetLow));
  return math::Exp2Op::create(b, exponent);
}

MergeState MergeRecipe::emitTurn(Value first, const MergeState &state) {
  SmallVector<Part> parts = loadTurn(first);
  MergeState greatest = state;
  for (const Part &part : parts) {
    if (partialLow)
      greatest.low = emitGreaterLow(greatest, part);
    greatest.max = arith::MaximumFOp::create(b, greatest.max, part.lse);
  }
  Value offset = emitOffset(greatest.max),
        scale = emitWeight(state.max, state.low, offset, greatest.low);
  Value total = arith::MulFOp::create(b, state.total, scale);
  Value acc = arith::MulFOp::create(b, state.acc, b.rowsToTile(scale, columns));
  for (auto [lse, values, low] : parts) {
    Value weight = emitWeight(lse, low, offset, greatest.low);
    total = arith::AddFOp::create(b, total, weight);
    Value added = math::FmaOp::create(b, values, b.rowsToTile(weight, columns), acc);
    // A part without keys may have left anything in memory.
    Value isNothing = b.rowsToTile(b.isEqual(lse, kLowest), columns);
    acc = arith::SelectOp::create(b, isNothing, acc, added);
  }
  return {greatest.max, total, acc, greatest.low};
}

void MergeRecipe::emit() {
  MergeState start = {b.constant(kLowest, rows), b.constant(0.0, rows),
                      b.constant(0.0, tile.getShape()),
                      partialLow ? b.constant(0.0, rows) : Value()};
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value step = arith::ConstantIndexOp::create(b, count);
  auto turns = scf::ForOp::create(b, zero, partial.sizes.front(), step, start.getValues());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(turns.getBody());
    MergeState next = emitTurn(turns.getInductionVar(), MergeState::get(turns.getRegionIterArgs()));
    scf::YieldOp::create(b, next.getValues());
  }
  auto [max, total, acc, low] = MergeState::get(turns.getResults());
  Value isEmpty = emitIsEmpty(max), offset = emitOffset(max);
  Value quotient = arith::DivFOp::create(b, b.constant(1.0, rows), total);
  Value inverse = arith::SelectOp::create(b, isEmpty, b.constant(0.0, rows), quotient);
  Value output = arith::MulFOp::create(b, acc, b.rowsToTile(inverse, columns));
  block.mapping.map(op->getResult(0), b.narrow(output, op.getOutput().getType().getElementType()));
  if (!op.getLse())
    return;
  Value log2 = math::Log2Op::create(b, total), ln2 = b.constant(M_LN2, rows);
  if (partialLow)
    log2 = arith::AddFOp::create(b, low, log2);
  Value lse;
  if (partialLow)
    lse = arith::MulFOp::create(b, arith::AddFOp::create(b, offset, log2), ln2);
  else
    lse = arith::AddFOp::create(b, offset, arith::MulFOp::create(b, log2, ln2));
  lse = arith::SelectOp::create(b, isEmpty, b.constant(kLowest, rows), lse);
  block.mapping.map(op->getResult(1), lse);
  if (op.getLseLow())
    block.mapping.map(op->getResult(2), emitLow(b, lse, offset, log2));
}

LogicalResult attn::convertMerge(BlockConverter &block, MergeOp op) {
  const ArgumentSlice *partial = block.findSlice(op.getPartial()),
                      *partialLse = block.findSlice(op.getPartialLse()),
                      *partialLow =
                          op.getPartialLow() ? block.findSlice(op.getPartialLow()) : nullptr;
  bool areSlices = partial && partialLse && (partialLow || !op.getPartialLow());
  if (failed(checkMerge(op, areSlices)))
    return failure();
  MergeRecipe(block, op, *partial, *partialLse, partialLow).emit();
  return success();
}
