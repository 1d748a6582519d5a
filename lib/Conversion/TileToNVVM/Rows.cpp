//===- Rows.cpp - coordinates, numbers of rows and columns, reductions of rows ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

namespace {
/// origin + what the thread decides, once; + what the register decides, an immediate.
struct CoordPattern : TilePattern<CoordOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(CoordOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!hasLayout(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    Location loc = op.getLoc();
    Layout layout = getLayout(cast<RankedTensorType>(op.getType()));
    ThreadPosition thread = context.getThreadPosition(rewriter, op, layout);
    Value base = arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(),
                                            op.getDim() == 0 ? thread.row : thread.column);
    base = arith::AddIOp::create(rewriter, loc, adaptor.getOrigin().front(), base);
    DenseMap<int64_t, Value> byOffset;
    SmallVector<Value> results;
    for (int64_t reg = 0; reg < layout.getNumRegisters(); ++reg) {
      Position position = layout.getPosition({0, 0, reg});
      int64_t offset = op.getDim() == 0 ? position.row : position.column;
      Value &value = byOffset[offset];
      if (!value) {
        Value immediate = arith::ConstantIndexOp::create(rewriter, loc, offset);
        value =
            arith::AddIOp::create(rewriter, loc, base, immediate, arith::IntegerOverflowFlags::nsw);
      }
      results.push_back(value);
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

struct BroadcastPattern : TilePattern<BroadcastOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(BroadcastOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!hasLayout(op.getType()))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    auto type = cast<RankedTensorType>(op.getType());
    Layout to = getLayout(type);
    if (to.getNumRegisters() % getPack(type.getElementType()) != 0)
      return rewriter.notifyMatchFailure(op, "expected whole registers");
    SmallVector<Value> elements = unpack(rewriter, op.getLoc(), adaptor.getSource());
    Type element = type.getElementType();
    if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 8) {
      element = rewriter.getI8Type();
      if (elements.front().getType() != element)
        elements.front() =
            rewriter.createOrFold<arith::BitcastOp>(op.getLoc(), element, elements.front());
    }
    SmallVector<Value> results(to.getNumRegisters(), elements.front());
    if (auto source = dyn_cast<RankedTensorType>(op.getSource().getType())) {
      Layout from = getLayout(source);
      for (auto [reg, result] : llvm::enumerate(results))
        result = elements[from.getOwner({to.getPosition({0, 0, int64_t(reg)}).row, 0}).reg];
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, op.getLoc(), element, results)});
    return success();
  }
};

/// From a row in shared memory: one access for each pair of neighbours that a thread holds.
struct LoadColumnsPattern : TilePattern<LoadColumnsOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(LoadColumnsOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!hasLayout(type) || !isa<SharedType>(op.getSource().getType()))
      return failure();
    Location loc = op.getLoc();
    Layout layout = getLayout(type);
    constexpr int64_t perAccess = 2, bytes = 4;
    ThreadPosition thread = context.getThreadPosition(rewriter, op, layout);
    Value start = addBytes(
        rewriter, loc, adaptor.getSource().front(),
        LLVM::MulOp::create(rewriter, loc, thread.column, i32(rewriter, loc, bytes)).getResult());
    auto pair = VectorType::get({perAccess}, type.getElementType());
    SmallVector<Value> elements;
    // Rows of a thread have the same columns.
    DenseMap<int64_t, Value> known;
    for (int64_t reg = 0; reg < layout.getNumRegisters(); reg += perAccess) {
      int64_t column = layout.getPosition({0, 0, reg}).column;
      Value &loaded = known[column];
      if (!loaded)
        loaded = LLVM::LoadOp::create(
            rewriter, loc, pair, addBytes(rewriter, loc, start, column * bytes), perAccess * bytes);
      for (int64_t i = 0; i < perAccess; ++i)
        elements.push_back(
            LLVM::ExtractElementOp::create(rewriter, loc, loaded, i32(rewriter, loc, i)));
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type.getElementType(), elements)});
    return success();
  }
};

/// Registers of a row first, then, unless the result keeps them apart, the lanes that share the
/// row.
struct ReducePattern : TilePattern<ReduceOp> {
  using TilePattern::TilePattern;

  Value combine(OpBuilder &builder, ReduceOp op, Value a, Value b) const {
    Location loc = op.getLoc();
    if (isa<FloatType>(a.getType()))
      return op.getCombiner() == Combiner::Max
                 ? arith::MaxNumFOp::create(builder, loc, a, b).getResult()
                 : arith::AddFOp::create(builder, loc, a, b).getResult();
    return op.getCombiner() == Combiner::Max
               ? arith::MaxSIOp::create(builder, loc, a, b).getResult()
               : arith::AddIOp::create(builder, loc, a, b).getResult();
  }

  Value exchange(OpBuilder &builder, ReduceOp op, Value value, int64_t distance) const {
    Location loc = op.getLoc();
    Value other = NVVM::ShflOp::create(builder, loc, value.getType(), i32(builder, loc, -1), value,
                                       i32(builder, loc, distance), i32(builder, loc, 31),
                                       NVVM::ShflKind::bfly, UnitAttr());
    return combine(builder, op, value, other);
  }

  LogicalResult matchAndRewrite(ReduceOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto source = cast<RankedTensorType>(op.getSource().getType()),
         type = cast<RankedTensorType>(op.getType());
    if (!hasLayout(source) || !hasLayout(type))
      return rewriter.notifyMatchFailure(op, "expected layouts");
    if (!type.getElementType().isF32() && !type.getElementType().isInteger(32))
      return op.emitOpError("expected elements of type f32 or i32, got ") << source;
    Layout from = getLayout(source), to = getLayout(type);
    SmallVector<Value> results(to.getNumRegisters()), init(adaptor.getInit());
    // Where parts are kept apart the chain starts with the initial value, which is there early.
    bool isPartial = type.getRank() == 2;
    if (isPartial && !init.empty())
      results = std::exchange(init, {});
    for (auto [reg, element] : llvm::enumerate(adaptor.getSource())) {
      Position position = from.getPosition({0, 0, int64_t(reg)});
      position.column = isPartial ? position.column / 2 % attn::kQuad : 0;
      Value &result = results[to.getOwner(position).reg];
      result = result ? combine(rewriter, op, result, element) : element;
    }
    if (!isPartial)
      for (const Digit &digit : from.getDigits())
        if (digit.source == Digit::Source::Lane && digit.columnStride)
          for (int64_t distance = digit.extent / 2; distance >= 1; distance /= 2)
            for (Value &result : results)
              result = exchange(rewriter, op, result, distance * digit.divisor);
    for (auto [result, first] : llvm::zip(results, init))
      result = combine(rewriter, op, first, result);
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// The thread's own elements first, then all threads at the barrier of the block.
struct VotePattern : TilePattern<VoteOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(VoteOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    if (!hasLayout(op.getSource().getType()))
      return rewriter.notifyMatchFailure(op, "expected a layout");
    Location loc = op.getLoc();
    bool isAny = op.getQuantifier() == Quantifier::Any;
    Value own;
    for (Value element : unpack(rewriter, loc, adaptor.getSource()))
      own = !own    ? element
            : isAny ? LLVM::OrOp::create(rewriter, loc, own, element).getResult()
                    : LLVM::AndOp::create(rewriter, loc, own, element).getResult();
    auto kind = NVVM::BarrierReductionAttr::get(getContext(), isAny ? NVVM::BarrierReduction::OR
                                                                    : NVVM::BarrierReduction::AND);
    Type i32Type = rewriter.getI32Type();
    Value vote = LLVM::ZExtOp::create(rewriter, loc, i32Type, own);
    Value all = NVVM::BarrierOp::create(rewriter, loc, i32Type, /*barrierId=*/Value(),
                                        /*numberOfThreads=*/Value(), kind, vote)
                    .getRes();
    rewriter.replaceOpWithNewOp<LLVM::ICmpOp>(op, LLVM::ICmpPredicate::ne, all,
                                              i32(rewriter, loc, 0));
    return success();
  }
};

struct AnyRowPattern : TilePattern<AnyRowOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(AnyRowOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value own;
    for (Value element : unpack(rewriter, loc, adaptor.getSource()))
      own = own ? LLVM::OrOp::create(rewriter, loc, own, element).getResult() : element;
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, rewriter.getI1Type(), i32(rewriter, loc, -1),
                                                  own, NVVM::VoteSyncKind::any);
    return success();
  }
};
} // namespace

void attn::tile::populateRowPatterns(RewritePatternSet &patterns, const PatternContext &context) {
  patterns.add<AnyRowPattern, CoordPattern, BroadcastPattern, LoadColumnsPattern, ReducePattern,
               VotePattern>(context, patterns.getContext());
}
