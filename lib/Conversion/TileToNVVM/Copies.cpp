//===- Copies.cpp - asynchronous copies between global and shared memory ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace attn::tile;

/// Coordinates (column, row, key head, ...) of a packed argument in its map's order: heads are
/// within rows.
static SmallVector<Value> unpackCoordinates(OpBuilder &builder, Location loc,
                                            const PackedRows &packed, ArrayRef<Value> coordinates) {
  SmallVector<Value> result(coordinates);
  result[1] = LLVM::MulOp::create(builder, loc, coordinates[2], packed.group);
  result[2] = LLVM::LShrOp::create(builder, loc, coordinates[1],
                                   i32(builder, loc, llvm::Log2_64(packed.slots)));
  return result;
}

/// Calls `emit` with the shared address and the coordinates, innermost first, of each box of a
/// shared tile.
static void forEachBox(OpBuilder &builder, Location loc, const attn::Machine &machine,
                       const GlobalArgument &global, SharedType type, Value shared,
                       ValueRange offsets, llvm::function_ref<void(Value, ValueRange)> emit) {
  SmallVector<Value> coordinates;
  for (Value offset : llvm::reverse(offsets))
    coordinates.push_back(toI32(builder, loc, offset));
  auto [columns, rows] = getBoxShape(machine, type);
  Value firstColumn = coordinates[0], firstRow = coordinates[1];
  for (int64_t slab = 0; slab < type.getNumSlabs(); ++slab)
    for (int64_t row = 0; row < type.getNumRows(); row += rows) {
      coordinates[0] =
          LLVM::AddOp::create(builder, loc, firstColumn, i32(builder, loc, slab * columns));
      coordinates[1] = LLVM::AddOp::create(builder, loc, firstRow, i32(builder, loc, row));
      emit(addBytes(builder, loc, shared, slab * type.getSlabBytes() + row * type.getSwizzle()),
           global.packed ? unpackCoordinates(builder, loc, *global.packed, coordinates)
                         : coordinates);
    }
}

/// The tensor map made for such a tile.
static Value getMap(const GlobalArgument &global, const attn::Machine &machine, SharedType type) {
  auto [columns, rows] = getBoxShape(machine, type);
  for (const BoxParameter &box : global.boxes)
    if (box.columns == columns && box.rows == rows && box.swizzle == type.getSwizzle())
      return box.map;
  return {};
}

namespace {
struct MappedArgument {
  const GlobalArgument *global;
  Value map;
};
} // namespace

/// The argument and its map for a copy at `op`, if the copy can be made of whole boxes.
static FailureOr<MappedArgument> findMap(Operation *op, const PatternContext &context, Value memref,
                                         SharedType type) {
  const Kernel &kernel = context.getKernel(op);
  FailureOr<const GlobalArgument *> global = kernel.getArgument(op, memref);
  if (failed(global))
    return failure();
  int64_t most = kernel.machine->copy.rows;
  if (type.getNumRows() % getBoxShape(*kernel.machine, type).second != 0)
    return op->emitOpError("expected at most ")
           << most << " rows or a multiple of " << most << ", got " << type;
  return MappedArgument{*global, getMap(**global, *kernel.machine, type)};
}

namespace {
struct CopyAsyncPattern : TilePattern<CopyAsyncOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(CopyAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<SharedType>(op.getDest().getType());
    FailureOr<MappedArgument> mapped = findMap(op, context, op.getSource(), type);
    if (failed(mapped))
      return failure();
    Location loc = op.getLoc();
    const attn::Machine &machine = *context.getKernel(op).machine;
    context.emitOnce(rewriter, op, [&](OpBuilder &builder) {
      Value barrier =
          getBarrierAddress(builder, loc, adaptor.getBarrier().front(), adaptor.getSlot());
      forEachBox(builder, loc, machine, *mapped->global, type, adaptor.getDest().front(),
                 op.getOffsets(), [&](Value shared, ValueRange at) {
                   NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
                       builder, loc, shared, mapped->map, at, barrier,
                       /*im2colOffsets=*/ValueRange(),
                       /*multicastMask=*/Value(),
                       /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true,
                       NVVM::CTAGroupKindAttr(),
                       /*predicate=*/Value());
                 });
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct StoreAsyncPattern : TilePattern<StoreAsyncOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(StoreAsyncOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<SharedType>(op.getSource().getType());
    FailureOr<MappedArgument> mapped = findMap(op, context, op.getDest(), type);
    if (failed(mapped))
      return failure();
    Location loc = op.getLoc();
    const attn::Machine &machine = *context.getKernel(op).machine;
    context.emitOnce(rewriter, op, [&](OpBuilder &builder) {
      forEachBox(builder, loc, machine, *mapped->global, type, adaptor.getSource().front(),
                 op.getOffsets(), [&](Value shared, ValueRange at) {
                   NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
                       builder, loc, mapped->map, shared, at, /*l2CacheHint=*/Value(),
                       NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
                 });
      NVVM::CpAsyncBulkCommitGroupOp::create(builder, loc);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// Groups belong to the thread that committed them; others have none and pass.
struct StoreWaitPattern : TilePattern<StoreWaitOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(StoreWaitOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncBulkWaitGroupOp>(op, 0u, rewriter.getUnitAttr());
    return success();
  }
};
} // namespace

void attn::tile::populateCopyPatterns(RewritePatternSet &patterns, const PatternContext &context) {
  patterns.add<CopyAsyncPattern, StoreAsyncPattern, StoreWaitPattern>(context,
                                                                      patterns.getContext());
}
