//===- PromoteOperands.cpp - tile-promote-operands ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_PROMOTEOPERANDSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The outermost loop around the load whose iterations all read the same box, or null.
static LoopLikeOpInterface getInvariantLoop(LoadOp load) {
  LoopLikeOpInterface outermost;
  for (auto loop = load->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    if (!llvm::all_of(load->getOperands(),
                      [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
      break;
    outermost = loop;
  }
  return outermost;
}

/// Whether `op` comes after the load and before the load's last user, seen from the load's block.
static bool isWithin(LoadOp load, Operation *op) {
  Block *block = load->getBlock();
  Operation *ancestor = findBehind(load, op);
  return ancestor && llvm::any_of(load->getUsers(), [&](Operation *user) {
           return !block->findAncestorOpInBlock(*user)->isBeforeInBlock(ancestor);
         });
}

/// Whether the product sums over the columns of the operand.
static bool isSummedOverColumns(OpOperand &operand) {
  auto mma = cast<MmaOp>(operand.getOwner());
  return operand.getOperandNumber() == 0 ? !mma.getTransposeLhs() : mma.getTransposeRhs();
}

static FailureOr<SharedType> getPlaceType(OpOperand &operand) {
  auto tile = cast<RankedTensorType>(operand.get().getType());
  SmallVector<int64_t> shape(tile.getShape());
  // Columns past the argument's read as zero and add nothing.
  int64_t elementBytes = std::max<int64_t>(1, tile.getElementTypeBitWidth() / 8);
  // Of more columns than any place has, which is refused below, no bytes are counted.
  constexpr int64_t mostColumns = std::numeric_limits<int32_t>::max();
  if (operand.get().getDefiningOp<LoadOp>() && isSummedOverColumns(operand) &&
      shape[1] <= mostColumns)
    shape[1] = llvm::alignTo(shape[1], attn::plan::getMachine(operand.getOwner()).product.sumBytes /
                                           elementBytes);
  int64_t rowBytes = std::min(shape[1], mostColumns) * elementBytes;
  int64_t swizzle = attn::getSwizzleWithin(rowBytes);
  Operation *origin = operand.get().getDefiningOp();
  auto type = SharedType::getChecked(
      [&] { return (origin ? origin : operand.getOwner())->emitOpError("has no place: "); },
      tile.getContext(), ArrayRef(shape), tile.getElementType(), swizzle, int64_t(1));
  if (!type)
    return failure();
  return type;
}

/// The extent that the product sums over, as the operand has it in a place of type `type`.
static int64_t getSummedExtent(OpOperand &operand, Type type) {
  auto shared = dyn_cast<SharedType>(type);
  ArrayRef<int64_t> shape = shared ? shared.getShape() : cast<RankedTensorType>(type).getShape();
  return shape[isSummedOverColumns(operand) ? 1 : 0];
}

/// The block where the load's box is known: in front of all loops that do not change it.
static Block *getHome(LoadOp load) {
  LoopLikeOpInterface loop = getInvariantLoop(load);
  return (loop ? loop.getOperation() : load.getOperation())->getBlock();
}

/// Whether the product cannot read the operand, a register tile, from registers: only a lhs of 8 or
/// 16 bits as it is can be.
static bool mustBeShared(OpOperand &operand) {
  auto mma = cast<MmaOp>(operand.getOwner());
  auto type = cast<RankedTensorType>(operand.get().getType());
  return operand.getOperandNumber() == 1 || mma.getTransposeLhs() ||
         type.getElementTypeBitWidth() > 16;
}

/// Whether products read the operand the other way round than it lies in memory: of elements of 8
/// bits they want the summed dimension along the rows.
static bool isTransposed(OpOperand &operand) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  return operand.getOperandNumber() == 1 && type.getElementTypeBitWidth() == 8 &&
         !cast<MmaOp>(operand.getOwner()).getTransposeRhs() &&
         operand.get().getDefiningOp<LoadOp>();
}

/// The place with rows as columns, in the order that lanes have of weights.
static FailureOr<SharedType> getTransposedType(OpOperand &operand, SharedType type) {
  auto transposed = SharedType::getChecked(
      [&] { return operand.getOwner()->emitOpError("has no place: "); }, type.getContext(),
      ArrayRef<int64_t>{type.getNumColumns(), type.getNumRows()}, type.getElementType(),
      attn::getSwizzleWithin(type.getNumRows()), /*stages=*/int64_t(1), /*quads=*/true);
  if (!transposed)
    return failure();
  return transposed;
}

namespace {
/// A place that loops refill, and the loads whose tiles it holds one after the other.
struct Refilled {
  Value place;
  SmallVector<LoadOp> loads;
};

/// The places of one kernel.
class Places {
public:
  explicit Places(func::FuncOp kernel) : kernel(kernel) {}

  /// Loads of boxes before and after loops share the places of loads in the loops.
  void announce(ArrayRef<std::pair<LoadOp, SharedType>> loads) {
    for (auto [load, type] : loads)
      if (getInvariantLoop(load))
        held.push_back({load, type});
    for (auto [load, type] : loads)
      if (load->getParentOfType<LoopLikeOpInterface>() && !isHeld(load, type))
        refilled.insert({{load.getSource(), type}, {}});
  }

  /// The shared tile that holds the operand, when it is needed: one for all products that read it
  /// alike.
  Value promote(OpOperand &operand, SharedType type) {
    Value value = operand.get();
    Value &place = promoted[{value, type}];
    if (!place) {
      auto load = value.getDefiningOp<LoadOp>();
      place = load ? promoteLoad(load, type) : store(value, type);
    }
    return place;
  }

  /// The place that has the rows of `place` as columns: each copy to the latter fills it.
  Value transpose(Value place, SharedType type) {
    Value &transposed = transposedPlaces[place];
    if (transposed)
      return transposed;
    transposed = allocate(type);
    for (Operation *user : llvm::make_early_inc_range(place.getUsers()))
      if (auto copy = dyn_cast<CopyOp>(user)) {
        OpBuilder builder(copy->getContext());
        builder.setInsertionPointAfter(copy);
        TransposeOp::create(builder, copy.getLoc(), place, transposed);
      }
    return transposed;
  }

  /// A row that holds the numbers of the columns, and is filled where they are read.
  LogicalResult promoteColumns(LoadColumnsOp load) {
    auto tile = cast<RankedTensorType>(load.getType());
    // As far as an asynchronous copy is aligned: nobody reads the bytes after the tile.
    int64_t step = attn::kRowBytes * 8 / tile.getElementTypeBitWidth();
    int64_t size = llvm::alignTo(tile.getDimSize(1), step);
    auto type = SharedType::getChecked([&] { return load.emitOpError("has no place: "); },
                                       load.getContext(), ArrayRef(size), tile.getElementType(),
                                       /*swizzle=*/int64_t(0), /*stages=*/int64_t(1));
    if (!type)
      return failure();
    Value row = findStored(load->getBlock(), type);
    OpBuilder builder(load);
    CopyOp::create(builder, load.getLoc(), load.getSource(), load.getOffsets(), row);
    load.getSourceMutable().assign(row);
    load.getOffsetsMutable().clear();
    return success();
  }

private:
  Value allocate(SharedType type) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    return AllocSharedOp::create(builder, kernel.getLoc(), type, IntegerAttr());
  }

  /// Whether a loop reads the load's box in all of its iterations.
  bool isHeld(LoadOp load, SharedType type) const {
    return llvm::any_of(held, [&](std::pair<LoadOp, SharedType> other) {
      return other.first.getSource() == load.getSource() && other.second == type &&
             llvm::equal(other.first.getOffsets(), load.getOffsets()) &&
             getHome(other.first) == getHome(load);
    });
  }

  Value promoteLoad(LoadOp load, SharedType type) {
    auto ring = refilled.find({load.getSource(), type});
    if (ring == refilled.end() || isHeld(load, type))
      return copyOnce(load, type);
    // Tiles that are needed at the same time lie apart.
    Refilled *entry = llvm::find_if(ring->second, [&](const Refilled &entry) {
      return llvm::none_of(entry.loads, [&](LoadOp other) {
        return isWithin(load, other) || isWithin(other, load);
      });
    });
    if (entry == ring->second.end()) {
      ring->second.push_back({allocate(type), {}});
      entry = &ring->second.back();
    }
    entry->loads.push_back(load);
    OpBuilder builder(load);
    CopyOp::create(builder, load.getLoc(), load.getSource(), load.getOffsets(), entry->place);
    return entry->place;
  }

  /// A copy before all loops that do not change its box; the next load of the box finds it.
  Value copyOnce(LoadOp load, SharedType type) {
    auto &known = once[load.getSource()];
    for (CopyOp copy : known) {
      if (llvm::equal(copy.getOffsets(), load.getOffsets()) && copy.getDest().getType() == type &&
          findBehind(copy, load))
        return copy.getDest();
    }
    OpBuilder builder(load);
    if (LoopLikeOpInterface loop = getInvariantLoop(load))
      builder.setInsertionPoint(loop);
    known.push_back(CopyOp::create(builder, load.getLoc(), load.getSource(), load.getOffsets(),
                                   allocate(type)));
    return known.back().getDest();
  }

  /// Whether neither block is in the other: no tile of one lives while the other runs.
  static bool areApart(Block *a, Block *b) {
    return a != b && !a->getParentOp()->isAncestor(b->getParentOp()) &&
           !b->getParentOp()->isAncestor(a->getParentOp());
  }

  /// For what is made in one of several loops that follow each other: one place for all of them.
  Value findStored(Block *block, SharedType type) {
    for (auto &[place, blocks] : stored)
      if (place.getType() == type &&
          llvm::all_of(blocks, [&](Block *other) { return areApart(block, other); })) {
        blocks.push_back(block);
        return place;
      }
    return stored.emplace_back(allocate(type), SmallVector<Block *, 1>{block}).first;
  }

  /// A tile that threads have computed.
  Value store(Value value, SharedType type) {
    Value place = findStored(value.getParentBlock(), type);
    OpBuilder builder(kernel.getContext());
    // The arguments of a kernel are there before the place.
    bool isArgument = isa<BlockArgument>(value) && value.getParentBlock() == place.getParentBlock();
    builder.setInsertionPointAfterValue(isArgument ? place : value);
    StoreOp::create(builder, value.getLoc(), value, place, ValueRange());
    return place;
  }

  func::FuncOp kernel;
  DenseMap<std::pair<Value, Type>, Value> promoted;
  DenseMap<Value, Value> transposedPlaces;
  DenseMap<Value, SmallVector<CopyOp>> once;
  /// Operands that a loop does not change.
  SmallVector<std::pair<LoadOp, SharedType>> held;
  /// By argument and type.
  llvm::MapVector<std::pair<Value, Type>, SmallVector<Refilled, 1>> refilled;
  /// The places of what blocks of ops make for themselves, and these blocks.
  SmallVector<std::pair<Value, SmallVector<Block *, 1>>> stored;
};

/// An operand of a product of which what the product does not read, or what is after a row, is to
/// become zeros in front of `where`.
struct Clearing {
  MmaOp product;
  unsigned operand;
  Operation *where;
  Value weights, from, condition;
};

struct PromoteOperandsPass
    : KernelPass<attn::tile::impl::PromoteOperandsPassBase<PromoteOperandsPass>, Room::Tile,
                 within(Room::Placed)> {
  /// Whether loops that come after it read the tile as it is: it is cleared once, where it is read.
  static bool isOfLoops(ClearUnreadOp op) {
    return op.getFrom() && llvm::all_of(op->getUsers(), [&](Operation *user) {
             return isa<MmaOp>(user) && user->getBlock() != op->getBlock();
           });
  }

  /// The products that read what is cleared, in order: its uses.
  static FailureOr<SmallVector<OpOperand *>> findProducts(ClearUnreadOp op) {
    SmallVector<OpOperand *> uses;
    bool isOfLoop = isOfLoops(op);
    for (OpOperand &use : op->getUses()) {
      auto product = dyn_cast<MmaOp>(use.getOwner());
      bool isInBlock =
          product && use.getOperandNumber() == 1 && product->getBlock() == op->getBlock();
      if (!isOfLoop && !isInBlock)
        return op.emitOpError("expected products in its block that have it as their rhs, got '")
               << use.getOwner()->getName() << "'";
      uses.push_back(&use);
    }
    if (!isOfLoop)
      llvm::sort(uses, [](OpOperand *a, OpOperand *b) {
        return a->getOwner()->isBeforeInBlock(b->getOwner());
      });
    return uses;
  }

  /// Before the first product that reads each place.
  static LogicalResult removeClearing(ClearUnreadOp op, SmallVectorImpl<Clearing> &clearings) {
    FailureOr<SmallVector<OpOperand *>> products = findProducts(op);
    if (failed(products))
      return failure();
    Operation *where = nullptr;
    if (isOfLoops(op))
      for (where = op->getNextNode(); isa<ClearUnreadOp>(where);)
        where = where->getNextNode();
    auto isOfLhs = [&](MmaOp product) { return product.getLhs() == op.getBy(); };
    auto isOfProduct = [&](Operation *user) {
      auto product = dyn_cast<MmaOp>(user);
      return product && isOfLhs(product);
    };
    if (op.getBy() && (products->empty() || !llvm::any_of(op.getBy().getUsers(), isOfProduct)))
      return op.emitOpError("expected products of its values to follow, and one with its lhs");
    for (OpOperand *use : *products) {
      auto product = cast<MmaOp>(use->getOwner());
      clearings.push_back({product, use->getOperandNumber(), where ? where : product, op.getBy(),
                           op.getFrom(), op.getCondition()});
      use->set(op.getValues());
    }
    op.erase();
    return success();
  }

  /// Products read the tiles themselves; what clears them comes back when they have their places.
  static FailureOr<SmallVector<Clearing>> removeClearings(func::FuncOp kernel) {
    SmallVector<Clearing> clearings;
    // Ops that clear by weights may read what others have cleared from a row on.
    SmallVector<ClearUnreadOp> byWeights, byRow;
    kernel.walk([&](ClearUnreadOp op) { (op.getBy() ? byWeights : byRow).push_back(op); });
    for (ClearUnreadOp op : byWeights)
      if (failed(removeClearing(op, clearings)))
        return failure();
    SmallVector<Clearing> all;
    for (ClearUnreadOp op : byRow)
      if (failed(removeClearing(op, all)))
        return failure();
    llvm::append_range(all, clearings);
    return all;
  }

  LogicalResult transformKernel(func::FuncOp kernel) override {
    FailureOr<SmallVector<Clearing>> clearings = removeClearings(kernel);
    if (failed(clearings))
      return failure();
    Places places(kernel);
    SmallVector<std::pair<LoadOp, SharedType>> loads;
    SmallVector<std::pair<OpOperand *, SharedType>> operands;
    WalkResult walk = kernel.walk([&](MmaOp mma) -> WalkResult {
      SmallVector<int64_t, 2> summed;
      for (OpOperand &operand : mma->getOpOperands().take_front(2)) {
        auto load = operand.get().getDefiningOp<LoadOp>();
        if (!isa<RankedTensorType>(operand.get().getType()) || (!load && !mustBeShared(operand))) {
          summed.push_back(getSummedExtent(operand, operand.get().getType()));
          continue;
        }
        FailureOr<SharedType> type = getPlaceType(operand);
        if (failed(type))
          return WalkResult::interrupt();
        operands.push_back({&operand, *type});
        summed.push_back(getSummedExtent(operand, *type));
        if (load)
          loads.push_back({load, *type});
      }
      // A load of more columns reads zeros; a tile that is computed has no more.
      if (summed[0] != summed[1])
        return mma.emitOpError("expected K in steps of ")
               << attn::plan::getMachine(mma).product.sumBytes
               << " bytes, or two operands loaded with K as "
                  "their columns, got K of "
               << std::min(summed[0], summed[1]) << ", of which an operand takes "
               << std::max(summed[0], summed[1]);
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    places.announce(loads);
    // Which places are apart follows from the uses of loads: products change in the end.
    SmallVector<Value> shared = llvm::map_to_vector(
        operands, [&](auto &entry) { return places.promote(*entry.first, entry.second); });
    for (auto [entry, place] : llvm::zip_equal(operands, shared)) {
      OpOperand &operand = *entry.first;
      if (isTransposed(operand)) {
        FailureOr<SharedType> type = getTransposedType(operand, entry.second);
        if (failed(type))
          return failure();
        place = places.transpose(place, *type);
        cast<MmaOp>(operand.getOwner()).setTransposeRhs(true);
      }
      operand.set(place);
    }
    WalkResult columns = kernel.walk([&](LoadColumnsOp load) -> WalkResult {
      return isa<MemRefType>(load.getSource().getType()) ? places.promoteColumns(load) : success();
    });
    if (columns.wasInterrupted())
      return failure();
    llvm::SmallDenseSet<std::pair<Value, Value>> cleared;
    for (Clearing &clearing : *clearings) {
      Value place = clearing.product->getOperand(clearing.operand);
      Value what = clearing.from ? clearing.from : clearing.weights;
      if (!cleared.insert({place, what}).second)
        continue;
      OpBuilder builder(clearing.where);
      ClearUnreadOp::create(builder, clearing.product.getLoc(), Type(), place, clearing.weights,
                            clearing.from, clearing.condition);
    }
    for (LoadOp load : llvm::SetVector<LoadOp>(llvm::from_range, llvm::make_first_range(loads)))
      if (load->use_empty())
        load->erase();
    return success();
  }
};
} // namespace
