//===- Delays.cpp - ops that run some turns behind their loop ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Delays.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn::tile;

int64_t attn::tile::getDelay(Operation *op) {
  auto delay = op->getAttrOfType<IntegerAttr>(TileDialect::kDelayAttrName);
  return delay ? delay.getInt() : 0;
}

void attn::tile::setDelay(Operation *op, int64_t turns) {
  if (turns > 0)
    op->setAttr(TileDialect::kDelayAttrName, Builder(op->getContext()).getI64IntegerAttr(turns));
  else
    op->removeAttr(TileDialect::kDelayAttrName);
}

static LogicalResult refuse(Misfit &misfit, Operation *op, std::string why) {
  misfit = {op, std::move(why)};
  return failure();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static SmallVector<MemoryEffects::EffectInstance> getEffects(Operation *op) {
  std::optional<SmallVector<MemoryEffects::EffectInstance>> effects = getEffectsRecursively(op);
  // An op that does not say what it does may do anything.
  return effects ? *effects
                 : SmallVector<MemoryEffects::EffectInstance>{
                       MemoryEffects::EffectInstance(MemoryEffects::Write::get())};
}

/// Whether the order of two ops matters. Memory of different arguments does not overlap.
static bool touchSameMemory(Operation *a, Operation *b) {
  for (const MemoryEffects::EffectInstance &one : getEffects(a))
    for (const MemoryEffects::EffectInstance &other : getEffects(b)) {
      bool isRead =
          isa<MemoryEffects::Read>(one.getEffect()) && isa<MemoryEffects::Read>(other.getEffect());
      bool isApart = one.getValue() && other.getValue() && one.getValue() != other.getValue();
      if (!isRead && !isApart)
        return true;
    }
  return false;
}

bool attn::tile::touchSameMemory(ArrayRef<Operation *> late, Operation *begin, Operation *end) {
  for (Operation *op = begin; op != end; op = op->getNextNode())
    if (!llvm::is_contained(late, op) &&
        llvm::any_of(late, [&](Operation *one) { return ::touchSameMemory(one, op); }))
      return true;
  return false;
}

/// Late ops go past those of the next turn.
static LogicalResult checkMemory(scf::ForOp loop, const LateOps &late, Misfit &misfit) {
  for (Operation *op : late.ops) {
    WalkResult result = loop.getBody()->walk([&](Operation *other) {
      bool isInside = llvm::any_of(late.ops, [&](Operation *one) {
        return one->isAncestor(other) && getDelay(one) == getDelay(op);
      });
      bool isAround = other->isAncestor(op);
      return !isInside && !isAround && other->getNumRegions() == 0 && ::touchSameMemory(op, other)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    });
    if (result.wasInterrupted())
      return refuse(misfit, op,
                    "expected a delayed op whose memory nobody writes in the loop, and that writes "
                    "none that others access");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Late ops outside of loops inside, which have their own.
static SmallVector<Operation *> collectLateOps(Block &block) {
  SmallVector<Operation *> late;
  block.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (getDelay(op) > 0)
      late.push_back(op);
    return getDelay(op) > 0 || isa<LoopLikeOpInterface>(op) ? WalkResult::skip()
                                                            : WalkResult::advance();
  });
  return late;
}

/// Finds what the block's terminator takes. Other readers of late values are as late.
static LogicalResult checkReaders(LateOps &late, Misfit &misfit) {
  for (Operation *op : late.ops)
    for (OpResult result : op->getResults())
      for (OpOperand &use : result.getUses()) {
        Operation *reader = late.block->findAncestorOpInBlock(*use.getOwner());
        if (use.getOwner() == late.block->getTerminator())
          late.carried.push_back({result, use.getOperandNumber(), 0});
        else if (getDelay(reader) < getDelay(op))
          return refuse(misfit, reader,
                        llvm::formatv("expected tile.delay of at least {0}, as what it reads has, "
                                      "got {1}",
                                      getDelay(op), getDelay(reader)));
      }
  return success();
}

/// Follows what the block's terminator takes to what the loop carries, through the results of
/// conditions around it. Without the step it stays what it was.
static LogicalResult followCarried(LateOps &late, LateOps::Carried &carried, Misfit &misfit) {
  Operation *maker = carried.result.getDefiningOp();
  SmallVector<OpOperand *> others;
  Block *block = late.block;
  unsigned operand = carried.operand;
  while (block != late.loop.getBody()) {
    auto branch = cast<scf::IfOp>(block->getParentOp());
    Block *other = branch.thenBlock() == block ? branch.elseBlock() : branch.thenBlock();
    others.push_back(&other->getTerminator()->getOpOperand(operand));
    Value result = branch.getResult(operand);
    block = branch->getBlock();
    if (!result.hasOneUse() || *result.user_begin() != block->getTerminator())
      return refuse(misfit, maker, "expected a delayed result that its loop carries only");
    operand = result.use_begin()->getOperandNumber();
  }
  carried.index = operand;
  Value before = late.loop.getRegionIterArg(operand);
  for (OpOperand *other : others)
    if (other->get() != before)
      return refuse(misfit, maker,
                    "expected what is carried to stay the same where a delayed op does not run");
  for (OpOperand &use : before.getUses()) {
    if (llvm::is_contained(others, &use))
      continue;
    Operation *reader = late.block->findAncestorOpInBlock(*use.getOwner());
    if (!reader)
      return refuse(misfit, use.getOwner(),
                    "expected to read what a delayed op carries only beside that op");
    if (getDelay(reader) + 1 < getDelay(maker))
      return refuse(misfit, reader,
                    llvm::formatv("expected tile.delay of at least {0}, as what it reads of the "
                                  "turn before has {1}, got {2}",
                                  getDelay(maker) - 1, getDelay(maker), getDelay(reader)));
  }
  return success();
}

/// Steps are under no other conditions than those of scf.if.
static LogicalResult checkConditions(const LateOps &late, Misfit &misfit) {
  scf::ForOp loop = late.loop;
  for (Block *block = late.block; block != loop.getBody(); block = block->getParentOp()->getBlock())
    if (!isa<scf::IfOp>(block->getParentOp()))
      return refuse(misfit, late.ops.front(),
                    "expected a delayed op in its loop's body or in an scf.if there");
  return success();
}

llvm::SetVector<Value> attn::tile::getCaptured(Operation *op) {
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return captured;
}

bool attn::tile::isHandedOn(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile ? tile.hasStaticShape() && !llvm::is_contained(tile.getShape(), 0) &&
                    tile.getElementType().isIntOrIndexOrFloat()
              : type.isIntOrIndexOrFloat();
}

/// Steps hand on numbers and tiles.
static LogicalResult checkInputs(const LateOps &late, Misfit &misfit) {
  scf::ForOp loop = late.loop;
  auto check = [&](Operation *op, Value value) -> LogicalResult {
    if (loop.isDefinedOutsideOfLoop(value) || isHandedOn(value.getType()))
      return success();
    return refuse(misfit, op,
                  llvm::formatv("expected numbers and tiles from a delayed op's turn, got {0}",
                                value.getType()));
  };
  for (Operation *op : late.ops) {
    for (Value operand : op->getOperands())
      if (failed(check(op, operand)))
        return failure();
    for (Value value : getCaptured(op))
      if (failed(check(op, value)))
        return failure();
  }
  for (const LateOps::Carried &carried : late.carried)
    if (failed(check(carried.result.getDefiningOp(), carried.result)))
      return failure();
  return success();
}

FailureOr<LateOps> attn::tile::findLateOps(scf::ForOp loop, Misfit &misfit) {
  LateOps late{loop, loop.getBody(), collectLateOps(*loop.getBody()), {}};
  if (late.ops.empty())
    return late;
  late.block = late.ops.front()->getBlock();
  for (Operation *op : late.ops)
    if (op->getBlock() != late.block)
      return refuse(misfit, op, "expected all delayed ops of a loop in one block");
  if (failed(checkConditions(late, misfit)) || failed(checkReaders(late, misfit)) ||
      failed(checkInputs(late, misfit)))
    return failure();
  for (LateOps::Carried &carried : late.carried)
    if (failed(followCarried(late, carried, misfit)))
      return failure();
  if (failed(checkMemory(loop, late, misfit)))
    return failure();
  return late;
}

LateOps attn::tile::findLateOpsBefore(scf::ForOp loop, ValueRange inits) {
  LateOps late{{}, loop->getBlock(), {}, {}};
  SetVector<Operation *> found;
  auto visit = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && op->getBlock() == late.block && getDelay(op) > 0)
      found.insert(op);
  };
  llvm::for_each(inits, visit);
  for (size_t i = 0; i < found.size(); ++i)
    llvm::for_each(found[i]->getOperands(), visit);
  late.ops = found.takeVector();
  llvm::sort(late.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : late.ops)
    for (OpResult result : op->getResults())
      for (OpOperand &use : result.getUses())
        if (use.getOwner() == loop)
          late.carried.push_back({result, use.getOperandNumber(),
                                  use.getOperandNumber() - loop.getNumControlOperands()});
  return late;
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// Upstream's bounds do not look into a minimum, which is below what either of its operands is
/// below, or a maximum, which is above what either is above.
static bool isCertainlyBelow(Value begin, Value end) {
  SmallVector<Value, 2> lower{begin}, upper{end};
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

bool attn::tile::isCertainToRun(scf::ForOp loop) {
  if (!loop.getInductionVar().getType().isIndex())
    return false;
  SmallVector<Value> begins{loop.getLowerBound()};
  if (auto parts = begins.front().getDefiningOp<PartBeginOp>())
    begins = llvm::to_vector(parts->getOperands());
  return llvm::all_of(begins,
                      [&](Value begin) { return isCertainlyBelow(begin, loop.getUpperBound()); });
}
