//===- OverlapMma.cpp - tile-overlap-mma -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPMMAPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The product, its commit and its wait, as tile-specialize-warps leaves them; the wait's results
/// are the product's only.
static MmaAsyncOp getProduct(MmaWaitOp wait) {
  if (wait.getPending() != 0 || wait.getValues().size() != 1)
    return {};
  auto product = wait.getValues().front().getDefiningOp<MmaAsyncOp>();
  if (!product || product->getBlock() != wait->getBlock() ||
      !isa_and_present<MmaCommitOp>(product->getNextNode()))
    return {};
  return product;
}

/// What gives operands of the product back: the arrivals right behind the wait.
static SmallVector<Operation *> getReleases(MmaWaitOp wait) {
  SmallVector<Operation *> releases;
  for (Operation *op = wait->getNextNode(); isa_and_present<BarrierArriveOp, NextOp>(op);
       op = op->getNextNode())
    if (isa<BarrierArriveOp>(op))
      releases.push_back(op);
  return releases;
}

/// The first op of the wait's block that needs one of its results; the terminator if there is none.
static Operation *getFirstUser(MmaWaitOp wait) {
  Block &block = *wait->getBlock();
  Operation *first = block.getTerminator();
  for (Operation *user : wait->getUsers())
    if (Operation *op = block.findAncestorOpInBlock(*user); op && op->isBeforeInBlock(first))
      first = op;
  return first;
}

/// Moves pure ops on the product that only the terminator needs to the end of the block: the wait
/// can come later.
static void sinkUsers(MmaWaitOp wait) {
  Block &block = *wait->getBlock();
  for (Operation *user : llvm::make_early_inc_range(wait->getUsers()))
    if (user->getBlock() == &block && isPure(user) && user->getNumRegions() == 0 &&
        llvm::all_of(user->getUsers(),
                     [&](Operation *next) { return next == block.getTerminator(); }))
      user->moveBefore(block.getTerminator());
}

/// Whether the op makes what the next iteration reads, perhaps in another layout, and nothing of
/// this one.
static bool isOnlyYielded(Operation *op) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return user == op->getBlock()->getTerminator() ||
           (isa<ConvertLayoutOp>(user) && isOnlyYielded(user));
  });
}

/// Ops between `begin` and `end` of one block that narrow tiles for the next iteration, with all
/// that follows from them there.
static llvm::SetVector<Operation *> getNarrowing(Operation *begin, Operation *end) {
  llvm::SetVector<Operation *> narrowing;
  for (Operation *op = begin; op != end; op = op->getNextNode()) {
    bool narrows = isa<arith::TruncFOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()) &&
                   isOnlyYielded(op);
    bool follows = llvm::any_of(op->getOperands(),
                                [&](Value v) { return narrowing.contains(v.getDefiningOp()); });
    if (narrows || follows)
      narrowing.insert(op);
  }
  return narrowing;
}

/// The weights of a product in flight are still read: new ones come after the wait, through which
/// their source goes.
static MmaWaitOp deferNarrowing(MmaWaitOp wait, MmaAsyncOp product) {
  llvm::SetVector<Operation *> narrowing = getNarrowing(product, wait);
  if (narrowing.empty())
    return wait;
  SmallVector<Value> values(wait.getValues());
  SmallVector<Type> types(wait.getResultTypes());
  SmallVector<Value> tied;
  for (Operation *op : narrowing)
    if (isa<arith::TruncFOp>(op)) {
      Value source = op->getOperand(0);
      if (!llvm::is_contained(tied, source)) {
        tied.push_back(source);
        values.push_back(source);
        types.push_back(source.getType());
      }
    }
  OpBuilder builder(wait);
  auto wider = MmaWaitOp::create(builder, wait.getLoc(), types, wait.getPending(), values);
  wait.replaceAllUsesWith(wider.getResults().take_front(wait.getNumResults()));
  Operation *last = wider;
  for (Operation *op : narrowing) {
    op->moveAfter(last);
    last = op;
  }
  for (auto [source, landed] : llvm::zip_equal(tied, wider.getResults().take_back(tied.size())))
    source.replaceUsesWithIf(landed, [&](OpOperand &use) {
      Operation *user = wider->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && wider->isBeforeInBlock(user);
    });
  wait.erase();
  return wider;
}

/// Groups committed between the product's own commit and the wait, which may stay in flight.
static int64_t countYounger(MmaAsyncOp product, MmaWaitOp wait) {
  int64_t count = -1;
  for (Operation *op = product; op != wait; op = op->getNextNode())
    count += isa<MmaCommitOp>(op);
  return count;
}

static void overlap(Block &block) {
  SmallVector<std::pair<MmaAsyncOp, MmaWaitOp>> pairs;
  for (auto wait : llvm::make_early_inc_range(block.getOps<MmaWaitOp>()))
    if (MmaAsyncOp product = getProduct(wait))
      pairs.push_back({product, wait});
  for (auto &[product, wait] : pairs) {
    SmallVector<Operation *> releases = getReleases(wait);
    sinkUsers(wait);
    wait->moveBefore(getFirstUser(wait));
    if (isa<RankedTensorType>(product.getLhs().getType()))
      wait = deferNarrowing(wait, product);
    Operation *last = wait;
    for (Operation *release : releases) {
      release->moveAfter(last);
      last = release;
    }
  }
  for (auto &[product, wait] : pairs)
    wait.setPending(std::min<int64_t>(countYounger(product, wait), 7));
}

namespace {
struct OverlapMmaPass : attn::tile::impl::OverlapMmaPassBase<OverlapMmaPass> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(TileDialect::kKernelAttrName))
        continue;
      SmallVector<Block *> blocks;
      kernel.walk([&](Block *block) { blocks.push_back(block); });
      for (Block *block : blocks)
        overlap(*block);
    }
  }
};
} // namespace
