//===- ClearRows.cpp - zeros in rows of no sequence -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Where attn.place has zeros as its destination, a kernel before the grids stores them: but only in
// rows that no tile reaches, which are few. For offsets[0 .. B] and tiles of up to M rows:
//
//   before the first sequence    [0, offsets[0])
//   of sequence b, beyond M      [offsets[b] + M, offsets[b + 1])
//   after the last sequence      [offsets[B], T)
//
// Some blocks share the rows of each of these. Offsets that fall make sequences of no rows: what
// others of them reach is overwritten by the grids after this kernel.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/ClearRows.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Machine/Machine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

/// Blocks that share the rows of a range: enough for padding of some megabytes, few where there are
/// many sequences, of which each has a range.
static constexpr int64_t kBlocks = 16;

ArrayAttr attn::getGridOfClearing(plan::RaggedAttr ragged) {
  Builder b(ragged.getContext());
  Attribute ranges =
      plan::ExtentAttr::get(ragged.getContext(), ragged.getOffsets(), /*dim=*/0, /*divisor=*/1,
                            /*multiplier=*/1, /*unit=*/1, /*less=*/0);
  ArrayAttr one = b.getArrayAttr({});
  return b.getArrayAttr({b.getArrayAttr({ranges, b.getI64IntegerAttr(kBlocks)}), one, one});
}

namespace {
class Clearing {
public:
  Clearing(TileBuilder &b, ValueRange arguments, Value result, plan::RaggedAttr ragged)
      : b(b), result(result), offsets(arguments[ragged.getOffsets()]),
        zero(arith::ConstantIndexOp::create(b, 0)), one(arith::ConstantIndexOp::create(b, 1)),
        total(emitDim(result, 0)), last(sub(emitDim(offsets, 0), one)),
        most(emitDim(arguments[ragged.getMost()], ragged.getDim())) {}

  void emit() {
    Value blocks = arith::ConstantIndexOp::create(b, kBlocks);
    Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
    Value sequence = arith::DivUIOp::create(b, block, blocks);
    first = arith::RemUIOp::create(b, block, blocks);
    step = blocks;
    Value isAfter = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, sequence, last);
    Value begin = emitOffset(sequence);
    Value next = emitOffset(arith::MinUIOp::create(b, add(sequence, one), last));
    Value tiles = add(begin, arith::MinUIOp::create(b, most, sub(total, begin)));
    // Offsets may fall: what is before the first or after the last of them is cleared once.
    Value front = emitOffset(zero), back = emitOffset(last);
    Value reached = select(isAfter, begin, arith::MaxSIOp::create(b, tiles, front));
    clear(reached, select(isAfter, total, arith::MinSIOp::create(b, next, back)));
    clear(zero, select(isAfter, front, zero));
  }

private:
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
  Value select(Value condition, Value x, Value y) {
    return arith::SelectOp::create(b, condition, x, y);
  }
  Value emitDim(Value memref, int64_t dim) {
    return memref::DimOp::create(b, memref, arith::ConstantIndexOp::create(b, dim));
  }
  /// Inside of the rows, whatever memory says: clamped in its own type, which may be wider than an
  /// index is on a device.
  Value emitOffset(Value index) {
    Value offset = memref::LoadOp::create(b, offsets, index);
    Type type = offset.getType();
    offset = arith::MaxSIOp::create(b, offset, arith::IndexCastOp::create(b, type, zero));
    offset = arith::MinSIOp::create(b, offset, arith::IndexCastOp::create(b, type, total));
    return arith::IndexCastOp::create(b, b.getIndexType(), offset);
  }
  /// Rows [begin, end), those of this block.
  void clear(Value begin, Value end) {
    OpBuilder::InsertionGuard guard(b);
    auto type = cast<MemRefType>(result.getType());
    int64_t columns = type.getShape().back();
    int64_t heads = plan::getMachine(b.getInsertionBlock()->getParentOp()).getWarpgroupRows();
    auto ofRows = scf::ForOp::create(b, add(begin, first), end, step);
    b.setInsertionPointToStart(ofRows.getBody());
    auto ofHeads =
        scf::ForOp::create(b, zero, emitDim(result, 1), arith::ConstantIndexOp::create(b, heads));
    b.setInsertionPointToStart(ofHeads.getBody());
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(type.getElementType()));
    Value position[] = {ofRows.getInductionVar(), ofHeads.getInductionVar(), zero};
    tile::StoreOp::create(b, b.splat(none, {heads, columns}), result, position);
  }

  TileBuilder &b;
  Value result, offsets, zero, one, total, last, most;
  /// The rows of a range that a block has.
  Value first, step;
};
} // namespace

void attn::emitClearing(TileBuilder &b, ValueRange arguments, Value result,
                        plan::RaggedAttr ragged) {
  Clearing(b, arguments, result, ragged).emit();
}
