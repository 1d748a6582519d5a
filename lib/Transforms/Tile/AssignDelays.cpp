//===- AssignDelays.cpp - tile-assign-delays ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A turn that computes the lhs of a product (weights, from a product of scores) keeps the tensor
// core waiting for it, and then waits for the tensor core. If the loop only carries the sum of the
// product, the product does not depend on earlier ops of the next turn, nor they on the product. So
// the product runs one turn late: it is in flight together with the scores, while the next weights
// are made.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/Delays.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNDELAYSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The op that makes zeros of the rhs where the lhs has none but zeros.
static ClearUnreadOp getClearing(MmaOp product) {
  auto clearing = product.getRhs().getDefiningOp<ClearUnreadOp>();
  return clearing && clearing.getBy() ? clearing : ClearUnreadOp();
}

/// The op that makes zeros of the rhs from a row on, before that one.
static ClearUnreadOp getRowClearing(MmaOp product) {
  ClearUnreadOp after = getClearing(product);
  auto clearing = (after ? after.getValues() : product.getRhs()).getDefiningOp<ClearUnreadOp>();
  return clearing && clearing.getFrom() ? clearing : ClearUnreadOp();
}

static LoadOp getRhsLoad(MmaOp product) {
  Value rhs = product.getRhs();
  while (auto clearing = rhs.getDefiningOp<ClearUnreadOp>())
    rhs = clearing.getValues();
  return rhs.getDefiningOp<LoadOp>();
}

/// Whether the turn, or the step outside of loops, computes the product's lhs.
static bool computesLhs(MmaOp product) {
  Operation *maker = product.getLhs().getDefiningOp();
  return maker && !isa<LoadOp>(maker) &&
         maker->getParentOfType<scf::ForOp>() == product->getParentOfType<scf::ForOp>();
}

/// An operand that only the product needs can be late with it: its rhs, from memory.
static bool canBeLate(MmaOp product) {
  return product.getAcc() && getRhsLoad(product) && product->hasOneUse() && computesLhs(product);
}

/// The product that makes the value which the loop carries at an index, if the product can be late.
static MmaOp findProduct(scf::ForOp loop, unsigned index) {
  Value yielded = loop.getYieldedValues()[index];
  Value before = loop.getRegionIterArg(index);
  while (auto branch = yielded.getDefiningOp<scf::IfOp>()) {
    unsigned number = cast<OpResult>(yielded).getResultNumber();
    if (branch.elseYield()->getOperand(number) != before)
      return {};
    yielded = branch.thenYield()->getOperand(number);
  }
  auto product = yielded.getDefiningOp<MmaOp>();
  return product && canBeLate(product) ? product : MmaOp();
}

namespace {
/// The products of steps that run one after the other.
struct Chain {
  SmallVector<MmaOp> products;
  SmallVector<scf::ForOp> loops;
};
} // namespace

/// Adds the later loops, into which the accumulator goes on. Fails where one of them has no step of
/// the same kind.
static LogicalResult followLoops(Value acc, Chain &chain) {
  while (acc.hasOneUse()) {
    OpOperand &use = *acc.use_begin();
    auto loop = dyn_cast<scf::ForOp>(use.getOwner());
    if (!loop || loop->getBlock() != acc.getParentBlock())
      break;
    unsigned index = use.getOperandNumber() - loop.getNumControlOperands();
    MmaOp product = findProduct(loop, index), like = chain.products.front();
    if (!product || getRhsLoad(product).getSource() != getRhsLoad(like).getSource() ||
        bool(getRowClearing(product)) != bool(getRowClearing(like)))
      return failure();
    chain.products.push_back(product);
    chain.loops.push_back(loop);
    acc = loop.getResult(index);
  }
  return success();
}

/// The chain that begins with a loop or the step before it. A step on its own has nothing before
/// it; nor has the first turn of a loop that is certain to run, whose late product is then on its
/// own, which pays where the loop is short. Others would be late for nothing.
static FailureOr<Chain> findChain(scf::ForOp loop) {
  for (auto [index, init] : llvm::enumerate(loop.getInitArgs())) {
    MmaOp product = findProduct(loop, index);
    if (!product)
      continue;
    Chain chain;
    auto before = init.getDefiningOp<MmaOp>();
    if (before && before->getBlock() == loop->getBlock() && canBeLate(before))
      chain.products.push_back(before);
    else if (!isCertainToRun(loop) || product->getBlock() != loop.getBody())
      continue;
    chain.products.push_back(product);
    chain.loops.push_back(loop);
    if (succeeded(followLoops(loop.getResult(index), chain)))
      return chain;
  }
  return failure();
}

/// Lets all products of the chain clear what they do not read, if one does, each under a condition
/// of its own: late ops of all steps are the same ops.
static void clearAlike(Chain &chain) {
  auto isAlways = [](MmaOp product) {
    ClearUnreadOp clearing = getClearing(product);
    return clearing && !clearing.getCondition();
  };
  if (llvm::none_of(chain.products, getClearing) || llvm::all_of(chain.products, isAlways))
    return;
  for (MmaOp product : chain.products) {
    OpBuilder builder(product);
    Location loc = product.getLoc();
    auto emitTruth = [&](bool value) {
      return arith::ConstantOp::create(builder, loc, builder.getBoolAttr(value));
    };
    if (ClearUnreadOp clearing = getClearing(product)) {
      builder.setInsertionPoint(clearing);
      if (!clearing.getCondition())
        clearing.getConditionMutable().assign(emitTruth(true));
      continue;
    }
    Value values = product.getRhs();
    product.getRhsMutable().assign(ClearUnreadOp::create(builder, loc, values.getType(), values,
                                                         product.getLhs(), /*from=*/Value(),
                                                         emitTruth(false))
                                       .getResult());
  }
}

/// Makes the product one turn late, with what only it needs.
static void delay(MmaOp product) {
  SmallVector<Operation *, 4> ops = {product};
  for (Operation *maker :
       {getClearing(product).getOperation(), getRowClearing(product).getOperation(),
        getRhsLoad(product).getOperation()}) {
    if (!maker)
      continue;
    // Others read the tile in time.
    if (!maker->hasOneUse()) {
      Operation *own = OpBuilder(maker).clone(*maker);
      ops.back()->replaceUsesOfWith(maker->getResult(0), own->getResult(0));
      maker = own;
    }
    ops.push_back(maker);
  }
  for (Operation *op : ops)
    setDelay(op, 1);
}

namespace {
struct AssignDelaysPass : KernelPass<attn::tile::impl::AssignDelaysPassBase<AssignDelaysPass>,
                                     Room::Tile, within(Room::Tile)> {
  void getDependentDialects(DialectRegistry &registry) const override {
    AssignDelaysPassBase::getDependentDialects(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  LogicalResult transformKernel(func::FuncOp kernel) override {
    // Threads that wait for each product have nothing to do meanwhile.
    if (!attn::plan::getMachine(kernel).product.isAsync)
      return success();
    kernel.walk([](scf::ForOp loop) {
      // A chain in a loop would begin and end in each of its turns.
      if (loop->getParentOfType<LoopLikeOpInterface>())
        return;
      Misfit misfit;
      FailureOr<LateOps> late = findLateOps(loop, misfit);
      if (failed(late) || !late->ops.empty())
        return;
      FailureOr<Chain> chain = findChain(loop);
      if (failed(chain))
        return;
      clearAlike(*chain);
      llvm::for_each(chain->products, delay);
      if (llvm::any_of(chain->loops,
                       [&](scf::ForOp each) { return failed(findLateOps(each, misfit)); }))
        undo(*chain);
    });
    return success();
  }

private:
  static void undo(Chain &chain) {
    for (MmaOp product : chain.products)
      for (Operation *op : {product.getOperation(), getClearing(product).getOperation(),
                            getRhsLoad(product).getOperation()})
        if (op)
          setDelay(op, 0);
  }
};
} // namespace
