//===- DealParts.cpp - parts that sequences get by their lengths ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// With t(j) tiles of keys in sequence j (at least one), and P parts of one of average length:
//
//   most     = max(4, ceil(sum t / (B P)))        tiles of a part
//   parts(j) = floor((t(j) - 1) / most) + 1       of one length within a sequence
//
// so that all parts together are at most B P + B, which is the number of slots. Sequences with more
// than half of `most` tiles have the first slots, and others the last ones. Three grids, by groups
// of 16 sequences:
//
//   counts (groups, 1, 1, 48), sums (groups, 1, 1, 1)      of each sequence its first key, keys and
//                                                          tiles; tiles of each group
//   parts  (groups, 1, 1, 3)                               parts of long and of other sequences,
//   and
//                                                          `most`
//   slots  (slots, 1, 1, 4), sequences (slots, 1, 1, 2)    DealtParts
//
// A block of the third adds up the parts of the groups before its own, and then looks for its slot
// in one group: some dozens of reads for a few hundred sequences.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/DealParts.h"
#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/Pages.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileConditions.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

/// All that the bounds of a sequence's keys are computed from, but for the rows.
static SmallVector<Value> getInputs(OnlineAttentionOp op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op.getMask(), captured);
  SmallVector<Value> inputs(captured.getArrayRef());
  inputs.push_back(op.getOrigin()[0]);
  inputs.push_back(op.getOrigin()[3]);
  return inputs;
}

StringRef attn::refuseDeal(scf::ForallOp grid, OnlineAttentionOp op) {
  if (op.getMask().empty() || !MaskTiles::analyze(op.getMask(), factOf).boundsKept())
    return "no mask bounds the keys of a sequence";
  llvm::SmallDenseSet<Value> indices, ofRows;
  bool isComputed = llvm::all_of(
      getInputs(op), [&](Value input) { return succeeded(collectIndices(input, grid, indices)); });
  Value batch = grid.getInductionVars()[0], rows = grid.getInductionVars()[2];
  if (!isComputed || failed(collectIndices(op.getOrigin()[2], grid, ofRows)))
    return "the keys of a sequence would depend on what only a block computes";
  ofRows.erase(rows);
  indices.erase(batch);
  if (!op.getMask().getArgument(1).use_empty() || !indices.empty() || !ofRows.empty())
    return "heads, or rows, have keys of their own";
  if (op.getMask().getArgument(0).use_empty())
    return "all sequences have the same keys";
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------------------------===//

namespace {
/// On numbers of i32, or of indices.
struct Numbers {
  OpBuilder &b;
  Location loc;

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value constant(int32_t value) { return arith::ConstantIntOp::create(b, loc, value, 32); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value mul(Value x, Value y) { return arith::MulIOp::create(b, loc, x, y); }
  Value least(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
  Value most(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
  /// Of positive numbers, rounded up.
  Value divideCeil(Value x, Value y) {
    Value one = x.getType().isIndex() ? index(1) : constant(1);
    return arith::DivUIOp::create(b, loc, add(x, sub(y, one)), y);
  }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, loc, condition, x, y);
  }
  Value toNumber(Value x) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), x); }
  Value toIndex(Value x) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), x); }
  /// Number `which` of a row of a tensor (rows, 1, 1, numbers).
  Value read(Value tensor, Value row, int64_t which) {
    return tensor::ExtractOp::create(b, loc, tensor,
                                     ValueRange{row, index(0), index(0), index(which)});
  }
};
} // namespace

/// A loop over [0, count) that carries numbers.
static SmallVector<Value> loop(Numbers &numbers, Value count, ArrayRef<Value> init,
                               llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(
      numbers.b, numbers.loc, numbers.index(0), count, numbers.index(1), init,
      [&](OpBuilder &inner, Location loc, Value at, ValueRange carried) {
        OpBuilder::InsertionGuard guard(numbers.b);
        numbers.b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        scf::YieldOp::create(numbers.b, loc, body(at, carried));
      });
  return SmallVector<Value>(loop.getResults());
}

//===----------------------------------------------------------------------------------------===//
// Keys of each sequence
//===----------------------------------------------------------------------------------------===//

/// Sequences that one block counts.
static constexpr int64_t kGroup = 16;
/// Numbers of a sequence: its first key, keys, and tiles of them.
static constexpr int64_t kNumbers = 3;

/// A grid with a block for each row, and numbers for each. The builder is in its body afterwards.
static scf::ForallOp emitRows(OpBuilder &builder, scf::ForallOp grid, OpFoldResult rows,
                              ArrayRef<int64_t> widths) {
  Location loc = grid.getLoc();
  OpFoldResult one = builder.getIndexAttr(1);
  SmallVector<Value> outs;
  for (int64_t width : widths)
    outs.push_back(tensor::EmptyOp::create(
        builder, loc, ArrayRef<OpFoldResult>{rows, one, one, builder.getIndexAttr(width)},
        builder.getI32Type()));
  return emitGridBefore(builder, loc, {rows, one, one}, grid.getMixedStep(), outs);
}

/// The same, with a block for each group of sequences.
static scf::ForallOp emitGroupRows(OpBuilder &builder, scf::ForallOp grid,
                                   ArrayRef<int64_t> widths) {
  OpFoldResult groups = emitCeilDiv(builder, grid.getLoc(), grid.getMixedUpperBound()[0], kGroup);
  return emitRows(builder, grid, groups, widths);
}

/// Lets the block's row of a grid's result be these numbers.
static void insertRow(OpBuilder &builder, scf::ForallOp grid, unsigned result,
                      ArrayRef<Value> numbers) {
  Location loc = grid.getLoc();
  Value list = tensor::FromElementsOp::create(builder, loc, numbers);
  OpBuilder::InsertionGuard guard(builder);
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  builder.setInsertionPointToEnd(grid.getTerminator().getBody());
  SmallVector<OpFoldResult> offsets = {grid.getInductionVars()[0], zero, zero, zero},
                            strides(4, one);
  SmallVector<OpFoldResult> sizes = {one, one, one, builder.getIndexAttr(numbers.size())};
  tensor::ParallelInsertSliceOp::create(builder, loc, list, grid.getRegionOutArgs()[result],
                                        offsets, sizes, strides);
}

/// The bounds of what any row of a sequence keeps, in a block of a grid over sequences.
static std::pair<Value, Value> emitBounds(OpBuilder &builder, scf::ForallOp grid,
                                          OnlineAttentionOp op, Value sequence, Value keys) {
  Location loc = grid.getLoc();
  Numbers numbers{builder, loc};
  SmallVector<Value> ivs = grid.getInductionVars();
  IRMapping mapping;
  mapping.map(ivs[0], sequence);
  for (Value input : getInputs(op))
    copyInto(builder, mapping, input, grid);
  OwningOpRef<Operation *> copy = copyMask(op.getMask(), mapping);
  Region &mask = copy.get()->getRegion(op.getMask().getRegionNumber());
  Value origin = mapping.lookupOrDefault(op.getOrigin()[3]);
  shiftMask(builder, loc, mask, /*position=*/3, getAsOpFoldResult(origin));
  auto emitRow = [&](OpFoldResult at) {
    IRMapping ofRow(mapping);
    ofRow.map(ivs[2], getValueOrCreateConstantIndexOp(builder, loc, at));
    return copyInto(builder, ofRow, op.getOrigin()[2], grid);
  };
  Value first = emitRow(builder.getIndexAttr(0)), end = emitRow(grid.getMixedUpperBound()[2]);
  MaskBlock block = {mapping.lookupOrDefault(op.getOrigin()[0]), numbers.index(0), first, end,
                     keys};
  MaskTiles::Ranges live =
      MaskTiles::analyze(mask, factOf).emitRanges(builder, loc, block, /*tileSize=*/1);
  return {live.begin, live.end};
}

namespace {
/// What grids have computed of all sequences.
struct Counted {
  Value counts, sums;
};
} // namespace

static Counted countKeys(OpBuilder &builder, scf::ForallOp grid, OnlineAttentionOp op,
                         ScheduleAttr schedule) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = grid.getLoc();
  auto slice = op.getKey().getDefiningOp<tensor::ExtractSliceOp>();
  Value keys = getValueOrCreateConstantIndexOp(
      builder, loc, tensor::getMixedSize(builder, loc, slice.getSource(), 2));
  OpFoldResult size = grid.getMixedUpperBound()[0];
  scf::ForallOp counts = emitGroupRows(builder, grid, {kGroup * kNumbers, 1});
  Numbers numbers{builder, loc};
  Value sequences = getValueOrCreateConstantIndexOp(builder, loc, size),
        last = numbers.sub(sequences, numbers.index(1)), tile = numbers.index(schedule->blockN);
  Value first = numbers.mul(counts.getInductionVars()[0], numbers.index(kGroup));
  Value sum = numbers.index(0);
  SmallVector<Value> list;
  for (int64_t i : llvm::seq(kGroup)) {
    // One that is not there is like the last, without tiles.
    Value number = numbers.add(first, numbers.index(i));
    auto [begin, end] = emitBounds(builder, grid, op, numbers.least(number, last), keys);
    // Tiles of pages begin at multiples of their size, as what reads them does.
    if (readsPages(op.getKey()))
      begin = numbers.sub(begin, arith::RemUIOp::create(builder, loc, begin, tile));
    Value live = numbers.most(numbers.sub(end, begin), numbers.index(0));
    Value tiles = numbers.most(numbers.divideCeil(live, tile), numbers.index(1));
    Value isThere = numbers.compare(arith::CmpIPredicate::sle, number, last);
    tiles = numbers.select(isThere, tiles, numbers.index(0));
    sum = numbers.add(sum, tiles);
    for (Value each : {begin, live, tiles})
      list.push_back(numbers.toNumber(each));
  }
  insertRow(builder, counts, 1, numbers.toNumber(sum));
  insertRow(builder, counts, 0, list);
  return {counts.getResult(0), counts.getResult(1)};
}

//===----------------------------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------------------------===//

namespace {
/// How many parts so many tiles are.
class Parts {
public:
  Parts(Numbers &numbers, Value most) : numbers(numbers), most(most) {
    OpBuilder &b = numbers.b;
    Value f32 = arith::SIToFPOp::create(b, numbers.loc, b.getF32Type(), most);
    Value one = arith::ConstantOp::create(b, numbers.loc, b.getF32FloatAttr(1));
    inverse = arith::DivFOp::create(b, numbers.loc, one, f32);
  }

  Value count(Value tiles) {
    OpBuilder &b = numbers.b;
    Value zero = numbers.constant(0), one = numbers.constant(1), rest = numbers.sub(tiles, one);
    Value f32 = arith::SIToFPOp::create(b, numbers.loc, b.getF32Type(), rest);
    Value quotient = arith::MulFOp::create(b, numbers.loc, f32, inverse);
    Value floor = arith::FPToSIOp::create(b, numbers.loc, b.getI32Type(), quotient);
    // Rounding must not make one too many: there would be no slot for it.
    Value isOver = numbers.compare(arith::CmpIPredicate::sgt, numbers.mul(floor, most), rest);
    floor = numbers.select(isOver, numbers.sub(floor, one), floor);
    Value isThere = numbers.compare(arith::CmpIPredicate::sgt, tiles, zero);
    return numbers.select(isThere, numbers.add(floor, one), zero);
  }
  Value isLong(Value tiles) {
    return numbers.compare(arith::CmpIPredicate::sgt, numbers.add(tiles, tiles), most);
  }

private:
  Numbers &numbers;
  Value most, inverse;
};
} // namespace

/// Number `which` of sequence `at` of a group.
static Value readCount(Numbers &numbers, const Counted &counted, Value group, Value at,
                       int64_t which) {
  Value place = numbers.add(numbers.mul(at, numbers.index(kNumbers)), numbers.index(which));
  return tensor::ExtractOp::create(numbers.b, numbers.loc, counted.counts,
                                   ValueRange{group, numbers.index(0), numbers.index(0), place});
}

static Value emitGroups(Numbers &numbers, Value sequences) {
  return numbers.divideCeil(sequences, numbers.index(kGroup));
}

/// Parts of each group, and the most tiles of a part.
static Value countParts(OpBuilder &builder, scf::ForallOp grid, const Counted &counted,
                        Value slots) {
  OpBuilder::InsertionGuard guard(builder);
  Location loc = grid.getLoc();
  OpFoldResult size = grid.getMixedUpperBound()[0];
  scf::ForallOp parts = emitGroupRows(builder, grid, {3});
  Numbers numbers{builder, loc};
  Value sequences = getValueOrCreateConstantIndexOp(builder, loc, size);
  // In 64 bits: pages may be shared by more sequences than memory has keys for.
  Value tiles = loop(numbers, emitGroups(numbers, sequences), numbers.index(0),
                     [&](Value group, ValueRange sum) {
                       Value of = numbers.toIndex(numbers.read(counted.sums, group, 0));
                       return SmallVector<Value>{numbers.add(sum[0], of)};
                     })[0];
  Value most = numbers.most(numbers.divideCeil(tiles, numbers.sub(slots, sequences)),
                            numbers.index(kLeastTilesOfParts));
  most = numbers.toNumber(most);
  Parts of(numbers, most);
  Value zero = numbers.constant(0);
  Value group = parts.getInductionVars()[0];
  auto sums = loop(numbers, numbers.index(kGroup), {zero, zero}, [&](Value at, ValueRange sum) {
    Value tiles = readCount(numbers, counted, group, at, 2), count = of.count(tiles);
    Value isLong = of.isLong(tiles);
    return SmallVector<Value>{numbers.add(sum[0], numbers.select(isLong, count, zero)),
                              numbers.add(sum[1], numbers.select(isLong, zero, count))};
  });
  insertRow(builder, parts, 0, {sums[0], sums[1], most});
  return parts.getResult(0);
}

/// So many numbers where the condition holds, and zeros elsewhere.
static SmallVector<Value> emitIf(Numbers &numbers, Value condition, unsigned count,
                                 llvm::function_ref<SmallVector<Value>()> body) {
  OpBuilder &b = numbers.b;
  SmallVector<Type> types(count, b.getI32Type());
  auto branch = scf::IfOp::create(b, numbers.loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, numbers.loc, body());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, numbers.loc, SmallVector<Value>(count, numbers.constant(0)));
  return SmallVector<Value>(branch.getResults());
}

namespace {
/// Slots that are taken: by long sequences from the first on, by others from the last back.
struct Taken {
  Value atFront, atBack;
};

/// Finds slots in a block of the last grid.
class Finder {
public:
  Finder(Numbers &numbers, const Counted &counted, Value parts, Value sequences, Value slots)
      : numbers(numbers), counted(counted), parts(parts), groups(emitGroups(numbers, sequences)),
        slots(numbers.toNumber(slots)), of(numbers, numbers.read(parts, numbers.index(0), 2)) {}

  /// The group that a slot is in, -1 if it is in none, and the group with a number: each with the
  /// slots that groups before it have taken.
  struct Groups {
    Value ofSlot;
    Taken beforeSlot, beforeGroup;
  };
  Groups findGroups(Value slot, Value group);

  struct Sequence {
    Value at, first, parts;
  };
  /// The sequence of a group for which `isIt` holds.
  Sequence find(Value group, const Taken &before,
                llvm::function_ref<Value(Value at, Value first, Value end)> isIt);

private:
  Value backFrom(Value count) { return numbers.sub(slots, count); }

  Numbers &numbers;
  const Counted &counted;
  Value parts, groups, slots;
  Parts of;
};
} // namespace

static Value emitIsIn(Numbers &numbers, Value slot, Value first, Value end) {
  return numbers.both(numbers.compare(arith::CmpIPredicate::sge, slot, first),
                      numbers.compare(arith::CmpIPredicate::slt, slot, end));
}

Finder::Groups Finder::findGroups(Value slot, Value group) {
  Value zero = numbers.constant(0), none = numbers.constant(-1);
  SmallVector<Value> init = {zero, zero, none, zero, zero, zero, zero};
  auto found = loop(numbers, groups, init, [&](Value at, ValueRange carried) {
    Value front = numbers.add(carried[0], numbers.read(parts, at, 0)),
          back = numbers.add(carried[1], numbers.read(parts, at, 1));
    Value hasSlot =
        arith::OrIOp::create(numbers.b, numbers.loc, emitIsIn(numbers, slot, carried[0], front),
                             emitIsIn(numbers, slot, backFrom(back), backFrom(carried[1])));
    Value isGroup = numbers.compare(arith::CmpIPredicate::eq, at, group);
    return SmallVector<Value>{front,
                              back,
                              numbers.select(hasSlot, numbers.toNumber(at), carried[2]),
                              numbers.select(hasSlot, carried[0], carried[3]),
                              numbers.select(hasSlot, carried[1], carried[4]),
                              numbers.select(isGroup, carried[0], carried[5]),
                              numbers.select(isGroup, carried[1], carried[6])};
  });
  return {found[2], {found[3], found[4]}, {found[5], found[6]}};
}

Finder::Sequence Finder::find(Value group, const Taken &before,
                              llvm::function_ref<Value(Value at, Value first, Value end)> isIt) {
  Value zero = numbers.constant(0);
  SmallVector<Value> init = {before.atFront, before.atBack, zero, zero, zero};
  auto found = loop(numbers, numbers.index(kGroup), init, [&](Value at, ValueRange carried) {
    Value tiles = readCount(numbers, counted, group, at, 2), count = of.count(tiles);
    Value isLong = of.isLong(tiles), front = numbers.add(carried[0], count),
          back = numbers.add(carried[1], count);
    Value first = numbers.select(isLong, carried[0], backFrom(back)),
          is = isIt(at, first, numbers.add(first, count));
    return SmallVector<Value>{
        numbers.select(isLong, front, carried[0]), numbers.select(isLong, carried[1], back),
        numbers.select(is, numbers.toNumber(at), carried[2]), numbers.select(is, first, carried[3]),
        numbers.select(is, count, carried[4])};
  });
  return {found[2], found[3], found[4]};
}

/// The sequence of a slot of a group, which part of that it has, its first key and its keys.
static SmallVector<Value> emitSlot(Numbers &numbers, Finder &finder, const Counted &counted,
                                   Value slot, Value group, const Taken &before, int64_t blockN) {
  auto [number, first, parts] = finder.find(group, before, [&](Value, Value first, Value end) {
    return emitIsIn(numbers, slot, first, end);
  });
  Value at = numbers.toIndex(number);
  auto read = [&](int64_t which) { return readCount(numbers, counted, group, at, which); };
  Value size = numbers.mul(numbers.divideCeil(read(2), parts), numbers.constant(blockN));
  Value part = numbers.sub(slot, first), begin = numbers.mul(part, size);
  Value left = numbers.sub(read(1), begin);
  Value keys = numbers.most(numbers.least(left, size), numbers.constant(0));
  Value sequence = numbers.add(numbers.mul(group, numbers.index(kGroup)), at);
  return {numbers.toNumber(sequence), part, numbers.add(read(0), begin), keys};
}

DealtParts attn::dealParts(RewriterBase &rewriter, scf::ForallOp grid, OnlineAttentionOp op,
                           Value slots) {
  OpBuilder::InsertionGuard guard(rewriter);
  Location loc = grid.getLoc();
  rewriter.setInsertionPoint(grid);
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  Counted counted = countKeys(rewriter, grid, op, schedule);
  Value parts = countParts(rewriter, grid, counted, slots);
  Value sequences = getValueOrCreateConstantIndexOp(rewriter, loc, grid.getMixedUpperBound()[0]);
  scf::ForallOp deal = emitRows(rewriter, grid, slots, {4, 2});
  Numbers numbers{rewriter, loc};
  Value row = deal.getInductionVars()[0], slot = numbers.toNumber(row);
  Value size = numbers.index(kGroup);
  Value ofRow = arith::DivUIOp::create(rewriter, loc, row, size),
        inGroup = arith::RemUIOp::create(rewriter, loc, row, size);
  Finder finder(numbers, counted, parts, sequences, slots);
  auto groups = finder.findGroups(slot, ofRow);

  // A slot that is too many has no keys, of the first sequence.
  Value isTaken = numbers.compare(arith::CmpIPredicate::sge, groups.ofSlot, numbers.constant(0));
  insertRow(rewriter, deal, 0, emitIf(numbers, isTaken, 4, [&] {
              return emitSlot(numbers, finder, counted, slot, numbers.toIndex(groups.ofSlot),
                              groups.beforeSlot, schedule->blockN);
            }));
  // The slots of the sequence with the number of the block, where there is one.
  Value isSequence = numbers.compare(arith::CmpIPredicate::slt, row, sequences);
  insertRow(rewriter, deal, 1, emitIf(numbers, isSequence, 2, [&] {
              auto found = finder.find(ofRow, groups.beforeGroup, [&](Value at, Value, Value) {
                return numbers.compare(arith::CmpIPredicate::eq, at, inGroup);
              });
              return SmallVector<Value>{found.first, found.parts};
            }));
  return {deal.getResult(0), deal.getResult(1)};
}

//===----------------------------------------------------------------------------------------===//
// Blocks and merges
//===----------------------------------------------------------------------------------------===//

DealtPart attn::emitDealtPart(OpBuilder &builder, Location loc, const DealtParts &dealt, Value slot,
                              Value keys) {
  Numbers numbers{builder, loc};
  auto read = [&](int64_t which) {
    return numbers.toIndex(numbers.read(dealt.slots, slot, which));
  };
  // Within the keys, so that the analysis of the part's mask knows a position.
  Value begin = arith::MinUIOp::create(builder, loc, read(2), keys);
  Value count = arith::MinUIOp::create(builder, loc, read(3), numbers.sub(keys, begin));
  return {read(0), read(1), begin, count};
}

std::pair<Value, Value> attn::emitSlotsOf(OpBuilder &builder, Location loc, const DealtParts &dealt,
                                          Value sequence, Value slots) {
  Numbers numbers{builder, loc};
  auto read = [&](int64_t which) {
    return numbers.toIndex(numbers.read(dealt.sequences, sequence, which));
  };
  Value first = arith::MinUIOp::create(builder, loc, read(0), slots);
  Value count = arith::MinUIOp::create(builder, loc, read(1), numbers.sub(slots, first));
  return {first, count};
}
