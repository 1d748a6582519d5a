//===- Lifetimes.cpp - who fills a place, and who reads it until when --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Lifetimes.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Machine/Pages.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

bool attn::tile::isGathered(CopyOp copy) {
  auto argument = dyn_cast<BlockArgument>(copy.getSource());
  auto kernel = argument ? dyn_cast_or_null<func::FuncOp>(argument.getOwner()->getParentOp())
                         : func::FuncOp();
  auto paged = kernel ? kernel.getArgAttrOfType<PagedAttr>(argument.getArgNumber(),
                                                           PlanDialect::kPagedAttrName)
                      : PagedAttr();
  SharedType type = cast<SharedType>(copy.getDest().getType());
  return paged && !copiesPagesAsBoxes(getMachine(copy), paged.getPage(), type.getElementBytes());
}

bool PlaceLifetimes::isOnce() const {
  return lifetimes.size() == 1 && !lifetimes.front().fill->getParentOfType<LoopLikeOpInterface>();
}

bool PlaceLifetimes::isHeld() const {
  return llvm::any_of(lifetimes, [](const Lifetime &lifetime) {
    auto around = lifetime.fill->getParentOfType<LoopLikeOpInterface>();
    return llvm::any_of(lifetime.readers, [&](const auto &entry) {
      return llvm::any_of(entry.second.uses, [&](OpOperand *use) {
        return use->getOwner()->template getParentOfType<LoopLikeOpInterface>() != around;
      });
    });
  });
}

bool PlaceLifetimes::isGathered() const {
  auto copy = dyn_cast<CopyOp>(lifetimes.front().fill);
  return copy && attn::tile::isGathered(copy);
}

bool PlaceLifetimes::isReadByProducts() const {
  return llvm::any_of(lifetimes, [](const Lifetime &lifetime) {
    return llvm::any_of(lifetime.readers, [](const auto &entry) {
      return llvm::any_of(entry.second.uses,
                          [](OpOperand *use) { return isa<MmaOp>(use->getOwner()); });
    });
  });
}

namespace {
/// The accesses to one place, in the program's order.
struct Accesses {
  SmallVector<Operation *> fills;
  SmallVector<OpOperand *> reads;
};
} // namespace

/// Adds the accesses of the op to the place that it names.
static LogicalResult addAccess(Accesses &accesses, OpOperand &use) {
  Operation *op = use.getOwner();
  // A reader that makes zeros reads them afterwards.
  bool clears = isa<ClearUnreadOp>(op);
  auto interface = dyn_cast<MemoryEffectOpInterface>(op);
  bool reads = false, writes = false;
  if (interface) {
    SmallVector<MemoryEffects::EffectInstance> effects;
    interface.getEffectsOnValue(use.get(), effects);
    for (const MemoryEffects::EffectInstance &effect : effects) {
      reads |= isa<MemoryEffects::Read>(effect.getEffect());
      writes |= isa<MemoryEffects::Write>(effect.getEffect()) && !clears;
    }
  }
  if (reads == writes || (writes && !isa<CopyOp, StoreOp, TransposeOp>(op)) ||
      (reads && !isa<MmaOp, LoadColumnsOp, LoadSharedOp, TransposeOp>(op) && !clears))
    return op->emitOpError("expected tile.copy, tile.store, tile.transpose, tile.load_columns, "
                           "tile.load_shared, tile.clear_unread or tile.mma as a user of a place");
  bool hasRoles = op->getParentOfType<func::FuncOp>()->hasAttr(TileDialect::kRolesAttrName);
  if (hasRoles && !getKernelRole(op))
    return op->emitOpError("expected a tile.role, which tile-assign-roles decides, got none");
  if (writes)
    accesses.fills.push_back(op);
  else
    accesses.reads.push_back(&use);
  return success();
}

Operation *attn::tile::findBehind(Operation *fill, Operation *op) {
  Operation *ancestor = fill->getBlock()->findAncestorOpInBlock(*op);
  return ancestor && fill->isBeforeInBlock(ancestor) ? ancestor : nullptr;
}

/// The last fill that the op comes after on all ways to it.
static Lifetime *findLifetime(MutableArrayRef<Lifetime> lifetimes, Operation *reader) {
  for (Lifetime &lifetime : llvm::reverse(lifetimes))
    if (findBehind(lifetime.fill, reader))
      return &lifetime;
  return nullptr;
}

static void addReader(Lifetime &lifetime, OpOperand &use) {
  Readers &readers = lifetime.readers[getKernelRole(use.getOwner())];
  readers.uses.push_back(&use);
  Operation *op = findBehind(lifetime.fill, use.getOwner());
  Operation *first = op;
  // Its lhs in registers is converted right before it.
  while (isa<ConvertLayoutOp>(first->getPrevNode()))
    first = first->getPrevNode();
  if (!readers.first || first->isBeforeInBlock(readers.first))
    readers.first = first;
  if (!readers.last || readers.last->isBeforeInBlock(op))
    readers.last = op;
}

/// No fill comes between another and its last reader.
static LogicalResult verifyApart(const PlaceLifetimes &place) {
  for (const Lifetime &lifetime : place.lifetimes)
    for (const Lifetime &other : place.lifetimes) {
      Operation *between = &other == &lifetime ? nullptr : findBehind(lifetime.fill, other.fill);
      for (const auto &[role, readers] : lifetime.readers) {
        if (!between || readers.last->isBeforeInBlock(between))
          continue;
        InFlightDiagnostic error = readers.uses.back()->getOwner()->emitOpError(
            "expected a place that is not filled again before this reads it");
        error.attachNote(lifetime.fill->getLoc()) << "it is filled here";
        error.attachNote(other.fill->getLoc()) << "and again here";
        return error;
      }
    }
  return success();
}

/// All fills are of one kind, by one role.
static LogicalResult verifyWriter(const PlaceLifetimes &place) {
  Operation *first = place.lifetimes.front().fill;
  for (const Lifetime &lifetime : place.lifetimes) {
    if (getKernelRole(lifetime.fill) == place.writer &&
        lifetime.fill->getName() == first->getName())
      continue;
    InFlightDiagnostic error = lifetime.fill->emitOpError("expected its place to be filled by ")
                               << first->getName() << " of role " << place.writer.getName()
                               << " only, got role " << getKernelRole(lifetime.fill).getName();
    error.attachNote(first->getLoc()) << "the first to fill it is this";
    return error;
  }
  return success();
}

static FailureOr<PlaceLifetimes> makePlace(AllocSharedOp alloc, const Accesses &accesses) {
  PlaceLifetimes place;
  place.place = alloc;
  for (Operation *fill : accesses.fills)
    place.lifetimes.emplace_back().fill = fill;
  for (OpOperand *use : accesses.reads) {
    Lifetime *lifetime = findLifetime(place.lifetimes, use->getOwner());
    if (!lifetime) {
      InFlightDiagnostic error = use->getOwner()->emitOpError(
          "expected a fill of its place before it, in its block or around it, got none");
      for (Operation *fill : accesses.fills)
        error.attachNote(fill->getLoc()) << "the place is filled here";
      return error;
    }
    addReader(*lifetime, *use);
    place.readers.insert(getKernelRole(use->getOwner()));
  }
  // Before fills without readers go: the next turn of a loop may read one.
  if (failed(verifyApart(place)))
    return failure();
  // Nobody misses what nobody reads.
  for (Lifetime &lifetime : place.lifetimes)
    if (lifetime.readers.empty())
      lifetime.fill->erase();
  llvm::erase_if(place.lifetimes, [](const Lifetime &l) { return l.readers.empty(); });
  if (place.lifetimes.empty())
    return place;
  for (const Lifetime &lifetime : place.lifetimes)
    for (const auto &[role, readers] : lifetime.readers)
      if (isa<LoadSharedOp, TransposeOp>(readers.last))
        place.threadReaders.insert(role);
  place.writer = getKernelRole(place.lifetimes.front().fill);
  if (failed(verifyWriter(place)))
    return failure();
  return place;
}

FailureOr<SmallVector<PlaceLifetimes>> attn::tile::findLifetimes(func::FuncOp kernel) {
  llvm::MapVector<Operation *, Accesses> accesses;
  // By the order of the first accesses; uses of one value come in no order of their own.
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (auto alloc = operand.get().getDefiningOp<AllocSharedOp>();
          alloc && failed(addAccess(accesses[alloc], operand)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  SmallVector<PlaceLifetimes> places;
  for (auto &[alloc, list] : accesses) {
    FailureOr<PlaceLifetimes> place = makePlace(cast<AllocSharedOp>(alloc), list);
    if (failed(place))
      return failure();
    if (!place->lifetimes.empty())
      places.push_back(std::move(*place));
  }
  return places;
}
