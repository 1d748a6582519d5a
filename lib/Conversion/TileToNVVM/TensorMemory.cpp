//===- TensorMemory.cpp - tensor memory and products into it, by tcgen05 ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// An address in tensor memory is a lane (bits 16 to 31) and a column. A warp accesses the 32 lanes
// that its number within its warpgroup says. Each access waits for its own end, so that a value is
// what the program says it is. A fence on either side orders it with accesses of other threads,
// which meet in between. Room 6 has no word for either.
//
// Inline assembly, as for wgmma: results of a load that is waited for by another instruction would
// be free to move in front of it.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Conversion/TileToNVVM/SharedOperand.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn::tile;

/// The most columns of one access, and the bit where an address has its lane.
static constexpr int64_t kMostColumns = 32, kLaneBit = 16;
static constexpr StringLiteral kBefore = "tcgen05.fence::before_thread_sync;\n\t",
                               kAfter = "tcgen05.fence::after_thread_sync;\n\t";

//===----------------------------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------------------------===//

/// Runs `body` in the first warp of the block.
static void emitInFirstWarp(OpBuilder &b, Location loc, const Kernel &kernel,
                            llvm::function_ref<void()> body) {
  Value isFirst =
      LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult, kernel.thread, i32(b, loc, kLanes));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(
      scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false).thenBlock());
  body();
}

static Value toInteger(OpBuilder &b, Location loc, Value pointer) {
  return LLVM::PtrToIntOp::create(b, loc, b.getI32Type(), pointer);
}

namespace {
struct AllocTensorPattern : TilePattern<AllocTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(AllocTensorOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value where = addBytes(b, loc, getSharedBase(b, loc), int64_t(*op.getOffset()));
    emitInFirstWarp(b, loc, context.getKernel(op), [&] {
      std::string text =
          llvm::formatv("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0], {0};\n\t"
                        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n\t{1}",
                        op.getType().getCount(), kBefore);
      emitAsm(b, loc, StringRef(text).rtrim(), "r", {toInteger(b, loc, where)}, {});
    });
    b.replaceOp(op, where);
    return success();
  }
};

struct DeallocTensorPattern : TilePattern<DeallocTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(DeallocTensorOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    emitInFirstWarp(b, loc, context.getKernel(op), [&] {
      Value first = LLVM::LoadOp::create(b, loc, b.getI32Type(), adaptor.getColumns().front());
      emitAsm(b, loc,
              llvm::formatv("{0}tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, {1};", kAfter,
                            op.getColumns().getType().getCount())
                  .str(),
              "r", {first}, {});
    });
    b.eraseOp(op);
    return success();
  }
};

struct TensorPlacePattern : TilePattern<TensorPlaceOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(TensorPlaceOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value first = LLVM::LoadOp::create(b, loc, b.getI32Type(), adaptor.getColumns().front());
    int64_t units = getUnits(op, op.getType()),
            share = op.getColumns().getType().getCount() / units;
    if (units > 1)
      first = LLVM::AddOp::create(
          b, loc, first,
          LLVM::MulOp::create(b, loc, context.getRoleWarpgroup(b, op), i32(b, loc, share)));
    b.replaceOpWithNewOp<LLVM::AddOp>(op, first, i32(b, loc, op.getFirst()));
    return success();
  }
};

//===----------------------------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------------------------===//

/// Consecutive columns of one access.
struct Piece {
  int64_t first, count;
};
} // namespace

static SmallVector<Piece> getPieces(int64_t columns) {
  SmallVector<Piece> pieces;
  for (int64_t first = 0; first < columns; first += pieces.back().count)
    pieces.push_back(
        {first, std::min<int64_t>(kMostColumns, llvm::bit_floor(uint64_t(columns - first)))});
  return pieces;
}

/// The first lane of the warp, in an address of the place.
static Value addLane(OpBuilder &b, Operation *op, const PatternContext &context, Value place) {
  Location loc = op->getLoc();
  Value warp = LLVM::LShrOp::create(b, loc, context.getRoleThread(b, op), i32(b, loc, 5));
  warp = LLVM::AndOp::create(b, loc, warp, i32(b, loc, 3));
  Value lane = LLVM::ShlOp::create(b, loc, warp, i32(b, loc, kLaneBit + 5));
  return LLVM::AddOp::create(b, loc, place, lane);
}

static Value addColumns(OpBuilder &b, Location loc, Value address, int64_t columns) {
  return columns ? LLVM::AddOp::create(b, loc, address, i32(b, loc, columns)).getResult() : address;
}

/// "{$4, $5}" from `next` on.
static std::string list(unsigned &next, int64_t count) {
  std::string text = "{";
  for (int64_t index = 0; index < count; ++index)
    text += (index ? ", $" : "$") + std::to_string(next++);
  return text + "}";
}

static std::string repeat(StringRef constraint, int64_t count) {
  std::string text;
  for (int64_t index = 0; index < count; ++index)
    text += constraint.str() + ",";
  return text;
}

/// Columns of 32 bits from `address` on, as so many values of the type.
static SmallVector<Value> emitLoad(OpBuilder &b, Location loc, Value address, int64_t columns,
                                   Type type) {
  std::string text = kAfter.str();
  SmallVector<Value> addresses;
  unsigned next = 0;
  for (Piece piece : getPieces(columns)) {
    text += llvm::formatv("tcgen05.ld.sync.aligned.32x32b.x{0}.b32 {1}, [${2}];\n\t", piece.count,
                          list(next, piece.count), columns + addresses.size());
    addresses.push_back(addColumns(b, loc, address, piece.first));
  }
  text += "tcgen05.wait::ld.sync.aligned;\n\t" + kBefore.str();
  std::string constraints =
      repeat(type.isF32() ? "=f" : "=r", columns) + repeat("r", addresses.size());
  constraints.pop_back();
  return emitAsm(b, loc, StringRef(text).rtrim(), constraints, addresses,
                 SmallVector<Type>(columns, type));
}

static void emitStore(OpBuilder &b, Location loc, Value address, ValueRange words) {
  std::string text = kAfter.str(), constraints;
  SmallVector<Value> operands;
  unsigned next = 0;
  for (Piece piece : getPieces(words.size())) {
    operands.push_back(addColumns(b, loc, address, piece.first));
    llvm::append_range(operands, words.slice(piece.first, piece.count));
    unsigned where = next++;
    text += llvm::formatv("tcgen05.st.sync.aligned.32x32b.x{0}.b32 [${1}], {2};\n\t", piece.count,
                          where, list(next, piece.count));
    constraints += "r," + repeat(words.front().getType().isF32() ? "f" : "r", piece.count);
  }
  text += "tcgen05.wait::st.sync.aligned;\n\t" + kBefore.str();
  constraints.pop_back();
  emitAsm(b, loc, StringRef(text).rtrim(), constraints, operands, {});
}

namespace {
struct LoadTensorPattern : TilePattern<LoadTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(LoadTensorOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!type.getElementType().isF32())
      return op.emitOpError("expected a tile of f32 to read, got ") << type;
    Value address = addLane(b, op, context, adaptor.getSource().front());
    b.replaceOpWithMultiple(
        op, {emitLoad(b, op.getLoc(), address, type.getDimSize(1), b.getF32Type())});
    return success();
  }
};

struct StoreTensorPattern : TilePattern<StoreTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(StoreTensorOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    SmallVector<Value> words;
    for (Value value : adaptor.getValue())
      words.push_back(isa<VectorType>(value.getType())
                          ? LLVM::BitcastOp::create(b, loc, b.getI32Type(), value).getResult()
                          : value);
    emitStore(b, loc, addLane(b, op, context, adaptor.getDest().front()), words);
    b.eraseOp(op);
    return success();
  }
};

struct ScaleTensorPattern : TilePattern<ScaleTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(ScaleTensorOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Value address = addLane(b, op, context, adaptor.getPlace().front());
    for (Piece piece : getPieces(op.getPlace().getType().getNumColumns())) {
      Value at = addColumns(b, loc, address, piece.first);
      SmallVector<Value> values = emitLoad(b, loc, at, piece.count, b.getF32Type());
      for (Value &value : values)
        value = LLVM::FMulOp::create(b, loc, value, adaptor.getFactors().front());
      emitStore(b, loc, at, values);
    }
    b.eraseOp(op);
    return success();
  }
};
} // namespace

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

namespace {
/// A product cut into instructions, of 32 bytes of K each.
class TensorProduct {
public:
  TensorProduct(OpBuilder &b, MmaTensorOp op, const PatternContext &context)
      : b(b), loc(op.getLoc()), op(op), context(context),
        unit(context.getKernel(op).machine->product) {}

  void emit(Value lhs, Value rhs, Value sum, Value barrier) {
    SharedOperand right = {op.getRhs().getType(), op.getTransposeRhs(),
                           SharedOperand::Form::Tensor};
    auto shared = dyn_cast<SharedType>(op.getLhs().getType());
    SharedOperand left = {shared, !op.getTransposeLhs(), SharedOperand::Form::Tensor};
    Value a = shared ? left.emitDescriptor(b, loc, addRows(left, lhs)) : lhs;
    Value bDescriptor = right.emitDescriptor(b, loc, rhs);
    std::string text = "{ .reg .pred p, q;\n\tsetp.eq.b32 q, 0, 0;\n\t";
    text += op.getAdd() ? "setp.eq.b32 p, 0, 0;\n\t" : "setp.ne.b32 p, 0, 0;\n\t";
    text += kAfter;
    std::string constraints = "r,r";
    SmallVector<Value> operands = {sum, toInteger(b, loc, barrier)};
    int64_t steps = countSteps();
    for (int64_t k = 0; k < steps; ++k) {
      unsigned next = operands.size();
      text += llvm::formatv("tcgen05.mma.cta_group::1.kind::f16 [$0], {0}, ${1}, {2}, {3};\n\t",
                            llvm::formatv(shared ? "${0}" : "[${0}]", next), next + 1,
                            getInstruction(), k ? "q" : "p");
      // A column of tensor memory has two elements.
      operands.push_back(shared ? advanceDescriptor(b, loc, a, left.getOffset(0, k))
                                : addColumns(b, loc, a, k * unit.sumBytes / 4));
      operands.push_back(advanceDescriptor(b, loc, bDescriptor, right.getOffset(0, k)));
      constraints += shared ? ",l,l" : ",r,l";
    }
    text += "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$1]; }";
    emitAsm(b, loc, text, constraints, operands, {});
  }

private:
  int64_t countSteps() {
    SharedType rhs = op.getRhs().getType();
    int64_t k = op.getTransposeRhs() ? rhs.getNumColumns() : rhs.getNumRows();
    return k * rhs.getElementBytes() / unit.sumBytes;
  }

  /// The lhs from the unit's first row on.
  Value addRows(const SharedOperand &lhs, Value pointer) {
    if (getUnits(op, op.getSum().getType()) == 1)
      return pointer;
    Value offset = LLVM::MulOp::create(b, loc, context.getRoleWarpgroup(b, op),
                                       i32(b, loc, lhs.getOffset(unit.rows, 0)));
    return addBytes(b, loc, pointer, offset);
  }

  /// The descriptor of the instruction, for kind::f16.
  uint32_t getInstruction() {
    Type element = op.getRhs().getType().getElementType();
    uint32_t sumF32 = 1 << 4, type = element.isBF16() ? 1 : 0;
    // Set where M or N, and not K, lies along the rows in memory.
    uint32_t leftIsTurned = op.getTransposeLhs(), rightIsTurned = !op.getTransposeRhs();
    return sumF32 | type << 7 | type << 10 | leftIsTurned << 15 | rightIsTurned << 16 |
           uint32_t(op.getSum().getType().getWords() >> 3) << 17 | uint32_t(unit.rows >> 4) << 24;
  }

  OpBuilder &b;
  Location loc;
  MmaTensorOp op;
  const PatternContext &context;
  const attn::Product &unit;
};

struct MmaTensorPattern : TilePattern<MmaTensorOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(MmaTensorOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &b) const override {
    Location loc = op.getLoc();
    Type element = op.getRhs().getType().getElementType();
    if (!element.isBF16() && !element.isF16())
      return op.emitOpError("expected elements of type bf16 or f16, got ") << element;
    {
      OpBuilder::InsertionGuard guard(b);
      context.enterFirstOfUnit(b, op);
      Value barrier = getBarrierAddress(b, loc, adaptor.getBarrier().front(), adaptor.getSlot());
      TensorProduct(b, op, context)
          .emit(adaptor.getLhs().front(), adaptor.getRhs().front(), adaptor.getSum().front(),
                barrier);
    }
    b.eraseOp(op);
    return success();
  }
};
} // namespace

void attn::tile::populateTensorMemoryPatterns(RewritePatternSet &patterns,
                                              const PatternContext &context) {
  patterns.add<AllocTensorPattern, DeallocTensorPattern, TensorPlacePattern, LoadTensorPattern,
               StoreTensorPattern, ScaleTensorPattern, MmaTensorPattern>(context,
                                                                         patterns.getContext());
}
