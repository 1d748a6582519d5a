//===- AssignLayouts.cpp - tile-assign-layouts -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Attention has one kind of tile: rows of the block by some columns. So the anchor's layout
/// spreads to everything.
static RankedTensorType getLaidOut(RankedTensorType type, AccAttr acc) {
  Attribute layout = type.getRank() == 1 ? Attribute(RowAttr::get(type.getContext(), acc)) : acc;
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

static LogicalResult assignLayouts(func::FuncOp kernel) {
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  auto acc = AccAttr::get(kernel.getContext(), attribute.getWarpgroups());
  auto layOut = [&](Value value) {
    if (auto type = dyn_cast<RankedTensorType>(value.getType()); type && !type.getEncoding())
      value.setType(getLaidOut(type, acc));
  };
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      layOut(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          layOut(argument);
    auto mma = dyn_cast<MmaOp>(op);
    if (!mma)
      return WalkResult::advance();
    auto result = cast<RankedTensorType>(mma.getType());
    if (result.getDimSize(0) != 64 * attribute.getWarpgroups()) {
      mma.emitOpError("expected ")
          << 64 * attribute.getWarpgroups() << " rows for " << attribute.getWarpgroups()
          << " warpgroups, got " << result.getDimSize(0);
      return WalkResult::interrupt();
    }
    if (auto lhs = dyn_cast<RankedTensorType>(mma.getLhs().getType())) {
      OpBuilder builder(mma);
      auto type =
          RankedTensorType::get(lhs.getShape(), lhs.getElementType(),
                                OperandAAttr::get(kernel.getContext(), attribute.getWarpgroups()));
      mma.getLhsMutable().assign(
          ConvertLayoutOp::create(builder, mma.getLoc(), type, mma.getLhs()));
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct AssignLayoutsPass : attn::tile::impl::AssignLayoutsPassBase<AssignLayoutsPass> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel->hasAttr(TileDialect::kKernelAttrName) && failed(assignLayouts(kernel)))
        return signalPassFailure();
  }
};
} // namespace
