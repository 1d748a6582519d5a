//===- ClearUnread.cpp - zeros for what a product does not read ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Marks are words of bits. The four lanes of a warp that share a row of the lhs hold different
// columns, pairs of neighbours every eight columns; each lane has a bit for every column that it
// holds, in one word for each 16 pairs. A lane that has a row of its own writes the words of four.
// In a word of P pairs, pair p has bits 16 - P + p and 32 - P
// + p: from 32 bits with two numbers follow both bits at once, and shifting makes room for the
// next.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <map>

using namespace mlir;
using namespace attn::tile;

/// Columns whose marks share a word, and bytes of a lane's and of a warp's marks.
static constexpr int64_t kPairs = 16, kLaneBytes = 8, kWarpBytes = 32;

namespace {
struct MarkReadPattern : TilePattern<MarkReadOp> {
  using TilePattern::TilePattern;

  /// Or of all rows of the warp.
  static Value exchange(OpBuilder &builder, Location loc, const Layout &layout, Value word) {
    for (const Digit &digit : layout.getDigits())
      if (digit.source == Digit::Source::Lane && digit.rowStride)
        for (int64_t distance = digit.extent / 2; distance >= 1; distance /= 2) {
          Value other =
              NVVM::ShflOp::create(builder, loc, word.getType(), i32(builder, loc, -1), word,
                                   i32(builder, loc, distance * digit.divisor),
                                   i32(builder, loc, 31), NVVM::ShflKind::bfly, UnitAttr());
          word = LLVM::OrOp::create(builder, loc, word, other);
        }
    return word;
  }

  /// A bit for each column of the pairs, in order.
  static SmallVector<Value, 2> emitWords(OpBuilder &b, Location loc,
                                         const std::map<int64_t, Value> &pairs) {
    // Without its sign, a number that is not 0 carries into the sign.
    Value magnitude = i32(b, loc, 0x7fff7fff), sign = i32(b, loc, 0x80008000);
    SmallVector<Value, 2> words;
    for (auto [i, entry] : llvm::enumerate(pairs)) {
      Value bits = LLVM::AndOp::create(b, loc, entry.second, magnitude);
      bits = LLVM::AddOp::create(b, loc, bits, magnitude);
      bits = LLVM::AndOp::create(b, loc, bits, sign);
      if (i % kPairs == 0) {
        words.push_back(bits);
        continue;
      }
      Value before = LLVM::LShrOp::create(b, loc, words.back(), i32(b, loc, 1));
      words.back() = LLVM::OrOp::create(b, loc, before, bits);
    }
    return words;
  }

  LogicalResult matchAndRewrite(MarkReadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Layout layout = getLayout(cast<RankedTensorType>(op.getWeights().getType()));
    // Pairs of numbers by their lane of four, and by their column.
    std::map<int64_t, std::map<int64_t, Value>> lanes;
    for (auto [i, vector] : llvm::enumerate(adaptor.getWeights())) {
      Value bits = LLVM::BitcastOp::create(rewriter, loc, rewriter.getI32Type(), vector);
      int64_t column = layout.getPosition({0, 0, 2 * int64_t(i)}).column;
      Value &pair = lanes[column / 2 % attn::kQuad][column];
      pair = pair ? LLVM::OrOp::create(rewriter, loc, pair, bits).getResult() : bits;
    }
    std::map<int64_t, SmallVector<Value, 2>> words;
    for (const auto &[lane, columns] : lanes)
      words[lane] = emitWords(rewriter, loc, columns);
    Value thread = context.getRoleThread(rewriter, op);
    Value warp = LLVM::LShrOp::create(rewriter, loc, thread, i32(rewriter, loc, 5));
    Value lane = LLVM::AndOp::create(rewriter, loc, thread, i32(rewriter, loc, 3));
    Value offset = LLVM::MulOp::create(rewriter, loc, warp, i32(rewriter, loc, kWarpBytes));
    if (words.size() == 1)
      offset = LLVM::AddOp::create(
          rewriter, loc, offset,
          LLVM::MulOp::create(rewriter, loc, lane, i32(rewriter, loc, kLaneBytes)));
    Value address = addBytes(rewriter, loc, adaptor.getMarks().front(), offset);
    // Lanes of the same columns write the same.
    for (const auto &[first, ofLane] : words)
      for (auto [i, word] : llvm::enumerate(ofLane))
        LLVM::StoreOp::create(rewriter, loc, exchange(rewriter, loc, layout, word),
                              addBytes(rewriter, loc, address, first * kLaneBytes + 4 * int64_t(i)),
                              /*alignment=*/4);
    rewriter.eraseOp(op);
    return success();
  }
};

/// The rows of a stage that a thread clears.
class Clearing {
public:
  Clearing(OpBuilder &builder, ClearUnreadOp op, Value stage, Value marks, int64_t warps)
      : b(builder), loc(op.getLoc()), type(cast<SharedType>(op.getValues().getType())),
        stage(stage), marks(marks), warps(warps) {}

  /// From row `from` on, or where there is none, by the marks.
  void emit(Value row, Value from) {
    Value isUnread =
        from ? LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::uge, row, from)
             : LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, emitMark(row), c(0));
    auto branch = scf::IfOp::create(b, loc, isUnread, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    emitZeros(row);
  }

private:
  Value c(int64_t value) { return i32(b, loc, value); }
  Value shiftRight(Value value, int64_t count) {
    return LLVM::LShrOp::create(b, loc, value, c(count));
  }
  Value bitsOf(Value value, int64_t mask) { return LLVM::AndOp::create(b, loc, value, c(mask)); }

  /// 0 if no warp reads the row, which is a column of the lhs.
  Value emitMark(Value row) {
    Value lane = bitsOf(shiftRight(row, 1), 3), pair = shiftRight(row, 3);
    Value word = shiftRight(pair, 4);
    Value offset = LLVM::AddOp::create(b, loc, LLVM::MulOp::create(b, loc, lane, c(kLaneBytes)),
                                       LLVM::ShlOp::create(b, loc, word, c(2)));
    Value address = addBytes(b, loc, marks, offset), bits;
    for (int64_t warp = 0; warp < warps; ++warp) {
      Value mark =
          LLVM::LoadOp::create(b, loc, b.getI32Type(), addBytes(b, loc, address, warp * kWarpBytes),
                               /*alignment=*/4);
      bits = bits ? LLVM::OrOp::create(b, loc, bits, mark).getResult() : mark;
    }
    // The last word may have fewer pairs.
    int64_t numPairs = type.getNumRows() / 8, rest = numPairs % kPairs;
    Value first = c(0);
    if (rest) {
      Value isLast =
          LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, word, c(numPairs / kPairs));
      first = LLVM::SelectOp::create(b, loc, isLast, c(kPairs - rest), first);
    }
    Value bit = LLVM::AddOp::create(b, loc, first, bitsOf(pair, kPairs - 1));
    Value half = LLVM::ShlOp::create(b, loc, bitsOf(row, 1), c(4));
    bit = LLVM::AddOp::create(b, loc, bit, half);
    return bitsOf(LLVM::LShrOp::create(b, loc, bits, bit), 1);
  }

  /// In the order of the swizzle, in which neighbouring rows write to different banks.
  void emitZeros(Value row) {
    int64_t swizzle = type.getSwizzle();
    auto vector = VectorType::get({4}, b.getI32Type());
    Value zeros = arith::ConstantOp::create(b, loc, b.getZeroAttr(vector));
    Value rowByte = LLVM::MulOp::create(b, loc, row, c(swizzle));
    Value phase = bitsOf(shiftRight(rowByte, 3), (swizzle / 16 - 1) * 16);
    Value start = addBytes(b, loc, stage, rowByte);
    for (int64_t slab = 0; slab < type.getNumSlabs(); ++slab)
      for (int64_t byte = 0; byte < swizzle; byte += 16) {
        Value swizzled = LLVM::XOrOp::create(b, loc, phase, c(byte));
        Value address = addBytes(b, loc, start, swizzled);
        address = addBytes(b, loc, address, slab * type.getSlabBytes());
        LLVM::StoreOp::create(b, loc, zeros, address, /*alignment=*/16);
      }
  }

  OpBuilder &b;
  Location loc;
  SharedType type;
  Value stage, marks;
  int64_t warps;
};

struct ClearUnreadPattern : TilePattern<ClearUnreadOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(ClearUnreadOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getBy() && !isa<SharedType>(op.getBy().getType()))
      return op.emitOpError("expected marks of what is read, got ") << op.getBy().getType();
    if (op.getCondition())
      return op.emitOpError("expected no condition, which tile-make-rings makes a branch of");
    Location loc = op.getLoc();
    Value marks = op.getBy() ? adaptor.getBy().front() : Value(), from;
    if (op.getFrom())
      from = toI32(rewriter, loc, adaptor.getFrom().front());
    int64_t warpgroups = op->getParentOfType<SpecializeOp>() ? getRole(op).warpgroups
                                                             : context.getKernel(op).warpgroups;
    int64_t threads = context.getKernel(op).machine->warpgroupThreads * warpgroups,
            rows = cast<SharedType>(op.getValues().getType()).getNumRows();
    Clearing clearing(rewriter, op, adaptor.getValues().front(), marks, threads / kLanes);
    Value thread = context.getRoleThread(rewriter, op);
    emitShares(rewriter, loc, thread, threads, rows, [&](Value row) { clearing.emit(row, from); });
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::tile::populateClearUnreadPatterns(RewritePatternSet &patterns,
                                             const PatternContext &context) {
  patterns.add<MarkReadPattern, ClearUnreadPattern>(context, patterns.getContext());
}
