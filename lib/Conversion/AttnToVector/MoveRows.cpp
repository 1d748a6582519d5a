//===- MoveRows.cpp - rows on their way into caches, as loops over vectors --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Threads share the heads of rows that go to slots, so that of equal slots the last one has its
// whole row there, and otherwise the rows. Halves of a row are turned vector by vector; pairs that
// are next to each other one by one.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/MoveRows.h"
#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

namespace {
class RowMover {
public:
  RowMover(Emitter &b, const MovedRows &rows, Value row, Value head)
      : b(b), rows(rows), row(row), head(head), columns(getType(rows.source).getDimSize(2)),
        element(getType(rows.source).getElementType()) {}
  void emit();

private:
  static MemRefType getType(Value memref) { return cast<MemRefType>(memref.getType()); }
  /// A word of 32 or 64 bits, with its sign, in 64.
  Value load64(Value numbers) {
    Value number = b.load(numbers, row);
    return number.getType().isInteger(64)
               ? number
               : arith::ExtSIOp::create(b, b.getI64Type(), number).getResult();
  }
  Value toIndex(Value number) { return arith::IndexCastOp::create(b, b.getIndexType(), number); }
  Value size64(Value memref, int64_t dim) {
    return arith::IndexCastOp::create(b, b.getI64Type(), b.dim(memref, dim));
  }
  Value constant64(int64_t value) { return b.intLike(b.getI64Type(), value); }
  /// Runs `move` with the place of the row, if it has one.
  void atPlace(llvm::function_ref<void(ValueRange)> move);
  Value findLine();
  /// As they are, from column `first` on.
  void copyColumns(ValueRange from, ValueRange to, int64_t first);
  void turnHalves(ValueRange from, ValueRange to, Value line);
  void turnNeighbours(ValueRange from, ValueRange to, Value line);
  /// The two numbers of a pair, turned. Each product is rounded, as PyTorch rounds it.
  std::pair<Value, Value> turn(Value first, Value second, Value cos, Value sin);

  Value load(Value memref, ArrayRef<Value> at, Value mask) {
    Value loaded = mask ? b.loadMasked(memref, at, mask) : b.loadVector(memref, at);
    return b.convert(loaded, b.getF32Type());
  }
  void store(Value values, ArrayRef<Value> at, Value mask) {
    values = b.convert(values, element);
    mask ? b.storeMasked(values, rows.dest, at, mask) : b.storeVector(values, rows.dest, at);
  }
  static SmallVector<Value> at(ValueRange position, Value column) {
    SmallVector<Value> indices(position);
    indices.push_back(column);
    return indices;
  }

  Emitter &b;
  const MovedRows &rows;
  Value row, head;
  int64_t columns;
  Type element;
};
} // namespace

void RowMover::atPlace(llvm::function_ref<void(ValueRange)> move) {
  if (!rows.slots)
    return move(row);
  Value slot = load64(rows.slots), page = size64(rows.dest, 1),
        slots = arith::MulIOp::create(b, size64(rows.dest, 0), page);
  // Without its sign, a negative number is above all of them.
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, slot, slots);
  auto branch = scf::IfOp::create(b, exists, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  move({toIndex(arith::DivUIOp::create(b, slot, page)),
        toIndex(arith::RemUIOp::create(b, slot, page))});
}

Value RowMover::findLine() {
  Value last = arith::SubIOp::create(b, size64(rows.cos, 0), constant64(1));
  Value line = arith::MinSIOp::create(b, load64(rows.positions), last);
  return toIndex(arith::MaxSIOp::create(b, line, constant64(0)));
}

std::pair<Value, Value> RowMover::turn(Value first, Value second, Value cos, Value sin) {
  auto product = [&](Value x, Value y) -> Value { return arith::MulFOp::create(b, x, y); };
  return {arith::SubFOp::create(b, product(first, cos), product(second, sin)),
          arith::AddFOp::create(b, product(second, cos), product(first, sin))};
}

void RowMover::copyColumns(ValueRange from, ValueRange to, int64_t first) {
  forColumns(b, columns - first, [&](Value column, Value mask) {
    column = b.add(column, first);
    SmallVector<Value> source = at(from, column), dest = at(to, column);
    if (mask)
      b.storeMasked(b.loadMasked(rows.source, source, mask), rows.dest, dest, mask);
    else
      b.storeVector(b.loadVector(rows.source, source), rows.dest, dest);
  });
}

void RowMover::turnHalves(ValueRange from, ValueRange to, Value line) {
  int64_t pairs = rows.countPairs();
  forColumns(b, pairs, [&](Value column, Value mask) {
    Value partner = b.add(column, pairs);
    Value cos = load(rows.cos, {line, column}, mask), sin = load(rows.sin, {line, column}, mask);
    auto [first, second] = turn(load(rows.source, at(from, column), mask),
                                load(rows.source, at(from, partner), mask), cos, sin);
    store(first, at(to, column), mask);
    store(second, at(to, partner), mask);
  });
}

void RowMover::turnNeighbours(ValueRange from, ValueRange to, Value line) {
  auto loadOne = [&](Value memref, ArrayRef<Value> at) {
    return b.convert(b.load(memref, at), b.getF32Type());
  };
  b.loop(b.index(0), b.index(rows.countPairs()), 1, [&](Value pair) {
    Value column = b.mul(pair, 2), partner = b.add(column, 1);
    Value cos = loadOne(rows.cos, {line, pair}), sin = loadOne(rows.sin, {line, pair});
    auto [first, second] = turn(loadOne(rows.source, at(from, column)),
                                loadOne(rows.source, at(from, partner)), cos, sin);
    b.store(b.convert(first, element), rows.dest, at(to, column));
    b.store(b.convert(second, element), rows.dest, at(to, partner));
  });
}

void RowMover::emit() {
  atPlace([&](ValueRange place) {
    SmallVector<Value> from = {row, head}, to = at(place, head);
    if (rows.cos && rows.isInterleaved)
      turnNeighbours(from, to, findLine());
    else if (rows.cos)
      turnHalves(from, to, findLine());
    copyColumns(from, to, 2 * rows.countPairs());
  });
}

/// Of attn.append and attn.rotary.
template <typename OpT> static LogicalResult lowerRows(OpT op, const VectorTarget &target) {
  if (failed(checkBuffers(op)))
    return failure();
  MovedRows rows = *MovedRows::find(op);
  for (auto [name, memref] : {std::pair<StringRef, Value>("source", rows.source),
                              {"cos", rows.cos},
                              {"sin", rows.sin},
                              {"dest", rows.dest}})
    if (memref && failed(checkColumns(op, name, memref)))
      return failure();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  unsigned shared = rows.slots ? 1 : 0;
  auto forall =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{b.getIndexAttr(0)},
                            ArrayRef<OpFoldResult>{b.dim(rows.source, shared)},
                            ArrayRef<OpFoldResult>{b.getIndexAttr(1)}, ValueRange(), std::nullopt);
  b.setInsertionPoint(forall.getTerminator());
  Value outer = forall.getInductionVars()[0];
  b.loop(b.index(0), b.dim(rows.source, 1 - shared), 1, [&](Value inner) {
    if (rows.slots)
      RowMover(b, rows, inner, outer).emit();
    else
      RowMover(b, rows, outer, inner).emit();
  });
  op.erase();
  return success();
}

LogicalResult attn::lowerAppend(AppendOp op, const VectorTarget &target) {
  return lowerRows(op, target);
}

LogicalResult attn::lowerRotary(RotaryOp op, const VectorTarget &target) {
  return lowerRows(op, target);
}
