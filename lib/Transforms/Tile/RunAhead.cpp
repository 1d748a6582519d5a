//===- RunAhead.cpp - tile-run-ahead ----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// On a machine without roles all threads of a block run one program. A copy goes on from where
// it starts to where threads wait for it. Then all threads meet, since each waits for its
// own share only.
//
// In a loop, threads meet before the first reader of each place. A tile starts to come at the first
// meeting after the last reader of the tile before it: in the turn before its own, or at the head
// of its own. With places of two stages all tiles of a turn start to come at the head of the turn
// before:
//
//   one stage                             two stages
//   keys of turn 0
//   loop:                                 loop:
//     wait for keys, meet                   wait for keys and values, meet
//     values of this turn                   keys and values of the next turn
//     product with keys                     product with keys
//     wait for values, meet                 product with values
//     keys of the next turn
//     product with values
//
// The next turn of the last one is the first turn of the loop that follows, if loops of a chain
// fill the same places.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "lib/Transforms/Tile/Meetings.h"
#include "lib/Transforms/Tile/Passes.h"
#include "lib/Transforms/Tile/Variables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn::tile {
#define GEN_PASS_DEF_RUNAHEADPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Copies of another turn
//===----------------------------------------------------------------------===//

/// Whether the value can be used at an op as it is.
static bool isAvailable(Value value, Operation *at) {
  Operation *ancestor = value.getParentBlock()->findAncestorOpInBlock(*at);
  Operation *origin = value.getDefiningOp();
  return ancestor && (!origin || origin->isBeforeInBlock(ancestor));
}

/// The op of the value, if it gives the same number wherever it stands, or null: kernels do not
/// write what they read.
static Operation *getRepeatable(Value value) {
  Operation *op = value.getDefiningOp();
  bool isRepeatable = op && op->getNumRegions() == 0 &&
                      (isa<memref::LoadOp, memref::DimOp>(op) || isMemoryEffectFree(op));
  return isRepeatable ? op : nullptr;
}

/// Whether the values follow, by ops that give the same numbers elsewhere, from ones that are known
/// there.
static bool followFrom(SmallVector<Value> values, function_ref<bool(Value)> isKnown) {
  DenseSet<Value> seen;
  while (!values.empty()) {
    Value value = values.pop_back_val();
    if (!seen.insert(value).second || isKnown(value))
      continue;
    Operation *op = getRepeatable(value);
    if (!op)
      return false;
    llvm::append_range(values, op->getOperands());
  }
  return true;
}

namespace {
/// Computes values of a turn of a loop elsewhere, for another number of the turn.
class Turn {
public:
  /// Of `loop`, where its number is `number`; or what is outside of all loops of a chain.
  Turn(OpBuilder &b, scf::ForOp loop, Value number) : b(b), loop(loop) {
    if (loop)
      mapping.map(loop.getInductionVar(), number);
  }

  /// The value at the insertion point, or null if it needs another one that nobody knows.
  Value compute(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    bool isOfTurn = loop && loop.getBody()->findAncestorOpInBlock(*getOwner(value));
    bool isCarried = loop && value.getParentBlock() == loop.getBody() && isa<BlockArgument>(value);
    if (!isOfTurn && !isCarried && isAvailable(value, &*b.getInsertionPoint()))
      return value;
    Operation *op = getRepeatable(value);
    if (!op)
      return {};
    for (Value operand : op->getOperands())
      if (!compute(operand))
        return {};
    return b.clone(*op, mapping)->getResult(cast<OpResult>(value).getResultNumber());
  }

private:
  static Operation *getOwner(Value value) {
    Operation *op = value.getDefiningOp();
    return op ? op : value.getParentBlock()->getParentOp();
  }

  OpBuilder &b;
  scf::ForOp loop;
  IRMapping mapping;
};

/// A copy of a loop's body that starts before its turn, or at its head.
struct Moved {
  CopyOp copy;
  /// The op before which threads meet and it starts to come.
  Operation *start;
  /// Whether what comes is the next turn's.
  bool isAhead;
  /// Its readers.
  SmallVector<OpOperand *> uses;
};

/// A loop whose copies move.
struct Mover {
  scf::ForOp loop;
  SmallVector<Moved> copies;
  /// The loop that follows in a chain, and whether it is the first of one.
  Mover *next = nullptr;
  bool isFirst = true;
};
} // namespace

/// Whether the offsets of a copy follow from the number of the turn, and from values outside of the
/// loop.
static bool dependsOnNumberAlone(scf::ForOp loop, CopyOp copy) {
  return followFrom(copy.getOffsets(), [&](Value value) {
    return value == loop.getInductionVar() || loop.isDefinedOutsideOfLoop(value);
  });
}

//===----------------------------------------------------------------------===//
// Which copies move
//===----------------------------------------------------------------------===//

namespace {
/// A tile that a loop's body fills and reads in each of its turns.
struct Fill {
  CopyOp copy;
  Operation *first, *last;
  SmallVector<OpOperand *> uses;
};

struct LoopFills {
  scf::ForOp loop;
  /// In the order of their first readers.
  SmallVector<Fill> fills;
};
} // namespace

static SmallVector<Fill> findFills(scf::ForOp loop, ArrayRef<PlaceLifetimes> places) {
  SmallVector<Fill> fills;
  for (const PlaceLifetimes &place : places) {
    SmallVector<Fill> ofPlace;
    bool isSimple = true;
    for (const Lifetime &lifetime : place.lifetimes) {
      if (!loop->isProperAncestor(lifetime.fill))
        continue;
      auto copy = dyn_cast<CopyOp>(lifetime.fill);
      isSimple &= copy && copy->getBlock() == loop.getBody() && lifetime.readers.size() == 1 &&
                  dependsOnNumberAlone(loop, copy);
      if (isSimple) {
        const Readers &readers = lifetime.readers.front().second;
        ofPlace.push_back({copy, readers.first, readers.last, readers.uses});
      }
    }
    if (isSimple && ofPlace.size() == 1)
      fills.push_back(std::move(ofPlace.front()));
  }
  llvm::stable_sort(fills,
                    [](const Fill &a, const Fill &b) { return a.first->isBeforeInBlock(b.first); });
  return fills;
}

/// The places that such loops alone fill.
static DenseSet<Value> findRefilled(ArrayRef<LoopFills> loops, ArrayRef<PlaceLifetimes> places) {
  DenseSet<Operation *> ofLoops;
  for (const LoopFills &each : loops)
    for (const Fill &fill : each.fills)
      ofLoops.insert(fill.copy);
  DenseSet<Value> refilled;
  for (const PlaceLifetimes &place : places)
    if (llvm::all_of(place.lifetimes,
                     [&](const Lifetime &lifetime) { return ofLoops.contains(lifetime.fill); }))
      refilled.insert(AllocSharedOp(place.place).getResult());
  return refilled;
}

/// A place of one stage is filled at the first meeting after it has been read; a ring at the head
/// of each turn, for the next.
static SmallVector<Moved> chooseMoved(ArrayRef<Fill> fills, const DenseSet<Value> &rings) {
  SmallVector<Moved> moved;
  for (const Fill &fill : fills) {
    CopyOp copy = fill.copy;
    Operation *head = fills.front().first;
    const Fill *later = llvm::find_if(
        fills, [&](const Fill &other) { return fill.last->isBeforeInBlock(other.first); });
    if (rings.contains(copy.getDest()))
      moved.push_back({copy, head, /*isAhead=*/true, fill.uses});
    else if (later != fills.end())
      moved.push_back({copy, later->first, /*isAhead=*/true, fill.uses});
    else if (fill.first != head)
      moved.push_back({copy, head, /*isAhead=*/false, fill.uses});
  }
  return moved;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
class AheadRunner {
public:
  AheadRunner(func::FuncOp kernel, ArrayRef<PlaceLifetimes> places)
      : kernel(kernel), b(kernel.getContext()) {
    findMovers(places);
    for (auto &mover : movers)
      findNext(*mover);
  }

  LogicalResult run() {
    DenseMap<Operation *, Mover *> loops, starts;
    DenseSet<Operation *> ends;
    for (auto &mover : movers) {
      loops[mover->loop] = mover.get();
      for (const Moved &moved : mover->copies)
        starts[moved.start] = mover.get();
      if (!rings.empty())
        ends.insert(mover->loop.getBody()->getTerminator());
    }
    auto enter = [&](Operation *op) {
      b.setInsertionPoint(op);
      if (Mover *mover = loops.lookup(op))
        startChain(*mover);
      if (Mover *mover = starts.lookup(op))
        start(*mover, op);
      if (ends.contains(op))
        slots[0] = NextOp::create(b, op->getLoc(), slots[0]);
    };
    if (failed(slots.run(kernel.getBody().front(), enter, [](Operation *, Operation *) {})))
      return failure();
    for (auto &mover : movers)
      for (Moved &moved : mover->copies)
        moved.copy.erase();
    for (auto &[place, ring] : rings)
      place.getDefiningOp()->erase();
    kernel.walk([&](CopyOp copy) {
      b.setInsertionPoint(copy);
      CopyShareOp::create(b, copy.getLoc(), copy.getSource(), copy.getOffsets(), copy.getDest());
      copy.erase();
    });
    return success();
  }

private:
  void findMovers(ArrayRef<PlaceLifetimes> places) {
    std::vector<LoopFills> loops;
    kernel.walk([&](scf::ForOp loop) {
      if (SmallVector<Fill> fills = findFills(loop, places); !fills.empty())
        loops.push_back({loop, std::move(fills)});
    });
    auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
    DenseSet<Value> refilled;
    if (attribute.getSchedule().stages >= kStages)
      refilled = findRefilled(loops, places);
    for (LoopFills &each : loops)
      if (SmallVector<Moved> moved = chooseMoved(each.fills, refilled); !moved.empty())
        movers.push_back(std::make_unique<Mover>(Mover{each.loop, std::move(moved)}));
    addRings(places, refilled);
  }

  /// Rings in place of these, and the slot that says which of their stages a turn reads.
  void addRings(ArrayRef<PlaceLifetimes> places, const DenseSet<Value> &refilled) {
    for (const PlaceLifetimes &each : places) {
      AllocSharedOp place = each.place;
      if (!refilled.contains(place.getResult()))
        continue;
      SharedType type = place.getType();
      SharedType ring = type.withStages(kStages);
      b.setInsertionPoint(place);
      rings[place.getResult()] = AllocSharedOp::create(b, place.getLoc(), ring, IntegerAttr());
    }
    if (rings.empty())
      return;
    b.setInsertionPointToStart(&kernel.getBody().front());
    slots.add(SlotOp::create(b, kernel.getLoc(), SlotType::get(b.getContext(), kStages)));
    for (auto &mover : movers)
      slots.addChange(0, mover->loop.getBody()->getTerminator());
  }

  static SmallVector<const Moved *> getAhead(const Mover &mover) {
    SmallVector<const Moved *> ahead;
    for (const Moved &moved : mover.copies)
      if (moved.isAhead)
        ahead.push_back(&moved);
    return ahead;
  }

  bool isRing(const Moved &moved) const {
    CopyOp copy = moved.copy;
    return rings.contains(copy.getDest());
  }

  /// Whether two loops run the same places ahead, and nothing between them touches these.
  static bool areAlike(const Mover &mover, const Mover &other) {
    SmallVector<const Moved *> mine = getAhead(mover), theirs = getAhead(other);
    Block *block = mover.loop->getBlock();
    if (mine.empty() || mine.size() != theirs.size() || block != other.loop->getBlock())
      return false;
    auto isBetween = [&](Operation *user) {
      Operation *at = block->findAncestorOpInBlock(*user);
      return at && mover.loop->isBeforeInBlock(at) && at->isBeforeInBlock(other.loop);
    };
    return llvm::all_of(llvm::zip_equal(mine, theirs), [&](auto pair) {
      CopyOp first = std::get<0>(pair)->copy, second = std::get<1>(pair)->copy;
      return first.getDest() == second.getDest() &&
             llvm::none_of(first.getDest().getUsers(), isBetween);
    });
  }

  /// Whether what the loop's first turn needs is known before another loop begins.
  static bool isKnownBefore(const Mover &mover, scf::ForOp another) {
    scf::ForOp loop = mover.loop;
    SmallVector<Value> values = {loop.getLowerBound(), loop.getUpperBound()};
    for (const Moved *moved : getAhead(mover)) {
      CopyOp copy = moved->copy;
      llvm::append_range(values, copy.getOffsets());
    }
    return followFrom(std::move(values), [&](Value value) {
      return value == loop.getInductionVar() || isAvailable(value, another);
    });
  }

  void findNext(Mover &mover) {
    Mover *next = nullptr;
    for (auto &other : movers)
      if (other.get() != &mover && other->loop->getBlock() == mover.loop->getBlock() &&
          mover.loop->isBeforeInBlock(other->loop) &&
          (!next || other->loop->isBeforeInBlock(next->loop)))
        next = other.get();
    if (!next || !areAlike(mover, *next) || !isKnownBefore(*next, mover.loop))
      return;
    mover.next = next;
    next->isFirst = false;
  }

  /// The place that a copy fills, or a stage of the ring in its place.
  Value getDest(CopyOp copy, Value slot) {
    auto ring = rings.find(copy.getDest());
    if (ring == rings.end())
      return copy.getDest();
    auto type = cast<SharedType>(ring->second.getType()).getStageType();
    return StageOp::create(b, copy.getLoc(), type, ring->second, slot);
  }

  /// Starts copies as in turn `number` of the loop, into the stage of `slot`.
  void copyAt(const Mover &mover, ArrayRef<const Moved *> copies, Value number, Value slot) {
    Turn turn(b, mover.loop, number);
    for (const Moved *moved : copies) {
      CopyOp copy = moved->copy;
      SmallVector<Value> offsets;
      for (Value offset : copy.getOffsets()) {
        offsets.push_back(turn.compute(offset));
        assert(offsets.back() && "dependsOnNumberAlone and isKnownBefore looked at the same");
      }
      CopyShareOp::create(b, copy.getLoc(), copy.getSource(), offsets, getDest(copy, slot));
    }
  }

  /// Tiles of a chain's first turn come before the chain, if it has a turn.
  void startChain(const Mover &mover) {
    SmallVector<const Moved *> ahead = getAhead(mover);
    if (mover.isFirst && !ahead.empty())
      startFrom(mover, llvm::to_vector(llvm::seq<unsigned>(0, ahead.size())),
                rings.empty() ? Value() : slots[0]);
  }

  /// Copies for the first turn of the first loop that has one, from `mover` on: of what runs ahead
  /// there, those with such numbers.
  void startFrom(const Mover &mover, ArrayRef<unsigned> which, Value slot) {
    scf::ForOp loop = mover.loop;
    Turn outside(b, {}, {});
    Value lower = outside.compute(loop.getLowerBound()),
          upper = outside.compute(loop.getUpperBound());
    startIf(mover, lower, upper, which, slot);
  }

  /// Copies for turn `number` if the loop has it, or else for the first turn that follows.
  void startIf(const Mover &mover, Value number, Value upper, ArrayRef<unsigned> which,
               Value slot) {
    scf::ForOp loop = mover.loop;
    Location loc = loop.getLoc();
    Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number, upper);
    auto branch = scf::IfOp::create(b, loc, exists, /*withElseRegion=*/mover.next != nullptr);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(branch.thenBlock()->getTerminator());
    SmallVector<const Moved *> ahead = getAhead(mover);
    copyAt(mover, llvm::map_to_vector(which, [&](unsigned index) { return ahead[index]; }), number,
           slot);
    if (!mover.next)
      return;
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    startFrom(*mover.next, which, slot);
  }

  /// Threads meet before `op`, where copies start.
  void start(Mover &mover, Operation *op) {
    // A loop that carries a slot has taken the place of the one before.
    mover.loop = cast<scf::ForOp>(op->getParentOp());
    Location loc = op->getLoc();
    CopyWaitOp::create(b, loc);
    SyncOp::create(b, loc);
    SmallVector<const Moved *> inTurn;
    for (const Moved &moved : mover.copies)
      if (moved.start == op && !moved.isAhead)
        inTurn.push_back(&moved);
    copyAt(mover, inTurn, mover.loop.getInductionVar(), Value());
    SmallVector<unsigned> which;
    Value slot;
    for (auto [index, moved] : llvm::enumerate(getAhead(mover))) {
      if (moved->start != op)
        continue;
      which.push_back(index);
      if (!isRing(*moved))
        continue;
      // Readers of this turn find the tile in the turn's stage.
      Value stage = getDest(moved->copy, slots[0]);
      for (OpOperand *use : moved->uses)
        use->set(stage);
      if (!slot)
        slot = NextOp::create(b, loc, slots[0]);
    }
    if (which.empty())
      return;
    Value next = arith::AddIOp::create(b, loc, mover.loop.getInductionVar(), mover.loop.getStep());
    startIf(mover, next, mover.loop.getUpperBound(), which, slot);
  }

  static constexpr int64_t kStages = 2;

  func::FuncOp kernel;
  IRRewriter b;
  SmallVector<std::unique_ptr<Mover>> movers;
  /// By the places of one stage that they replace.
  llvm::MapVector<Value, Value> rings;
  Variables slots{b};
};

struct RunAheadPass : KernelPass<attn::tile::impl::RunAheadPassBase<RunAheadPass>,
                                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (attn::plan::getMachine(kernel).hasRoles() || kernel->hasAttr(TileDialect::kRolesAttrName))
      return success();
    FailureOr<SmallVector<PlaceLifetimes>> places = findLifetimes(kernel);
    if (failed(places) || failed(AheadRunner(kernel, *places).run()))
      return failure();
    meetBetweenAccesses(kernel);
    return success();
  }
};
} // namespace
