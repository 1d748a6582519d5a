//===- WidenIndices.cpp - attn-widen-indices ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A GPU computes positions in 32 bits, which what is captured and products with constants exceed:
// a window of 2^63 - 1 keys, which says that there is none, would be one of -1, and a mask by
// (i * 1000003 + j) % 100 another one than on a CPU. A walk over a region follows the ranges of its
// integers, as upstream's arith infers them. What may exceed 32 bits is computed in 64 until it
// fits again, but for a number of which sums with positions are compared and nothing else: what is
// beyond all positions is as good as what is just beyond them.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/MaskTiles/Bound.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_WIDENINDICESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// There are fewer batches and heads than positions.
static constexpr int64_t kMostHeads = int64_t(1) << 24;
/// Beyond all positions, with sums that fit. Scalars that are an index outside of the region are
/// taken to be smaller.
static constexpr int64_t kLimit = bound::narrowLimit;
static constexpr unsigned kIndexBits = 32, kWideBits = 64;

namespace {
class Widener {
public:
  explicit Widener(Region &region) : region(region), body(region.front()) {}

  void run() {
    sinkNumbers();
    for (Operation &op : body)
      inferRanges(op);
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (isNumber(op)) {
        rewriteNumber(op);
        continue;
      }
      inferRanges(op);
      if (isa_and_nonnull<arith::ArithDialect>(op.getDialect()) && mayExceed(op))
        widen(op);
    }
  }

private:
  /// A constant, or an index from a captured integer that may be large.
  static bool isNumber(Operation &op) {
    if (isa<arith::ConstantIndexOp>(op))
      return true;
    auto cast = dyn_cast<arith::IndexCastOp>(op);
    auto source = cast ? dyn_cast<IntegerType>(cast.getIn().getType()) : IntegerType();
    return source && source.getWidth() >= kIndexBits && source.getWidth() <= kWideBits;
  }

  /// Numbers from outside become the region's own.
  void sinkNumbers() {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(region, captured);
    OpBuilder builder = OpBuilder::atBlockBegin(&body);
    for (Value value : captured)
      if (Operation *op = value.getDefiningOp(); op && isNumber(*op))
        replaceAllUsesInRegionWith(value, builder.clone(*op)->getResult(0), region);
  }

  //===--------------------------------------------------------------------------------------===//
  // Ranges
  //===--------------------------------------------------------------------------------------===//

  static ConstantIntRanges makeRange(int64_t least, int64_t most) {
    auto number = [](int64_t x) { return APInt(kWideBits, uint64_t(x), /*isSigned=*/true); };
    return ConstantIntRanges::fromSigned(number(least), number(most));
  }

  ConstantIntRanges getRange(Value value) {
    auto known = ranges.find(value);
    if (known != ranges.end())
      return known->second;
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant)))
      return ConstantIntRanges::constant(constant);
    if (!value.getType().isIndex())
      return ConstantIntRanges::maxRange(ConstantIntRanges::getStorageBitwidth(value.getType()));
    // The last arguments are positions, those before them a batch and a head.
    if (llvm::is_contained(region.getArguments().drop_back(2), value))
      return makeRange(0, kMostHeads);
    if (llvm::is_contained(region.getArguments(), value) || value.getDefiningOp<tensor::DimOp>())
      return makeRange(0, bound::positionLimit);
    if (auto bounds = bound::findConstantBounds(value))
      return makeRange(bounds->first, bounds->second);
    return makeRange(-kLimit, kLimit);
  }

  void inferRanges(Operation &op) {
    auto inferable = dyn_cast<InferIntRangeInterface>(op);
    auto isInteger = [](Type type) { return type.isIntOrIndex(); };
    if (!inferable || !llvm::all_of(op.getOperandTypes(), isInteger) ||
        !llvm::all_of(op.getResultTypes(), isInteger))
      return;
    SmallVector<ConstantIntRanges> operands;
    for (Value operand : op.getOperands())
      operands.push_back(getRange(operand));
    inferable.inferResultRanges(operands, [&](Value result, const ConstantIntRanges &range) {
      ranges.insert_or_assign(result, range);
    });
  }

  bool fits(Value value) {
    ConstantIntRanges range = getRange(value);
    return range.smin().isSignedIntN(kIndexBits) && range.smax().isSignedIntN(kIndexBits);
  }

  /// The largest magnitude, at most kLimit + 1.
  int64_t getMost(Value value) {
    ConstantIntRanges range = getRange(value);
    auto clamp = [](const APInt &x) {
      return std::clamp<int64_t>(x.getSExtValue(), -kLimit - 1, kLimit + 1);
    };
    return std::max(-clamp(range.smin()), clamp(range.smax()));
  }

  //===--------------------------------------------------------------------------------------===//
  // Numbers
  //===--------------------------------------------------------------------------------------===//

  /// Whether only the order of a number, plus or minus at most `beside`, and smaller ones counts.
  bool isOnlyCompared(Value number, int64_t beside = 0) {
    return llvm::all_of(number.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      // An element's place is inside its tensor.
      if (isa<tensor::ExtractOp>(user))
        return true;
      if (!isa<arith::CmpIOp, arith::AddIOp, arith::SubIOp>(user))
        return false;
      int64_t all = beside + getMost(user->getOperand(1 - use.getOperandNumber()));
      if (all >= kLimit)
        return false;
      return isa<arith::CmpIOp>(user) || isOnlyCompared(user->getResult(0), all);
    });
  }

  void rewriteNumber(Operation &op) {
    Value number = op.getResult(0);
    if (isPlaceOrFits(op))
      return;
    if (isOnlyCompared(number))
      clamp(op);
    if (!fits(number))
      wide[number] = makeWide(op);
  }

  /// Whether it needs no change: it is a place, or 32 bits and compared as it is.
  static bool isPlaceOrFits(Operation &op) {
    bool isCast = isa<arith::IndexCastOp>(op);
    bool isShort = isCast && op.getOperand(0).getType().getIntOrFloatBitWidth() == kIndexBits;
    return llvm::all_of(op.getUsers(), [&](Operation *user) {
      return isa<tensor::ExtractOp>(user) || (isShort && isa<arith::CmpIOp>(user));
    });
  }

  void clamp(Operation &op) {
    if (auto constant = dyn_cast<arith::ConstantIndexOp>(op)) {
      int64_t bounded = std::clamp(constant.value(), -kLimit, kLimit);
      constant.setValueAttr(IntegerAttr::get(constant.getType(), bounded));
      return inferRanges(op);
    }
    OpBuilder builder(&op);
    Value number = op.getOperand(0);
    auto end = [&](int64_t c) -> Value {
      return arith::ConstantOp::create(builder, op.getLoc(),
                                       builder.getIntegerAttr(number.getType(), c));
    };
    number = arith::MaxSIOp::create(builder, op.getLoc(), number, end(-kLimit));
    inferRanges(*number.getDefiningOp());
    number = arith::MinSIOp::create(builder, op.getLoc(), number, end(kLimit));
    inferRanges(*number.getDefiningOp());
    op.setOperand(0, number);
    inferRanges(op);
  }

  static Value makeWide(Operation &op) {
    OpBuilder builder(op.getContext());
    builder.setInsertionPointAfter(&op);
    if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
      return arith::ConstantIntOp::create(builder, op.getLoc(), constant.value(), kWideBits);
    return op.getOperand(0);
  }

  //===--------------------------------------------------------------------------------------===//
  // Arithmetic
  //===--------------------------------------------------------------------------------------===//

  bool mayExceed(Operation &op) {
    auto isWide = [&](Value value) { return wide.contains(value); };
    auto exceeds = [&](Value value) { return value.getType().isIndex() && !fits(value); };
    return llvm::any_of(op.getOperands(), isWide) || llvm::any_of(op.getResults(), exceeds);
  }

  /// The index in 64 bits.
  Value getWide(OpBuilder &builder, Value index) {
    if (Value known = wide.lookup(index))
      return known;
    Type type = builder.getIntegerType(kWideBits);
    return builder.createOrFold<arith::IndexCastOp>(index.getLoc(), type, index);
  }

  void widen(Operation &op) {
    OpBuilder builder(&op);
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
      if (op.getOperand(0).getType().isIndex())
        castWide(builder, op);
      return;
    }
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(operand.getType().isIndex() ? getWide(builder, operand) : operand);
    Value old = op.getResult(0);
    bool isIndex = old.getType().isIndex();
    OperationState state(op.getLoc(), op.getName(), operands,
                         isIndex ? builder.getIntegerType(kWideBits) : old.getType(),
                         op.getAttrs());
    Value result = builder.create(state)->getResult(0);
    if (isIndex) {
      Value back = arith::IndexCastOp::create(builder, op.getLoc(), builder.getIndexType(), result);
      ranges.insert_or_assign(back, getRange(old));
      if (!fits(old))
        wide[back] = result;
      result = back;
    }
    old.replaceAllUsesWith(result);
    erase(op);
  }

  /// Nothing is known of a value that comes to stand where this one's memory was.
  void erase(Operation &op) {
    ranges.erase(op.getResult(0));
    wide.erase(op.getResult(0));
    op.erase();
  }

  /// From an index in 64 bits to an integer.
  void castWide(OpBuilder &builder, Operation &op) {
    Value value = getWide(builder, op.getOperand(0)), result = op.getResult(0);
    unsigned bits = result.getType().getIntOrFloatBitWidth();
    if (bits < kWideBits)
      value = arith::TruncIOp::create(builder, op.getLoc(), result.getType(), value);
    else if (bits > kWideBits)
      value = arith::ExtSIOp::create(builder, op.getLoc(), result.getType(), value);
    result.replaceAllUsesWith(value);
    erase(op);
  }

  Region &region;
  Block &body;
  DenseMap<Value, ConstantIntRanges> ranges;
  /// What may exceed an index, in 64 bits.
  DenseMap<Value, Value> wide;
};

struct WidenIndicesPass
    : RoomPass<attn::impl::WidenIndicesPassBase<WidenIndicesPass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    getOperation()->walk([](ScoredOpInterface op) {
      for (Region *region : {&op.getScore(), &op.getMask()})
        if (!region->empty())
          Widener(*region).run();
    });
    return success();
  }
};
} // namespace
