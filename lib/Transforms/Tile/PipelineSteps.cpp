//===- PipelineSteps.cpp - tile-pipeline-steps -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   before   step(j):  S = Q Kj^T;  P, decay = softmax(S);  O = O * decay + P Vj
//   after    step(j):  S = Q Kj^T;  O = O + P' Vj-1;  P, decay = softmax(S);  O = O * decay;  P' = P
//
// The delayed product and the scores do not depend on each other, so that both can be in flight while the softmax of either
// runs. What is delayed is a PendingProduct: the weights, and where the values are.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {
#define GEN_PASS_DEF_PIPELINESTEPSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// The steps of one block: the first stands alone, the others in loops behind it, one after the other.
struct Chain {
  MmaOp first;
  /// Innermost: the loop, and where the accumulator is among what it carries.
  SmallVector<std::pair<scf::ForOp, unsigned>> loops;
  /// The value products of all steps, the first included.
  SmallVector<MmaOp> products;
};

/// A product that the next step will start.
struct PendingProduct {
  Value weights;
  /// Those offsets of the values in global memory that differ from step to step.
  SmallVector<Value> offsets;

  SmallVector<Value> flatten() const {
    SmallVector<Value> values{weights};
    llvm::append_range(values, offsets);
    return values;
  }
  static PendingProduct unflatten(ValueRange values) {
    return {values.front(), llvm::to_vector(values.drop_front())};
  }
};
} // namespace

static LoadOp getValuesLoad(MmaOp product) { return product.getRhs().getDefiningOp<LoadOp>(); }

/// The value product that makes operand `index` of the block's terminator: at the end of the block, or of the branch of an
/// scf.if at its end.
static MmaOp findProduct(Block &block, unsigned index) {
  Value yielded = block.getTerminator()->getOperand(index);
  if (auto branch = yielded.getDefiningOp<scf::IfOp>(); branch && branch->getBlock() == &block && branch.elseBlock())
    return findProduct(*branch.thenBlock(), cast<OpResult>(yielded).getResultNumber());
  auto product = yielded.getDefiningOp<MmaOp>();
  if (!product || product->getBlock() != &block || !product->hasOneUse() || !product.getAcc() || !getValuesLoad(product))
    return {};
  return product;
}

/// Follows the accumulator from `first` through the loops behind it.
static FailureOr<Chain> matchChain(MmaOp first) {
  if (!first.getAcc() || !getValuesLoad(first) || !isa<RankedTensorType>(first.getLhs().getType()) ||
      first->getParentOfType<LoopLikeOpInterface>())
    return failure();
  Chain chain{first, {}, {first}};
  for (Value acc = first; acc.hasOneUse();) {
    OpOperand &use = *acc.use_begin();
    auto loop = dyn_cast<scf::ForOp>(use.getOwner());
    if (!loop || loop->getBlock() != first->getBlock())
      break;
    unsigned index = use.getOperandNumber() - loop.getNumControlOperands();
    MmaOp product = findProduct(*loop.getBody(), index);
    if (!product || getValuesLoad(product).getSource() != getValuesLoad(first).getSource() ||
        product.getLhs().getType() != first.getLhs().getType())
      return failure();
    chain.loops.push_back({loop, index});
    chain.products.push_back(product);
    acc = loop.getResult(index);
  }
  if (chain.loops.empty())
    return failure();
  return chain;
}

namespace {
class Pipeliner {
public:
  Pipeliner(IRRewriter &rewriter, Chain chain) : rewriter(rewriter), chain(std::move(chain)) {
    LoadOp first = getValuesLoad(this->chain.first);
    common.assign(first.getOffsets().begin(), first.getOffsets().end());
    for (MmaOp product : this->chain.products)
      for (auto [i, offset] : llvm::enumerate(getValuesLoad(product).getOffsets()))
        if (common[i] != offset)
          common[i] = Value();
  }

  void run() {
    MmaOp first = chain.first;
    PendingProduct pending = getPending(first);
    Value acc = first.getAcc();
    LoadOp prototype = getValuesLoad(first);
    MmaOp like = first;
    scf::ForOp last;
    for (auto [loop, index] : chain.loops) {
      loop.getInitArgsMutable()[index].assign(acc);
      std::tie(last, pending) = runLoop(loop, index, pending);
      acc = last.getResult(index);
    }
    // The last product has no step to hide behind.
    rewriter.setInsertionPointAfter(last);
    Value drained = emitProduct(like, pending, acc);
    rewriter.replaceAllUsesExcept(acc, drained, drained.getDefiningOp());
    rewriter.eraseOp(first);
    if (prototype->use_empty())
      rewriter.eraseOp(prototype);
  }

private:
  PendingProduct getPending(MmaOp product) {
    PendingProduct pending{product.getLhs(), {}};
    for (auto [offset, same] : llvm::zip_equal(getValuesLoad(product).getOffsets(), common))
      if (!same)
        pending.offsets.push_back(offset);
    return pending;
  }

  /// `like`, on the pending operands.
  Value emitProduct(MmaOp like, const PendingProduct &pending, Value acc) {
    LoadOp load = getValuesLoad(like);
    SmallVector<Value> offsets;
    auto varying = pending.offsets.begin();
    for (Value same : common)
      offsets.push_back(same ? same : *varying++);
    Value values = LoadOp::create(rewriter, load.getLoc(), load.getType(), load.getSource(), offsets);
    return MmaOp::create(rewriter, like.getLoc(), like.getType(), pending.weights, values, acc,
                         like.getTransposeLhs(), like.getTransposeRhs());
  }

  std::pair<scf::ForOp, PendingProduct> runLoop(scf::ForOp loop, unsigned index, const PendingProduct &inits) {
    auto newLoop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, inits.flatten(), /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
          // The body is still the old loop's.
          SmallVector<Value> in(added.begin(), added.end());
          return runBlock(*loop.getBody(), index, loop.getRegionIterArg(index), PendingProduct::unflatten(in)).flatten();
        }));
    return {newLoop, PendingProduct::unflatten(newLoop.getResults().take_back(1 + inits.offsets.size()))};
  }

  /// The step that ends in operand `index` of the terminator. Returns what it leaves pending.
  PendingProduct runBlock(Block &block, unsigned index, Value acc, const PendingProduct &in) {
    Operation *terminator = block.getTerminator();
    if (auto branch = terminator->getOperand(index).getDefiningOp<scf::IfOp>())
      return runBranch(branch, cast<OpResult>(terminator->getOperand(index)).getResultNumber(), acc, in);
    auto product = terminator->getOperand(index).getDefiningOp<MmaOp>();
    PendingProduct out = getPending(product);
    // Behind the product of the scores, before anything that is computed from it.
    Operation *scores = nullptr;
    for (Operation &op : block) {
      if (&op == product)
        break;
      if (isa<MmaOp>(op))
        scores = &op;
    }
    if (scores)
      rewriter.setInsertionPointAfter(scores);
    else
      rewriter.setInsertionPointToStart(&block);
    Value now = emitProduct(product, in, acc);
    rewriter.replaceUsesWithIf(acc, now, [&](OpOperand &use) {
      return use.getOwner() != now.getDefiningOp() && block.findAncestorOpInBlock(*use.getOwner());
    });
    terminator->setOperand(index, product.getAcc());
    LoadOp load = getValuesLoad(product);
    rewriter.eraseOp(product);
    if (load->use_empty())
      rewriter.eraseOp(load);
    return out;
  }

  /// A step under a condition: without it, what is pending stays so.
  PendingProduct runBranch(scf::IfOp branch, unsigned index, Value acc, const PendingProduct &in) {
    PendingProduct out = runBlock(*branch.thenBlock(), index, acc, in);
    auto append = [&](Block *block, const PendingProduct &pending) {
      block->getTerminator()->insertOperands(block->getTerminator()->getNumOperands(), pending.flatten());
    };
    append(branch.thenBlock(), out);
    append(branch.elseBlock(), in);
    rewriter.setInsertionPoint(branch);
    SmallVector<Type> types(branch.getResultTypes());
    llvm::append_range(types, ValueRange(out.flatten()).getTypes());
    auto wider = scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition());
    wider.getThenRegion().takeBody(branch.getThenRegion());
    wider.getElseRegion().takeBody(branch.getElseRegion());
    unsigned count = branch.getNumResults();
    rewriter.replaceOp(branch, wider.getResults().take_front(count));
    return PendingProduct::unflatten(wider.getResults().drop_front(count));
  }

  IRRewriter &rewriter;
  Chain chain;
  /// Offsets of the values that are the same in all steps; null where they differ.
  SmallVector<Value> common;
};

struct PipelineStepsPass : attn::tile::impl::PipelineStepsPassBase<PipelineStepsPass> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<Chain> chains;
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel->hasAttr(TileDialect::kKernelAttrName))
        kernel.walk([&](MmaOp product) {
          if (FailureOr<Chain> chain = matchChain(product); succeeded(chain))
            chains.push_back(std::move(*chain));
        });
    for (Chain &chain : chains)
      Pipeliner(rewriter, std::move(chain)).run();
  }
};
} // namespace
