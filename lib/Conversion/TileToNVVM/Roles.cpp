//===- Roles.cpp - roles become branches on the warpgroup ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

/// Lowers or raises the budget from what the block was launched with: all registers shared out
/// evenly.
static void emitBudget(OpBuilder &builder, Location loc, int64_t atLaunch, int64_t registers) {
  if (registers != atLaunch)
    NVVM::SetMaxRegisterOp::create(builder, loc, registers,
                                   registers > atLaunch ? NVVM::SetMaxRegisterAction::increase
                                                        : NVVM::SetMaxRegisterAction::decrease);
}

/// i1: this is the elected thread of the role's first warp.
static Value emitIsElected(OpBuilder &builder, Location loc, const Kernel &kernel,
                           int64_t firstWarpgroup) {
  Type type = builder.getI32Type();
  Value warp = LLVM::LShrOp::create(builder, loc, kernel.thread, i32(builder, loc, 5));
  warp = NVVM::ShflOp::create(builder, loc, type, i32(builder, loc, -1), warp, i32(builder, loc, 0),
                              i32(builder, loc, 31), NVVM::ShflKind::idx, UnitAttr());
  Value isFirst = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::eq, warp,
                                       i32(builder, loc, 4 * firstWarpgroup));
  Value isElected =
      NVVM::ElectSyncOp::create(builder, loc, builder.getI1Type(), /*membermask=*/Value());
  return LLVM::AndOp::create(builder, loc, isFirst, isElected);
}

/// Moves the region's ops, without the terminator, to the insertion point.
static void moveBody(OpBuilder &builder, Region &region) {
  Block &body = region.front();
  body.getTerminator()->erase();
  builder.getInsertionBlock()->getOperations().splice(builder.getInsertionPoint(),
                                                      body.getOperations());
}

/// Where threads of a block meet again after its roles, those of a warp do first.
static void meetInWarp(OpBuilder &b, Location loc, SpecializeOp op) {
  if (isa<LLVM::ReturnOp>(op->getNextNode()))
    return;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op);
  NVVM::SyncWarpOp::create(b, loc, i32(b, loc, -1));
}

void attn::tile::lowerRoles(SpecializeOp op, const Kernel &kernel) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  int64_t total = 0, end = 0;
  for (int64_t warpgroups : op.getWarpgroups())
    total += warpgroups;
  for (unsigned role = 0; role < op.getRoles().size(); ++role) {
    int64_t first = end;
    end += op.getWarpgroups()[role];
    // The last role is the else branch of the one before.
    if (end < total) {
      Value isMine = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ult, kernel.warpgroup,
                                          i32(builder, loc, end));
      auto branch = scf::IfOp::create(builder, loc, isMine, /*withElseRegion=*/true);
      builder.setInsertionPointToStart(branch.thenBlock());
      emitBudget(builder, loc, kernel.launchRegisters, op.getRegisters()[role]);
      if (op.getElected()[role]) {
        auto elected =
            scf::IfOp::create(builder, loc, emitIsElected(builder, loc, kernel, first), false);
        builder.setInsertionPointToStart(elected.thenBlock());
      }
      moveBody(builder, op.getRoles()[role]);
      builder.setInsertionPointToStart(branch.elseBlock());
      continue;
    }
    emitBudget(builder, loc, kernel.launchRegisters, op.getRegisters()[role]);
    if (op.getElected()[role]) {
      auto elected =
          scf::IfOp::create(builder, loc, emitIsElected(builder, loc, kernel, first), false);
      builder.setInsertionPointToStart(elected.thenBlock());
    }
    moveBody(builder, op.getRoles()[role]);
  }
  meetInWarp(builder, loc, op);
  op.erase();
}

namespace {
struct WarpgroupPattern : TilePattern<WarpgroupOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(WarpgroupOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<arith::IndexCastOp>(op, rewriter.getIndexType(),
                                                    context.getRoleWarpgroup(rewriter, op));
    return success();
  }
};

/// gpu.block_id and gpu.grid_dim, by the special registers of x, y and z.
template <typename Op, typename X, typename Y, typename Z> struct GridPattern : TilePattern<Op> {
  using TilePattern<Op>::TilePattern;
  LogicalResult matchAndRewrite(Op op, TilePattern<Op>::OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type type = rewriter.getI32Type();
    Value number;
    switch (op.getDimension()) {
    case gpu::Dimension::x:
      number = X::create(rewriter, loc, type);
      break;
    case gpu::Dimension::y:
      number = Y::create(rewriter, loc, type);
      break;
    case gpu::Dimension::z:
      number = Z::create(rewriter, loc, type);
      break;
    }
    rewriter.replaceOpWithNewOp<arith::IndexCastOp>(op, rewriter.getIndexType(), number);
    return success();
  }
};

using BlockIdPattern =
    GridPattern<gpu::BlockIdOp, NVVM::BlockIdXOp, NVVM::BlockIdYOp, NVVM::BlockIdZOp>;
using GridDimPattern =
    GridPattern<gpu::GridDimOp, NVVM::GridDimXOp, NVVM::GridDimYOp, NVVM::GridDimZOp>;
} // namespace

void attn::tile::populateRolePatterns(RewritePatternSet &patterns, const PatternContext &context) {
  patterns.add<WarpgroupPattern, BlockIdPattern, GridDimPattern>(context, patterns.getContext());
}
