//===- PromoteOperands.cpp - tile-promote-operands ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_PROMOTEOPERANDSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

/// The outermost loop around the load whose iterations all read the same box, or null.
static LoopLikeOpInterface getInvariantLoop(LoadOp load) {
  LoopLikeOpInterface outermost;
  for (auto loop = load->getParentOfType<LoopLikeOpInterface>(); loop;
       loop = loop->getParentOfType<LoopLikeOpInterface>()) {
    if (!llvm::all_of(load.getOffsets(),
                      [&](Value offset) { return loop.isDefinedOutsideOfLoop(offset); }))
      break;
    outermost = loop;
  }
  return outermost;
}

namespace {
/// The places of one kernel.
struct Places {
  func::FuncOp kernel;
  /// Copies that run once, by argument: position and place. The next product with the same box
  /// finds it.
  DenseMap<Value, SmallVector<std::pair<SmallVector<Value>, Value>>> once;
  /// Tiles that loops refill, by argument and type; loads of the same boxes before and after the
  /// loops share them.
  llvm::MapVector<std::pair<Value, Type>, Value> refilled;

  Value allocate(SharedType type) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    return AllocSharedOp::create(builder, kernel.getLoc(), type, IntegerAttr());
  }

  /// Whether a product sums over the columns of what `load` reads.
  static bool isSummedOverColumns(LoadOp load) {
    return llvm::any_of(load->getUses(), [](OpOperand &use) {
      auto mma = dyn_cast<MmaOp>(use.getOwner());
      return mma &&
             (use.getOperandNumber() == 0 ? !mma.getTransposeLhs()
                                          : use.getOperandNumber() == 1 && mma.getTransposeRhs());
    });
  }

  static FailureOr<SharedType> getPlaceType(LoadOp load) {
    auto tile = cast<RankedTensorType>(load.getType());
    SmallVector<int64_t> shape(tile.getShape());
    // Products sum over steps of 32 bytes; columns past the argument's read as zero and add
    // nothing.
    int64_t elementBytes = tile.getElementTypeBitWidth() / 8;
    if (isSummedOverColumns(load))
      shape[1] = llvm::alignTo(shape[1], 32 / elementBytes);
    // The widest swizzle whose slab is no wider than the tile.
    int64_t rowBytes = shape[1] * elementBytes;
    int64_t swizzle = rowBytes >= 128 ? 128 : rowBytes >= 64 ? 64 : 32;
    auto type = SharedType::getChecked([&] { return load.emitOpError("has no place: "); },
                                       load.getContext(), ArrayRef(shape), tile.getElementType(),
                                       swizzle, int64_t(1));
    if (!type)
      return failure();
    return type;
  }

  static bool isRefilled(LoadOp load) {
    return load->getParentOfType<LoopLikeOpInterface>() && !getInvariantLoop(load);
  }

  /// The shared tile of `type` that holds what `load` reads, when it is needed.
  Value promote(LoadOp load, SharedType type) {
    OpBuilder builder(load);
    auto ring = refilled.find({load.getSource(), type});
    if (ring == refilled.end()) {
      LoopLikeOpInterface loop = getInvariantLoop(load);
      auto &known = once[load.getSource()];
      SmallVector<Value> offsets(load.getOffsets());
      for (auto &[position, place] : known)
        if (position == offsets && place.getType() == type)
          return place;
      Value place = allocate(type);
      if (loop)
        builder.setInsertionPoint(loop);
      CopyOp::create(builder, load.getLoc(), load.getSource(), load.getOffsets(), place);
      known.push_back({offsets, place});
      return place;
    }
    Value &place = ring->second;
    if (!place)
      place = allocate(type);
    CopyOp::create(builder, load.getLoc(), load.getSource(), load.getOffsets(), place);
    return place;
  }
};

struct PromoteOperandsPass : attn::tile::impl::PromoteOperandsPassBase<PromoteOperandsPass> {
  using Base::Base;

  LogicalResult promote(func::FuncOp kernel) {
    Places places;
    places.kernel = kernel;
    llvm::MapVector<LoadOp, SharedType> loads;
    SmallVector<OpOperand *> operands;
    WalkResult walk = kernel.walk([&](MmaOp mma) {
      for (OpOperand &operand : mma->getOpOperands().take_front(2))
        if (auto load = operand.get().getDefiningOp<LoadOp>()) {
          FailureOr<SharedType> type = Places::getPlaceType(load);
          if (failed(type))
            return WalkResult::interrupt();
          operands.push_back(&operand);
          loads[load] = *type;
          if (Places::isRefilled(load))
            places.refilled.insert({{load.getSource(), *type}, Value()});
        }
      return WalkResult::advance();
    });
    if (walk.wasInterrupted())
      return failure();
    for (OpOperand *operand : operands) {
      auto load = operand->get().getDefiningOp<LoadOp>();
      operand->set(places.promote(load, loads[load]));
    }
    for (auto &[load, type] : loads)
      if (load->use_empty())
        load->erase();
    int64_t bytes = 0;
    kernel.walk([&](AllocSharedOp place) {
      bool isRefilled =
          llvm::is_contained(llvm::make_second_range(places.refilled), place.getResult());
      bytes +=
          (isRefilled ? int64_t(stages) : 1) * cast<SharedType>(place.getType()).getSizeInBytes();
    });
    if (bytes > sharedBytes)
      return kernel.emitOpError("needs ")
             << bytes << " bytes of shared memory with " << stages.getValue()
             << " stages, a block has " << sharedBytes.getValue()
             << " (smaller blocks or fewer stages need less)";
    return success();
  }

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<func::FuncOp>())
      if (kernel->hasAttr(TileDialect::kKernelAttrName) && failed(promote(kernel)))
        return signalPassFailure();
  }
};
} // namespace
