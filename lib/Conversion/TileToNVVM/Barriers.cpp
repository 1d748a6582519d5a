//===- Barriers.cpp - rings, barriers and fences ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

Value attn::tile::getBarrierAddress(OpBuilder &builder, Location loc, Value barrier,
                                    ValueRange slot) {
  if (slot.empty())
    return barrier;
  return addBytes(builder, loc, barrier,
                  LLVM::ShlOp::create(builder, loc, slot[0], i32(builder, loc, 3)).getResult());
}

namespace {
struct SlotPattern : TilePattern<SlotOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(SlotOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value zero = i32(rewriter, op.getLoc(), 0);
    rewriter.replaceOpWithMultiple(op, {SmallVector<Value>{zero, zero}});
    return success();
  }
};

struct NextPattern : TilePattern<NextOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(NextOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t stages = cast<SlotType>(op.getType()).getStages();
    Value stage = adaptor.getSlot()[0], phase = adaptor.getSlot()[1], one = i32(rewriter, loc, 1);
    Value next = LLVM::AddOp::create(rewriter, loc, stage, one);
    Value wraps = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq, next,
                                       i32(rewriter, loc, stages));
    Value flipped = LLVM::XOrOp::create(rewriter, loc, phase, one);
    Value zero = i32(rewriter, loc, 0);
    SmallVector<Value> results = {LLVM::SelectOp::create(rewriter, loc, wraps, zero, next),
                                  LLVM::SelectOp::create(rewriter, loc, wraps, flipped, phase)};
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }
};

/// The warpgroup's number within its role is the unit's.
struct UnitSlotPattern : TilePattern<UnitSlotOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(UnitSlotOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> slot = {context.getRoleWarpgroup(rewriter, op),
                               i32(rewriter, op.getLoc(), 0)};
    rewriter.replaceOpWithMultiple(op, {slot});
    return success();
  }
};

struct NextPhasePattern : TilePattern<NextPhaseOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(NextPhaseOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> slot = {
        adaptor.getSlot()[0],
        LLVM::XOrOp::create(rewriter, loc, adaptor.getSlot()[1], i32(rewriter, loc, 1))};
    rewriter.replaceOpWithMultiple(op, {slot});
    return success();
  }
};

struct StagePattern : TilePattern<StageOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(StageOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t bytes = cast<SharedType>(op.getType()).getStageBytes();
    Value offset =
        LLVM::MulOp::create(rewriter, loc, adaptor.getSlot()[0], i32(rewriter, loc, bytes));
    rewriter.replaceOp(op, addBytes(rewriter, loc, adaptor.getRing().front(), offset));
    return success();
  }
};

struct AllocSharedPattern : TilePattern<AllocSharedOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(AllocSharedOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value base = getSharedBase(rewriter, op.getLoc());
    rewriter.replaceOp(op, addBytes(rewriter, op.getLoc(), base, int64_t(*op.getOffset())));
    return success();
  }
};

/// One thread of the block initialises all barriers of the array.
struct BarrierInitPattern : TilePattern<BarrierInitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(BarrierInitOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value barrier = addBytes(rewriter, loc, getSharedBase(rewriter, loc), int64_t(*op.getOffset()));
    context.emitOnce(rewriter, op, [&](OpBuilder &builder) {
      Value arrivals = i32(builder, loc, op.getArrivals());
      for (int64_t stage = 0; stage < cast<BarrierType>(op.getType()).getStages(); ++stage)
        NVVM::MBarrierInitOp::create(builder, loc, addBytes(builder, loc, barrier, 8 * stage),
                                     arrivals,
                                     /*predicate=*/Value());
    });
    rewriter.replaceOp(op, barrier);
    return success();
  }
};

struct BarrierExpectPattern : TilePattern<BarrierExpectOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(BarrierExpectOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    context.emitOnce(rewriter, op, [&](OpBuilder &builder) {
      Value barrier =
          getBarrierAddress(builder, loc, adaptor.getBarrier().front(), adaptor.getSlot());
      NVVM::MBarrierArriveExpectTxOp::create(
          builder, loc, /*res=*/Type(), barrier, i32(builder, loc, op.getBytes()),
          NVVM::MemScopeKind::CTA, /*relaxed=*/false, /*predicate=*/Value());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// One arrival per unit, by its first thread. A product of warpgroups has brought its warps
/// together; the lanes of a warp have read what their products need, each for itself.
struct BarrierArrivePattern : TilePattern<BarrierArriveOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(BarrierArriveOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    OpBuilder::InsertionGuard guard(rewriter);
    if (!getRole(op).isElected && !op.getEach()) {
      if (context.getKernel(op).machine->product.form == attn::Product::Form::Registers)
        NVVM::SyncWarpOp::create(rewriter, loc, i32(rewriter, loc, -1));
      context.enterFirstOfUnit(rewriter, op);
    }
    Value barrier =
        getBarrierAddress(rewriter, loc, adaptor.getBarrier().front(), adaptor.getSlot());
    NVVM::MBarrierArriveOp::create(rewriter, loc, /*res=*/rewriter.getI64Type(), barrier,
                                   /*count=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Counted among the arrivals for which the barrier was initialised (noinc).
struct ArriveLandedPattern : TilePattern<ArriveLandedOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(ArriveLandedOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Value barrier =
        getBarrierAddress(rewriter, op.getLoc(), adaptor.getBarrier().front(), adaptor.getSlot());
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncMBarrierArriveOp>(op, barrier, /*noinc=*/true);
    return success();
  }
};

/// The hardware's wait may give up early: try until it reports the phase complete.
struct BarrierWaitPattern : TilePattern<BarrierWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(BarrierWaitOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value barrier =
        getBarrierAddress(rewriter, loc, adaptor.getBarrier().front(), adaptor.getSlot());
    Value parity = adaptor.getSlot().empty() ? i32(rewriter, loc, 0) : adaptor.getSlot()[1];
    if (op.getPrevious())
      parity = LLVM::XOrOp::create(rewriter, loc, parity, i32(rewriter, loc, 1));
    auto loop = scf::WhileOp::create(rewriter, loc, TypeRange(), ValueRange());
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.createBlock(&loop.getBefore());
    Value isComplete =
        NVVM::MBarrierTryWaitOp::create(rewriter, loc, rewriter.getI1Type(), barrier, parity,
                                        /*ticks=*/Value());
    Value isPending =
        LLVM::XOrOp::create(rewriter, loc, isComplete,
                            LLVM::ConstantOp::create(rewriter, loc, rewriter.getBoolAttr(true)));
    scf::ConditionOp::create(rewriter, loc, isPending, ValueRange());
    rewriter.createBlock(&loop.getAfter());
    scf::YieldOp::create(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

struct SyncPattern : TilePattern<SyncOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(SyncOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    // Barriers that copies count by have another proxy.
    if (context.getKernel(op).machine->copy.signal == attn::Copy::Signal::Bytes)
      NVVM::FenceMbarrierInitOp::create(rewriter, op.getLoc());
    rewriter.replaceOpWithNewOp<NVVM::Barrier0Op>(op);
    return success();
  }
};

struct NamedBarrierPattern : TilePattern<NamedBarrierOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(NamedBarrierOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value id = toI32(rewriter, loc, adaptor.getId().front()),
          threads = i32(rewriter, loc, op.getThreads());
    if (op.getArrive())
      emitAsm(rewriter, loc, "bar.arrive $0, $1;", "r,n", {id, threads}, {});
    else
      NVVM::BarrierOp::create(rewriter, loc, /*res=*/Type(), id, threads,
                              NVVM::BarrierReductionAttr(), Value());
    rewriter.eraseOp(op);
    return success();
  }
};

struct FencePattern : TilePattern<FenceOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(FenceOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::FenceProxyOp>(
        op, NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(rewriter.getContext(), NVVM::SharedSpace::shared_cta));
    return success();
  }
};
} // namespace

void attn::tile::populateBarrierPatterns(RewritePatternSet &patterns,
                                         const PatternContext &context) {
  patterns
      .add<SlotPattern, NextPattern, UnitSlotPattern, NextPhasePattern, StagePattern,
           AllocSharedPattern, BarrierInitPattern, BarrierExpectPattern, BarrierArrivePattern,
           ArriveLandedPattern, BarrierWaitPattern, SyncPattern, NamedBarrierPattern, FencePattern>(
          context, patterns.getContext());
}
