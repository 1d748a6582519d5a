//===- WarpProducts.cpp - tile.mma where warps multiply, by mma.sync --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A warp has whole fragments of 16 rows, one below the other. A product of 16 x 8 numbers sums over
// 32 bytes of K. Its operands are registers: what lies in shared memory is read by ldmatrix, of
// which each lane has the address of a row of an 8 x 8 matrix. A transposed read gives the operands
// whose K lies across rows. Swizzles keep the rows of a matrix in different banks either way.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"

using namespace mlir;
using namespace attn::tile;

/// Rows of a fragment, columns of a product, and the elements of 16 bits that it sums over.
static constexpr int64_t kRows = 16, kColumns = 8, kDepth = 16;
/// Bytes of a row of an 8 x 8 matrix.
static constexpr int64_t kMatrixBytes = 16;

namespace {
/// A shared tile as a lane of ldmatrix reads it: from a row and a byte of its own.
class LaneView {
public:
  LaneView(OpBuilder &b, Location loc, SharedType type, Value pointer, Value row, Value byte)
      : b(b), loc(loc), type(type) {
    int64_t swizzle = type.getSwizzle();
    Value rowByte = LLVM::MulOp::create(b, loc, row, c(swizzle));
    Value phase = LLVM::LShrOp::create(b, loc, rowByte, c(7));
    phase = LLVM::AndOp::create(b, loc, phase, c(swizzle / kMatrixBytes - 1));
    phase = LLVM::ShlOp::create(b, loc, phase, c(4));
    Value slab = LLVM::UDivOp::create(b, loc, byte, c(swizzle));
    chunk = LLVM::XOrOp::create(b, loc, phase, LLVM::URemOp::create(b, loc, byte, c(swizzle)));
    // Out of loops, each of the addresses would take a register.
    chunk = emitTiedAsm(b, loc, "", {chunk}).front();
    Value offset = LLVM::MulOp::create(b, loc, slab, c(type.getSlabBytes()));
    start = addBytes(b, loc, pointer, LLVM::AddOp::create(b, loc, offset, rowByte).getResult());
  }

  /// The address of `rows` rows, in whole eights, and `bytes` bytes further, which no bit of the
  /// lane's byte has.
  Value at(int64_t rows, int64_t bytes) const {
    int64_t swizzle = type.getSwizzle();
    Value inSlab = LLVM::XOrOp::create(b, loc, chunk, c(bytes % swizzle));
    Value address = addBytes(b, loc, start, inSlab);
    return addBytes(b, loc, address, bytes / swizzle * type.getSlabBytes() + rows * swizzle);
  }

private:
  Value c(int64_t value) const { return i32(b, loc, value); }

  OpBuilder &b;
  Location loc;
  SharedType type;
  Value start, chunk;
};

/// A product cut into instructions.
class WarpProduct {
public:
  WarpProduct(OpBuilder &b, MmaOp op, const PatternContext &context)
      : b(b), loc(op.getLoc()), op(op), context(context),
        result(cast<RankedTensorType>(op.getType())), layout(cast<AccAttr>(result.getEncoding())),
        element(cast<SharedType>(op.getRhs().getType()).getElementType()) {
    auto rhs = cast<SharedType>(op.getRhs().getType());
    int64_t k = op.getTransposeRhs() ? rhs.getNumColumns() : rhs.getNumRows();
    kSteps = k / kDepth;
    rowSteps = result.getDimSize(0) / (kRows * layout.getUnits());
    groups = result.getDimSize(1) / kColumns;
    Value lane = context.getLane(b, op);
    low = LLVM::AndOp::create(b, loc, lane, c(7));
    second = bit(lane, 3);
    third = bit(lane, 4);
  }

  LogicalResult verify() {
    if (!element.isBF16() && !element.isF16())
      return op.emitOpError("expected elements of type bf16 or f16, got ") << element;
    return success();
  }

  SmallVector<Value> emit(ValueRange left, Value right, ValueRange accumulators, ValueRange kept) {
    SmallVector<Value> sums(accumulators);
    if (sums.empty())
      sums.assign(rowSteps * groups * 4,
                  LLVM::ConstantOp::create(b, loc, b.getF32FloatAttr(0)).getResult());
    bool inRegisters = isa<RankedTensorType>(op.getLhs().getType());
    words = toWords(inRegisters ? left : kept);
    int64_t keptSteps = inRegisters ? kSteps
                        : op.getKept()
                            ? cast<RankedTensorType>(op.getKept().getType()).getDimSize(1) / kDepth
                            : 0;
    std::optional<LaneView> lhs;
    if (keptSteps < kSteps)
      lhs.emplace(viewLhs(left.front()));
    LaneView rhs = viewRhs(right);
    for (int64_t k = 0; k < kSteps; ++k) {
      SmallVector<SmallVector<Value>> a;
      for (int64_t row = 0; row < rowSteps; ++row)
        a.push_back(k < keptSteps ? getWords((row * keptSteps + k) * 4, 4) : readLhs(*lhs, row, k));
      for (int64_t group = 0; group < groups; group += 2) {
        int64_t count = std::min<int64_t>(2, groups - group);
        SmallVector<Value> columns = readRhs(rhs, group, k, count);
        for (int64_t row = 0; row < rowSteps; ++row)
          for (int64_t i = 0; i < count; ++i)
            multiply(a[row], ArrayRef(columns).slice(2 * i, 2),
                     MutableArrayRef(sums).slice((row * groups + group + i) * 4, 4));
      }
    }
    return sums;
  }

private:
  Value c(int64_t value) { return i32(b, loc, value); }
  Value bit(Value value, int64_t index) {
    return LLVM::AndOp::create(b, loc, LLVM::LShrOp::create(b, loc, value, c(index)), c(1));
  }
  Value times(Value value, int64_t factor) { return LLVM::MulOp::create(b, loc, value, c(factor)); }
  Value plus(Value left, Value right) { return LLVM::AddOp::create(b, loc, left, right); }

  SmallVector<Value> toWords(ValueRange values) {
    SmallVector<Value> result;
    for (Value value : values)
      result.push_back(LLVM::BitcastOp::create(b, loc, b.getI32Type(), value));
    return result;
  }
  SmallVector<Value> getWords(int64_t first, int64_t count) {
    return SmallVector<Value>(ArrayRef(words).slice(first, count));
  }

  /// Of four matrices, lanes 8 to 15 and 24 to 31 have rows of the second and the fourth, lanes
  /// from 16 on those of the third and the fourth. Of the lhs, the second is 8 rows below the
  /// first, and the third has the next 8 columns. Of the rhs, the second is further along K.
  LaneView viewLhs(Value pointer) {
    Value warp = LLVM::LShrOp::create(b, loc, context.getRoleThread(b, op), c(5));
    Value first = times(warp, kRows * rowSteps);
    auto type = cast<SharedType>(op.getLhs().getType());
    if (!op.getTransposeLhs())
      return LaneView(b, loc, type, pointer, plus(first, plus(low, times(second, 8))),
                      times(third, kMatrixBytes));
    return LaneView(b, loc, type, pointer, plus(low, times(third, 8)),
                    plus(times(first, 2), times(second, kMatrixBytes)));
  }

  LaneView viewRhs(Value pointer) {
    auto type = cast<SharedType>(op.getRhs().getType());
    if (op.getTransposeRhs())
      return LaneView(b, loc, type, pointer, plus(low, times(third, 8)),
                      times(second, kMatrixBytes));
    return LaneView(b, loc, type, pointer, plus(low, times(second, 8)), times(third, kMatrixBytes));
  }

  SmallVector<Value> readLhs(const LaneView &view, int64_t row, int64_t k) {
    bool isTransposed = op.getTransposeLhs();
    Value address =
        isTransposed ? view.at(k * kDepth, row * kRows * 2) : view.at(row * kRows, k * kDepth * 2);
    return read(address, isTransposed, 4);
  }

  /// Of one or two groups of 8 columns.
  SmallVector<Value> readRhs(const LaneView &view, int64_t group, int64_t k, int64_t count) {
    bool isKMajor = op.getTransposeRhs();
    int64_t first = group * kColumns;
    Value address = isKMajor ? view.at(first, k * kDepth * 2) : view.at(k * kDepth, first * 2);
    return read(address, !isKMajor, 2 * count);
  }

  SmallVector<Value> read(Value address, bool isTransposed, int64_t count) {
    Type word = b.getI32Type();
    auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count, word));
    std::string name = "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + std::to_string(count) +
                       (isTransposed ? ".trans" : "") + ".b16.p3";
    Value matrices =
        LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), ValueRange{address})
            .getResult(0);
    SmallVector<Value> parts;
    for (int64_t i = 0; i < count; ++i)
      parts.push_back(LLVM::ExtractValueOp::create(b, loc, matrices, i));
    return parts;
  }

  void multiply(ArrayRef<Value> left, ArrayRef<Value> right, MutableArrayRef<Value> sums) {
    SmallVector<Value> operands(left);
    llvm::append_range(operands, right);
    bool isHalf = element.isF16();
    if (isHalf)
      for (Value &operand : operands)
        operand = LLVM::BitcastOp::create(b, loc, VectorType::get({2}, element), operand);
    llvm::append_range(operands, sums);
    auto type =
        LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(4, b.getF32Type()));
    StringRef name =
        isHalf ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32" : "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    Value product =
        LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(name), operands).getResult(0);
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = LLVM::ExtractValueOp::create(b, loc, product, int64_t(i));
  }

  OpBuilder &b;
  Location loc;
  MmaOp op;
  const PatternContext &context;
  RankedTensorType result;
  AccAttr layout;
  Type element;
  int64_t kSteps, rowSteps, groups;
  /// Of the lane's number: its last three bits, and the two before.
  Value low, second, third;
  /// Of a lhs in registers, or of the first columns of it.
  SmallVector<Value> words;
};

struct WarpMmaPattern : TilePattern<MmaOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (context.getKernel(op).machine->product.isAsync)
      return rewriter.notifyMatchFailure(op, "warpgroups multiply");
    if (!hasLayout(op.getType()) || !isa<SharedType>(op.getRhs().getType()))
      return op.emitOpError("expected a layout and rhs in shared memory, got ")
             << op.getRhs().getType();
    const attn::Product &unit =
        cast<AccAttr>(cast<RankedTensorType>(op.getType()).getEncoding()).getUnit();
    if (unit.form != attn::Product::Form::Registers || unit.threads != kLanes || unit.rows != kRows)
      return op.emitOpError("expected products of ")
             << kRows << " rows by " << kLanes << " threads, got " << unit.name << " of "
             << unit.rows << " rows by " << unit.threads;
    WarpProduct product(rewriter, op, context);
    if (failed(product.verify()))
      return failure();
    rewriter.replaceOpWithMultiple(op, {product.emit(adaptor.getLhs(), adaptor.getRhs().front(),
                                                     adaptor.getAcc(), adaptor.getKept())});
    return success();
  }
};
} // namespace

void attn::tile::populateWarpProductPatterns(RewritePatternSet &patterns,
                                             const PatternContext &context) {
  patterns.add<WarpMmaPattern>(context, patterns.getContext());
}
