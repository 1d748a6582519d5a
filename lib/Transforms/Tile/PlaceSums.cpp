//===- PlaceSums.cpp - tile-place-sums --------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Where a machine has tensor memory, a product leaves its sum there. A sum that loops carry is one
// place, which products add to and threads scale:
//
//   scf.for iter_args(%o = %zeros)             scf.for
//     %s = tile.mma %q, %k                       tile.mma_tensor %q, %k to %S; wait; load_tensor %S
//     %w = .. %s ..                              %w = .. %s ..
//     %p = tile.mma %w, %v, %o                   store_tensor %w to %W; meet
//     %n = arith.mulf %p, %factors               tile.mma_tensor %W, %v to %O {add}; wait
//     scf.yield %n                               tile.scale_tensor %O by %factors
//   arith.mulf %o#0, ..                        arith.mulf (load_tensor %O), ..
//
// So values become what a place holds. The values of one place are those that loops, branches and
// products hand on to each other; each is the current one when something reads it, or the pass
// fails. A product without a sum before it is read at once and shares its columns with weights,
// which are products' left operands.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "lib/Transforms/Tile/Variables.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_PLACESUMSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------------------------===//
// Which values are one place
//===----------------------------------------------------------------------------------------===//

static bool isSumType(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 2 && tile.getElementType().isF32() &&
         isa_and_nonnull<AccAttr>(tile.getEncoding());
}

/// Whether a product has made the value, or control flow hands it on. Others are in registers.
static bool canBePlaced(Value value) {
  if (!isSumType(value.getType()))
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<scf::ForOp, scf::WhileOp>(argument.getOwner()->getParentOp());
  return isa<MmaOp, scf::ForOp, scf::IfOp, scf::WhileOp>(value.getDefiningOp());
}

/// The operands that control flow hands on to `to`, by the value's index.
static void addFlows(MutableArrayRef<OpOperand> from, ValueRange to,
                     llvm::function_ref<void(OpOperand &, Value)> add) {
  for (auto [operand, value] : llvm::zip(from, to))
    if (isSumType(value.getType()))
      add(operand, value);
}

static MutableArrayRef<OpOperand> getPassed(scf::WhileOp loop) {
  return loop.getConditionOp()->getOpOperands().drop_front();
}

/// Calls `add` for each value that control flow hands on, with where it goes.
static void forEachFlow(Operation *op, llvm::function_ref<void(OpOperand &, Value)> add) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    MutableArrayRef<OpOperand> yielded = loop.getBody()->getTerminator()->getOpOperands();
    addFlows(loop.getInitArgsMutable(), loop.getRegionIterArgs(), add);
    addFlows(yielded, loop.getRegionIterArgs(), add);
    addFlows(yielded, loop.getResults(), add);
  } else if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.getNumResults() > 0) {
    addFlows(branch.thenYield()->getOpOperands(), branch.getResults(), add);
    addFlows(branch.elseYield()->getOpOperands(), branch.getResults(), add);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    addFlows(loop.getInitsMutable(), loop.getBeforeArguments(), add);
    addFlows(loop.getYieldOp()->getOpOperands(), loop.getBeforeArguments(), add);
    addFlows(getPassed(loop), loop.getAfterArguments(), add);
    addFlows(getPassed(loop), loop.getResults(), add);
  }
}

static bool isProduct(Value value) { return isa_and_nonnull<MmaOp>(value.getDefiningOp()); }

/// The place of a tile.
static TensorPlaceType getPlaceType(Type type) {
  auto tile = cast<RankedTensorType>(type);
  return TensorPlaceType::get(type.getContext(), tile.getShape(), tile.getElementType());
}

namespace {
/// A place, as long as the pass goes through the program.
struct SumPlace {
  /// Whether several products or loops hand it on. Others are read at once.
  bool isCarried = false;
  SmallVector<Value> values;
  int64_t words = 0;
  Value place;
  /// The value that it holds; null if that is one that no op may read.
  Value current;

  /// Whether the loop changes what it holds.
  bool changesIn(Operation *loop) const {
    return llvm::any_of(values, [&](Value value) {
      return loop->isAncestor(value.getParentBlock()->getParentOp());
    });
  }
};

/// The values of sums, by the places that they are in.
class Sums {
public:
  explicit Sums(Region &role) {
    role.walk([&](Operation *op) {
      forEachFlow(op, [&](OpOperand &from, Value to) { unite(from.get(), to); });
      if (auto product = dyn_cast<MmaOp>(op))
        product.getAcc() ? unite(product.getAcc(), product.getResult())
                         : void(classes.insert(product.getResult()));
    });
    role.walk([&](MmaOp product) {
      Value leader = classes.getOrInsertLeaderValue(product.getResult());
      SumPlace &place = places[leader];
      place.values.assign(classes.findLeader(leader), classes.member_end());
      place.isCarried = llvm::any_of(place.values, llvm::IsaPred<BlockArgument>) ||
                        llvm::count_if(place.values, isProduct) > 1;
      place.words = getPlaceType(product.getType()).getWords();
    });
  }

  /// The place of a value, or null if registers have it.
  SumPlace *find(Value value) {
    auto leader = classes.findLeader(value);
    auto *it = leader == classes.member_end() ? places.end() : places.find(*leader);
    // A sum that is read at once is in registers from then on.
    bool isPlaced = it != places.end() && (it->second.isCarried || isProduct(value));
    return isPlaced ? &it->second : nullptr;
  }

  llvm::MapVector<Value, SumPlace> places;

private:
  void unite(Value a, Value b) {
    for (Value value : {a, b})
      if (canBePlaced(value))
        classes.insert(value);
    if (canBePlaced(a) && canBePlaced(b))
      classes.unionSets(a, b);
  }

  llvm::EquivalenceClasses<Value> classes;
};

//===----------------------------------------------------------------------------------------===//
// The program with places
//===----------------------------------------------------------------------------------------===//

/// One role's program, of products whose sums are values.
class SumPlacer {
public:
  SumPlacer(func::FuncOp kernel, SpecializeOp roles, Region &role)
      : kernel(kernel), role(role), b(kernel.getContext()), sums(role), loc(kernel.getLoc()),
        units(
            attn::plan::getMachine(kernel).getUnits(roles.getWarpgroups()[role.getRegionNumber()])),
        firstBarrier(1 + roles.getNumRegions()) {}

  LogicalResult run() {
    declare();
    if (failed(visit(role.front())))
      return failure();
    for (MmaOp product : products) {
      product.getResult().replaceAllUsesWith(getNothing(product.getType()));
      product.erase();
    }
    return waitForProducts();
  }

private:
  void declare();
  LogicalResult visit(Block &block);
  LogicalResult visit(Operation *op);
  LogicalResult visitFor(scf::ForOp loop);
  LogicalResult visitIf(scf::IfOp branch);
  LogicalResult visitWhile(scf::WhileOp loop);
  LogicalResult visitProduct(MmaOp product);
  LogicalResult waitForProducts();

  /// Where `from` hands a value on to a place: in front of its op, the place gets it.
  LogicalResult hand(OpOperand &from, SumPlace &place, Value then);
  /// The same for all values that `from` hands on to `to`. Operands become `then`, or nothing.
  LogicalResult handAll(MutableArrayRef<OpOperand> from, ValueRange to, ValueRange then = {});
  /// The value of the place, in registers, in front of `op`.
  FailureOr<Value> read(Value value, SumPlace &place, Operation *op);

  /// Factors for the rows of what a place holds, if the value is that and no more.
  Value findFactors(Value value, SumPlace &place);
  /// Whether the op only makes such a value.
  bool isScaling(Operation *op);

  /// The place of a left operand in registers.
  Value getWeights(RankedTensorType tile) {
    Value &place = weights[tile];
    if (place)
      return place;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(meeting);
    return place = TensorPlaceOp::create(b, loc, getPlaceType(tile), columns, /*first=*/0);
  }

  /// Takes the place of values that no op reads any more.
  Value getNothing(Type type) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&role.front());
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    return BroadcastOp::create(b, loc, type, zero);
  }

  /// A turn of the loop finds what the turn before left, of places that the loop does not carry.
  void forgetIn(Operation *loop) {
    for (auto &[leader, place] : sums.places)
      if (place.changesIn(loop))
        place.current = Value();
  }
  /// From here on, ops read these values of their places.
  void setCurrent(ValueRange values) {
    for (Value value : values)
      if (SumPlace *place = sums.find(value))
        place->current = value;
  }
  using Currents = SmallVector<Value>;
  Currents getCurrents() {
    return llvm::map_to_vector(sums.places, [](auto &entry) { return entry.second.current; });
  }
  void setCurrents(ArrayRef<Value> currents) {
    for (auto [entry, current] : llvm::zip_equal(sums.places, currents))
      entry.second.current = current;
  }

  func::FuncOp kernel;
  Region &role;
  IRRewriter b;
  Sums sums;
  Location loc;
  int64_t units, firstBarrier;
  /// All columns; a product's barrier; where the unit meets.
  Value columns, done, meeting;
  /// For left operands, by their types: at the first columns, in which nothing else stays.
  DenseMap<Type, Value> weights;
  SmallVector<MmaOp> products;
  DenseMap<std::pair<Value, Block *>, Value> loaded;
};
} // namespace

/// Columns of the kernel, places of the role: those that are read at once share theirs.
void SumPlacer::declare() {
  int64_t shared = 0, words = 0;
  role.walk([&](MmaOp product) {
    if (isa<RankedTensorType>(product.getLhs().getType()))
      shared = std::max(shared, getPlaceType(product.getLhs().getType()).getWords());
  });
  for (auto &[leader, place] : sums.places)
    if (!place.isCarried)
      shared = std::max(shared, place.words);
  words = shared;
  for (auto &[leader, place] : sums.places)
    if (place.isCarried)
      words += place.words;
  b.setInsertionPointToStart(&kernel.getBody().front());
  int64_t count = std::max<int64_t>(kLeastColumns, llvm::PowerOf2Ceil(words * units));
  columns = AllocTensorOp::create(b, loc, ColumnsType::get(b.getContext(), count), IntegerAttr());
  done = BarrierInitOp::create(b, loc, BarrierType::get(b.getContext(), units), /*arrivals=*/1,
                               IntegerAttr());
  b.setInsertionPoint(kernel.getBody().front().getTerminator());
  SyncOp::create(b, loc);
  DeallocTensorOp::create(b, loc, columns);

  b.setInsertionPointToStart(&role.front());
  int64_t first = shared;
  for (auto &[leader, place] : sums.places) {
    place.place = TensorPlaceOp::create(b, loc, getPlaceType(leader.getType()), columns,
                                        place.isCarried ? first : 0);
    first += place.isCarried ? place.words : 0;
  }
  Value id = arith::ConstantIndexOp::create(b, loc, firstBarrier);
  meeting = arith::AddIOp::create(b, loc, id, WarpgroupOp::create(b, loc, b.getIndexType()));
}

//===----------------------------------------------------------------------------------------===//
// Scaling in place
//===----------------------------------------------------------------------------------------===//

/// The number that the rows of a broadcast have, or null.
static Value getRows(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  return broadcast && isa<RankedTensorType>(broadcast.getSource().getType()) ? broadcast.getSource()
                                                                             : Value();
}

/// Of `value = tile * factors`, the factors of rows.
static Value getFactors(Value value, Value tile) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product || !llvm::is_contained(product->getOperands(), tile))
    return {};
  return getRows(product.getLhs() == tile ? product.getRhs() : product.getLhs());
}

Value SumPlacer::findFactors(Value value, SumPlace &place) {
  if (Value factors = getFactors(value, place.current))
    return factors;
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || select.getFalseValue() != place.current)
    return {};
  Value rows = getRows(select.getCondition());
  Value factors = getFactors(select.getTrueValue(), place.current);
  if (!rows || !factors)
    return {};
  Value one = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(1));
  Value ones = BroadcastOp::create(b, loc, factors.getType(), one);
  return arith::SelectOp::create(b, loc, rows, factors, ones);
}

bool SumPlacer::isScaling(Operation *op) {
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  if (isa<arith::MulFOp>(op) && isa<arith::SelectOp>(user))
    return isScaling(user);
  if (!isa<arith::MulFOp, arith::SelectOp>(op) || !isSumType(op->getResult(0).getType()))
    return false;
  if (auto product = dyn_cast<MmaOp>(user); product && product.getAcc() == op->getResult(0))
    return llvm::is_contained(op->getOperands(), sums.find(product.getResult())->current);
  bool isHanded = false;
  forEachFlow(isa<scf::YieldOp, scf::ConditionOp>(user) ? user->getParentOp() : user,
              [&](OpOperand &from, Value to) {
                SumPlace *place = from.get() == op->getResult(0) ? sums.find(to) : nullptr;
                isHanded |= place && llvm::is_contained(op->getOperands(), place->current);
              });
  return isHanded;
}

//===----------------------------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------------------------===//

static LogicalResult refuse(Operation *op) {
  return op->emitOpError(
      "expected the current sum, got one that another has replaced (each sum has "
      "one place in tensor memory)");
}

FailureOr<Value> SumPlacer::read(Value value, SumPlace &place, Operation *op) {
  for (Block *block = op->getBlock(); block; block = block->getParentOp()->getBlock()) {
    if (Value known = loaded.lookup({value, block}))
      return known;
    if (block->getParentOp() == role.getParentOp())
      break;
  }
  if (place.current != value)
    return refuse(op);
  b.setInsertionPoint(op);
  Value tile = LoadTensorOp::create(b, op->getLoc(), value.getType(), place.place);
  loaded[{value, op->getBlock()}] = tile;
  return tile;
}

LogicalResult SumPlacer::hand(OpOperand &from, SumPlace &place, Value then) {
  Value value = from.get();
  Operation *op = from.getOwner();
  b.setInsertionPoint(op);
  SumPlace *source = sums.find(value);
  if (source == &place) {
    if (place.current != value)
      return refuse(op);
  } else if (Value factors = findFactors(value, place)) {
    ScaleTensorOp::create(b, op->getLoc(), place.place, factors);
  } else {
    if (source) {
      FailureOr<Value> tile = read(value, *source, op);
      if (failed(tile))
        return failure();
      value = *tile;
      b.setInsertionPoint(op);
    }
    StoreTensorOp::create(b, op->getLoc(), value, place.place);
  }
  place.current = then;
  return success();
}

LogicalResult SumPlacer::handAll(MutableArrayRef<OpOperand> from, ValueRange to, ValueRange then) {
  for (auto [index, value] : llvm::enumerate(to))
    if (SumPlace *place = sums.find(value)) {
      if (failed(hand(from[index], *place, value)))
        return failure();
      from[index].set(then.empty() ? getNothing(value.getType()) : then[index]);
    }
  return success();
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

LogicalResult SumPlacer::visit(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(visit(&op)))
      return failure();
  return success();
}

LogicalResult SumPlacer::visit(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return visitFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return visitIf(branch);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return visitWhile(loop);
  if (auto product = dyn_cast<MmaOp>(op))
    return visitProduct(product);
  // Their ops hand values on.
  if (isa<scf::YieldOp, scf::ConditionOp>(op) || isScaling(op))
    return success();
  for (OpOperand &operand : op->getOpOperands())
    if (SumPlace *place = sums.find(operand.get())) {
      FailureOr<Value> tile = read(operand.get(), *place, op);
      if (failed(tile))
        return failure();
      operand.set(*tile);
    }
  return success();
}

LogicalResult SumPlacer::visitFor(scf::ForOp loop) {
  ValueRange arguments = loop.getRegionIterArgs();
  if (failed(handAll(loop.getInitArgsMutable(), arguments)))
    return failure();
  forgetIn(loop);
  setCurrent(arguments);
  if (failed(visit(*loop.getBody())) ||
      failed(handAll(loop.getBody()->getTerminator()->getOpOperands(), arguments, arguments)))
    return failure();
  forgetIn(loop);
  setCurrent(loop.getResults());
  return success();
}

LogicalResult SumPlacer::visitIf(scf::IfOp branch) {
  Currents before = getCurrents(), after;
  for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
    setCurrents(before);
    if (!region->empty() &&
        (failed(visit(region->front())) ||
         failed(handAll(region->front().getTerminator()->getOpOperands(), branch.getResults()))))
      return failure();
    if (region == &branch.getThenRegion())
      after = getCurrents();
  }
  // Where the branches leave different values, no op may read either.
  for (auto [entry, current] : llvm::zip_equal(sums.places, after))
    if (entry.second.current != current)
      entry.second.current = Value();
  return success();
}

LogicalResult SumPlacer::visitWhile(scf::WhileOp loop) {
  ValueRange arguments = loop.getBeforeArguments();
  if (failed(handAll(loop.getInitsMutable(), arguments)))
    return failure();
  forgetIn(loop);
  setCurrent(arguments);
  if (failed(visit(*loop.getBeforeBody())) ||
      failed(handAll(getPassed(loop), loop.getAfterArguments())) ||
      failed(visit(*loop.getAfterBody())) ||
      failed(handAll(loop.getYieldOp()->getOpOperands(), arguments)))
    return failure();
  forgetIn(loop);
  setCurrent(loop.getResults());
  return success();
}

/// Whether all of the tile is 0.
static bool isZero(Value tile) {
  auto broadcast = tile.getDefiningOp<BroadcastOp>();
  return broadcast && matchPattern(broadcast.getSource(), m_AnyZeroFloat());
}

LogicalResult SumPlacer::visitProduct(MmaOp product) {
  SumPlace &place = *sums.find(product.getResult());
  bool adds = product.getAcc() && (sums.find(product.getAcc()) || !isZero(product.getAcc()));
  if (adds && failed(hand(*product.getAccMutable().begin(), place, product.getResult())))
    return failure();
  // A sum that is read at once has no value after that.
  if (place.isCarried)
    place.current = product.getResult();
  b.setInsertionPoint(product);
  Location at = product.getLoc();
  Value lhs = product.getLhs();
  if (isa<RankedTensorType>(lhs.getType())) {
    Value weights = getWeights(cast<RankedTensorType>(lhs.getType()));
    StoreTensorOp::create(b, at, lhs, weights);
    lhs = weights;
  }
  // The thread that asks for the product comes after all accesses of its unit, and after all waits:
  // when the product is done, what they wait for may be filled or signalled again.
  NamedBarrierOp::create(b, at, /*arrive=*/false, meeting,
                         attn::plan::getMachine(kernel).warpgroupThreads);
  MmaTensorOp::create(b, at, lhs, product.getRhs(), place.place, done, /*slot=*/Value(), adds,
                      product.getTransposeLhs(), product.getTransposeRhs());
  if (!place.isCarried) {
    // A stage of an operand is given back first.
    Operation *before = product->getNextNode();
    while (isa<BarrierArriveOp>(before))
      before = before->getNextNode();
    b.setInsertionPoint(before);
    product.getResult().replaceAllUsesWith(
        LoadTensorOp::create(b, at, product.getType(), place.place));
  }
  products.push_back(product);
  return success();
}

/// Each product has its use of the unit's barrier, and all threads wait for it at once.
LogicalResult SumPlacer::waitForProducts() {
  b.setInsertionPointToStart(&role.front());
  Variables variables(b);
  unsigned slot = variables.add(UnitSlotOp::create(b, loc, SlotType::get(b.getContext(), units)));
  role.walk([&](MmaTensorOp product) { variables.addChange(slot, product); });
  auto enter = [&](Operation *op) {
    if (auto product = dyn_cast<MmaTensorOp>(op))
      product.getSlotMutable().assign(variables[slot]);
  };
  auto leave = [&](Operation *op, Operation *) {
    if (!isa<MmaTensorOp>(op))
      return;
    b.setInsertionPointAfter(op);
    BarrierWaitOp::create(b, op->getLoc(), done, variables[slot], /*previous=*/false);
    variables[slot] = NextPhaseOp::create(b, op->getLoc(), variables[slot]);
  };
  return variables.run(role.front(), enter, leave);
}

namespace {
struct PlaceSumsPass : KernelPass<attn::tile::impl::PlaceSumsPassBase<PlaceSumsPass>,
                                  within(Room::Async), within(Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (attn::plan::getMachine(kernel).product.form != Product::Form::Tensor)
      return success();
    llvm::SmallSetVector<Region *, 1> multiplying;
    SpecializeOp roles;
    WalkResult walk = kernel.walk([&](MmaOp product) -> WalkResult {
      roles = product->getParentOfType<SpecializeOp>();
      if (!roles)
        return product.emitOpError("expected a role around a product in tensor memory");
      Region *region = product->getParentRegion();
      while (region->getParentOp() != roles)
        region = region->getParentRegion();
      multiplying.insert(region);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    if (multiplying.size() > 1)
      return kernel.emitOpError("expected one role that multiplies in tensor memory, got ")
             << multiplying.size();
    return multiplying.empty() ? success() : SumPlacer(kernel, roles, *multiplying[0]).run();
  }
};
} // namespace
