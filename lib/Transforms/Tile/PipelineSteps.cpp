//===- PipelineSteps.cpp - tile-pipeline-steps -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   before   step(j):  S = Q Kj^T;  P, decay = softmax(S);  O = O * decay + late(P Vj)
//   after    step(j):  S = Q Kj^T;  O += P' Vj-1;  P, decay = softmax(S);  O *= decay;  P' = P
//
// The values that late ops need are handed on from step to step as pending: above, P and j. A
// result of late ops that the loop carries is complete once they have run. Until then the loop
// carries in its place the value from which they will start (O * decay), if there is such a value.
//
// Steps go through chains of loops, one after the other, where the late ops are the same: a loop
// runs the ops that the loop before it left pending. A step may stand on its own before the first
// loop. At the end of a chain the last late ops stand after the loop. Whether anything is pending
//
//   * is certain after a step on its own, and after a loop that is certain to run;
//   * is not so in the first turn of a loop that begins a chain;
//   * else is a value that steps hand on too.
//
// By one turn at a time: late ops with a delay of two are late ops of the loop that comes out.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Chains.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/LateInputs.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {
#define GEN_PASS_DEF_PIPELINESTEPSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

namespace {
/// The ops that the next step will run.
struct Pending {
  /// By input.
  SmallVector<Value> values;
  bool isCertain = false;
  /// Whether there is anything; null: there is if and only if `isCertain`.
  Value exists;
};

class Pipeliner {
public:
  Pipeliner(IRRewriter &rewriter, SmallVector<LateOps> chain)
      : rewriter(rewriter), steps(std::move(chain)), inputs(steps) {
    makeTemplate();
  }

  void run() {
    Pending pending;
    scf::ForOp last;
    for (LateOps &step : steps)
      if (step.loop)
        std::tie(last, pending) = runLoop(step, pending);
      else
        pending = runAlone(step, steps[1].loop);
    drain(last, pending);
    for (LateOps &late : steps)
      for (Operation *op : llvm::reverse(late.ops))
        rewriter.eraseOp(op);
  }

private:
  void makeTemplate();

  /// A value to carry where nothing is pending. It is not read.
  Value makeNothing(Type type, scf::ForOp loop);
  /// The late ops; the carried results. `isLast`: no delay is left.
  SmallVector<Value> emit(ValueRange values, bool isLast = false);
  /// The same under a condition; `otherwise`, the carried results are those.
  SmallVector<Value> emitIf(Value condition, ValueRange values, ValueRange otherwise,
                            bool isLast = false);
  /// The late ops of the step before, in the turn of a loop.
  SmallVector<Value> emitInTurn(LateOps &late, const Pending &pending);
  /// The step without its late ops: `now` is what they carry. Returns what it leaves pending.
  SmallVector<Value> leaveLate(LateOps &step, ValueRange now);
  void eraseUnread(Value late);
  /// Lets conditions around the step's block hand on what the block adds to its terminator:
  /// `added`, or `before` where the step does not run. Returns these values around the conditions.
  SmallVector<Value> widenConditions(LateOps &late, ArrayRef<Value> added, ValueRange before);

  Pending runAlone(LateOps &step, scf::ForOp next);
  Value emitRan(scf::ForOp loop);
  std::pair<scf::ForOp, Pending> runLoop(LateOps &step, const Pending &in);
  void drain(scf::ForOp last, const Pending &pending);

  IRRewriter &rewriter;
  SmallVector<LateOps> steps;
  LateInputs inputs;
  /// The late ops of a step, which read arguments in place of inputs.
  Region holder;
  Block *late = nullptr;
  /// The carried results there.
  SmallVector<Value> results;
};
} // namespace

void Pipeliner::makeTemplate() {
  const LateOps &like = steps.front();
  late = &holder.emplaceBlock();
  for (const LateInput &input : inputs)
    late->addArgument(input.type, like.ops.front()->getLoc());
  IRMapping mapping;
  size_t position = 0;
  for (Operation *op : like.ops) {
    SmallVector<Value> operands;
    auto take = [&](Value value) {
      std::optional<unsigned> input = inputs.getNumberAt(position++);
      return input ? Value(late->getArgument(*input)) : mapping.lookup(value);
    };
    for (Value operand : op->getOperands())
      operands.push_back(take(operand));
    IRMapping inside(mapping);
    for (Value value : getCaptured(op))
      inside.map(value, take(value));
    Operation *copy = op->clone(inside);
    copy->setOperands(operands);
    setDelay(copy, getDelay(op) - 1);
    late->push_back(copy);
    mapping.map(op->getResults(), copy->getResults());
  }
  for (const LateOps::Carried &carried : like.carried)
    results.push_back(mapping.lookup(carried.result));
}

//===----------------------------------------------------------------------===//
// Late ops
//===----------------------------------------------------------------------===//

Value Pipeliner::makeNothing(Type type, scf::ForOp loop) {
  if (type == loop.getInductionVar().getType())
    return loop.getLowerBound();
  Location loc = loop.getLoc();
  Value zero =
      arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(getElementTypeOrSelf(type)));
  return isa<RankedTensorType>(type) ? BroadcastOp::create(rewriter, loc, type, zero).getResult()
                                     : zero;
}

SmallVector<Value> Pipeliner::emit(ValueRange values, bool isLast) {
  IRMapping mapping;
  mapping.map(late->getArguments(), values);
  for (Operation &op : *late) {
    Operation *copy = rewriter.clone(op, mapping);
    if (isLast)
      setDelay(copy, 0);
  }
  return llvm::map_to_vector(results, [&](Value result) { return mapping.lookup(result); });
}

SmallVector<Value> Pipeliner::emitIf(Value condition, ValueRange values, ValueRange otherwise,
                                     bool isLast) {
  Location loc = condition.getLoc();
  auto branch = scf::IfOp::create(rewriter, loc, otherwise.getTypes(), condition,
                                  /*withElseRegion=*/!otherwise.empty());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> now = emit(values, isLast);
  if (!otherwise.empty()) {
    scf::YieldOp::create(rewriter, loc, now);
    rewriter.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(rewriter, loc, otherwise);
  }
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// After the products that do not need carried values, so that all of them are in flight together.
static void setBehindProducts(IRRewriter &rewriter, LateOps &late) {
  rewriter.setInsertionPointToStart(late.block);
  auto reads = [&](Operation &op) {
    return llvm::any_of(late.carried, [&](LateOps::Carried &carried) {
      return llvm::any_of(late.loop.getRegionIterArg(carried.index).getUsers(),
                          [&](Operation *user) { return op.isAncestor(user); });
    });
  };
  for (Operation &op : *late.block) {
    if (llvm::is_contained(late.ops, &op))
      continue;
    if (reads(op))
      break;
    if (isa<MmaOp>(op))
      rewriter.setInsertionPointAfter(&op);
  }
}

SmallVector<Value> Pipeliner::emitInTurn(LateOps &step, const Pending &pending) {
  if (pending.isCertain) {
    setBehindProducts(rewriter, step);
    return emit(pending.values);
  }
  rewriter.setInsertionPointToStart(step.block);
  SmallVector<Value> carried;
  for (const LateOps::Carried &result : step.carried)
    carried.push_back(step.loop.getRegionIterArg(result.index));
  Value exists = pending.exists;
  if (!exists)
    exists = arith::CmpIOp::create(rewriter, step.ops.front()->getLoc(), arith::CmpIPredicate::ne,
                                   step.loop.getInductionVar(), step.loop.getLowerBound());
  return emitIf(exists, pending.values, carried);
}

SmallVector<Value> Pipeliner::leaveLate(LateOps &step, ValueRange now) {
  SmallVector<Value> values = getInputs(step);
  SmallVector<Value> left =
      llvm::map_to_vector(inputs, [&](const LateInput &input) { return values[input.position]; });
  // Right after the ops of `now`. All other readers of carried values follow.
  Operation *rest = &*rewriter.getInsertionPoint();
  for (auto [carried, value] : llvm::zip_equal(step.carried, now)) {
    Value before = step.loop.getRegionIterArg(carried.index);
    std::replace(left.begin(), left.end(), before, Value(value));
    rewriter.replaceUsesWithIf(before, value, [&](OpOperand &use) {
      Operation *user = step.block->findAncestorOpInBlock(*use.getOwner());
      return user && !user->isBeforeInBlock(rest);
    });
  }
  Operation *terminator = step.block->getTerminator();
  for (auto [i, carried] : llvm::enumerate(step.carried)) {
    std::optional<unsigned> lent = inputs.findLent(i);
    terminator->setOperand(carried.operand, lent ? left[*lent] : now[i]);
  }
  return left;
}

/// Where the next turn does not read a late result, and the loop carries the value from which the
/// result starts, only the last result matters, after the loop.
void Pipeliner::eraseUnread(Value late) {
  Operation *maker = late.getDefiningOp();
  if (!maker || !late.use_empty())
    return;
  if (auto branch = dyn_cast<scf::IfOp>(maker)) {
    unsigned number = cast<OpResult>(late).getResultNumber();
    Value yielded = branch.thenYield()->getOperand(number);
    Value otherwise = branch.elseYield()->getOperand(number);
    if (yielded != otherwise && !branch->isAncestor(otherwise.getParentBlock()->getParentOp())) {
      branch.thenYield()->setOperand(number, otherwise);
      eraseUnread(yielded);
    }
  }
  if (!isOpTriviallyDead(maker))
    return;
  SmallVector<Value> operands(maker->getOperands());
  rewriter.eraseOp(maker);
  // An operand that several ops read goes with the last of them.
  llvm::for_each(llvm::SetVector<Value>(operands.begin(), operands.end()),
                 [&](Value operand) { eraseUnread(operand); });
}

SmallVector<Value> Pipeliner::widenConditions(LateOps &step, ArrayRef<Value> added,
                                              ValueRange before) {
  SmallVector<Value> values(added);
  auto append = [](Block *block, ValueRange more) {
    Operation *terminator = block->getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), more);
  };
  for (Block *block = step.block; block != step.loop.getBody();) {
    auto branch = cast<scf::IfOp>(block->getParentOp());
    if (!branch.elseBlock()) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.createBlock(&branch.getElseRegion());
      scf::YieldOp::create(rewriter, branch.getLoc());
    }
    append(block, values);
    append(branch.thenBlock() == block ? branch.elseBlock() : branch.thenBlock(), before);
    rewriter.setInsertionPoint(branch);
    SmallVector<Type> types(branch.getResultTypes());
    llvm::append_range(types, before.getTypes());
    auto wider = scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition());
    wider.getThenRegion().takeBody(branch.getThenRegion());
    wider.getElseRegion().takeBody(branch.getElseRegion());
    wider->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
    block = wider->getBlock();
    values = llvm::to_vector_of<Value>(wider.getResults().take_back(before.size()));
    rewriter.replaceOp(branch, wider.getResults().drop_back(before.size()));
  }
  return values;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Pending Pipeliner::runAlone(LateOps &step, scf::ForOp next) {
  rewriter.setInsertionPoint(next);
  SmallVector<Value> values = getInputs(step);
  Pending pending{
      llvm::map_to_vector(inputs, [&](const LateInput &input) { return values[input.position]; }),
      /*isCertain=*/true,
      {}};
  for (auto [i, carried] : llvm::enumerate(step.carried)) {
    std::optional<unsigned> lent = inputs.findLent(i);
    Value start = lent ? pending.values[*lent] : makeNothing(carried.result.getType(), next);
    rewriter.modifyOpInPlace(next, [&] { next.getInitArgsMutable()[carried.index].set(start); });
  }
  return pending;
}

/// Says after a loop whether the loop ran.
Value Pipeliner::emitRan(scf::ForOp loop) {
  rewriter.setInsertionPointAfter(loop);
  auto isBelow = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value ran = arith::CmpIOp::create(rewriter, loop.getLoc(), isBelow, loop.getLowerBound(),
                                    loop.getUpperBound());
  setDelay(ran.getDefiningOp(), getDelay(loop));
  return ran;
}

std::pair<scf::ForOp, Pending> Pipeliner::runLoop(LateOps &step, const Pending &in) {
  scf::ForOp loop = step.loop;
  bool isFirst = in.values.empty(), isCertain = in.isCertain || isCertainToRun(loop);
  DictionaryAttr attributes = loop->getDiscardableAttrDictionary();
  // A step that always runs knows by the induction variable whether it is the first.
  bool handsOnExists = !in.isCertain && (in.exists || step.isConditional());
  rewriter.setInsertionPoint(loop);
  SmallVector<Value> inits;
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.added)
      inits.push_back(isFirst ? makeNothing(input.type, loop) : in.values[i]);
  if (handsOnExists)
    inits.push_back(in.exists ? in.exists
                              : arith::ConstantOp::create(rewriter, loop.getLoc(),
                                                          rewriter.getBoolAttr(false)));

  auto getValues = [&](ValueRange carried, ValueRange added) {
    return llvm::map_to_vector(inputs, [&](const LateInput &input) {
      return input.common ? input.common
             : input.lent ? carried[step.carried[*input.lent].index]
                          : added[*input.added];
    });
  };
  auto newLoop = cast<scf::ForOp>(*loop.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &, Location, ArrayRef<BlockArgument> added) {
        // The body is still the old loop's.
        SmallVector<Value> before(added.begin(), added.end());
        Pending pending{getValues(ValueRange(loop.getRegionIterArgs()), before), in.isCertain,
                        handsOnExists ? before.back() : Value()};
        SmallVector<Value> now = emitInTurn(step, pending);
        SmallVector<Value> left = leaveLate(step, now);
        for (Value value : now)
          eraseUnread(value);
        SmallVector<Value> after;
        for (auto [value, input] : llvm::zip_equal(left, inputs))
          if (input.added)
            after.push_back(value);
        if (handsOnExists) {
          rewriter.setInsertionPoint(step.block->getTerminator());
          after.push_back(
              arith::ConstantOp::create(rewriter, loop.getLoc(), rewriter.getBoolAttr(true)));
        }
        return widenConditions(step, after, before);
      }));
  newLoop->setDiscardableAttrs(attributes);
  step.loop = newLoop;
  ValueRange results = newLoop.getResults();
  return {newLoop,
          {getValues(results, results.take_back(inits.size())), isCertain && !handsOnExists,
           handsOnExists ? results.back()
           : isCertain   ? Value()
                         : emitRan(newLoop)}};
}

void Pipeliner::drain(scf::ForOp last, const Pending &pending) {
  SmallVector<Value> carried;
  for (const LateOps::Carried &result : steps.back().carried)
    carried.push_back(last.getResult(result.index));
  rewriter.setInsertionPointAfter(pending.exists && pending.exists.getDefiningOp() != last
                                      ? pending.exists.getDefiningOp()
                                      : last.getOperation());
  Operation *before = rewriter.getInsertionPoint()->getPrevNode();
  SmallVector<Value> drained = pending.isCertain ? emit(pending.values, /*isLast=*/true)
                                                 : emitIf(pending.exists, pending.values, carried,
                                                          /*isLast=*/true);
  Operation *end = &*rewriter.getInsertionPoint();
  // The loop may be late in a loop around it.
  for (Operation *op = before->getNextNode(); op != end; op = op->getNextNode())
    setDelay(op, getDelay(last));
  for (auto [value, now] : llvm::zip_equal(carried, drained))
    rewriter.replaceUsesWithIf(value, now, [&](OpOperand &use) {
      Operation *user = last->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return !(before->isBeforeInBlock(user) && user->isBeforeInBlock(end));
    });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// The first loop with late ops, innermost first, that does not take what another leaves.
static scf::ForOp findFirst(func::FuncOp kernel) {
  scf::ForOp found;
  kernel.walk([&](scf::ForOp loop) {
    bool isLate = false;
    loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      isLate |= getDelay(op) > 0;
      return isLate                         ? WalkResult::interrupt()
             : isa<LoopLikeOpInterface>(op) ? WalkResult::skip()
                                            : WalkResult::advance();
    });
    if (isLate)
      found = loop;
    return isLate ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

namespace {
struct PipelineStepsPass : KernelPass<attn::tile::impl::PipelineStepsPassBase<PipelineStepsPass>,
                                      within(Room::Tile), Room::Tile> {
  void getDependentDialects(DialectRegistry &registry) const override {
    PipelineStepsPassBase::getDependentDialects(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  LogicalResult transformKernel(func::FuncOp kernel) override {
    IRRewriter rewriter(&getContext());
    while (scf::ForOp loop = findFirst(kernel)) {
      Misfit misfit;
      FailureOr<SmallVector<LateOps>> chain = findChain(loop, misfit);
      if (failed(chain))
        return misfit.op->emitOpError() << misfit.why;
      Pipeliner(rewriter, std::move(*chain)).run();
    }
    WalkResult rest = kernel.walk([](Operation *op) {
      if (getDelay(op) == 0)
        return WalkResult::advance();
      op->emitOpError("expected a delayed op in an scf.for, or one that makes what the same op of "
                      "an scf.for behind it carries");
      return WalkResult::interrupt();
    });
    return failure(rest.wasInterrupted());
  }
};
} // namespace
