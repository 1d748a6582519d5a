//===- SpecializeWarps.cpp - tile-specialize-warps ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"

namespace attn::tile {
#define GEN_PASS_DEF_SPECIALIZEWARPSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
/// A shared tile and how its two roles hand it over. Protocol, per use of a slot:
///
///   producer: wait until `empty` of the slot's previous phase is complete; expect bytes on `full`;
///   copy, signalling `full` consumer: wait for `full` of the slot's phase; products read the
///   stage; after they are done, arrive on `empty`
///
/// `empty` counts one arrival for each consumer warpgroup. A place that is filled once has no slot
/// and no `empty`.
struct Ring {
  Value place, full, empty;
  bool isOnce() const { return !empty; }
};

/// Clones the kernel's program once for each role. What a role carries through loops beside its own
/// values are the slots of all rings, so that uses are counted across loops.
class RoleBuilder {
public:
  enum Role { Producer, Consumer };
  RoleBuilder(OpBuilder &builder, Role role, const llvm::MapVector<Value, Ring> &rings,
              IRMapping mapping)
      : b(builder), role(role), rings(rings), mapping(std::move(mapping)) {
    for (auto &[original, ring] : rings)
      if (!ring.isOnce()) {
        auto stages = cast<SharedType>(ring.place.getType()).getStages();
        order.push_back(original);
        slots[original] =
            SlotOp::create(b, ring.place.getLoc(), SlotType::get(b.getContext(), stages));
      }
  }

  void cloneOps(ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      cloneOp(*op);
  }

private:
  void cloneBlock(Block &block) {
    for (Operation &op : block.without_terminator())
      cloneOp(op);
  }

  SmallVector<Value> getSlots() {
    return llvm::map_to_vector(order, [&](Value ring) { return slots[ring]; });
  }
  void setSlots(ValueRange values) {
    for (auto [ring, value] : llvm::zip_equal(order, values))
      slots[ring] = value;
  }

  /// The producer drops tiles: it computes none.
  bool keeps(Type type) const { return role == Consumer || !isa<RankedTensorType>(type); }

  void cloneOp(Operation &op) {
    if (auto copy = dyn_cast<CopyOp>(op))
      return role == Producer ? produce(copy) : consume(copy);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return cloneLoop(loop);
    if (auto branch = dyn_cast<scf::IfOp>(op))
      return cloneIf(branch);
    if (role == Producer &&
        (isa<StoreOp>(op) || !llvm::all_of(op.getResultTypes(), [&](Type t) { return keeps(t); }) ||
         op.getNumResults() == 0))
      return;
    if (auto mma = dyn_cast<MmaOp>(op))
      return multiply(mma);
    b.clone(op, mapping);
  }

  void cloneLoop(scf::ForOp loop) {
    SmallVector<Value> inits;
    SmallVector<unsigned> kept;
    for (auto [i, init] : llvm::enumerate(loop.getInitArgs()))
      if (keeps(init.getType())) {
        inits.push_back(mapping.lookupOrDefault(init));
        kept.push_back(i);
      }
    llvm::append_range(inits, getSlots());
    auto clone = scf::ForOp::create(b, loop.getLoc(), mapping.lookupOrDefault(loop.getLowerBound()),
                                    mapping.lookupOrDefault(loop.getUpperBound()),
                                    mapping.lookupOrDefault(loop.getStep()), inits);
    mapping.map(loop.getInductionVar(), clone.getInductionVar());
    for (auto [i, index] : llvm::enumerate(kept))
      mapping.map(loop.getRegionIterArgs()[index], clone.getRegionIterArgs()[i]);
    setSlots(clone.getRegionIterArgs().take_back(order.size()));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(clone.getBody());
    cloneBlock(*loop.getBody());
    SmallVector<Value> yields;
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (unsigned index : kept)
      yields.push_back(mapping.lookupOrDefault(yield.getOperand(index)));
    llvm::append_range(yields, getSlots());
    scf::YieldOp::create(b, loop.getLoc(), yields);
    for (auto [i, index] : llvm::enumerate(kept))
      mapping.map(loop.getResult(index), clone.getResult(i));
    setSlots(clone.getResults().take_back(order.size()));
  }

  void cloneIf(scf::IfOp branch) {
    SmallVector<Type> types;
    SmallVector<unsigned> kept;
    for (auto [i, type] : llvm::enumerate(branch.getResultTypes()))
      if (keeps(type)) {
        types.push_back(type);
        kept.push_back(i);
      }
    SmallVector<Value> before = getSlots();
    llvm::append_range(types, ValueRange(before).getTypes());
    auto clone =
        scf::IfOp::create(b, branch.getLoc(), types, mapping.lookupOrDefault(branch.getCondition()),
                          /*withElseRegion=*/true);
    for (auto [from, to] : llvm::zip(branch->getRegions(), clone->getRegions())) {
      OpBuilder::InsertionGuard guard(b);
      to.front().clear();
      b.setInsertionPointToEnd(&to.front());
      setSlots(before);
      SmallVector<Value> yields;
      if (!from.empty()) {
        cloneBlock(from.front());
        for (unsigned index : kept)
          yields.push_back(
              mapping.lookupOrDefault(from.front().getTerminator()->getOperand(index)));
      }
      llvm::append_range(yields, getSlots());
      scf::YieldOp::create(b, branch.getLoc(), yields);
    }
    for (auto [i, index] : llvm::enumerate(kept))
      mapping.map(branch.getResult(index), clone.getResult(i));
    setSlots(clone.getResults().take_back(order.size()));
  }

  Value getStage(Location loc, const Ring &ring, Value slot) {
    if (ring.isOnce())
      return ring.place;
    return StageOp::create(b, loc, cast<SharedType>(ring.place.getType()).getStageType(),
                           ring.place, slot);
  }

  void produce(CopyOp copy) {
    const Ring &ring = rings.find(copy.getDest())->second;
    Location loc = copy.getLoc();
    Value slot = slots.lookup(copy.getDest());
    int64_t bytes = cast<SharedType>(ring.place.getType()).getStageBytes();
    if (!ring.isOnce())
      BarrierWaitOp::create(b, loc, ring.empty, slot, /*previous=*/true);
    BarrierExpectOp::create(b, loc, ring.full, slot, bytes);
    SmallVector<Value> offsets = llvm::map_to_vector(
        copy.getOffsets(), [&](Value offset) { return mapping.lookupOrDefault(offset); });
    CopyAsyncOp::create(b, loc, mapping.lookupOrDefault(copy.getSource()), offsets,
                        getStage(loc, ring, slot), ring.full, slot);
    if (!ring.isOnce())
      slots[copy.getDest()] = NextOp::create(b, loc, slot);
  }

  /// Waits for the stage; products read it by the place's name, and give it back when they are
  /// done.
  void consume(CopyOp copy) {
    const Ring &ring = rings.find(copy.getDest())->second;
    Value slot = slots.lookup(copy.getDest());
    BarrierWaitOp::create(b, copy.getLoc(), ring.full, slot, /*previous=*/false);
    mapping.map(copy.getDest(), getStage(copy.getLoc(), ring, slot));
  }

  void multiply(MmaOp mma) {
    Location loc = mma.getLoc();
    auto type = cast<RankedTensorType>(mma.getType());
    Value acc = mma.getAcc() ? mapping.lookupOrDefault(mma.getAcc()) : Value();
    Value flying = MmaAsyncOp::create(
        b, loc, InFlightType::get(b.getContext(), type), mapping.lookupOrDefault(mma.getLhs()),
        mapping.lookupOrDefault(mma.getRhs()), acc, mma.getTransposeLhs(), mma.getTransposeRhs());
    MmaCommitOp::create(b, loc);
    auto wait = MmaWaitOp::create(b, loc, TypeRange{type}, 0, ValueRange{flying});
    mapping.map(mma.getResult(), wait->getResult(0));
    for (Value operand : {mma.getLhs(), mma.getRhs()})
      if (auto ring = rings.find(operand); ring != rings.end() && !ring->second.isOnce()) {
        BarrierArriveOp::create(b, loc, ring->second.empty, slots[operand]);
        slots[operand] = NextOp::create(b, loc, slots[operand]);
      }
  }

  OpBuilder &b;
  Role role;
  const llvm::MapVector<Value, Ring> &rings;
  IRMapping mapping;
  SmallVector<Value> order;
  DenseMap<Value, Value> slots;
};

struct SpecializeWarpsPass : attn::tile::impl::SpecializeWarpsPassBase<SpecializeWarpsPass> {
  using Base::Base;

  /// Whether the op, or one inside of it, is about tiles: roles run it, each its own part.
  static bool isOnTiles(Operation *op) {
    auto isTile = [](Type type) { return isa<RankedTensorType, SharedType>(type); };
    return op
        ->walk([&](Operation *inner) {
          bool isOn = isa<CopyOp, StoreOp>(inner) ||
                      llvm::any_of(inner->getResultTypes(), isTile) ||
                      llvm::any_of(inner->getOperandTypes(), isTile);
          return isOn && !isa<AllocSharedOp>(inner) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Level `placed`, as far as splitting it depends on that.
  static LogicalResult checkLevel(func::FuncOp kernel) {
    WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
      if (isa_and_nonnull<TileDialect>(op->getDialect()) &&
          !isa<LoadOp, GatherOp, StoreOp, AllocSharedOp, CopyOp, MmaOp, ReduceOp, BroadcastOp,
               CoordOp, ConvertLayoutOp>(op))
        return op->emitOpError("does not belong to level 'placed': roles are made here");
      if (auto copy = dyn_cast<CopyOp>(op)) {
        auto place = copy.getDest().getDefiningOp<AllocSharedOp>();
        if (!place || place->getParentOp() != kernel)
          return copy.emitOpError("expected a tile.alloc_shared of the kernel as destination");
      }
      if (op->getNumRegions() != 0 && op != kernel && !isa<scf::ForOp, scf::IfOp>(op) &&
          isOnTiles(op))
        return op->emitOpError("expected scf.for and scf.if around tiles");
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  /// Nobody would give back what nobody reads, and the producer would wait for ever.
  static void eraseUnreadPlaces(func::FuncOp kernel) {
    SmallVector<AllocSharedOp> unread;
    kernel.walk([&](AllocSharedOp place) {
      if (llvm::all_of(place->getUsers(), llvm::IsaPred<CopyOp>))
        unread.push_back(place);
    });
    for (AllocSharedOp place : unread) {
      for (Operation *copy : llvm::make_early_inc_range(place->getUsers()))
        copy->erase();
      place->erase();
    }
  }

  /// Erases ops of `body` that the roles have copies of; fails where something else needs them: a
  /// scalar of the producer that comes from a tile, or a tile that is read before its copy.
  static LogicalResult eraseAll(Block &body, ArrayRef<Operation *> ops) {
    llvm::SmallPtrSet<Operation *, 16> set(llvm::from_range, ops);
    auto check = [&](ValueRange values) -> LogicalResult {
      for (Value value : values)
        for (Operation *user : value.getUsers())
          if (!set.contains(body.findAncestorOpInBlock(*user)))
            return user->emitOpError("expected scalars that do not come from tiles, and copies "
                                     "before what reads them");
      return success();
    };
    for (Operation *op : ops) {
      WalkResult walk = op->walk([&](Operation *inner) -> WalkResult {
        if (failed(check(inner->getResults())))
          return failure();
        for (Region &region : inner->getRegions())
          if (failed(check(ValueRange(region.getArguments()))))
            return failure();
        return success();
      });
      if (walk.wasInterrupted())
        return failure();
    }
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    return success();
  }

  /// The ring of each place that is copied to. Barriers come right after the places, at the head of
  /// the kernel.
  FailureOr<llvm::MapVector<Value, Ring>> makeRings(func::FuncOp kernel, int64_t consumers) {
    // A place that is filled once is no ring.
    llvm::MapVector<Value, bool> isLooped;
    kernel.walk([&](CopyOp copy) {
      auto [entry, isFirst] = isLooped.insert({copy.getDest(), false});
      entry->second |= !isFirst || copy->getParentOfType<LoopLikeOpInterface>();
    });
    llvm::MapVector<Value, Ring> rings;
    OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
    for (auto [place, looped] : isLooped) {
      auto type = cast<SharedType>(place.getType());
      int64_t count = looped ? int64_t(stages) : 1;
      Ring ring;
      auto ringType = SharedType::getChecked(
          [place] { return place.getDefiningOp()->emitOpError("cannot be a ring: "); },
          &getContext(), type.getShape(), type.getElementType(), type.getSwizzle(), count);
      if (!ringType)
        return failure();
      ring.place = AllocSharedOp::create(b, place.getLoc(), ringType, IntegerAttr());
      ring.full = BarrierInitOp::create(b, place.getLoc(), BarrierType::get(&getContext(), count),
                                        1, IntegerAttr());
      if (looped)
        ring.empty = BarrierInitOp::create(
            b, place.getLoc(), BarrierType::get(&getContext(), count), consumers, IntegerAttr());
      rings.insert({place, ring});
    }
    return rings;
  }

  LogicalResult specialize(func::FuncOp kernel) {
    auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
    int64_t consumers = attribute.getWarpgroups();
    if (failed(checkLevel(kernel)))
      return failure();
    auto withProducer =
        KernelAttr::getChecked([&] { return kernel.emitOpError("has no room for a producer: "); },
                               &getContext(), consumers + 1, attribute.getGrid());
    if (!withProducer)
      return failure();
    Block &body = kernel.getBody().front();

    // What all roles compute for themselves stays in front: scalars, up to the first op on tiles.
    SmallVector<Operation *> program;
    for (Operation &op : body.without_terminator())
      if (isOnTiles(&op))
        program.push_back(&op);
    FailureOr<llvm::MapVector<Value, Ring>> rings = makeRings(kernel, consumers);
    if (failed(rings))
      return failure();
    OpBuilder b(body.getTerminator());
    SyncOp::create(b, kernel.getLoc());

    OperationState state(kernel.getLoc(), SpecializeOp::getOperationName());
    state.addRegion();
    state.addRegion();
    // Registers of a thread: the producer needs few, the consumers share the rest of 65536 / 128 =
    // 512 per warpgroup.
    int64_t consumerRegisters = consumers == 1 ? 240 : consumers == 2 ? 240 : 160;
    int64_t producerRegisters = consumers == 3 ? 32 : 24;
    state.addAttribute("names", b.getStrArrayAttr({"producer", "consumer"}));
    state.addAttribute("warpgroups", b.getDenseI64ArrayAttr({1, consumers}));
    state.addAttribute("registers", b.getDenseI64ArrayAttr({producerRegisters, consumerRegisters}));
    state.addAttribute("elected", b.getDenseBoolArrayAttr({true, false}));
    auto roles = cast<SpecializeOp>(b.create(state));
    for (auto role : {RoleBuilder::Producer, RoleBuilder::Consumer}) {
      OpBuilder inner(&getContext());
      inner.createBlock(&roles->getRegion(role));
      RoleBuilder(inner, role, *rings, IRMapping()).cloneOps(program);
      YieldOp::create(inner, kernel.getLoc());
    }
    SmallVector<Operation *> replaced;
    for (auto &[place, ring] : *rings)
      replaced.push_back(place.getDefiningOp());
    llvm::append_range(replaced, program);
    if (failed(eraseAll(body, replaced)))
      return failure();
    kernel->setAttr(TileDialect::kKernelAttrName, withProducer);
    return success();
  }

  static bool copies(func::FuncOp kernel) {
    return kernel.walk([](CopyOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }

  void runOnOperation() override {
    if (stages < 1 || stages > 64) {
      getOperation()->emitError("expected 1 to 64 stages, got ") << stages.getValue();
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr(TileDialect::kKernelAttrName))
        continue;
      eraseUnreadPlaces(kernel);
      if (copies(kernel) && failed(specialize(kernel)))
        return signalPassFailure();
    }
  }
};
} // namespace
