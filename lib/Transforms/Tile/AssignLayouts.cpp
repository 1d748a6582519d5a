//===- AssignLayouts.cpp - tile-assign-layouts -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Machine/Lanes.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Whether a tile has whole groups of 32 columns, of elements of one of these widths.
static bool hasChunks(Type type, ArrayRef<unsigned> widths) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getRank() == 2 && tile.getDimSize(1) % 32 == 0 &&
         tile.getElementType().isIntOrFloat() &&
         llvm::is_contained(widths, tile.getElementTypeBitWidth());
}

/// Whether lanes can move a tile to or from memory 16 bytes at a time.
static bool movesInChunks(Type tile, Type memory) {
  auto type = dyn_cast<MemRefType>(memory);
  return type && type.isLastDimUnitStride() && hasChunks(tile, {16});
}

/// Adds what the sum along rows is computed from, if that is loads whose elements nothing else
/// reads: it does not matter which lane of a row has which.
static void addSummed(ReduceOp sum, DenseSet<Value> &chunked) {
  // Parts of rows by lanes would be others.
  if (cast<RankedTensorType>(sum.getType()).getRank() != 1)
    return;
  llvm::SetVector<Value> tiles;
  tiles.insert(sum.getSource());
  for (size_t index = 0; index < tiles.size(); ++index) {
    Value tile = tiles[index];
    if (!hasChunks(tile.getType(), {16, 32}) ||
        cast<RankedTensorType>(tile.getType()).getEncoding())
      return;
    Operation *op = tile.getDefiningOp();
    auto load = dyn_cast_or_null<LoadOp>(op);
    if (load && movesInChunks(load.getType(), load.getSource().getType()))
      continue;
    if (!op || !OpTrait::hasElementwiseMappableTraits(op))
      return;
    tiles.insert(op->operand_begin(), op->operand_end());
  }
  auto isSummed = [&](Operation *user) {
    return user == sum || (user->getNumResults() == 1 && tiles.contains(user->getResult(0)));
  };
  if (llvm::all_of(tiles, [&](Value tile) { return llvm::all_of(tile.getUsers(), isSummed); }))
    chunked.insert(tiles.begin(), tiles.end());
}

/// The layout of tiles in a kernel without products whose rows are not an accumulator's: lanes lie
/// along the columns. Null for all other kernels.
static BlockedAttr getBlocks(func::FuncOp kernel, const Machine &machine, int64_t warpgroups) {
  RankedTensorType tile;
  bool hasProducts = false;
  kernel.walk([&](Operation *op) {
    hasProducts |= isa<MmaOp>(op);
    auto load = dyn_cast<LoadOp>(op);
    auto type = load ? cast<RankedTensorType>(load.getType()) : RankedTensorType();
    if (type && type.getRank() == 2 && !type.getEncoding())
      tile = type;
  });
  if (hasProducts || !tile || tile.getDimSize(0) % machine.getWarpgroupRows() == 0)
    return {};
  int64_t warps = machine.getWarps(warpgroups);
  auto [vector, lanes, rows] = attn::getLanesAlongRows(tile.getDimSize(1), warps);
  if (tile.getDimSize(0) % rows != 0)
    return {};
  return BlockedAttr::get(kernel.getContext(), vector, lanes, warps);
}

/// Attention has one kind of tile: rows of the block by some columns. So the anchor's layout, an
/// accumulator or blocks, spreads to everything. Four columns of an accumulator are parts of rows,
/// one for each lane of a quad.
static LogicalResult layOut(Operation *op, Value value, Attribute anchor, bool isChunked) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getEncoding())
    return success();
  auto acc = dyn_cast<AccAttr>(anchor);
  Attribute layout = anchor;
  if (isChunked && acc)
    layout = ChunkedAttr::get(type.getContext(), acc);
  else if (type.getRank() == 1)
    layout = RowAttr::get(type.getContext(), anchor);
  else if (type.getRank() == 2 && type.getDimSize(1) == 4 && acc)
    layout = QuadAttr::get(type.getContext(), acc);
  auto laidOut = RankedTensorType::getChecked([&] { return op->emitOpError("has no layout: "); },
                                              type.getShape(), type.getElementType(), layout);
  if (!laidOut)
    return failure();
  // A constant says its type twice.
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements)
      return constant.emitOpError("expected dense elements in a tile, got ") << constant.getValue();
    constant.setValueAttr(elements.reshape(laidOut));
  }
  value.setType(laidOut);
  return success();
}

/// Converts a left operand in registers to the layout that products read.
static LogicalResult convertLhs(MmaOp mma, AccAttr acc) {
  auto lhs = dyn_cast<RankedTensorType>(mma.getLhs().getType());
  if (!lhs)
    return success();
  if (mma.getTransposeLhs())
    return mma.emitOpError("expected a left operand in registers as M x K, got ")
           << lhs << " transposed (promote it to shared memory, where it may lie either way)";
  auto rhs = dyn_cast<SharedType>(mma.getRhs().getType());
  auto type = RankedTensorType::getChecked([&] { return mma.emitOpError("has no layout: "); },
                                           lhs.getShape(), lhs.getElementType(),
                                           acc.getOperand(rhs && rhs.getQuads()));
  if (!type)
    return failure();
  OpBuilder builder(mma);
  mma.getLhsMutable().assign(ConvertLayoutOp::create(builder, mma.getLoc(), type, mma.getLhs()));
  return success();
}

/// A tile of 16-bit elements that goes to memory takes a form whose lanes write 16 bytes each.
static void convertStored(StoreOp store) {
  if (!movesInChunks(store.getValue().getType(), store.getDest().getType()))
    return;
  auto type = cast<RankedTensorType>(store.getValue().getType());
  auto acc = dyn_cast_or_null<AccAttr>(type.getEncoding());
  if (!acc)
    return;
  OpBuilder builder(store);
  auto chunked = ChunkedAttr::get(store.getContext(), acc);
  store.getValueMutable().assign(ConvertLayoutOp::create(
      builder, store.getLoc(), type.cloneWithEncoding(chunked), store.getValue()));
}

/// One number goes to rows at multiples of 16 bytes in such pieces, side by side.
static void widenStored(StoreOp store, int64_t warps) {
  auto splat = store.getValue().getDefiningOp<BroadcastOp>();
  auto memory = dyn_cast<MemRefType>(store.getDest().getType());
  auto type = cast<RankedTensorType>(store.getValue().getType());
  SmallVector<int64_t> strides;
  int64_t offset;
  constexpr int64_t vector = 4;
  if (!splat || isa<RankedTensorType>(splat.getSource().getType()) || store.getAdd() || !memory ||
      type.getRank() != 2 || !type.getElementType().isF32() ||
      failed(memory.getStridesAndOffset(strides, offset)) || strides.back() != 1 ||
      ShapedType::isDynamic(strides.end()[-2]) || strides.end()[-2] % vector != 0)
    return;
  int64_t lanes = std::gcd(kLanes, type.getDimSize(1) / vector);
  if (type.getDimSize(1) % vector != 0 || type.getDimSize(0) % (kLanes / lanes * warps) != 0)
    return;
  OpBuilder builder(store);
  auto blocked = BlockedAttr::get(store.getContext(), vector, lanes, warps);
  store.getValueMutable().assign(BroadcastOp::create(
      builder, store.getLoc(), type.cloneWithEncoding(blocked), splat.getSource()));
  if (splat.use_empty())
    splat.erase();
}

/// mma_async_c3, where the product is still as it was written.
static LogicalResult verifyContiguous(MmaOp mma) {
  auto rhs = dyn_cast<SharedType>(mma.getRhs().getType());
  if (!rhs || rhs.getElementBytes() != 1 || (!mma.getTransposeLhs() && mma.getTransposeRhs()))
    return success();
  return mma.emitOpError(
             "expected 8-bit operands with K contiguous (lhs not transposed, rhs transposed), got ")
         << (mma.getTransposeLhs() ? "lhs transposed" : "rhs not transposed")
         << " (elements of 16 bits may lie either way)";
}

static LogicalResult assignLayouts(func::FuncOp kernel) {
  int64_t warpgroups =
      kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName).getWarpgroups();
  const Machine &machine = plan::getMachine(kernel);
  auto acc = AccAttr::get(kernel.getContext(), machine.getUnits(warpgroups), machine.product.name);
  BlockedAttr blocks = getBlocks(kernel, machine, warpgroups);
  Attribute anchor = blocks ? Attribute(blocks) : acc;
  int64_t rows = machine.getWarpgroupRows() * warpgroups, most = machine.getMostRows(warpgroups);
  DenseSet<Value> chunked;
  kernel.walk([&](ReduceOp sum) { addSummed(sum, chunked); });
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
    auto mma = dyn_cast<MmaOp>(op);
    if (int64_t given = mma ? cast<RankedTensorType>(mma.getType()).getDimSize(0) : rows;
        given % rows != 0 || given > most) {
      std::string orMost = most > rows ? " or " + std::to_string(most) : "";
      return mma.emitOpError("expected ")
             << rows << orMost << " rows for " << warpgroups << " warpgroups, got " << given;
    }
    // Four would pass for the parts of sums.
    if (int64_t columns = mma ? cast<RankedTensorType>(mma.getType()).getDimSize(1) : 8;
        columns % 8 != 0)
      return mma.emitOpError("expected columns of a product in multiples of 8, got ") << columns;
    if (mma && failed(verifyContiguous(mma)))
      return failure();
    if (Attribute layout = mma ? cast<RankedTensorType>(mma.getType()).getEncoding() : Attribute();
        layout && layout != acc)
      return mma.emitOpError("expected a product in the kernel's layout ")
             << acc << ", got " << layout;
    for (Value result : op->getResults())
      if (failed(layOut(op, result, anchor, chunked.contains(result))))
        return failure();
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (failed(layOut(op, argument, anchor, /*isChunked=*/false)))
          return failure();
    if (auto store = dyn_cast<StoreOp>(op)) {
      convertStored(store);
      widenStored(store, machine.getWarps(warpgroups));
    }
    return mma ? convertLhs(mma, acc) : success();
  });
  if (walk.wasInterrupted())
    return failure();
  kernel.setType(FunctionType::get(kernel.getContext(), kernel.getBody().getArgumentTypes(),
                                   kernel.getFunctionType().getResults()));
  return success();
}

namespace {
struct AssignLayoutsPass : KernelPass<attn::tile::impl::AssignLayoutsPassBase<AssignLayoutsPass>,
                                      within(Room::Placed), Room::Placed> {
  LogicalResult transformKernel(func::FuncOp kernel) override { return assignLayouts(kernel); }
};
} // namespace
