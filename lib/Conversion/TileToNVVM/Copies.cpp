//===- Copies.cpp - asynchronous copies between global and shared memory ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

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

Value attn::tile::emitPage(OpBuilder &builder, Location loc, const PageTable &table, Value batch,
                           Value row) {
  using Predicate = LLVM::ICmpPredicate;
  Type i32Type = builder.getI32Type(), i64Type = builder.getI64Type();
  Value entry = LLVM::UDivOp::create(builder, loc, row, i32(builder, loc, table.page));
  Value exists = LLVM::ICmpOp::create(builder, loc, Predicate::ult, entry, table.count);
  auto branch = scf::IfOp::create(builder, loc, TypeRange(i32Type), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value offset = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
  const Value indices[] = {batch, entry};
  for (auto [index, stride] : llvm::zip_equal(indices, table.strides)) {
    Value wide = LLVM::SExtOp::create(builder, loc, i64Type, index);
    offset =
        LLVM::AddOp::create(builder, loc, offset, LLVM::MulOp::create(builder, loc, wide, stride));
  }
  Value address = LLVM::GEPOp::create(builder, loc, table.pointer.getType(), table.element,
                                      table.pointer, ValueRange{offset});
  Value page = LLVM::LoadOp::create(builder, loc, table.element, address);
  if (table.element == i64Type) {
    Value most = LLVM::ConstantOp::create(
        builder, loc, builder.getI64IntegerAttr(std::numeric_limits<int32_t>::max()));
    Value fits = LLVM::ICmpOp::create(builder, loc, Predicate::ule, page, most);
    Value narrow = LLVM::TruncOp::create(builder, loc, i32Type, page);
    page = LLVM::SelectOp::create(builder, loc, fits, narrow, i32(builder, loc, -1));
  }
  scf::YieldOp::create(builder, loc, page);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, i32(builder, loc, -1));
  return branch.getResult(0);
}

/// ptxas unrolls a loop unless it is told not to. Control flow hands the attribute to the branch
/// back, where LLVM looks for it.
static void keepRolled(scf::ForOp loop) {
  MLIRContext *context = loop.getContext();
  auto rolled = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), /*count=*/{}, /*runtimeDisable=*/{},
      /*full=*/{}, /*followupUnrolled=*/{}, /*followupRemainder=*/{}, /*followupAll=*/{});
  loop->setAttr("loop_annotation",
                LLVM::LoopAnnotationAttr::get(
                    context, /*disableNonforced=*/{}, /*vectorize=*/{}, /*interleave=*/{}, rolled,
                    /*unrollAndJam=*/{}, /*licm=*/{}, /*distribute=*/{}, /*pipeline=*/{},
                    /*peeled=*/{}, /*unswitch=*/{}, /*mustProgress=*/{}, /*isVectorized=*/{},
                    /*startLoc=*/{}, /*endLoc=*/{}, /*parallelAccesses=*/{}));
}

/// The same for a tile of a pool: coordinates are (column, row of a page, head, page). The page of
/// a box is read once for all of its slabs. Many pages are turns of a loop, since the thread that
/// copies has few registers.
static void forEachPagedBox(OpBuilder &builder, Location loc, const attn::Machine &machine,
                            const PageTable &table, SharedType type, Value shared,
                            ArrayRef<Value> at, llvm::function_ref<void(Value, ValueRange)> emit) {
  constexpr int64_t kMostUnrolled = 2;
  auto [columns, rows] = getBoxShape(machine, type, table.page);
  int64_t slabColumns = columns, step = rows;
  auto emitRows = [&](Value row, Value place) {
    Value position = LLVM::AddOp::create(builder, loc, at[1], row);
    Value page = emitPage(builder, loc, table, /*batch=*/at[3], position);
    Value inPage = LLVM::URemOp::create(builder, loc, position, i32(builder, loc, table.page));
    for (int64_t slab = 0; slab < type.getNumSlabs(); ++slab)
      emit(addBytes(builder, loc, place, slab * type.getSlabBytes()),
           {LLVM::AddOp::create(builder, loc, at[0], i32(builder, loc, slab * slabColumns)), inPage,
            at[2], page});
  };
  if (type.getNumRows() <= kMostUnrolled * step) {
    for (int64_t row = 0; row < type.getNumRows(); row += step)
      emitRows(i32(builder, loc, row), addBytes(builder, loc, shared, row * type.getSwizzle()));
    return;
  }
  auto loop = scf::ForOp::create(builder, loc, i32(builder, loc, 0),
                                 i32(builder, loc, type.getNumRows()), i32(builder, loc, step));
  keepRolled(loop);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value row = loop.getInductionVar();
  Value bytes = LLVM::MulOp::create(builder, loc, row, i32(builder, loc, type.getSwizzle()));
  emitRows(row, addBytes(builder, loc, shared, bytes));
}

/// Calls `emit` with the shared address and the coordinates, innermost first, of each box of a
/// shared tile.
static void forEachBox(OpBuilder &builder, Location loc, const attn::Machine &machine,
                       const GlobalArgument &global, SharedType type, Value shared,
                       ValueRange offsets, llvm::function_ref<void(Value, ValueRange)> emit) {
  SmallVector<Value> coordinates;
  for (Value offset : llvm::reverse(offsets))
    coordinates.push_back(toI32(builder, loc, offset));
  if (global.paged)
    return forEachPagedBox(builder, loc, machine, *global.paged, type, shared, coordinates, emit);
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
  auto [columns, rows] = getBoxShape(machine, type, global.paged ? global.paged->page : 0);
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
  int64_t page = (*global)->paged ? (*global)->paged->page : 0;
  if (type.getNumRows() % getBoxShape(*kernel.machine, type, page).second != 0)
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
