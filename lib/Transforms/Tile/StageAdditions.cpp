//===- StageAdditions.cpp - tile-stage-additions -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads that add from registers are held up by memory, which takes a third of their time in the
// fused form of gradients. In bulk the same additions cost next to nothing (bench/NOTES.md).
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_STAGEADDITIONSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

static bool hasAttr(Value memory, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(memory);
  auto kernel = argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : nullptr;
  return kernel && kernel.getArgAttr(argument.getArgNumber(), name);
}

static bool isInFragments(Value memory) { return hasAttr(memory, TileDialect::kFragmentsAttrName); }

/// Of this kernel, or, as memory in fragments always is, of one before it.
static bool isScratch(Value memory) {
  return hasAttr(memory, TileDialect::kScratchAttrName) || isInFragments(memory);
}

/// Whether elements depend on where they are: there is a mask, or a score that reads.
static bool hasPositions(func::FuncOp kernel) {
  return kernel
      .walk([](CoordOp op) {
        return isa<RankedTensorType>(op.getType()) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether memory is made of tiles like this one; in fragments a tile may have more rows.
static bool coversTiles(MemRefType memory, RankedTensorType type, bool inFragments) {
  ArrayRef<int64_t> tile = memory.getShape().take_back(2);
  return tile == type.getShape() || (inFragments && tile.size() == 2 &&
                                     tile[0] < type.getDimSize(0) && tile[1] == type.getDimSize(1));
}

/// The place of what the op adds, if a bulk addition can have the form of it: whole tiles of memory
/// at multiples of 16 bytes.
static SharedType getPlaceType(StoreOp store) {
  auto type = cast<RankedTensorType>(store.getValue().getType());
  auto memory = dyn_cast<MemRefType>(store.getDest().getType());
  if (!store.getAdd() || !memory || !isa_and_nonnull<AccAttr>(type.getEncoding()) ||
      !store->getParentOfType<LoopLikeOpInterface>() || !store->hasAttr(TileDialect::kRoleAttrName))
    return {};
  int64_t rank = memory.getRank(), bytes = type.getElementTypeBitWidth() / 8, offset;
  SmallVector<int64_t> strides;
  bool isWhole = type.getRank() == 2 && rank <= getMachine(store).copy.rank &&
                 coversTiles(memory, type, isInFragments(store.getDest())) &&
                 llvm::all_of(store.getOffsets().take_back(2),
                              [](Value first) { return matchPattern(first, m_Zero()); });
  if (!isWhole || type.getDimSize(1) * bytes % attn::kWidestSwizzle != 0 ||
      failed(memory.getStridesAndOffset(strides, offset)) || strides[rank - 1] != 1)
    return {};
  // Scratch is dense: what is known of its tiles holds for all else.
  bool isDense = isScratch(store.getDest()) && !ShapedType::isDynamic(strides[rank - 2]);
  if (!llvm::all_of(ArrayRef(strides).drop_back(), [&](int64_t stride) {
        return ShapedType::isDynamic(stride) ? isDense : stride * bytes % attn::kChunkBytes == 0;
      }))
    return {};
  return SharedType::get(store.getContext(), type.getShape(), type.getElementType(),
                         attn::kWidestSwizzle, /*stages=*/1);
}

/// Bytes of all places and barriers, places at their addresses' multiples.
static int64_t countSharedBytes(func::FuncOp kernel) {
  int64_t bytes = 0, step = getMachine(kernel).stageBytes;
  kernel.walk([&](AllocSharedOp op) {
    bytes += llvm::alignTo(cast<SharedType>(op.getType()).getSizeInBytes(), step);
  });
  kernel.walk([&](BarrierInitOp op) { bytes += cast<BarrierType>(op.getType()).getSizeInBytes(); });
  return bytes;
}

namespace {
struct StageAdditionsPass
    : KernelPass<attn::tile::impl::StageAdditionsPassBase<StageAdditionsPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    // By role and type.
    llvm::MapVector<std::pair<Attribute, Type>, SmallVector<StoreOp>> additions;
    // Threads add fragments 16 bytes at a time. Where they do little else they have the time, and
    // shared memory, which products read, is spared (bench/NOTES.md).
    bool hasTime = !hasPositions(kernel);
    kernel.walk([&](StoreOp store) {
      if (SharedType type = getPlaceType(store);
          type && !(hasTime && isInFragments(store.getDest())))
        additions[{store->getAttr(TileDialect::kRoleAttrName), type}].push_back(store);
    });
    int64_t bytes = countSharedBytes(kernel);
    for (auto &[key, stores] : additions) {
      auto [role, type] = key;
      bytes += cast<SharedType>(type).getSizeInBytes();
      if (bytes > getMostSharedBytes(kernel))
        break;
      stage(kernel, role, cast<SharedType>(type), stores);
    }
    return success();
  }

private:
  static void stage(func::FuncOp kernel, Attribute role, SharedType type,
                    ArrayRef<StoreOp> stores) {
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value place = AllocSharedOp::create(builder, kernel.getLoc(), type, IntegerAttr());
    for (StoreOp store : stores) {
      builder.setInsertionPoint(store);
      auto addition = AddAsyncOp::create(builder, store.getLoc(), store.getValue(), store.getDest(),
                                         store.getOffsets(), place);
      addition->setAttr(TileDialect::kRoleAttrName, role);
      store.erase();
    }
    builder.setInsertionPoint(kernel.getBody().front().getTerminator());
    auto wait = StoreWaitOp::create(builder, kernel.getLoc());
    wait->setAttr(TileDialect::kRoleAttrName, role);
  }
};
} // namespace
