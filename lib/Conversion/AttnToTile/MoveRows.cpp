//===- MoveRows.cpp - rows on their way into caches, on tiles ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A block moves some heads of one row: a tile (heads, D), which is read and written whole. Numbers
// of slots are compared as the 64 bits that they have, for indices of kernels have 32. A row that
// goes nowhere is stored after the last head, where there is nothing to write.
//
// A column's partner in a rotation may be anywhere in its row, so that it is read once more, out of
// a cache, for either order of pairs.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/MoveRows.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Conversion/AttnToTile/TileBuilder.h"
#include "lib/Machine/Lanes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

/// Rows come from arguments of the function, and go to memory of the caller.
static LogicalResult check(Operation *op, const MovedRows &rows,
                           const llvm::DenseMap<Value, unsigned> &arguments) {
  for (Value read : {rows.source, rows.slots, rows.positions, rows.cos, rows.sin})
    if (read && !isa<BlockArgument>(read))
      return op->emitOpError("expected operands that are arguments of the function");
  if (!rows.dest.getDefiningOp<tensor::EmptyOp>() || !arguments.contains(op->getResult(0)))
    return op->emitOpError("expected a tensor.empty that the function returns, the caller's "
                           "memory, as its destination");
  int64_t columns = cast<ShapedType>(rows.source.getType()).getDimSize(2);
  if (columns % kFragmentColumns != 0)
    return op->emitOpError("expected D to be a multiple of ")
           << kFragmentColumns << ", got " << rows.source.getType();
  return success();
}

namespace {
/// Where a row goes: the position of its first head and column.
using Place = SmallVector<Value, 4>;

class RowMover {
public:
  RowMover(TileBuilder &b, const MovedRows &rows, int64_t heads) : b(b), rows(rows) {
    auto source = cast<MemRefType>(rows.source.getType());
    element = source.getElementType();
    shape = RankedTensorType::get({heads, source.getDimSize(2)}, b.getIndexType());
  }
  void emit();

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, value); }
  Value size(Value memref, int64_t dim) { return memref::DimOp::create(b, memref, index(dim)); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value splat(Value scalar) { return b.splat(scalar, shape.getShape()); }
  /// A word of 32 or 64 bits, with its sign, in 64.
  Value load64(Value numbers);
  Value isBelow(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
  }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Place findPlace();
  Value rotate(Value tile);
  Value gather(Value memref, ArrayRef<Value> at);

  TileBuilder &b;
  const MovedRows &rows;
  Type element;
  /// Of the block's tile, of indices.
  RankedTensorType shape;
  Value row, firstHead;
};
} // namespace

Value RowMover::load64(Value numbers) {
  Value number = memref::LoadOp::create(b, numbers, row);
  if (number.getType().isInteger(64))
    return number;
  return arith::ExtSIOp::create(b, b.getI64Type(), number);
}

Place RowMover::findPlace() {
  if (!rows.slots)
    return {row, firstHead, index(0)};
  auto size64 = [&](int64_t dim) -> Value {
    return arith::IndexCastOp::create(b, b.getI64Type(), size(rows.dest, dim));
  };
  Value slot = load64(rows.slots), page = size64(1),
        slots = arith::MulIOp::create(b, size64(0), page);
  // Nothing is divided by the rows of a page without rows.
  page = arith::MaxUIOp::create(b, page, arith::ConstantIntOp::create(b, b.getI64Type(), 1));
  // Without its sign, a negative number is above all of them.
  Value exists = isBelow(slot, slots), none = index(0);
  auto toIndex = [&](Value number) -> Value {
    Value cast = arith::IndexCastOp::create(b, b.getIndexType(), number);
    return select(exists, cast, none);
  };
  return {toIndex(arith::DivUIOp::create(b, slot, page)),
          toIndex(arith::RemUIOp::create(b, slot, page)),
          select(exists, firstHead, size(rows.dest, 2)), none};
}

Value RowMover::gather(Value memref, ArrayRef<Value> at) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  return b.widen(tile::GatherOp::create(b, shape.clone(type), memref, at));
}

Value RowMover::rotate(Value tile) {
  int64_t pairs = rows.countPairs(), columns = shape.getDimSize(1);
  Value zero = arith::ConstantIntOp::create(b, b.getI64Type(), 0),
        one = arith::ConstantIntOp::create(b, b.getI64Type(), 1),
        lines = arith::IndexCastOp::create(b, b.getI64Type(), size(rows.cos, 0));
  Value line =
      arith::MinSIOp::create(b, load64(rows.positions), arith::SubIOp::create(b, lines, one));
  line = arith::MaxSIOp::create(b, line, zero);
  line = arith::IndexCastOp::create(b, b.getIndexType(), line);

  Value column = tile::CoordOp::create(b, shape, 1, index(0)),
        head = tile::CoordOp::create(b, shape, 0, firstHead);
  // Rows of the tile that are no heads read the last one.
  head = b.clampBelow(head, index(0), size(rows.source, 1));
  Value isTurned = isBelow(column, splat(index(2 * pairs)));
  Value isFirst, pair, partner;
  if (rows.isInterleaved) {
    Value two = splat(index(2)), bit = arith::RemUIOp::create(b, column, two);
    isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, bit, splat(index(0)));
    pair = arith::DivUIOp::create(b, column, two);
    partner = select(isFirst, add(column, splat(index(1))),
                     arith::SubIOp::create(b, column, splat(index(1))));
  } else {
    Value half = splat(index(pairs));
    isFirst = isBelow(column, half);
    pair = arith::RemUIOp::create(b, column, half);
    partner = select(isFirst, add(column, half), arith::SubIOp::create(b, column, half));
  }
  // Columns that are not turned read anything.
  auto within = [&](Value x, int64_t count) -> Value {
    return arith::MinUIOp::create(b, x, splat(index(count - 1)));
  };
  pair = within(pair, pairs);
  partner = within(partner, columns);
  Value cos = gather(rows.cos, {line, pair}), sin = gather(rows.sin, {line, pair}),
        other = gather(rows.source, {row, head, partner});
  other = select(isFirst, arith::NegFOp::create(b, other), other);
  // Each product is rounded, as PyTorch rounds it: a multiply-add of nothing stays apart from the
  // sum after it.
  Value nothing = b.constant(0.0, shape.getShape()), x = b.widen(tile);
  Value turned = arith::AddFOp::create(b, math::FmaOp::create(b, x, cos, nothing).getResult(),
                                       math::FmaOp::create(b, other, sin, nothing).getResult());
  return b.narrow(select(isTurned, turned, x), element);
}

void RowMover::emit() {
  row = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  firstHead = arith::MulIOp::create(b, gpu::BlockIdOp::create(b, gpu::Dimension::y).getResult(),
                                    index(shape.getDimSize(0)));
  Value tile = tile::LoadOp::create(b, shape.clone(element), rows.source,
                                    ValueRange{row, firstHead, index(0)});
  if (rows.cos)
    tile = rotate(tile);
  tile::StoreOp::create(b, tile, rows.dest, findPlace());
}

/// x counts rows, y tiles of so many heads.
static ArrayAttr getGrid(Value source, int64_t heads) {
  Builder builder(source.getContext());
  auto type = cast<RankedTensorType>(source.getType());
  SmallVector<Attribute> grid;
  for (auto [dim, step] : {std::pair<int64_t, int64_t>(0, 1), {1, heads}}) {
    Attribute factor = builder.getI64IntegerAttr(llvm::divideCeil(type.getDimSize(dim), step));
    if (type.isDynamicDim(dim))
      factor =
          plan::ExtentAttr::get(source.getContext(), cast<BlockArgument>(source).getArgNumber(),
                                dim, /*divisor=*/step, /*multiplier=*/1, /*unit=*/1,
                                /*less=*/0);
    grid.push_back(builder.getArrayAttr(factor));
  }
  grid.push_back(builder.getArrayAttr({}));
  return builder.getArrayAttr(grid);
}

LogicalResult
attn::convertMovedRows(Operation *op, const llvm::DenseMap<Value, unsigned> &arguments,
                       llvm::function_ref<func::FuncOp(StringRef, tile::KernelAttr)> create) {
  MovedRows rows = *MovedRows::find(op);
  if (failed(check(op, rows, arguments)))
    return failure();
  int64_t columns = cast<ShapedType>(rows.source.getType()).getDimSize(2);
  // As few as lanes along the columns leave.
  int64_t heads = getLanesAlongRows(columns, plan::getMachine(op).getWarps(1)).rows;
  auto attribute =
      tile::KernelAttr::getChecked([&] { return op->emitOpError(); }, op->getContext(),
                                   /*warpgroups=*/int64_t(1), getGrid(rows.source, heads));
  if (!attribute)
    return failure();
  func::FuncOp kernel = create(rows.slots ? "_append" : "_rotary", attribute);
  rows.dest = op->getResult(0);
  for (Value *value :
       {&rows.source, &rows.slots, &rows.positions, &rows.cos, &rows.sin, &rows.dest})
    if (*value)
      *value = kernel.getArgument(arguments.lookup(*value));
  TileBuilder b(op->getLoc(), OpBuilder::atBlockBegin(&kernel.getBody().front()));
  RowMover(b, rows, heads).emit();
  func::ReturnOp::create(b);
  return success();
}
