//===- MakeRings.cpp - tile-make-rings ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// The program stays one program: every op that waits, copies, arrives or fences says in tile.role
// who runs it. In the order of this program nobody waits for what comes later, so that the roles,
// each with its own part of it in the same order, cannot block each other.
//
// A place that one role fills and others read becomes a ring. Per use of a slot:
//
//   writer:   wait until `empty` of the slot's previous phase is complete; fill the stage; tell
//             `full`: a copy by its bytes, threads by an arrival of each, behind a fence if
//             products read it; threads that gather rows go on, and arrive as these land
//   reader:   before its first read, wait for `full` of the slot's phase, and fence if rows were
//             gathered for products; after its last, arrive on `empty`: each unit that multiplies
//             if that is a product, or each thread
//
// A place that is filled once has one stage, no slot and no `empty`. Where the threads of one role
// hand a tile over to each other, they meet when it is stored, and before that too if the place has
// one stage. With more stages, they take them in turns by the slot of a ring that they read in the
// same steps. Then no thread stores to a stage again before all threads have met after the tile in
// between, and so are done with the tile before.
//
// A row of numbers travels with a tile. If it is filled with the tile and read before the tile's
// last product, by roles that read the tile, it needs no barriers of its own. That product also
// says that all threads have read the row.
//
// A warpgroup that passes over turns of a loop (tile.part_begin) waits for the stages that it would
// have read in each turn, and gives them back. So phases count, and no warpgroup arrives twice in a
// phase. The warps of the warpgroup meet in between, as they do at a product. A stage that one warp
// gives back may be filled again, and a warp that waited for the phase before would wait for ever.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "lib/Transforms/Tile/Rings.h"
#include "lib/Transforms/Tile/Variables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn::tile {
#define GEN_PASS_DEF_MAKERINGSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// The stages that warpgroups of a role pass over in a turn of a loop, by the loop's uses of rings.
struct Passing {
  RoleAttr role;
  SmallVector<Ring *> rings;
};

/// A reader's lifetime begins before or ends after an op.
struct Event {
  Ring *ring;
  RoleAttr role;
  /// Which one of the ring's.
  unsigned lifetime;
};

class RingMaker {
public:
  RingMaker(func::FuncOp kernel, MutableArrayRef<Ring> rings)
      : kernel(kernel), machine(attn::plan::getMachine(kernel)), rings(rings),
        stages(
            kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getSchedule().stages),
        b(kernel.getContext()) {}

  LogicalResult run() {
    for (const Ring &ring : rings)
      if (failed(checkRing(ring)))
        return failure();
    if (failed(checkClearings(kernel)))
      return failure();
    chooseStages();
    for (Ring &ring : rings) {
      declare(ring);
      schedule(ring);
    }
    kernel.walk([&](scf::ForOp loop) { passOver(loop); });
    if (failed(slots.run(
            kernel.getBody().front(), [&](Operation *op) { enter(op); },
            [&](Operation *op, Operation *now) { leave(op, now); })))
      return failure();
    for (Ring &ring : rings) {
      erase(ring.uses);
      for (Passenger &passenger : ring.passengers)
        erase(passenger.uses);
    }
    for (ClearUnreadOp clearing : clearings)
      b.eraseOp(clearing);
    return success();
  }

private:
  static LogicalResult checkClearings(func::FuncOp kernel);
  int64_t countThreads(RoleAttr role) const;
  /// Where each of them arrives at a barrier, and where one arrives for each product.
  int64_t countArriving(RoleAttr role) const;
  int64_t countUnits(RoleAttr role) const;
  /// Products that read shared memory themselves see what threads wrote after a fence only.
  bool needsFence() const { return machine.product.form != attn::Product::Form::Registers; }
  bool isWhole(const PlaceLifetimes &uses) const;
  int64_t countStages(const Ring &ring) const;
  bool fits() const;
  /// As many stages for all rings as fit.
  void chooseStages();
  void findGuide(Ring &ring);
  void declare(Ring &ring);
  void schedule(Ring &ring);
  /// In front of a loop that warpgroups begin late, a loop over what they pass over.
  void passOver(scf::ForOp loop);

  void erase(PlaceLifetimes &uses) {
    for (Lifetime &lifetime : uses.lifetimes)
      b.eraseOp(lifetime.fill);
    b.eraseOp(uses.place);
  }
  /// The place of `uses` as a ring of so many stages.
  Value allocate(const PlaceLifetimes &uses, int64_t count);

  /// Fills a stage, as `lifetime` says, with the tile and with what travels with it.
  void fill(Ring &ring, unsigned lifetime);
  void copyBoxes(Ring &ring, unsigned lifetime, Value slot);
  void gather(Ring &ring, CopyOp copy, Value rows, Value slot);
  void store(Ring &ring, Operation *op, Value slot);
  void acquire(const Event &event);
  void release(const Event &event);
  void pass(const Passing &passing);
  void clear(ClearUnreadOp op);
  /// Emits the events before an op, and those after the op that has replaced it.
  void enter(Operation *op);
  void leave(Operation *op, Operation *now);

  /// The op as one of a role.
  template <typename OpT, typename... Args> OpT create(RoleAttr role, Args &&...args) {
    auto op = OpT::create(b, loc, std::forward<Args>(args)...);
    op->setAttr(TileDialect::kRoleAttrName, role.getName());
    return op;
  }
  Value getSlot(std::optional<unsigned> index) const { return index ? slots[*index] : Value(); }
  Value getStage(Value ring, Value slot) {
    if (!slot)
      return ring;
    return StageOp::create(b, loc, cast<SharedType>(ring.getType()).getStageType(), ring, slot);
  }
  /// To the next use.
  void advance(std::optional<unsigned> index) {
    if (index)
      slots[*index] = NextOp::create(b, loc, slots[*index]);
  }
  /// All threads of the role meet.
  void meet(RoleAttr role);
  /// The threads of each of its warpgroups meet.
  void meetWarpgroup(RoleAttr role);
  /// Where the warps of the role write what they read.
  Value getMarks(RoleAttr role);

  func::FuncOp kernel;
  const attn::Machine &machine;
  MutableArrayRef<Ring> rings;
  int64_t stages;
  /// Of rings whose place a loop reads for long.
  int64_t heldStages = 1;
  IRRewriter b;
  Location loc = b.getUnknownLoc();
  Variables slots{b};
  DenseMap<Operation *, std::pair<Ring *, unsigned>> fills;
  llvm::SmallDenseMap<RoleAttr, Value> marks;
  /// The ops that `clear` has replaced.
  SmallVector<ClearUnreadOp> clearings;
  DenseMap<Operation *, SmallVector<Event>> before, after;
  /// By the ends of bodies.
  DenseMap<Operation *, Passing> passings;
};
} // namespace

//===----------------------------------------------------------------------===//
// Places and barriers
//===----------------------------------------------------------------------===//

int64_t RingMaker::countThreads(RoleAttr role) const {
  return machine.warpgroupThreads * role.getWarpgroups();
}

int64_t RingMaker::countArriving(RoleAttr role) const {
  return role.getElected() ? 1 : countThreads(role);
}

int64_t RingMaker::countUnits(RoleAttr role) const {
  return role.getElected() ? 1 : machine.getUnits(role.getWarpgroups());
}

/// Whether a stage of the place may follow another one (shared_c4).
bool RingMaker::isWhole(const PlaceLifetimes &uses) const {
  AllocSharedOp place = uses.place;
  SharedType type = place.getType();
  int64_t step = type.isRow() ? attn::kRowBytes : machine.stageBytes;
  return type.getStageBytes() % step == 0;
}

int64_t RingMaker::countStages(const Ring &ring) const {
  bool areWhole = isWhole(ring.uses) && llvm::all_of(ring.passengers, [&](const Passenger &row) {
                    return isWhole(row.uses);
                  });
  if (ring.uses.isOnce() || !areWhole)
    return 1;
  if (ring.uses.isLocal())
    return ring.guide ? countStages(*ring.guide) : 1;
  return ring.uses.isHeld() ? heldStages : stages;
}

void RingMaker::chooseStages() {
  heldStages = stages;
  if (!fits())
    heldStages = 1;
  for (Ring &ring : rings)
    if (ring.uses.isLocal() && !ring.uses.isOnce())
      findGuide(ring);
}

/// A ring of several stages that the threads read in each step in which they fill the place, and
/// only there, until they have read the place. Not for wide tiles of several loops: threads have no
/// registers left for addresses that change (D = 64 under a mask spills).
void RingMaker::findGuide(Ring &ring) {
  constexpr int64_t mostColumns = 64;
  AllocSharedOp place = ring.uses.place;
  if (ring.uses.lifetimes.size() > 1 && place.getType().getShape().back() > mostColumns)
    return;
  RoleAttr role = ring.uses.writer;
  auto isRead = [&](auto pair) {
    auto &[inner, outer] = pair;
    auto own = inner.readers.find(role);
    auto readers = outer.readers.find(role);
    return own != inner.readers.end() && readers != outer.readers.end() &&
           inner.fill->getBlock() == outer.fill->getBlock() &&
           readers->second.first->isBeforeInBlock(inner.fill) &&
           own->second.last->isBeforeInBlock(readers->second.last);
  };
  for (const Ring &other : rings) {
    if (other.uses.isLocal() || countStages(other) == 1 ||
        other.uses.lifetimes.size() != ring.uses.lifetimes.size() ||
        !llvm::all_of(llvm::zip_equal(ring.uses.lifetimes, other.uses.lifetimes), isRead))
      continue;
    ring.guide = &other;
    if (fits())
      return;
    ring.guide = nullptr;
  }
}

/// Whether all rings and their barriers fit a block.
bool RingMaker::fits() const {
  int64_t bytes = 0;
  for (const Ring &ring : rings) {
    AllocSharedOp place = ring.uses.place;
    int64_t count = countStages(ring);
    // Two barriers of 8 bytes; a place begins where a stage may.
    bytes +=
        llvm::alignTo(place.getType().getStageBytes() * count, machine.stageBytes) + 16 * count;
    for (const Passenger &passenger : ring.passengers) {
      AllocSharedOp row = passenger.uses.place;
      bytes += llvm::alignTo(row.getType().getStageBytes() * count, machine.stageBytes);
    }
  }
  // In addition to the marks that say which rows have been read.
  return bytes + machine.stageBytes <= attn::tile::getMostSharedBytes(kernel);
}

Value RingMaker::allocate(const PlaceLifetimes &uses, int64_t count) {
  AllocSharedOp place = uses.place;
  SharedType type = place.getType();
  return AllocSharedOp::create(b, place.getLoc(), type.withStages(count), IntegerAttr());
}

void RingMaker::declare(Ring &ring) {
  // After the barriers of the rings before, at the head of the kernel.
  if (&ring == rings.begin())
    b.setInsertionPointToStart(&kernel.getBody().front());
  loc = ring.uses.place.getLoc();
  bool isOnce = ring.uses.isOnce(), isLocal = ring.uses.isLocal();
  int64_t count = countStages(ring);
  ring.place = allocate(ring.uses, count);
  for (Passenger &passenger : ring.passengers)
    passenger.place = allocate(passenger.uses, count);
  if (isLocal)
    return;
  auto barrierType = BarrierType::get(b.getContext(), count);
  bool isByThreads = ring.uses.isStored() || ring.uses.isGathered();
  int64_t fillers = isByThreads ? countArriving(ring.uses.writer) : 1;
  ring.full = BarrierInitOp::create(b, loc, barrierType, fillers, IntegerAttr());
  if (isOnce)
    return;
  int64_t readers = 0;
  for (RoleAttr role : ring.uses.readers)
    readers += ring.uses.isReadByThreads(role) ? countArriving(role) : countUnits(role);
  ring.empty = BarrierInitOp::create(b, loc, barrierType, readers, IntegerAttr());
  auto addSlot = [&] {
    return slots.add(SlotOp::create(b, loc, SlotType::get(b.getContext(), count)));
  };
  ring.writerSlot = addSlot();
  for (RoleAttr role : ring.uses.readers)
    ring.readerSlots[role] = addSlot();
}

void RingMaker::schedule(Ring &ring) {
  for (auto [index, lifetime] : llvm::enumerate(ring.uses.lifetimes)) {
    // All that travels together is filled at once, when the last of it is known.
    Operation *fill = lifetime.fill;
    for (Passenger &passenger : ring.passengers)
      if (Operation *other = passenger.uses.lifetimes[index].fill; fill->isBeforeInBlock(other))
        fill = other;
    fills[fill] = {&ring, index};
    if (ring.writerSlot)
      slots.addChange(*ring.writerSlot, fill);
    for (auto &[role, readers] : lifetime.readers) {
      Operation *first = readers.first;
      for (Passenger &passenger : ring.passengers)
        if (Operation *other = passenger.uses.lifetimes[index].readers.lookup(role).first;
            other && other->isBeforeInBlock(first))
          first = other;
      before[first].push_back({&ring, role, unsigned(index)});
      after[readers.last].push_back({&ring, role, unsigned(index)});
      if (std::optional<unsigned> slot = ring.getReaderSlot(role); slot && !ring.guide)
        slots.addChange(*slot, readers.last);
    }
  }
}

void RingMaker::passOver(scf::ForOp loop) {
  auto begin = loop.getLowerBound().getDefiningOp<PartBeginOp>();
  if (!begin)
    return;
  b.setInsertionPoint(loop);
  auto passed = scf::ForOp::create(b, loop.getLoc(), begin.getAll(), begin, loop.getStep());
  Operation *end = passed.getBody()->getTerminator();
  Passing &passing = passings[end];
  for (Ring &ring : rings)
    for (const Lifetime &lifetime : ring.uses.lifetimes) {
      if (!loop->isProperAncestor(lifetime.fill))
        continue;
      passing.role = lifetime.readers.front().first;
      passing.rings.push_back(&ring);
      slots.addChange(*ring.getReaderSlot(passing.role), end);
    }
}

//===----------------------------------------------------------------------===//
// The protocol
//===----------------------------------------------------------------------===//

void RingMaker::meet(RoleAttr role) {
  auto roles = kernel->getAttrOfType<ArrayAttr>(TileDialect::kRolesAttrName);
  // 0 is the whole block's.
  int64_t id = 1 + std::distance(roles.begin(), llvm::find(roles, role));
  Value number = arith::ConstantIndexOp::create(b, loc, id);
  create<NamedBarrierOp>(role, /*arrive=*/false, number, countThreads(role));
}

void RingMaker::meetWarpgroup(RoleAttr role) {
  // After the barriers of roles.
  auto roles = kernel->getAttrOfType<ArrayAttr>(TileDialect::kRolesAttrName);
  Value first = arith::ConstantIndexOp::create(b, loc, 1 + roles.size());
  Value number = create<arith::AddIOp>(role, first, create<WarpgroupOp>(role));
  create<NamedBarrierOp>(role, /*arrive=*/false, number, machine.warpgroupThreads);
}

void RingMaker::fill(Ring &ring, unsigned lifetime) {
  Operation *op = ring.uses.lifetimes[lifetime].fill;
  RoleAttr role = ring.uses.writer;
  Value slot = getSlot(ring.guide ? ring.getReaderSlot(role) : ring.writerSlot);
  // A table answers while the stage is still in use.
  Value rows;
  if (ring.uses.isGathered()) {
    auto copy = cast<CopyOp>(op);
    auto type = cast<SharedType>(copy.getDest().getType());
    rows = create<FindRowsOp>(role,
                              RowsType::get(b.getContext(), type.getNumRows(), machine.getWarps(1)),
                              copy.getSource(), copy.getOffsets());
  }
  if (ring.empty)
    create<BarrierWaitOp>(role, ring.empty, slot, /*previous=*/true);
  if (rows)
    gather(ring, cast<CopyOp>(op), rows, slot);
  else if (isa<CopyOp>(op))
    copyBoxes(ring, lifetime, slot);
  else
    store(ring, op, slot);
  advance(ring.writerSlot);
}

void RingMaker::copyBoxes(Ring &ring, unsigned lifetime, Value slot) {
  RoleAttr role = ring.uses.writer;
  create<BarrierExpectOp>(role, ring.full, slot, ring.countBytes());
  auto start = [&](CopyOp copy, Value place) {
    create<CopyAsyncOp>(role, copy.getSource(), copy.getOffsets(), getStage(place, slot), ring.full,
                        slot);
  };
  start(cast<CopyOp>(ring.uses.lifetimes[lifetime].fill), ring.place);
  for (Passenger &passenger : ring.passengers)
    start(cast<CopyOp>(passenger.uses.lifetimes[lifetime].fill), passenger.place);
}

void RingMaker::gather(Ring &ring, CopyOp copy, Value rows, Value slot) {
  RoleAttr role = ring.uses.writer;
  create<GatherAsyncOp>(role, copy.getSource(), copy.getOffsets(), rows,
                        getStage(ring.place, slot));
  create<ArriveLandedOp>(role, ring.full, slot);
}

void RingMaker::store(Ring &ring, Operation *op, Value slot) {
  RoleAttr role = ring.uses.writer;
  // Readers of the tile that threads wrote before have to be done with it.
  if (ring.uses.isLocal() && !ring.uses.isOnce() && !slot)
    meet(role);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    create<TransposeOp>(role, transpose.getSource(), getStage(ring.place, slot));
  else
    create<StoreOp>(role, cast<StoreOp>(op).getValue(), getStage(ring.place, slot), ValueRange());
  if (ring.uses.isReadByProducts() && needsFence())
    create<FenceOp>(role, FenceKind::AsyncShared);
  if (ring.full)
    create<BarrierArriveOp>(role, ring.full, slot, /*each=*/true);
  else
    meet(role);
}

void RingMaker::acquire(const Event &event) {
  Value slot = getSlot(event.ring->getReaderSlot(event.role));
  if (event.ring->full)
    create<BarrierWaitOp>(event.role, event.ring->full, slot, /*previous=*/false);
  // Those who gathered it do not wait until it is there, and so cannot fence.
  if (event.ring->uses.isGathered() && event.ring->uses.isReadByProducts() && needsFence())
    create<FenceOp>(event.role, FenceKind::AsyncShared);
  auto enter = [&](PlaceLifetimes &uses, Value place) {
    Value stage = getStage(place, slot);
    for (OpOperand *use : uses.lifetimes[event.lifetime].readers.lookup(event.role).uses)
      use->set(stage);
  };
  enter(event.ring->uses, event.ring->place);
  for (Passenger &passenger : event.ring->passengers)
    enter(passenger.uses, passenger.place);
}

void RingMaker::release(const Event &event) {
  if (event.ring->guide)
    return;
  std::optional<unsigned> slot = event.ring->getReaderSlot(event.role);
  if (slot)
    create<BarrierArriveOp>(event.role, event.ring->empty, getSlot(slot),
                            /*each=*/event.ring->uses.isReadByThreads(event.role));
  advance(slot);
}

void RingMaker::pass(const Passing &passing) {
  for (Ring *ring : passing.rings)
    create<BarrierWaitOp>(passing.role, ring->full, slots[*ring->getReaderSlot(passing.role)],
                          /*previous=*/false);
  meetWarpgroup(passing.role);
  for (Ring *ring : passing.rings) {
    unsigned slot = *ring->getReaderSlot(passing.role);
    create<BarrierArriveOp>(passing.role, ring->empty, slots[slot],
                            /*each=*/ring->uses.isReadByThreads(passing.role));
    advance(slot);
  }
}

Value RingMaker::getMarks(RoleAttr role) {
  Value &place = marks[role];
  if (!place) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&kernel.getBody().front());
    place = AllocSharedOp::create(
        b, loc, getMarksType(b.getContext(), machine.getWarps(role.getWarpgroups())),
        IntegerAttr());
  }
  return place;
}

/// Marks have a bit for each column, and threads clear 16 bits at a time.
LogicalResult RingMaker::checkClearings(func::FuncOp kernel) {
  WalkResult walk = kernel.walk([](ClearUnreadOp op) -> WalkResult {
    auto by = op.getBy() ? dyn_cast<RankedTensorType>(op.getBy().getType()) : RankedTensorType();
    if (!by || !getKernelRole(op))
      return WalkResult::advance();
    auto values = dyn_cast<SharedType>(op.getValues().getType());
    if (values && values.getElementBytes() == 2 && by.getDimSize(1) <= kMarkedColumns &&
        isa<FloatType>(by.getElementType()) && by.getElementTypeBitWidth() == 16 &&
        isa_and_nonnull<AccAttr>(by.getEncoding()))
      return WalkResult::advance();
    return op.emitOpError("expected a shared tile of 16-bit elements, and weights of 16-bit floats "
                          "in #tile.acc and at most ")
           << kMarkedColumns << " columns, got " << op.getValues().getType() << " and " << by;
  });
  return failure(walk.wasInterrupted());
}

/// Between the reader's wait for the stage and its product. The fence lets products see what
/// threads clear, and the copy that fills the stage next come after it. The second meeting also
/// says that the marks may be written again.
void RingMaker::clear(ClearUnreadOp op) {
  RoleAttr role = getKernelRole(op);
  Value condition = op.getCondition();
  if (!condition)
    condition = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  Value marks;
  if (op.getBy()) {
    marks = getMarks(role);
    create<MarkReadOp>(role, op.getBy(), marks);
    meet(role);
  }
  create<ClearUnreadOp>(role, Type(), op.getValues(), marks, op.getFrom(), Value());
  create<FenceOp>(role, FenceKind::AsyncShared);
  meet(role);
  clearings.push_back(op);
}

void RingMaker::enter(Operation *op) {
  b.setInsertionPoint(op);
  loc = op->getLoc();
  for (const Event &event : before.lookup(op))
    acquire(event);
  if (auto it = fills.find(op); it != fills.end())
    fill(*it->second.first, it->second.second);
  if (auto clearing = dyn_cast<ClearUnreadOp>(op); clearing && getKernelRole(op))
    clear(clearing);
  if (auto it = passings.find(op); it != passings.end())
    pass(it->second);
}

void RingMaker::leave(Operation *op, Operation *now) {
  auto events = after.find(op);
  if (events == after.end())
    return;
  b.setInsertionPointAfter(now);
  loc = now->getLoc();
  for (const Event &event : events->second)
    release(event);
}

/// Whether warpgroups can pass over turns of the loop: all that happens in one is that one role
/// copies and another multiplies. Where threads of a role meet, all have to come.
static bool canPassOver(scf::ForOp loop, PartBeginOp begin) {
  RoleAttr reader;
  WalkResult walk = loop.getBody()->walk([&](Operation *op) -> WalkResult {
    RoleAttr role = getKernelRole(op);
    if (isa<LoopLikeOpInterface>(op))
      return WalkResult::interrupt();
    if (!role || (isa<CopyOp>(op) && role.getElected()))
      return WalkResult::advance();
    if (!isa<MmaOp, LoadColumnsOp>(op) || (reader && role != reader) || !takesParts(role, begin))
      return WalkResult::interrupt();
    reader = role;
    return WalkResult::advance();
  });
  return reader && !walk.wasInterrupted();
}

/// Loops of which no turn can be passed over begin for all at once, as without roles all do.
static void beginTogether(func::FuncOp kernel) {
  kernel.walk([](PartBeginOp begin) {
    auto canPass = [&](OpOperand &use) {
      auto loop = dyn_cast<scf::ForOp>(use.getOwner());
      return !loop || (use.get() == loop.getLowerBound() && canPassOver(loop, begin));
    };
    if (llvm::all_of(begin->getUses(), canPass))
      return;
    begin.getResult().replaceAllUsesWith(begin.getAll());
    begin.erase();
  });
}

namespace {
struct MakeRingsPass
    : KernelPass<attn::tile::impl::MakeRingsPassBase<MakeRingsPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    beginTogether(kernel);
    if (!kernel->hasAttr(TileDialect::kRolesAttrName))
      return success();
    FailureOr<SmallVector<PlaceLifetimes>> places = findLifetimes(kernel);
    if (failed(places))
      return failure();
    FailureOr<std::vector<Ring>> rings = findRings(*places);
    if (failed(rings))
      return failure();
    return RingMaker(kernel, *rings).run();
  }
};
} // namespace
