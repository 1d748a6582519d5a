//===- UnitMeetings.cpp - where the threads of a unit meet before a product -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Tile/UnitMeetings.h"
#include "dialects/Tile/IR/TileTensorOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace attn::tile;

namespace {
/// The columns of a unit that its threads have accessed since they met.
using Columns = llvm::BitVector;

class UnitMeetings {
public:
  UnitMeetings(Value id, int64_t threads) : id(id), threads(threads) {}

  void run(Block &block) {
    Columns accessed;
    run(block, accessed, /*isLast=*/true);
  }

private:
  static Columns getColumns(Value place) {
    auto op = place.getDefiningOp<TensorPlaceOp>();
    Columns columns(op.getFirst() + op.getType().getWords());
    columns.set(op.getFirst(), columns.size());
    return columns;
  }

  void runProduct(MmaTensorOp product, Columns &accessed, bool isLast) {
    Columns touched = getColumns(product.getSum());
    if (isa<TensorPlaceType>(product.getLhs().getType()))
      touched |= getColumns(product.getLhs());
    if (!touched.anyCommon(accessed))
      return;
    accessed.clear();
    if (!isLast)
      return;
    OpBuilder b(product);
    NamedBarrierOp::create(b, product.getLoc(), /*arrive=*/false, id, threads);
  }

  void run(Operation *op, Columns &accessed, bool isLast) {
    if (auto product = dyn_cast<MmaTensorOp>(op))
      return runProduct(product, accessed, isLast);
    if (op->getNumRegions() > 0)
      return runRegions(op, accessed, isLast);
    if (isa<LoadTensorOp, StoreTensorOp, ScaleTensorOp>(op))
      for (Value operand : op->getOperands())
        if (isa<TensorPlaceType>(operand.getType()))
          accessed |= getColumns(operand);
  }

  void runRegions(Operation *op, Columns &accessed, bool isLast) {
    // A turn follows what came before the loop, or another turn; whose accesses do not depend on
    // where threads meet in it more than once.
    bool isLoop = isa<LoopLikeOpInterface>(op);
    for (int pass = isLoop ? 0 : 2; pass < 3; ++pass) {
      Columns before = accessed, after;
      for (Region &region : op->getRegions())
        for (Block &block : region) {
          Columns inside = before;
          run(block, inside, isLast && pass == 2);
          after |= inside;
        }
      // Of branches, one may be empty; a loop may have no turn.
      accessed |= after;
    }
  }

  void run(Block &block, Columns &accessed, bool isLast) {
    for (Operation &op : llvm::make_early_inc_range(block))
      run(&op, accessed, isLast);
  }

  Value id;
  int64_t threads;
};
} // namespace

void attn::tile::meetBeforeProducts(Region &role, Value id, int64_t threads) {
  UnitMeetings(id, threads).run(role.front());
}
