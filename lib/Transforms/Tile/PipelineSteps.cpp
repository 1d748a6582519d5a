//===- PipelineSteps.cpp - tile-pipeline-steps -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   before   step(j):  S = Q Kj^T;  P, decay = softmax(S);  O = O * decay + P Vj
//   after    step(j):  S = Q Kj^T;  O = O + P' Vj-1;  P, decay = softmax(S);  O = O * decay;  P' =
//   P
//
// The delayed product and the scores do not depend on each other, so that both can be in flight
// while the softmax of either runs. What is delayed is a PendingProduct: the weights, where the
// values are, and whether some of them are to be cleared.
//
// The first step has nothing pending. Either it stands alone, before the loops, or it is the first
// iteration of a loop that is certain to run, which then does the pending product under a
// condition, on its own: such a loop holds the few partial tiles.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

namespace attn::tile {
#define GEN_PASS_DEF_PIPELINESTEPSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// The steps of one block: loops, one after the other, with the first step before them unless the
/// first loop is certain to run.
struct Chain {
  /// The value product of the step before the loops, or null.
  MmaOp first;
  /// Innermost: the loop, and where the accumulator is among what it carries.
  SmallVector<std::pair<scf::ForOp, unsigned>> loops;
  /// The value products of all steps, in order.
  SmallVector<MmaOp> products;
};

/// A product that the next step will start.
struct PendingProduct {
  Value weights;
  /// Those offsets of the values in global memory that differ from step to step.
  SmallVector<Value> offsets;
  /// Whether values that it does not read are cleared; null if that is the same in all steps.
  Value clears;

  SmallVector<Value> flatten() const {
    SmallVector<Value> values{weights};
    llvm::append_range(values, offsets);
    if (clears)
      values.push_back(clears);
    return values;
  }
  /// The same of other values.
  PendingProduct unflatten(ValueRange values) const {
    ValueRange rest = values.drop_front();
    return {values.front(), llvm::to_vector(rest.take_front(offsets.size())),
            clears ? rest.back() : Value()};
  }
};
} // namespace

static ClearUnreadOp getClearing(MmaOp product) {
  return product.getRhs().getDefiningOp<ClearUnreadOp>();
}

static LoadOp getValuesLoad(MmaOp product) {
  ClearUnreadOp clearing = getClearing(product);
  return (clearing ? clearing.getValues() : product.getRhs()).getDefiningOp<LoadOp>();
}

/// Weights, as a tile, times values from memory, added to an accumulator.
static bool isValueProduct(MmaOp product) {
  return product.getAcc() && getValuesLoad(product) &&
         isa<RankedTensorType>(product.getLhs().getType());
}

/// Whether an op is in the block, or in a region of one that is.
static bool isIn(Operation *op, Block &block) { return block.findAncestorOpInBlock(*op); }

/// The value product that makes operand `index` of the block's terminator: at the end of the block,
/// or of the branch of an scf.if at its end, whose other branch leaves the accumulator `acc` as it
/// is. Only the block that has the product reads `acc`, which it finds complete.
static MmaOp findProduct(Block &block, unsigned index, Value acc) {
  Value yielded = block.getTerminator()->getOperand(index);
  if (auto branch = yielded.getDefiningOp<scf::IfOp>();
      branch && branch->getBlock() == &block && branch.elseBlock()) {
    unsigned number = cast<OpResult>(yielded).getResultNumber();
    Operation *otherwise = branch.elseBlock()->getTerminator();
    if (otherwise->getOperand(number) != acc || !llvm::all_of(acc.getUses(), [&](OpOperand &use) {
          return isIn(use.getOwner(), *branch.thenBlock()) ||
                 (use.getOwner() == otherwise && use.getOperandNumber() == number);
        }))
      return {};
    return findProduct(*branch.thenBlock(), number, acc);
  }
  auto product = yielded.getDefiningOp<MmaOp>();
  if (!product || product->getBlock() != &block || !product->hasOneUse() ||
      !isValueProduct(product))
    return {};
  return product;
}

/// Appends the loops that the accumulator `acc`, in `block`, goes through. Fails where one of them
/// has no step of the same kind.
static LogicalResult followLoops(Value acc, Block *block, Chain &chain) {
  while (acc.hasOneUse()) {
    OpOperand &use = *acc.use_begin();
    auto loop = dyn_cast<scf::ForOp>(use.getOwner());
    if (!loop || loop->getBlock() != block)
      break;
    unsigned index = use.getOperandNumber() - loop.getNumControlOperands();
    MmaOp product = findProduct(*loop.getBody(), index, loop.getRegionIterArg(index));
    MmaOp like = chain.products.front();
    if (!product || getValuesLoad(product).getSource() != getValuesLoad(like).getSource() ||
        product.getLhs().getType() != like.getLhs().getType() ||
        product.getTransposeLhs() != like.getTransposeLhs() ||
        product.getTransposeRhs() != like.getTransposeRhs())
      return failure();
    chain.loops.push_back({loop, index});
    chain.products.push_back(product);
    acc = loop.getResult(index);
  }
  return success();
}

/// The chain behind a step that stands alone.
static FailureOr<Chain> matchChain(MmaOp first) {
  if (!isValueProduct(first) || first->getParentOfType<LoopLikeOpInterface>())
    return failure();
  Chain chain{first, {}, {first}};
  if (failed(followLoops(first, first->getBlock(), chain)) || chain.loops.empty())
    return failure();
  return chain;
}

/// Whether the bounds show that the loop runs. Upstream's do not look into a minimum, which is
/// below what either of its operands is below, or a maximum, which is above what either is above.
static bool isCertainToRun(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isIndex())
    return false;
  SmallVector<Value, 2> lower{loop.getLowerBound()}, upper{loop.getUpperBound()};
  if (auto least = lower.front().getDefiningOp<arith::MinSIOp>())
    lower = {least.getLhs(), least.getRhs()};
  if (auto greatest = upper.front().getDefiningOp<arith::MaxSIOp>())
    upper = {greatest.getLhs(), greatest.getRhs()};
  return llvm::any_of(lower, [&](Value begin) {
    return llvm::any_of(upper, [&](Value end) {
      return ValueBoundsConstraintSet::compare(begin, ValueBoundsConstraintSet::LT, end);
    });
  });
}

/// The chain that begins with a loop certain to run, none of whose steps is under a condition.
static FailureOr<Chain> matchChain(scf::ForOp first) {
  if (first->getParentOfType<LoopLikeOpInterface>() || !isCertainToRun(first))
    return failure();
  for (auto [index, yielded] : llvm::enumerate(first.getYieldedValues())) {
    if (yielded.getDefiningOp<scf::IfOp>())
      continue;
    MmaOp product = findProduct(*first.getBody(), index, first.getRegionIterArg(index));
    if (!product)
      continue;
    Chain chain{{}, {{first, unsigned(index)}}, {product}};
    if (succeeded(followLoops(first.getResult(index), first->getBlock(), chain)))
      return chain;
  }
  return failure();
}

namespace {
class Pipeliner {
public:
  Pipeliner(IRRewriter &rewriter, Chain chain)
      : rewriter(rewriter), chain(std::move(chain)), like(this->chain.products.front()),
        load(getValuesLoad(like)) {
    common.assign(load.getOffsets().begin(), load.getOffsets().end());
    for (MmaOp product : this->chain.products)
      for (auto [i, offset] : llvm::enumerate(getValuesLoad(product).getOffsets()))
        if (common[i] != offset || llvm::any_of(this->chain.loops, [&](auto &entry) {
              return !entry.first.isDefinedOutsideOfLoop(offset);
            }))
          common[i] = Value();
    findClearings();
  }

  void run() {
    PendingProduct pending =
        chain.first ? getPending(chain.first) : getNothing(chain.loops.front().first);
    if (chain.first)
      rewriter.replaceAllUsesWith(chain.first, chain.first.getAcc());
    bool isFirst = !chain.first;
    scf::ForOp last;
    Value acc;
    for (auto [loop, index] : chain.loops) {
      std::tie(last, pending) = runLoop(loop, index, pending, std::exchange(isFirst, false));
      acc = last.getResult(index);
    }
    // The last product has no step to hide behind.
    rewriter.setInsertionPointAfter(last);
    Value drained = emitProduct(pending, acc);
    rewriter.replaceAllUsesExcept(acc, drained, drained.getDefiningOp());
    // Of the old products none is used.
    for (MmaOp product : chain.products) {
      LoadOp values = getValuesLoad(product);
      ClearUnreadOp clearing = getClearing(product);
      rewriter.eraseOp(product);
      if (clearing)
        rewriter.eraseOp(clearing);
      if (values->use_empty())
        rewriter.eraseOp(values);
    }
  }

private:
  /// Whether products clear what they do not read: always, never, or as a value says that steps
  /// hand on.
  void findClearings() {
    auto isAlways = [](MmaOp product) {
      ClearUnreadOp clearing = getClearing(product);
      return clearing && !clearing.getCondition();
    };
    alwaysClears = llvm::all_of(chain.products, isAlways);
    if (alwaysClears || llvm::none_of(chain.products, getClearing))
      return;
    OpBuilder::InsertionGuard guard(rewriter);
    auto kernel = like->getParentOfType<func::FuncOp>();
    rewriter.setInsertionPointToStart(&kernel.getBody().front());
    for (bool value : {false, true})
      truth[value] =
          arith::ConstantOp::create(rewriter, like.getLoc(), rewriter.getBoolAttr(value));
  }

  PendingProduct getPending(MmaOp product) {
    PendingProduct pending{product.getLhs(), {}, {}};
    ClearUnreadOp clearing = getClearing(product);
    pending.clears =
        clearing && clearing.getCondition() ? clearing.getCondition() : truth[bool(clearing)];
    for (auto [offset, same] : llvm::zip_equal(getValuesLoad(product).getOffsets(), common))
      if (!same)
        pending.offsets.push_back(offset);
    return pending;
  }

  /// What is pending before the first iteration of a loop. It is not read.
  PendingProduct getNothing(scf::ForOp loop) {
    rewriter.setInsertionPoint(loop);
    auto type = cast<RankedTensorType>(like.getLhs().getType());
    Value zero = arith::ConstantOp::create(rewriter, like.getLoc(),
                                           rewriter.getZeroAttr(type.getElementType()));
    PendingProduct pending{BroadcastOp::create(rewriter, like.getLoc(), type, zero), {}, truth[0]};
    pending.offsets.assign(llvm::count(common, Value()), loop.getLowerBound());
    return pending;
  }

  Value emitProduct(const PendingProduct &pending, Value acc) {
    SmallVector<Value> offsets;
    auto varying = pending.offsets.begin();
    for (Value same : common)
      offsets.push_back(same ? same : *varying++);
    Value values =
        LoadOp::create(rewriter, load.getLoc(), load.getType(), load.getSource(), offsets);
    if (alwaysClears || pending.clears)
      values = ClearUnreadOp::create(rewriter, load.getLoc(), load.getType(), values,
                                     pending.weights, pending.clears)
                   .getResult();
    return MmaOp::create(rewriter, like.getLoc(), like.getType(), pending.weights, values, acc,
                         like.getTransposeLhs(), like.getTransposeRhs());
  }

  /// Unless it is the first iteration of `loop`.
  Value emitProductBehindFirst(scf::ForOp loop, const PendingProduct &pending, Value acc) {
    Location loc = like.getLoc();
    Value isBehind = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne,
                                           loop.getInductionVar(), loop.getLowerBound());
    auto branch =
        scf::IfOp::create(rewriter, loc, acc.getType(), isBehind, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToEnd(branch.thenBlock());
    scf::YieldOp::create(rewriter, loc, emitProduct(pending, acc));
    rewriter.setInsertionPointToEnd(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, acc);
    return branch.getResult(0);
  }

  /// `isFirst`: no step comes before the loop's first.
  std::pair<scf::ForOp, PendingProduct> runLoop(scf::ForOp loop, unsigned index,
                                                const PendingProduct &inits, bool isFirst) {
    auto newLoop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
        rewriter, inits.flatten(), /*replaceInitOperandUsesInLoop=*/false,
        [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
          // The body is still the old loop's.
          SmallVector<Value> in(added.begin(), added.end());
          PendingProduct pending = inits.unflatten(in);
          Value acc = loop.getRegionIterArg(index);
          return (isFirst ? runFirst(loop, index, acc, pending)
                          : runBlock(*loop.getBody(), index, acc, pending))
              .flatten();
        }));
    return {newLoop, inits.unflatten(newLoop.getResults().take_back(inits.flatten().size()))};
  }

  /// The step that ends in operand `index` of the terminator, without its product: `now` is the
  /// accumulator for it.
  PendingProduct delayProduct(Block &block, unsigned index, Value acc, Value now) {
    rewriter.replaceUsesWithIf(acc, now, [&](OpOperand &use) {
      return block.findAncestorOpInBlock(*use.getOwner()) &&
             !now.getDefiningOp()->isAncestor(use.getOwner());
    });
    auto product = block.getTerminator()->getOperand(index).getDefiningOp<MmaOp>();
    block.getTerminator()->setOperand(index, product.getAcc());
    return getPending(product);
  }

  /// The step of a loop whose first iteration has nothing pending.
  PendingProduct runFirst(scf::ForOp loop, unsigned index, Value acc, const PendingProduct &in) {
    rewriter.setInsertionPointToStart(loop.getBody());
    return delayProduct(*loop.getBody(), index, acc, emitProductBehindFirst(loop, in, acc));
  }

  /// The step that ends in operand `index` of the terminator. Returns what it leaves pending.
  PendingProduct runBlock(Block &block, unsigned index, Value acc, const PendingProduct &in) {
    Value yielded = block.getTerminator()->getOperand(index);
    if (auto branch = yielded.getDefiningOp<scf::IfOp>())
      return runBranch(branch, cast<OpResult>(yielded).getResultNumber(), acc, in);
    // Behind the product of the scores, before anything that is computed from it or from the
    // accumulator.
    rewriter.setInsertionPointToStart(&block);
    auto reads = [&](Operation &op) {
      return llvm::any_of(acc.getUsers(), [&](Operation *user) { return op.isAncestor(user); });
    };
    for (Operation &op : block) {
      if (&op == yielded.getDefiningOp() || reads(op))
        break;
      if (isa<MmaOp>(op))
        rewriter.setInsertionPointAfter(&op);
    }
    return delayProduct(block, index, acc, emitProduct(in, acc));
  }

  /// A step under a condition: without it, what is pending stays so.
  PendingProduct runBranch(scf::IfOp branch, unsigned index, Value acc, const PendingProduct &in) {
    PendingProduct out = runBlock(*branch.thenBlock(), index, acc, in);
    auto append = [&](Block *block, const PendingProduct &pending) {
      block->getTerminator()->insertOperands(block->getTerminator()->getNumOperands(),
                                             pending.flatten());
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
    return in.unflatten(wider.getResults().drop_front(count));
  }

  IRRewriter &rewriter;
  Chain chain;
  /// Any of the value products, and its load: what all of them have in common.
  MmaOp like;
  LoadOp load;
  /// Offsets of the values that are the same in all steps and known outside of the loops; null
  /// where they differ.
  SmallVector<Value> common;
  bool alwaysClears = false;
  /// False and true, where steps hand on whether they clear.
  Value truth[2];
};

struct PipelineStepsPass
    : RoomPass<attn::tile::impl::PipelineStepsPassBase<PipelineStepsPass>, Room::Tile, Room::Tile> {
  void getDependentDialects(DialectRegistry &registry) const override {
    PipelineStepsPassBase::getDependentDialects(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<Chain> chains;
    // Loops are made anew: one belongs to one chain.
    DenseSet<Operation *> taken;
    auto take = [&](const Chain &chain) {
      auto loops = llvm::make_first_range(chain.loops);
      if (llvm::any_of(loops, [&](scf::ForOp loop) { return taken.contains(loop); }))
        return;
      taken.insert_range(loops);
      chains.push_back(chain);
    };
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel->hasAttr(TileDialect::kKernelAttrName))
        kernel.walk([&](Operation *op) {
          FailureOr<Chain> chain = failure();
          if (auto product = dyn_cast<MmaOp>(op))
            chain = matchChain(product);
          else if (auto loop = dyn_cast<scf::ForOp>(op))
            chain = matchChain(loop);
          if (succeeded(chain))
            take(*chain);
        });
    for (Chain &chain : chains)
      Pipeliner(rewriter, std::move(chain)).run();
    return success();
  }
};
} // namespace
