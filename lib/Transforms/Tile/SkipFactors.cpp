//===- SkipFactors.cpp - tile-skip-factors ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {
#define GEN_PASS_DEF_SKIPFACTORSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The rows in which `select` scales a tile, or null if it does something else: the product of the
/// tile and factors where the rows are true, and the tile itself elsewhere.
static Value findScaledRows(arith::SelectOp select) {
  auto type = dyn_cast<RankedTensorType>(select.getType());
  auto rows = select.getCondition().getDefiningOp<BroadcastOp>();
  auto scaled = select.getTrueValue().getDefiningOp<arith::MulFOp>();
  bool isScaled = type && type.getRank() == 2 && isa_and_nonnull<AccAttr>(type.getEncoding()) &&
                  rows && isa<RankedTensorType>(rows.getSource().getType()) && scaled &&
                  scaled->hasOneUse() &&
                  llvm::is_contained(scaled->getOperands(), select.getFalseValue());
  return isScaled ? rows.getSource() : Value();
}

static void skip(arith::SelectOp select, Value rows) {
  OpBuilder b(select);
  Location loc = select.getLoc();
  Operation *scaled = select.getTrueValue().getDefiningOp();
  Value some = AnyRowOp::create(b, loc, rows);
  auto branch = scf::IfOp::create(b, loc, select.getType(), some, /*withElseRegion=*/true);
  select.getResult().replaceAllUsesWith(branch.getResult(0));
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, select.getFalseValue());
  b.setInsertionPointToStart(branch.thenBlock());
  auto yield = scf::YieldOp::create(b, loc, select.getResult());
  scaled->moveBefore(yield);
  select->moveBefore(yield);
}

namespace {
struct SkipFactorsPass
    : KernelPass<attn::tile::impl::SkipFactorsPassBase<SkipFactorsPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (attn::plan::getMachine(kernel).product.isAsync)
      return success();
    SmallVector<std::pair<arith::SelectOp, Value>> found;
    kernel.walk([&](arith::SelectOp select) {
      if (Value rows = findScaledRows(select))
        found.push_back({select, rows});
    });
    for (auto [select, rows] : found)
      skip(select, rows);
    return success();
  }
};
} // namespace
