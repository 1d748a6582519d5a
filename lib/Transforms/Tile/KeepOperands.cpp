//===- KeepOperands.cpp - tile-keep-operands ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A product reads both operands from shared memory in each turn of a loop, though one of them stays
// the same. If registers are left, they hold its first columns and spare as many reads:
//
//   scf.for                                 %r = tile.load_shared %q
//     %s = tile.mma %q, %k                  scf.for
//                                             %s = tile.mma %q, %k kept %r
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace attn::tile {
#define GEN_PASS_DEF_KEEPOPERANDSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

/// The copy that fills the product's lhs, if no other op fills it until the product has run in all
/// turns of the loops after the copy; else null.
static CopyOp findFill(MmaOp product) {
  CopyOp fill;
  for (Operation *user : product.getLhs().getUsers()) {
    if (!isa<CopyOp, MmaOp>(user))
      return {};
    if (!isa<CopyOp>(user) || !findBehind(user, product))
      continue;
    if (!fill || findBehind(fill, user))
      fill = cast<CopyOp>(user);
  }
  if (!fill)
    return {};
  Operation *reader = findBehind(fill, product);
  bool changes = llvm::any_of(product.getLhs().getUsers(), [&](Operation *user) {
    Operation *other = isa<CopyOp>(user) ? findBehind(fill, user) : nullptr;
    return other && !reader->isBeforeInBlock(other);
  });
  return changes ? CopyOp() : fill;
}

/// Whether a loop multiplies by what was filled in front of it.
static bool isInLoop(MmaOp product, Operation *fill) {
  auto loop = product->getParentOfType<LoopLikeOpInterface>();
  return loop && !loop->isAncestor(fill);
}

namespace {
struct KeepOperandsPass : KernelPass<attn::tile::impl::KeepOperandsPassBase<KeepOperandsPass>,
                                     Room::Placed, Room::Placed> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    int64_t columns =
        kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getSchedule().keep;
    if (columns == 0)
      return success();
    // By what fills the place, in the order of the program.
    llvm::MapVector<Operation *, SmallVector<MmaOp>> products;
    kernel.walk([&](MmaOp product) {
      auto lhs = dyn_cast<SharedType>(product.getLhs().getType());
      if (!lhs || product.getTransposeLhs() || lhs.getElementBytes() != 2)
        return;
      if (CopyOp fill = findFill(product))
        products[fill].push_back(product);
    });
    for (auto &[fill, readers] : products)
      if (llvm::any_of(readers, [fill = fill](MmaOp product) { return isInLoop(product, fill); }))
        keep(fill, readers, columns);
    return success();
  }

  /// Loads the columns in front of the first that reads them.
  static void keep(Operation *fill, ArrayRef<MmaOp> readers, int64_t columns) {
    MmaOp reader = readers.front();
    Operation *first = findBehind(fill, reader);
    auto lhs = cast<SharedType>(reader.getLhs().getType());
    auto acc = cast<AccAttr>(cast<RankedTensorType>(reader.getType()).getEncoding());
    // Whole steps of a product.
    int64_t step = getMachine(fill).product.sumBytes / lhs.getElementBytes(),
            count = llvm::alignDown(std::min(columns, lhs.getNumColumns()), step);
    if (count == 0)
      return;
    auto type =
        RankedTensorType::get({lhs.getNumRows(), count}, lhs.getElementType(), acc.getOperand());
    OpBuilder b(first);
    Value kept = LoadSharedOp::create(b, fill->getLoc(), type, reader.getLhs());
    for (MmaOp product : readers)
      product.getKeptMutable().assign(kept);
  }
};
} // namespace
