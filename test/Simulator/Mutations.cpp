//===- Mutations.cpp - kernels with one mistake -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/Mutations.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::test {

using Kind = Mutation::Kind;

/// The operand of a type, or null.
template <typename T> static OpOperand *findOperand(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (isa<T>(operand.get().getType()))
      return &operand;
  return nullptr;
}

/// Another value of the same type that comes from the same kind of op: the first after this one, or
/// the first of all.
static Value findOther(Value value) {
  Operation *origin = value.getDefiningOp();
  if (!origin)
    return {};
  Value first, after;
  bool isPast = false;
  origin->getParentOfType<func::FuncOp>().walk([&](Operation *op) {
    isPast |= op == origin;
    if (op == origin || op->getName() != origin->getName() ||
        op->getResult(0).getType() != value.getType() || op->getBlock() != origin->getBlock())
      return;
    if (!first)
      first = op->getResult(0);
    if (isPast && !after)
      after = op->getResult(0);
  });
  return after ? after : first;
}

/// Whether a copy or its stage is for a loop that follows one without turns: loops of attention
/// begin with one that has some.
static bool isAfterEmptyLoop(Operation *op) {
  if (op->getParentOfType<LoopLikeOpInterface>())
    return false;
  for (auto branch = op->getParentOfType<scf::IfOp>(); branch;
       branch = branch->getParentOfType<scf::IfOp>())
    if (branch.getElseRegion().isAncestor(op->getParentRegion()))
      return true;
  return false;
}

static std::vector<Kind> getKinds(Operation *op) {
  std::vector<Kind> kinds;
  if (isAfterEmptyLoop(op) || (isa<tile::CopyWaitOp>(op) && op->getNextNode() &&
                               op->getNextNode()->hasTrait<OpTrait::ReturnLike>()))
    return kinds;
  auto addOperands = [&] {
    if (findOperand<tile::SlotType>(op))
      kinds.push_back(Kind::NextSlot);
    if (OpOperand *barrier = findOperand<tile::BarrierType>(op);
        barrier && findOther(barrier->get()))
      kinds.push_back(Kind::OtherBarrier);
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case<tile::BarrierWaitOp>([&](auto wait) {
        bool isFirst = wait.getSlot() && wait.getSlot().template getDefiningOp<tile::SlotOp>();
        if (wait.getPrevious() && isFirst) {
          kinds = {Kind::TogglePrevious, Kind::OtherPhase};
          return;
        }
        kinds = {Kind::Remove, Kind::TogglePrevious};
        addOperands();
        if (wait.getSlot())
          kinds.push_back(Kind::OtherPhase);
        if (wait.getPrevious())
          std::replace(kinds.begin(), kinds.end(), Kind::NextSlot, Kind::SlotBefore);
      })
      .Case<tile::BarrierArriveOp>([&](auto arrive) {
        bool isInLoop = arrive->template getParentOfType<LoopLikeOpInterface>() != nullptr;
        Operation *origin = arrive.getSlot() ? arrive.getSlot().getDefiningOp() : nullptr;
        if (!isInLoop && isa_and_nonnull<LoopLikeOpInterface>(origin))
          return;
        kinds = {Kind::Remove, Kind::BeforeWait};
        addOperands();
      })
      .Case<tile::BarrierExpectOp>([&](auto) {
        kinds = {Kind::Remove, Kind::More, Kind::Fewer};
        addOperands();
      })
      .Case<tile::CopyAsyncOp>([&](auto) {
        kinds = {Kind::Remove};
        addOperands();
      })
      .Case<tile::GatherAsyncOp>([&](auto) { kinds = {Kind::Remove, Kind::OtherRow}; })
      .Case<tile::ArriveLandedOp>([&](auto) {
        kinds = {Kind::Remove, Kind::BeforeLanding};
        addOperands();
      })
      .Case<tile::BarrierInitOp>([&](auto init) {
        kinds = {Kind::More};
        if (init.getArrivals() > 1)
          kinds.push_back(Kind::Fewer);
      })
      .Case<tile::StageOp>([&](auto stage) {
        // The phase means nothing to a stage.
        kinds = {Kind::NextSlot};
        if (findOther(stage.getRing()))
          kinds.push_back(Kind::OtherPlace);
      })
      .Case<tile::SlotOp>([&](auto slot) {
        // Whoever has no role has one slot alone, for which all stages are alike.
        auto kernel = slot->template getParentOfType<func::FuncOp>();
        bool hasRoles = kernel.walk([](tile::SpecializeOp) { return WalkResult::interrupt(); })
                            .wasInterrupted();
        if (hasRoles)
          kinds = {Kind::OneMore};
      })
      .Case<tile::NextOp>([&](auto) { kinds = {Kind::Remove, Kind::OneMore}; })
      .Case<tile::MmaWaitOp>([&](auto wait) {
        kinds = {Kind::PendingMore};
        if (llvm::any_of(wait.getValues().getTypes(), llvm::IsaPred<RankedTensorType>))
          kinds.push_back(Kind::Untie);
      })
      .Case<tile::NamedBarrierOp>([&](auto barrier) {
        kinds = {Kind::Remove, Kind::More, Kind::Fewer, Kind::ToggleArrive};
        if (barrier.getThreads() != uint64_t(128 * tile::getRole(op).warpgroups))
          kinds.push_back(Kind::OtherId);
      })
      .Case<tile::CopyShareOp, tile::CopyWaitOp, tile::SyncOp, tile::FenceOp, tile::MmaCommitOp,
            tile::StoreWaitOp, tile::StoreAsyncOp>([&](auto) { kinds = {Kind::Remove}; });
  return kinds;
}

static const char *describe(Kind kind) {
  static const char *const names[] = {
      "remove",         "more",        "fewer",         "toggle previous", "next slot",
      "slot before",    "other phase", "other barrier", "other place",     "one more",
      "pending more",   "untie",       "toggle arrive", "other id",        "before wait",
      "before landing", "other row"};
  return names[kind];
}

std::vector<Mutation> getMutations(func::FuncOp kernel) {
  std::vector<Mutation> mutations;
  unsigned number = 0;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Kind kind : getKinds(op)) {
      std::string text;
      llvm::raw_string_ostream os(text);
      os << describe(kind) << ": op " << number << " ";
      op->print(os, OpPrintingFlags().skipRegions().useLocalScope());
      mutations.push_back({kind, number, text.substr(0, 150)});
    }
    ++number;
  });
  return mutations;
}

static Value makeNext(OpBuilder &b, Location loc, Value slot, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i)
    slot = tile::NextOp::create(b, loc, slot.getType(), slot);
  return slot;
}

static void changeCount(Operation *op, bool isMore) {
  Builder b(op->getContext());
  auto change = [&](StringRef name, int64_t value, int64_t step) {
    op->setAttr(name, b.getI64IntegerAttr(value + (isMore ? step : -step)));
  };
  if (auto expect = dyn_cast<tile::BarrierExpectOp>(op))
    return change("bytes", expect.getBytes(), 16);
  if (auto init = dyn_cast<tile::BarrierInitOp>(op))
    return change("arrivals", init.getArrivals(), 1);
  auto barrier = cast<tile::NamedBarrierOp>(op);
  change("threads", barrier.getThreads(), 32);
}

static void remove(Operation *op) {
  if (auto next = dyn_cast<tile::NextOp>(op))
    next.replaceAllUsesWith(next.getSlot());
  op->erase();
}

static void untie(tile::MmaWaitOp wait) {
  for (auto [value, result] : llvm::zip_equal(wait.getValues(), wait.getResults()))
    if (isa<RankedTensorType>(value.getType())) {
      // What is narrowed from it after the wait may then come before.
      result.replaceAllUsesWith(value);
      for (Operation *user : llvm::make_early_inc_range(value.getUsers()))
        if (isa<arith::TruncFOp>(user) && user->getBlock() == wait->getBlock())
          user->moveBefore(wait);
    }
}

static void takeOtherRow(tile::GatherAsyncOp gather) {
  auto find = gather.getRows().getDefiningOp<tile::FindRowsOp>();
  OpBuilder b(find);
  Value one = arith::ConstantIndexOp::create(b, find.getLoc(), 1);
  Value row = arith::AddIOp::create(b, find.getLoc(), find.getOffsets()[2], one);
  find.getOffsetsMutable()[2].set(row);
  gather.getOffsetsMutable()[2].set(row);
}

static void arriveBeforeLanding(tile::ArriveLandedOp op) {
  OpBuilder b(op);
  tile::BarrierArriveOp::create(b, op.getLoc(), op.getBarrier(), op.getSlot(), /*each=*/true);
  op.erase();
}

void apply(const Mutation &mutation, func::FuncOp kernel) {
  unsigned number = 0;
  Operation *op = nullptr;
  kernel.walk<WalkOrder::PreOrder>([&](Operation *candidate) {
    if (number++ == mutation.op)
      op = candidate;
  });
  OpBuilder b(op);
  Location loc = op->getLoc();
  auto shiftSlot = [&](int64_t steps) {
    OpOperand *slot = findOperand<tile::SlotType>(op);
    slot->set(makeNext(b, loc, slot->get(), steps));
  };
  switch (mutation.kind) {
  case Kind::Remove:
    return remove(op);
  case Kind::More:
  case Kind::Fewer:
    return changeCount(op, mutation.kind == Kind::More);
  case Kind::TogglePrevious: {
    auto wait = cast<tile::BarrierWaitOp>(op);
    wait.setPrevious(!wait.getPrevious());
    return;
  }
  case Kind::NextSlot:
    return shiftSlot(1);
  case Kind::SlotBefore:
  case Kind::OtherPhase: {
    OpOperand *slot = findOperand<tile::SlotType>(op);
    int64_t stages = cast<tile::SlotType>(slot->get().getType()).getStages();
    return shiftSlot(mutation.kind == Kind::OtherPhase ? stages : 2 * stages - 1);
  }
  case Kind::OtherBarrier: {
    OpOperand *barrier = findOperand<tile::BarrierType>(op);
    return barrier->set(findOther(barrier->get()));
  }
  case Kind::OtherPlace: {
    auto stage = cast<tile::StageOp>(op);
    return stage.getRingMutable().assign(findOther(stage.getRing()));
  }
  case Kind::OneMore: {
    b.setInsertionPointAfter(op);
    Value slot = op->getResult(0), next = makeNext(b, loc, slot, 1);
    return slot.replaceAllUsesExcept(next, next.getDefiningOp());
  }
  case Kind::PendingMore: {
    auto wait = cast<tile::MmaWaitOp>(op);
    wait.setPending(wait.getPending() + 1);
    return;
  }
  case Kind::Untie:
    return untie(cast<tile::MmaWaitOp>(op));
  case Kind::ToggleArrive: {
    auto barrier = cast<tile::NamedBarrierOp>(op);
    barrier.setArrive(!barrier.getArrive());
    return;
  }
  case Kind::OtherId: {
    auto barrier = cast<tile::NamedBarrierOp>(op);
    Value one = arith::ConstantIndexOp::create(b, loc, 5);
    Value other = arith::AddIOp::create(b, loc, barrier.getId(), one);
    return barrier.getIdMutable().assign(other);
  }
  case Kind::BeforeLanding:
    return arriveBeforeLanding(cast<tile::ArriveLandedOp>(op));
  case Kind::OtherRow:
    return takeOtherRow(cast<tile::GatherAsyncOp>(op));
  case Kind::BeforeWait:
    for (Operation *wait = op->getPrevNode(); wait; wait = wait->getPrevNode())
      if (isa<tile::MmaWaitOp, tile::BarrierWaitOp>(wait)) {
        // The slot may be computed in between.
        for (Value operand : op->getOperands())
          if (Operation *origin = operand.getDefiningOp();
              origin && origin->getBlock() == op->getBlock() && wait->isBeforeInBlock(origin))
            return;
        return op->moveBefore(wait);
      }
  }
}

} // namespace attn::test
