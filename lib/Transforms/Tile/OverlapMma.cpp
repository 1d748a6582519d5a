//===- OverlapMma.cpp - tile-overlap-mma -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPMMAPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// Groups that a wait can leave in flight.
static constexpr int64_t kMostPending = 7;

namespace {
/// A product in flight.
struct Flight {
  MmaAsyncOp product;
  MmaWaitOp wait;
  /// The ops that give its operands back when it is done: arrivals, which follow the wait.
  SmallVector<Operation *> releases;
};
} // namespace

/// Right after the wait.
static void moveReleases(Flight &flight, MmaWaitOp wait) {
  Operation *last = wait;
  for (Operation *release : flight.releases) {
    release->moveAfter(last);
    last = release;
  }
}

static Attribute getRoleName(Operation *op) { return op->getAttr(TileDialect::kRoleAttrName); }

/// Checks constraints on operands that only a product in flight has (mma_async_c2, c3).
static LogicalResult checkOperands(MmaOp mma) {
  auto rhs = cast<SharedType>(mma.getRhs().getType());
  int64_t k = rhs.getShape()[mma.getTransposeRhs() ? 1 : 0],
          step = attn::plan::getMachine(mma).product.sumBytes / rhs.getElementBytes();
  if (k % step != 0)
    return mma.emitOpError("expected K in multiples of ")
           << step << " in a product that is to be in flight, got " << k;
  if (rhs.getElementBytes() == 1 && (mma.getTransposeLhs() || !mma.getTransposeRhs()))
    return mma.emitOpError("expected 8-bit operands with K contiguous (lhs not transposed, rhs "
                           "transposed) in a product that is to be in flight, got ")
           << (mma.getTransposeLhs() ? "lhs transposed" : "rhs not transposed");
  return success();
}

/// Starts the product and waits for it at once.
static Flight start(MmaOp mma) {
  OpBuilder b(mma);
  Location loc = mma.getLoc();
  auto type = cast<RankedTensorType>(mma.getType());
  auto product = MmaAsyncOp::create(b, loc, InFlightType::get(b.getContext(), type), mma.getLhs(),
                                    mma.getRhs(), mma.getAcc(), mma.getKept(),
                                    mma.getTransposeLhs(), mma.getTransposeRhs());
  auto commit = MmaCommitOp::create(b, loc);
  auto wait = MmaWaitOp::create(b, loc, TypeRange{type}, 0, ValueRange{product});
  if (Attribute role = getRoleName(mma))
    for (Operation *op : {product.getOperation(), commit.getOperation(), wait.getOperation()})
      op->setAttr(TileDialect::kRoleAttrName, role);
  mma.replaceAllUsesWith(wait.getResult(0));
  mma.erase();
  Flight flight{product, wait, {}};
  for (Operation *op = wait->getNextNode(); isa_and_present<BarrierArriveOp, NextOp>(op);
       op = op->getNextNode())
    if (isa<BarrierArriveOp>(op))
      flight.releases.push_back(op);
  return flight;
}

/// Moves pure ops on the product that only the terminator needs, and each other, to the end of the
/// block: the wait can come later.
static void sinkUsers(MmaWaitOp wait) {
  Operation *end = wait->getBlock()->getTerminator();
  SmallPtrSet<Operation *, 4> sunk{end};
  for (Operation *op : llvm::to_vector(llvm::make_pointer_range(
           llvm::reverse(llvm::make_range(std::next(wait->getIterator()), end->getIterator()))))) {
    bool readsProduct = llvm::any_of(
        op->getOperands(), [&](Value operand) { return operand.getDefiningOp() == wait; });
    if (!readsProduct || !isPure(op) || op->getNumRegions() > 0 ||
        !llvm::all_of(op->getUsers(), [&](Operation *user) { return sunk.contains(user); }))
      continue;
    op->moveBefore(end);
    sunk.insert(end = op);
  }
}

/// Whether the op makes what the next iteration reads, perhaps in another layout, and nothing of
/// this one.
static bool isOnlyYielded(Operation *op) {
  return llvm::all_of(op->getUsers(), [&](Operation *user) {
    return user == op->getBlock()->getTerminator() ||
           (isa<ConvertLayoutOp>(user) && user->getBlock() == op->getBlock() &&
            isOnlyYielded(user));
  });
}

/// Ops between `begin` and `end` of one block that narrow tiles for the next iteration, with all
/// that follows from them there.
static llvm::SetVector<Operation *> getNarrowing(Operation *begin, Operation *end) {
  llvm::SetVector<Operation *> narrowing;
  for (Operation *op = begin; op != end; op = op->getNextNode()) {
    bool narrows = isa<arith::TruncFOp>(op) && isa<RankedTensorType>(op->getResult(0).getType()) &&
                   isOnlyYielded(op);
    bool follows = llvm::any_of(op->getOperands(),
                                [&](Value v) { return narrowing.contains(v.getDefiningOp()); });
    if (narrows || follows)
      narrowing.insert(op);
  }
  return narrowing;
}

/// The weights of a product in flight are still read: new ones come after the wait, through which
/// their source goes.
static MmaWaitOp deferNarrowing(MmaWaitOp wait, MmaAsyncOp product) {
  llvm::SetVector<Operation *> narrowing = getNarrowing(product, wait);
  if (narrowing.empty())
    return wait;
  SmallVector<Value> values(wait.getValues());
  SmallVector<Type> types(wait.getResultTypes());
  SmallVector<Value> tied;
  for (Operation *op : narrowing)
    if (isa<arith::TruncFOp>(op)) {
      Value source = op->getOperand(0);
      if (!llvm::is_contained(tied, source)) {
        tied.push_back(source);
        values.push_back(source);
        types.push_back(source.getType());
      }
    }
  OpBuilder builder(wait);
  auto wider = MmaWaitOp::create(builder, wait.getLoc(), types, wait.getPending(), values);
  wider->setDiscardableAttrs(wait->getDiscardableAttrDictionary());
  wait.replaceAllUsesWith(wider.getResults().take_front(wait.getNumResults()));
  Operation *last = wider;
  for (Operation *op : narrowing) {
    op->moveAfter(last);
    last = op;
  }
  for (auto [source, landed] : llvm::zip_equal(tied, wider.getResults().take_back(tied.size())))
    source.replaceUsesWithIf(landed, [&](OpOperand &use) {
      Operation *user = wider->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return user && wider->isBeforeInBlock(user);
    });
  wait.erase();
  return wider;
}

/// Whether the op narrows a tile to one like the product's lhs in registers.
static bool replacesLhs(Operation *op, MmaAsyncOp product) {
  auto lhs = dyn_cast<RankedTensorType>(product.getLhs().getType());
  auto made = isa<arith::TruncFOp>(op) ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                                       : RankedTensorType();
  return lhs && made && made.getShape() == lhs.getShape() &&
         made.getElementType() == lhs.getElementType();
}

/// Whether the op reads what is in flight, or makes what takes its registers.
static bool needsRegisters(Operation *op, Flight &flight) {
  Value acc = flight.product.getAcc();
  if (llvm::any_of(op->getOperands(), [&](Value operand) {
        return operand == flight.wait.getResult(0) || (acc && operand == acc);
      }))
    return true;
  // Unless it can come after the wait too.
  return replacesLhs(op, flight.product) && !isOnlyYielded(op);
}

/// Whether the op loads numbers for readers of the product. They come after the wait, a few at a
/// time: before the wait a thread would hold all of them in addition to the accumulators in flight.
static bool isLoadBeside(Operation *op, Flight &flight) {
  return isa<LoadColumnsOp>(op) && llvm::any_of(op->getUsers(), [&](Operation *user) {
           return needsRegisters(user, flight);
         });
}

/// Whether the op makes zeros of what the next product does not read. Its threads meet about that
/// alone.
static bool isClearing(Operation *op) {
  auto branch = dyn_cast<scf::IfOp>(op);
  return branch && !branch.thenBlock()->getOps<ClearUnreadOp>().empty();
}

/// Whether the wait must come before an op of its block.
static bool isLimit(Operation *op, Flight &flight, const DenseSet<Operation *> &allReleases) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return true;
  // Control flow that only computes values is passed like any other op.
  if (op->getNumRegions() > 0)
    return op
        ->walk([&](Operation *inner) {
          bool isOfRole = getRoleName(inner) && !isClearing(op);
          return isOfRole || needsRegisters(inner, flight) ? WalkResult::interrupt()
                                                           : WalkResult::advance();
        })
        .wasInterrupted();
  if (needsRegisters(op, flight) || isLoadBeside(op, flight))
    return true;
  // Roles go on at their own pace: only what fills the stage again waits for this one.
  if (auto fill = dyn_cast<BarrierWaitOp>(op); fill && fill.getPrevious())
    return llvm::any_of(flight.releases, [&](Operation *release) {
      return cast<BarrierArriveOp>(release).getBarrier() == fill.getBarrier();
    });
  if (getRoleName(op) != getRoleName(flight.wait))
    return false;
  // Those who meet the role, or whom it tells, take its reads to be over. Releases of younger
  // products cover older ones.
  if (auto store = dyn_cast<StoreOp>(op))
    return isa<SharedType>(store.getDest().getType());
  return isa<NamedBarrierOp, SyncOp>(op) || (isa<BarrierArriveOp>(op) && !allReleases.contains(op));
}

/// Groups of the role committed between the product's own commit and the wait, which may stay in
/// flight.
static int64_t countYounger(Flight &flight) {
  int64_t count = -1;
  for (Operation *op = flight.product; op != flight.wait; op = op->getNextNode())
    count += isa<MmaCommitOp>(op) && getRoleName(op) == getRoleName(flight.wait);
  return count;
}

/// An accumulator that starts with computed values is complete before older products that are then
/// in flight start: ptxas waits for these products where registers are written during them. So it
/// goes through a wait that waits for nothing.
static void startBeforeOlder(MutableArrayRef<Flight> flights) {
  for (auto [index, flight] : llvm::enumerate(flights)) {
    Value acc = flight.product.getAcc();
    Operation *start = acc ? acc.getDefiningOp() : nullptr;
    auto flies = [&](Flight &older) {
      return getRoleName(older.wait) == getRoleName(flight.wait) &&
             flight.product->isBeforeInBlock(older.wait);
    };
    Flight *oldest = llvm::find_if(flights.take_front(index), flies);
    if (!start || isa<MmaWaitOp>(start) || start->getBlock() != flight.product->getBlock() ||
        oldest == flights.begin() + index || !start->isBeforeInBlock(oldest->product))
      continue;
    OpBuilder b(oldest->product);
    auto tie = MmaWaitOp::create(b, flight.product.getLoc(), TypeRange{acc.getType()}, kMostPending,
                                 ValueRange{acc});
    tie->setDiscardableAttrs(flight.wait->getDiscardableAttrDictionary());
    flight.product.getAccMutable().assign(tie.getResult(0));
  }
}

/// Whether the wait could stand where `place` does: what it waits for, and what goes through it, is
/// made before.
static bool canStandAt(MmaWaitOp wait, Operation *place) {
  return llvm::none_of(wait.getValues(), [&](Value value) {
    Operation *made = value.getDefiningOp();
    return made && made->getBlock() == place->getBlock() && !made->isBeforeInBlock(place);
  });
}

/// One wait for two products of the role, where `place`, the wait of one of them, stands.
static void waitForBoth(MutableArrayRef<Flight> flights, Flight &older, Flight &younger,
                        MmaWaitOp place) {
  SmallVector<Value> values(older.wait.getValues());
  llvm::append_range(values, younger.wait.getValues());
  SmallVector<Type> types(older.wait.getResultTypes());
  llvm::append_range(types, younger.wait.getResultTypes());
  OpBuilder builder(place);
  auto both = MmaWaitOp::create(builder, place.getLoc(), types, 0, values);
  both->setDiscardableAttrs(place->getDiscardableAttrDictionary());
  moveReleases(older, both);
  unsigned count = older.wait.getNumResults();
  older.wait.replaceAllUsesWith(both.getResults().take_front(count));
  younger.wait.replaceAllUsesWith(both.getResults().drop_front(count));
  MmaWaitOp one = older.wait, other = younger.wait;
  // Either may be the wait of more than one product already.
  for (Flight &flight : flights)
    if (flight.wait == one || flight.wait == other)
      flight.wait = both;
  one.erase();
  other.erase();
}

/// Products are done in the order in which they start: who waits for one waits for those before it,
/// whose registers may then be read, and whose stages given back, as well. One wait for both, for
/// ptxas serialises what is waited for between two of them.
static void waitInOrder(MutableArrayRef<Flight> flights) {
  for (auto [index, flight] : llvm::enumerate(flights)) {
    auto isEarlier = [&](Flight &younger) {
      return getRoleName(younger.wait) == getRoleName(flight.wait) &&
             younger.wait->isBeforeInBlock(flight.wait);
    };
    auto rest = flights.drop_front(index + 1);
    Flight *younger = llvm::find_if(rest, isEarlier);
    if (younger != rest.end() && canStandAt(flight.wait, younger->wait))
      waitForBoth(flights, flight, *younger, younger->wait);
  }
}

/// Whether the product is added to memory. A wait may be one for several.
static bool isAdded(Flight &flight) {
  auto waits = llvm::zip_equal(flight.wait.getValues(), flight.wait.getResults());
  return llvm::any_of(waits, [&](auto pair) {
    auto [product, landed] = pair;
    return product == flight.product.getResult() &&
           llvm::any_of(landed.getUsers(), [](Operation *user) {
             auto store = dyn_cast<StoreOp>(user);
             return store && store.getAdd();
           });
  });
}

/// A product that is added to memory goes there during the products after it, but is done before
/// they start, and these are done together. With more products in flight, ptxas finds no registers
/// and serialises all of them (C7511).
static void landBeforeOthers(MutableArrayRef<Flight> flights) {
  for (auto [index, flight] : llvm::enumerate(flights)) {
    SmallVector<Flight *> beside;
    for (Flight &younger : flights.drop_front(index + 1))
      if (getRoleName(younger.wait) == getRoleName(flight.wait) &&
          younger.product->isBeforeInBlock(flight.wait) &&
          flight.wait->isBeforeInBlock(younger.wait))
        beside.push_back(&younger);
    if (beside.empty() || !isAdded(flight) || !canStandAt(flight.wait, beside.front()->product))
      continue;
    flight.wait->moveBefore(beside.front()->product);
    moveReleases(flight, flight.wait);
    for (auto [older, younger] : llvm::zip(beside, llvm::drop_begin(beside)))
      if (older->wait->isBeforeInBlock(younger->wait))
        waitForBoth(flights, *older, *younger, younger->wait);
  }
}

static LogicalResult overlap(Block &block) {
  SmallVector<Flight> flights;
  DenseSet<Operation *> allReleases;
  for (auto mma : llvm::make_early_inc_range(block.getOps<MmaOp>()))
    if (isa<SharedType>(mma.getRhs().getType()) && hasLayout(mma.getType())) {
      if (failed(checkOperands(mma)))
        return failure();
      flights.push_back(start(mma));
      allReleases.insert_range(flights.back().releases);
    }
  for (Flight &flight : flights) {
    sinkUsers(flight.wait);
    Operation *limit = flight.wait->getNextNode();
    while (limit && !isLimit(limit, flight, allReleases))
      limit = limit->getNextNode();
    if (limit)
      flight.wait->moveBefore(limit);
    if (isa<RankedTensorType>(flight.product.getLhs().getType()))
      flight.wait = deferNarrowing(flight.wait, flight.product);
    moveReleases(flight, flight.wait);
  }
  waitInOrder(flights);
  landBeforeOthers(flights);
  for (Flight &flight : flights)
    flight.wait.setPending(std::min(countYounger(flight), kMostPending));
  startBeforeOlder(flights);
  return success();
}

namespace {
struct OverlapMmaPass
    : KernelPass<attn::tile::impl::OverlapMmaPassBase<OverlapMmaPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (!attn::plan::getMachine(kernel).product.isAsync)
      return success();
    SmallVector<Block *> blocks;
    kernel.walk([&](Block *block) { blocks.push_back(block); });
    return failure(llvm::any_of(blocks, [](Block *block) { return failed(overlap(*block)); }));
  }
};
} // namespace
