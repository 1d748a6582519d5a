//===- Transpose.cpp - tiles of 8-bit elements with rows as columns -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// ldmatrix transposes matrices of 16-bit elements. Of a tile of 8 bits such an element is a pair of
// neighbours (2p, 2p + 1) in a row, so that a lane gets pairs of two rows:
//
//   lane 4p + t of matrix k:   [8k + 2t][2p]  [8k + 2t][2p + 1]  [8k + 2t + 1][2p]  ...
//
// Two byte permutations of two such words, 8 rows apart, give four elements of column 2p and four
// of column 2p + 1: those of rows 2t, 2t + 1, 2t + 8 and 2t + 9, which is the order of quads.
// stmatrix writes them as rows of the result. A warp takes 32 rows and 16 columns at a time.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"

using namespace mlir;
using namespace attn::tile;

/// A warp transposes four matrices of 8 rows at a time, 16 bytes wide.
static constexpr int64_t kRows = 32, kColumns = 16;

namespace {
/// One piece, as a warp reads and writes it.
class Piece {
public:
  Piece(OpBuilder &b, Location loc, TransposeOp op, Value source, Value dest, Value lane)
      : b(b), loc(loc), from(cast<SharedType>(op.getSource().getType())),
        to(cast<SharedType>(op.getDest().getType())), source(source), dest(dest), lane(lane) {}

  /// The piece that begins at a row and a column.
  void emit(Value row, Value column) {
    // Each lane has the address of a row of one of four matrices.
    Value address = emitChunkAddress(b, loc, from, source, add(row, lane), column);
    SmallVector<Value> pairs =
        emitAsm(b, loc, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];",
                "=r,=r,=r,=r,r", toAddress(address), SmallVector<Type>(4, b.getI32Type()));
    constexpr int64_t kEven = 0x6420, kOdd = 0x7531;
    SmallVector<Value> operands = {Value()};
    for (size_t half : {0, 2})
      for (int64_t bytes : {kEven, kOdd})
        operands.push_back(permute(pairs[half], pairs[half + 1], bytes));
    // Row p of a matrix is column 2p or 2p + 1; two matrices are of the first 16 rows, two of the
    // others.
    Value line = bits(lane, 0, 8), isOdd = bits(lane, 3, 2), half = bits(lane, 4, 2);
    Value toRow = add(column, add(LLVM::MulOp::create(b, loc, line, i32(b, loc, 2)), isOdd));
    Value toByte = add(row, LLVM::MulOp::create(b, loc, half, i32(b, loc, kRows / 2)));
    operands[0] = toAddress(emitChunkAddress(b, loc, to, dest, toRow, toByte));
    emitAsm(b, loc, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r",
            operands, {});
  }

private:
  Value add(Value x, Value y) { return LLVM::AddOp::create(b, loc, x, y); }
  /// Of a number, `count` values from a bit on.
  Value bits(Value x, int64_t first, int64_t count) {
    if (first > 0)
      x = LLVM::LShrOp::create(b, loc, x, i32(b, loc, first));
    return LLVM::AndOp::create(b, loc, x, i32(b, loc, count - 1));
  }
  Value toAddress(Value pointer) {
    return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
  }
  Value permute(Value low, Value high, int64_t bytes) {
    return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(), b.getStringAttr("llvm.nvvm.prmt"),
                                         ValueRange{low, high, i32(b, loc, bytes)})
        .getResult(0);
  }

  OpBuilder &b;
  Location loc;
  SharedType from, to;
  Value source, dest, lane;
};

struct TransposePattern : TilePattern<TransposeOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(TransposeOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto from = cast<SharedType>(op.getSource().getType());
    Value thread = context.getRoleThread(rewriter, op), lane = context.getLane(rewriter, op);
    Value warp = LLVM::LShrOp::create(rewriter, loc, thread, i32(rewriter, loc, 5));
    int64_t warps = context.getKernel(op).machine->getWarps(1),
            rowPieces = from.getNumRows() / kRows,
            pieces = rowPieces * from.getNumColumns() / kColumns;
    Piece piece(rewriter, loc, op, adaptor.getSource().front(), adaptor.getDest().front(), lane);
    emitShares(rewriter, loc, warp, warps, pieces, [&](Value number) {
      auto scale = [&](Value value, int64_t by) -> Value {
        return LLVM::MulOp::create(rewriter, loc, value, i32(rewriter, loc, by));
      };
      Value count = i32(rewriter, loc, rowPieces);
      piece.emit(scale(LLVM::URemOp::create(rewriter, loc, number, count), kRows),
                 scale(LLVM::UDivOp::create(rewriter, loc, number, count), kColumns));
    });
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::tile::populateTransposePatterns(RewritePatternSet &patterns,
                                           const PatternContext &context) {
  patterns.add<TransposePattern>(context, patterns.getContext());
}
