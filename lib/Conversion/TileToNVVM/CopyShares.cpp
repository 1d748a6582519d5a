//===- CopyShares.cpp - threads of a block copy tiles while they do other things --------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A thread copies pieces of 16 bytes, at equal distances from each other where the threads of the
// block fill whole rows. Rows and columns that do not exist become zero: the hardware reads 0 bytes
// of memory for them, at the first element. Numbers of a row are copied one by one.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Conversion/TileToNVVM/Views.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

using Predicate = LLVM::ICmpPredicate;

namespace {
/// Where the rows of a tile are in memory, whatever view they belong to.
class MemoryRows {
public:
  MemoryRows(OpBuilder &b, CopyShareOp op, const GlobalArgument &global)
      : b(b), loc(op.getLoc()), global(global) {
    SharedType type = op.getDest().getType();
    SmallVector<Value> at;
    for (Value offset : op.getOffsets())
      at.push_back(toI32(b, loc, offset));
    bool isRow = type.isRow();
    rowDim = int64_t(at.size()) - type.getShape().size();
    first = at[rowDim];
    at[rowDim] = c(0);
    if (global.paged)
      enterPages(at);
    else
      enter(at, type);
    if (!isRow)
      enterColumns(op.getOffsets().back(), at.back(), type);
  }

  /// A row of the tile, from its first column on, and whether it exists; null: it does.
  struct Row {
    Value pointer, exists;
  };

  Row find(Value row) const {
    Value at = LLVM::AddOp::create(b, loc, first, row);
    if (global.paged)
      return findInPage(at);
    if (!global.packed)
      return {advance(start, at, rowDim), rows ? isBelow(at, rows) : Value()};
    int64_t slots = global.packed->slots;
    Value inMemory = LLVM::LShrOp::create(b, loc, at, c(llvm::Log2_64(slots)));
    Value head = LLVM::AndOp::create(b, loc, at, c(slots - 1));
    Value exists =
        LLVM::AndOp::create(b, loc, isBelow(inMemory, rows), isBelow(head, global.packed->group));
    return {advance(advance(start, inMemory, rowDim), head, headDim), exists};
  }

  /// Whether all of so many rows exist, where that is one comparison for all of them; else null.
  Value areInside(int64_t count) const {
    if (!rows || columns || global.packed || global.paged)
      return {};
    Value last = LLVM::SubOp::create(b, loc, rows, c(count));
    Value isLong = LLVM::ICmpOp::create(b, loc, Predicate::sge, last, c(0));
    Value begins = LLVM::ICmpOp::create(b, loc, Predicate::ule, first, last);
    return LLVM::AndOp::create(b, loc, isLong, begins);
  }

  /// A row that exists.
  Value getPointer(Value row) const {
    return advance(start, LLVM::AddOp::create(b, loc, first, row), rowDim);
  }
  /// So many rows further.
  Value moveDown(Value pointer, int64_t count) const { return advance(pointer, c(count), rowDim); }

  /// Whether the column exists that is so many further; null: it does.
  Value hasColumn(Value column) const {
    return columns ? isBelow(LLVM::AddOp::create(b, loc, firstColumn, column), columns) : Value();
  }

  /// Memory that exists.
  Value getSafe() const { return global.pointer; }

private:
  Value c(int64_t value) const { return i32(b, loc, value); }
  /// As numbers without a sign: tiles that end with their keys begin before the first one.
  Value isBelow(Value value, Value bound) const {
    return LLVM::ICmpOp::create(b, loc, Predicate::ult, value, bound);
  }
  Value advance(Value pointer, Value index, int64_t dim) const {
    Value wide = LLVM::SExtOp::create(b, loc, b.getI64Type(), index);
    Value offset = LLVM::MulOp::create(b, loc, wide, global.strides[dim]);
    return LLVM::GEPOp::create(b, loc, pointer.getType(), getMemoryType(), pointer,
                               ValueRange{offset});
  }
  Type getMemoryType() const {
    Type element = global.type.getElementType();
    return element.isIndex() ? b.getI64Type() : element;
  }

  /// A batch of (b, h, row, column), or of sequences (row, h, column).
  void enter(SmallVector<Value> at, SharedType type) {
    int64_t extent = type.getNumRows();
    if (type.isRow())
      extent = type.getNumColumns();
    if (global.ragged) {
      SequenceRows sequence = emitSequence(b, loc, *global.ragged, at[0]);
      SmallVector<Value> inMemory = {sequence.begin, at[1]};
      llvm::append_range(inMemory, ArrayRef(at).drop_front(3));
      at = inMemory;
      rows = sequence.rows;
      rowDim = 0;
    } else if (global.packed || global.type.getDimSize(rowDim) != extent) {
      rows = global.sizes[rowDim];
    }
    if (global.packed) {
      headDim = global.ragged ? 1 : rowDim - 1;
      at[headDim] = LLVM::MulOp::create(b, loc, at[headDim], global.packed->group);
    }
    start = emitAddress(b, loc, global, at);
  }

  /// Of a pool (page, row of a page, head, column).
  void enterPages(ArrayRef<Value> at) {
    batch = at[0];
    Value offset = LLVM::MulOp::create(b, loc, LLVM::SExtOp::create(b, loc, b.getI64Type(), at[1]),
                                       global.strides[2]);
    Value column = LLVM::SExtOp::create(b, loc, b.getI64Type(), at[3]);
    offset = LLVM::AddOp::create(b, loc, offset, column);
    start = LLVM::GEPOp::create(b, loc, global.pointer.getType(), getMemoryType(), global.pointer,
                                ValueRange{offset});
  }

  void enterColumns(Value offset, Value at, SharedType type) {
    firstColumn = at;
    int64_t size = global.type.getShape().back();
    if (size != type.getNumSlabs() * type.getSlabColumns())
      columns = global.sizes.back();
  }

  Row findInPage(Value at) const {
    // As a number without a sign, -1 is beyond all pages.
    Value page = emitPage(b, loc, *global.paged, batch, at);
    Value exists = LLVM::ICmpOp::create(b, loc, Predicate::ult, page, global.sizes[0]);
    page = LLVM::SelectOp::create(b, loc, exists, page, c(0));
    Value inPage = LLVM::URemOp::create(b, loc, at, c(global.paged->page));
    return {advance(advance(start, page, 0), inPage, 1), exists};
  }

  OpBuilder &b;
  Location loc;
  const GlobalArgument &global;
  int64_t rowDim = 0, headDim = 0;
  /// The tile's first row and column, as the view has them.
  Value first, firstColumn;
  /// Of row 0 of the view; and the bounds of rows and columns, where tiles may cross these.
  Value start, rows, columns, batch;
};

/// The share of one thread.
class Share {
public:
  Share(OpBuilder &b, CopyShareOp op, const PatternContext &context, const GlobalArgument &global,
        Value shared)
      : b(b), loc(op.getLoc()), type(op.getDest().getType()), memory(b, op, global),
        shared(shared) {
    // Out of loops, what follows from the thread's number would take registers.
    thread = emitTiedAsm(b, loc, "", {context.getRoleThread(b, op)}).front();
    const Kernel &kernel = context.getKernel(op);
    threads = kernel.warpgroups * kernel.machine->warpgroupThreads;
  }

  void copyRow() {
    int64_t bytes = type.getElementBytes(), count = type.getNumColumns();
    forEach(count, [&](Value index) {
      MemoryRows::Row row = memory.find(index);
      copy(addBytes(b, loc, shared, times(index, bytes)), row.pointer, row.exists, bytes);
    });
  }

  void copyTile() {
    int64_t pieces = type.getNumSlabs() * type.getSwizzle() / attn::kChunkBytes;
    int64_t count = pieces * type.getNumRows();
    // Rows that all threads fill at a time, from each of which on the swizzle is the same.
    int64_t together = threads / pieces;
    if (threads % pieces != 0 || together % attn::kSwizzleRows != 0)
      return forEach(count, [&](Value piece) {
        Value row = LLVM::UDivOp::create(b, loc, piece, c(pieces));
        copyPiece(row, times(LLVM::URemOp::create(b, loc, piece, c(pieces)), attn::kChunkBytes),
                  /*below=*/0, {});
      });
    Value row = LLVM::UDivOp::create(b, loc, thread, c(pieces));
    Value byte = times(LLVM::URemOp::create(b, loc, thread, c(pieces)), attn::kChunkBytes);
    Value to = emitChunkAddress(b, loc, type, shared, row, byte);
    Value areInside = memory.areInside(type.getNumRows());
    if (!areInside)
      return copyTogether(row, byte, to, together);
    auto branch = scf::IfOp::create(b, loc, areInside, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    copyInside(row, byte, to, together);
    b.setInsertionPointToStart(branch.elseBlock());
    copyTogether(row, byte, to, together);
  }

private:
  /// Where all rows exist, a pointer goes down from row to row.
  void copyInside(Value row, Value byte, Value to, int64_t together) {
    Value from = addBytes(b, loc, memory.getPointer(row), byte);
    for (int64_t below = 0; below < type.getNumRows(); below += together) {
      OpBuilder::InsertionGuard guard(b);
      if (below + together > type.getNumRows())
        enterIf(row, type.getNumRows() - below);
      copy(addBytes(b, loc, to, below * type.getSwizzle()), from, Value(), attn::kChunkBytes);
      from = memory.moveDown(from, together);
    }
  }

  void copyTogether(Value row, Value byte, Value to, int64_t together) {
    for (int64_t below = 0; below < type.getNumRows(); below += together) {
      OpBuilder::InsertionGuard guard(b);
      if (below + together > type.getNumRows())
        enterIf(row, type.getNumRows() - below);
      copyPiece(row, byte, below, to);
    }
  }

  Value c(int64_t value) { return i32(b, loc, value); }
  Value times(Value value, int64_t factor) { return LLVM::MulOp::create(b, loc, value, c(factor)); }
  void enterIf(Value index, int64_t bound) {
    Value isInside = LLVM::ICmpOp::create(b, loc, Predicate::ult, index, c(bound));
    b.setInsertionPointToStart(
        scf::IfOp::create(b, loc, isInside, /*withElseRegion=*/false).thenBlock());
  }

  /// Calls `emit` with the numbers from 0 to `count` that are the thread's.
  void forEach(int64_t count, llvm::function_ref<void(Value)> emit) {
    emitShares(b, loc, thread, threads, count, emit);
  }

  /// Of row `row` + `below`; `to` is the piece's place in `row`, or null.
  void copyPiece(Value row, Value byte, int64_t below, Value to) {
    Value at = below ? LLVM::AddOp::create(b, loc, row, c(below)).getResult() : row;
    to = to ? addBytes(b, loc, to, below * type.getSwizzle())
            : emitChunkAddress(b, loc, type, shared, at, byte);
    MemoryRows::Row place = memory.find(at);
    Value exists = place.exists;
    Value column = LLVM::UDivOp::create(b, loc, byte, c(type.getElementBytes()));
    if (Value hasColumn = memory.hasColumn(column))
      exists = exists ? LLVM::AndOp::create(b, loc, exists, hasColumn).getResult() : hasColumn;
    copy(to, addBytes(b, loc, place.pointer, byte), exists, attn::kChunkBytes);
  }

  void copy(Value to, Value from, Value exists, int64_t bytes) {
    Value size;
    if (exists) {
      from = LLVM::SelectOp::create(b, loc, exists, from, memory.getSafe());
      size = LLVM::SelectOp::create(b, loc, exists, c(bytes), c(0));
    }
    auto modifier = bytes == attn::kChunkBytes ? NVVM::LoadCacheModifierKind::CG
                                               : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(b, loc, to, from, bytes, modifier, size);
  }

  OpBuilder &b;
  Location loc;
  SharedType type;
  MemoryRows memory;
  Value shared, thread;
  int64_t threads;
};

struct CopySharePattern : TilePattern<CopyShareOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(CopyShareOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (failed(global))
      return failure();
    SharedType type = op.getDest().getType();
    int64_t columns = (*global)->type.getShape().back();
    if (!type.isRow() &&
        (ShapedType::isDynamic(columns) || columns * type.getElementBytes() % attn::kChunkBytes))
      return op.emitOpError("expected rows of a constant multiple of ")
             << attn::kChunkBytes << " bytes, got " << (*global)->type;
    Share share(rewriter, op, context, **global, adaptor.getDest().front());
    type.isRow() ? share.copyRow() : share.copyTile();
    rewriter.eraseOp(op);
    return success();
  }
};

struct CopyWaitPattern : TilePattern<CopyWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(CopyWaitOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncCommitGroupOp::create(rewriter, op.getLoc());
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(op, 0);
    return success();
  }
};
} // namespace

void attn::tile::populateCopySharePatterns(RewritePatternSet &patterns,
                                           const PatternContext &context) {
  patterns.add<CopySharePattern, CopyWaitPattern>(context, patterns.getContext());
}
