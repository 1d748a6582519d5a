//===- GatherAsync.cpp - threads copy rows from wherever a table says ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A box of a tensor map is the obvious way, but one box takes the copying unit as long as hundreds
// of bytes take memory, so that rows of small pages come too late. Threads that copy 16 bytes each
// do not have that limit. They work in two steps:
//
//   * tile.find_rows: each lane of a warp asks the table for one of the warp's rows, and keeps the
//     row's distance from the start of memory in bytes, or -1 for a row that lies nowhere;
//   * tile.gather_async: the warp copies its rows, a few at a time: as many as have a lane for each
//     of their pieces. The lanes of a row learn its distance by a shuffle.
//
// So the table, its divisions and its products of 64 bits are paid once for 32 rows, and a lane has
// one distance in registers for all rows of a tile of up to 128. The lanes that share a row are a
// segment of the shuffle, and ask for the rows that the segment will copy, in order. Then the lane
// that a shuffle reads is a number of the code, and no register has it.
//
// No address leaves the memory: a piece that does not exist is copied from the memory's first row
// with a source of 0 bytes, which is not read, and the hardware writes zeros.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Conversion/TileToNVVM/Views.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn::tile;

using Predicate = LLVM::ICmpPredicate;

namespace {
/// Which rows and pieces of a tile the lanes of a warp copy.
struct Share {
  Share(SharedType type, RowsType rows)
      : pieces(type.getNumSlabs() * type.getSwizzle() / attn::kChunkBytes),
        lanes(int64_t(llvm::PowerOf2Ceil(pieces))), together(rows.getRowsTogether()),
        rowsOfWarp(rows.getRowsOfWarp()) {}

  int64_t getRowsAtOnce() const { return kLanes / lanes; }
  int64_t getTurns() const { return llvm::divideCeil(rowsOfWarp, getRowsAtOnce()); }

  /// Pieces of a row, and the lanes that have one each, or none where these are more.
  int64_t pieces, lanes;
  /// Rows of a warp in a group of the tile's, and in the tile.
  int64_t together, rowsOfWarp;
};
} // namespace

/// Of the warp's rows, number `index`, as a row of the tile. The rows of a warp lie in groups of
/// the swizzle's period, so that a thread has the same place in each of them.
static Value emitTileRow(OpBuilder &b, Operation *op, const PatternContext &context,
                         const Share &share, Value index) {
  Location loc = op->getLoc();
  Value together = i32(b, loc, share.together);
  Value warp = LLVM::LShrOp::create(b, loc, context.getRoleThread(b, op),
                                    i32(b, loc, llvm::Log2_64(kLanes)));
  Value group = LLVM::MulOp::create(b, loc, LLVM::UDivOp::create(b, loc, index, together),
                                    i32(b, loc, attn::kSwizzleRows));
  Value first = LLVM::AddOp::create(b, loc, group, LLVM::MulOp::create(b, loc, warp, together));
  return LLVM::AddOp::create(b, loc, first, LLVM::URemOp::create(b, loc, index, together));
}

/// The lane's segment of a shuffle, and its number within that.
static std::pair<Value, Value> emitSegment(OpBuilder &b, Operation *op,
                                           const PatternContext &context, const Share &share) {
  Location loc = op->getLoc();
  Value lane = context.getLane(b, op);
  return {LLVM::LShrOp::create(b, loc, lane, i32(b, loc, llvm::Log2_64(share.lanes))),
          LLVM::AndOp::create(b, loc, lane, i32(b, loc, share.lanes - 1))};
}

namespace {
struct FindRowsPattern : TilePattern<FindRowsOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(FindRowsOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &b) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (failed(global))
      return failure();
    auto gather = op->use_empty() ? GatherAsyncOp() : dyn_cast<GatherAsyncOp>(*op->user_begin());
    if (!gather || !op->hasOneUse())
      return op.emitOpError("expected one tile.gather_async of the rows");
    Location loc = op.getLoc();
    auto type = cast<RowsType>(op.getType());
    Share share(cast<SharedType>(gather.getDest().getType()), type);
    Value batch = toI32(b, loc, op.getOffsets()[0]), start = toI32(b, loc, op.getOffsets()[2]);
    auto [segment, number] = emitSegment(b, op, context, share);
    SmallVector<Value> distances;
    for (int64_t turn = 0; turn < share.getTurns(); turn += share.lanes) {
      // Lanes without a row of the tile ask for one past it, which does no harm.
      Value mine = LLVM::AddOp::create(b, loc, number, i32(b, loc, turn));
      Value index = LLVM::AddOp::create(
          b, loc, LLVM::MulOp::create(b, loc, mine, i32(b, loc, share.getRowsAtOnce())), segment);
      Value row = LLVM::AddOp::create(b, loc, start, emitTileRow(b, op, context, share, index));
      distances.push_back(emitDistance(b, loc, **global, batch, row));
    }
    // The type has room for lanes that all have a piece.
    while (int64_t(distances.size()) < type.getRowsOfLane())
      distances.push_back(i64(b, loc, -1));
    b.replaceOpWithMultiple(op, {distances});
    return success();
  }

  /// Bytes from the start of a pool to a row, i64, or -1.
  static Value emitDistance(OpBuilder &b, Location loc, const GlobalArgument &pool, Value batch,
                            Value row) {
    Type i64Type = b.getI64Type();
    Value page = emitPage(b, loc, *pool.paged, batch, row);
    // As a number without a sign, -1 is beyond all pages.
    Value exists = LLVM::ICmpOp::create(b, loc, Predicate::ult, page, pool.sizes[0]);
    Value inPage = LLVM::URemOp::create(b, loc, row, i32(b, loc, pool.paged->page));
    Value distance =
        LLVM::MulOp::create(b, loc, LLVM::ZExtOp::create(b, loc, i64Type, page), pool.strides[0]);
    Value within =
        LLVM::MulOp::create(b, loc, LLVM::ZExtOp::create(b, loc, i64Type, inPage), pool.strides[1]);
    distance = LLVM::AddOp::create(b, loc, distance, within);
    int64_t bytes = pool.type.getElementTypeBitWidth() / 8;
    distance = LLVM::MulOp::create(b, loc, distance, i64(b, loc, bytes));
    return LLVM::SelectOp::create(b, loc, exists, distance, i64(b, loc, -1));
  }
};

/// The pieces of one tile that a lane copies, one in each turn.
class PieceCopy {
public:
  PieceCopy(OpBuilder &b, GatherAsyncOp op, const PatternContext &context,
            const GlobalArgument &pool, Value shared, ValueRange distances)
      : b(b), op(op), loc(op.getLoc()), context(context), pool(pool),
        type(cast<SharedType>(op.getDest().getType())),
        share(type, cast<RowsType>(op.getRows().getType())), shared(shared), distances(distances) {
    std::tie(segment, piece) = emitSegment(b, op, context, share);
    byte = LLVM::MulOp::create(b, loc, piece, i32(b, loc, attn::kChunkBytes));
    Value column = LLVM::UDivOp::create(b, loc, byte, i32(b, loc, type.getElementBytes()));
    column = LLVM::AddOp::create(b, loc, column, toI32(b, loc, op.getOffsets()[3]));
    if (!matchPattern(op.getOffsets()[3], m_Zero()) ||
        pool.type.getDimSize(3) < share.lanes * attn::kChunkBytes / type.getElementBytes())
      hasColumn = LLVM::ICmpOp::create(b, loc, Predicate::ult, column, pool.sizes[3]);
    start = emitStart(toI32(b, loc, op.getOffsets()[1]), column);
  }

  int64_t getTurns() const { return share.getTurns(); }

  /// Where the row lies of which the lane copies a piece in a turn. All lanes take part.
  Value emitDistance(int64_t turn) {
    Type i32Type = b.getI32Type(), i64Type = b.getI64Type();
    Value number = distances[turn / share.lanes], from = i32(b, loc, turn % share.lanes);
    // Lanes of other segments are out of reach.
    Value reach = i32(b, loc, (kLanes - share.lanes) << 8 | (kLanes - 1));
    auto shuffle = [&](Value half) -> Value {
      return NVVM::ShflOp::create(b, loc, i32Type, i32(b, loc, -1), half, from, reach,
                                  NVVM::ShflKind::idx, UnitAttr());
    };
    Value bits = i64(b, loc, 32);
    Value low = shuffle(LLVM::TruncOp::create(b, loc, i32Type, number));
    Value high =
        shuffle(LLVM::TruncOp::create(b, loc, i32Type, LLVM::LShrOp::create(b, loc, number, bits)));
    high = LLVM::ShlOp::create(b, loc, LLVM::ZExtOp::create(b, loc, i64Type, high), bits);
    return LLVM::OrOp::create(b, loc, high, LLVM::ZExtOp::create(b, loc, i64Type, low));
  }

  /// Copies that piece.
  void emitCopy(int64_t turn, Value distance) {
    Value exists = LLVM::ICmpOp::create(b, loc, Predicate::sge, distance, i64(b, loc, 0));
    if (hasColumn)
      exists = LLVM::AndOp::create(b, loc, exists, hasColumn);
    Value bytes =
        LLVM::SelectOp::create(b, loc, exists, i32(b, loc, attn::kChunkBytes), i32(b, loc, 0));
    distance = LLVM::SelectOp::create(b, loc, exists, distance, i64(b, loc, 0));
    OpBuilder::InsertionGuard guard(b);
    if (Value hasPiece = emitHasPiece(turn))
      b.setInsertionPointToStart(
          scf::IfOp::create(b, loc, hasPiece, /*withElseRegion=*/false).thenBlock());
    Value to = emitChunkAddress(b, loc, type, shared, emitRow(turn), byte);
    NVVM::CpAsyncOp::create(b, loc, to, addBytes(b, loc, start, distance), attn::kChunkBytes,
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }

private:
  /// Where the lane's row of a turn is in the tile. Whole groups are numbers that the address has
  /// anyway.
  Value emitRow(int64_t turn) {
    int64_t first = turn * share.getRowsAtOnce(), left = first % share.together;
    Value index = LLVM::AddOp::create(b, loc, segment, i32(b, loc, left));
    Value groups = i32(b, loc, (first - left) / share.together * attn::kSwizzleRows);
    return LLVM::AddOp::create(b, loc, emitTileRow(b, op, context, share, index), groups);
  }

  /// Of the lane's piece in row 0 of page 0. A column that does not exist is as good as the first.
  Value emitStart(Value head, Value column) {
    Type i64Type = b.getI64Type();
    if (hasColumn)
      column = LLVM::SelectOp::create(b, loc, hasColumn, column, i32(b, loc, 0));
    Value offset =
        LLVM::MulOp::create(b, loc, LLVM::SExtOp::create(b, loc, i64Type, head), pool.strides[2]);
    offset = LLVM::AddOp::create(b, loc, offset, LLVM::ZExtOp::create(b, loc, i64Type, column));
    return LLVM::GEPOp::create(b, loc, pool.pointer.getType(), type.getElementType(), pool.pointer,
                               ValueRange{offset});
  }

  /// Whether the lane has a piece in a turn, or null if all lanes have one.
  Value emitHasPiece(int64_t turn) {
    Value hasPiece;
    if (share.pieces < share.lanes)
      hasPiece = LLVM::ICmpOp::create(b, loc, Predicate::ult, piece, i32(b, loc, share.pieces));
    int64_t rowsLeft = share.rowsOfWarp - turn * share.getRowsAtOnce();
    if (rowsLeft >= share.getRowsAtOnce())
      return hasPiece;
    Value hasRow = LLVM::ICmpOp::create(b, loc, Predicate::ult, segment, i32(b, loc, rowsLeft));
    return hasPiece ? LLVM::AndOp::create(b, loc, hasPiece, hasRow).getResult() : hasRow;
  }

  OpBuilder &b;
  GatherAsyncOp op;
  Location loc;
  const PatternContext &context;
  const GlobalArgument &pool;
  SharedType type;
  Share share;
  Value shared;
  ValueRange distances;
  Value segment, piece, byte, start, hasColumn;
};

struct GatherAsyncPattern : TilePattern<GatherAsyncOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(GatherAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (failed(global))
      return failure();
    PieceCopy copy(rewriter, op, context, **global, adaptor.getDest().front(), adaptor.getRows());
    // Shuffles take some time, and follow each other faster than copies follow them.
    constexpr int64_t kTogether = 4;
    for (int64_t first = 0; first < copy.getTurns(); first += kTogether) {
      int64_t end = std::min(first + kTogether, copy.getTurns());
      SmallVector<Value, kTogether> distances;
      for (int64_t turn = first; turn < end; ++turn)
        distances.push_back(copy.emitDistance(turn));
      for (int64_t turn = first; turn < end; ++turn)
        copy.emitCopy(turn, distances[turn - first]);
    }
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::tile::populateGatherAsyncPatterns(RewritePatternSet &patterns,
                                             const PatternContext &context) {
  patterns.add<FindRowsPattern, GatherAsyncPattern>(context, patterns.getContext());
}
