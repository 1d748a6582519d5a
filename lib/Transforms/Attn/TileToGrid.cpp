//===- TileToGrid.cpp - attn-tile-to-grid ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/MergedRows.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_TILETOGRIDPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The first three dimensions of a block: one batch, one head, and the rows or keys that it owns.
static int64_t getOwned(Operation *op, ScheduleAttr schedule) {
  return isa<AttentionGradKeyValueOp>(op) ? schedule->blockN : schedule->blockM;
}

/// Upstream tiles nothing that is known to have no elements. Of tensors of one rank, or of all.
static LogicalResult checkExtents(Operation *op, std::optional<int64_t> rank = std::nullopt) {
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        type && (!rank || type.getRank() == *rank) && llvm::is_contained(type.getShape(), 0))
      return op->emitOpError("expected static extents above 0, got ")
             << type << " (a dynamic extent may be 0)";
  return success();
}

//===----------------------------------------------------------------------===//
// Sequences of any lengths
//===----------------------------------------------------------------------===//

/// The slice of a tile that reads the sequences of a view; null where it reads none.
static tensor::ExtractSliceOp findSlice(Value tile) {
  return findRagged(tile) ? tile.getDefiningOp<tensor::ExtractSliceOp>() : tensor::ExtractSliceOp();
}

/// Lets a tile of rows end where its sequence does. Returns the number of rows, which may be 0.
static FailureOr<Value> boundRows(OpBuilder &builder, Operation *op, tensor::ExtractSliceOp slice) {
  auto size = dyn_cast<Value>(slice.getMixedSizes()[2]);
  if (!size || !size.getDefiningOp())
    return op->emitOpError("expected tiles of more than one row of sequences");
  Location loc = op->getLoc();
  builder.setInsertionPointAfterValue(size);
  Value rows = emitSequence(builder, loc, findRagged(slice), slice.getMixedOffsets()[0]).rows;
  if (auto pack = slice.getSource().getDefiningOp<PackHeadsOp>())
    rows = arith::MulIOp::create(builder, loc, rows,
                                 arith::ConstantIndexOp::create(builder, loc, pack.getSlots()));
  Value first = getValueOrCreateConstantIndexOp(builder, loc, slice.getMixedOffsets()[2]);
  Value rest = arith::SubIOp::create(builder, loc, rows, first);
  rest =
      arith::MaxSIOp::create(builder, loc, rest, arith::ConstantIndexOp::create(builder, loc, 0));
  // The analysis of buffers knows the bounds of affine.min alone.
  AffineExpr x, y;
  bindSymbols(builder.getContext(), x, y);
  auto count = affine::AffineMinOp::create(
      builder, loc, AffineMap::get(0, 2, {x, y}, builder.getContext()), ValueRange{size, rest});
  size.replaceAllUsesExcept(count, count);
  return count.getResult();
}

/// Lets what runs past a tile end where its sequence does, that of `view` or null, and a tile that
/// owns nothing have none of it.
static void boundRunning(OpBuilder &builder, Location loc, tensor::ExtractSliceOp slice,
                         RaggedOp view, Value owned) {
  builder.setInsertionPoint(slice);
  Value running = getValueOrCreateConstantIndexOp(builder, loc, slice.getMixedSizes()[2]);
  if (view)
    running = emitSequence(builder, loc, view, slice.getMixedOffsets()[0]).rows;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  if (owned) {
    Value has = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, owned, zero);
    running = arith::SelectOp::create(builder, loc, has, running, zero);
  }
  slice->setOperand(slice.getIndexOfDynamicSize(2), running);
}

namespace {
/// The operand whose rows or keys a tile owns, and those that run past it, which end together.
struct TileParts {
  Value owned;
  SmallVector<Value, 5> running;
};
} // namespace

static TileParts getParts(Operation *tile) {
  if (auto rows = dyn_cast<RowDeltaOp>(tile))
    return {rows.getOutput(), {}};
  if (auto keys = dyn_cast<AttentionGradKeyValueOp>(tile)) {
    TileParts parts = {keys.getKey(),
                       {keys.getQuery(), keys.getDOutput(), keys.getNegLse2(), keys.getDelta()}};
    if (Value low = keys.getNegLow2())
      parts.running.push_back(low);
    return parts;
  }
  auto scored = cast<ScoredOpInterface>(tile);
  return {scored.getQuery(), {scored.getKey(), scored.getValue()}};
}

/// What a sequence does not have is in no tile: a device reads nothing there, and blocks of rows
/// that are not there do nothing.
static LogicalResult boundSequences(OpBuilder &builder, Operation *tile) {
  TileParts parts = getParts(tile);
  Value owned;
  if (tensor::ExtractSliceOp slice = findSlice(parts.owned)) {
    FailureOr<Value> count = boundRows(builder, tile, slice);
    if (failed(count))
      return failure();
    owned = *count;
  }
  for (Value running : parts.running) {
    // Numbers of rows are scratch of grids before, and end with their queries.
    RaggedOp view = findRagged(running);
    if (!view)
      view = findRagged(parts.running.front());
    if (!owned && !view)
      continue;
    auto slice = running.getDefiningOp<tensor::ExtractSliceOp>();
    if (!slice || !slice.isDynamicSize(2))
      return tile->emitOpError("expected rows and keys of a dynamic number beside sequences");
    boundRunning(builder, tile->getLoc(), slice, view, owned);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The grid
//===----------------------------------------------------------------------===//

static LogicalResult tileToGrid(RewriterBase &rewriter, TilingInterface op) {
  if (op->getParentOfType<scf::ForallOp>())
    return success();
  FailureOr<ScheduleAttr> schedule = getSchedule(op);
  if (failed(schedule))
    return failure();
  if (auto scored = dyn_cast<ScoredOpInterface>(op.getOperation());
      scored && scored.getVariantsAttr())
    return op->emitOpError("expected score and mask regions, got variants (attn-expand-variants "
                           "turns them into regions)");
  if (failed(checkExtents(op, /*rank=*/4)))
    return failure();
  auto block = [&](gpu::MappingId id) -> Attribute {
    return gpu::GPUBlockMappingAttr::get(rewriter.getContext(), id);
  };
  scf::SCFTilingOptions options;
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setTileSizes({rewriter.getIndexAttr(1), rewriter.getIndexAttr(1),
                        rewriter.getIndexAttr(getOwned(op, *schedule))});
  options.setMapping(
      {block(gpu::MappingId::DimZ), block(gpu::MappingId::DimY), block(gpu::MappingId::DimX)});
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(rewriter, op, options);
  // Upstream, or the op, has said why.
  if (failed(tiled))
    return failure();
  for (Operation *tile : tiled->tiledOps)
    if (failed(boundSequences(rewriter, tile)))
      return failure();
  rewriter.setInsertionPointAfter(tiled->loops.front());
  SmallVector<Value> replacements;
  for (auto [result, value] : llvm::zip_equal(op->getResults(), tiled->replacements))
    replacements.push_back(
        value.getType() == result.getType()
            ? value
            : tensor::CastOp::create(rewriter, op->getLoc(), result.getType(), value).getResult());
  rewriter.replaceOp(op, replacements);
  return success();
}

/// A merge that somebody wrote, on a GPU: blocks of few rows, as those of split keys are merged.
static LogicalResult tileMerge(RewriterBase &rewriter, MergeOp op) {
  RankedTensorType type = cast<RankedTensorType>(op.getOutput().getType());
  if (type.getRank() < 2 || type.getRank() > 4)
    return op.emitOpError("expected results (B, H, M, Dv), or with fewer dimensions in front, got ")
           << type;
  if (type.isDynamicDim(type.getRank() - 1) || type.getShape().back() % kFragmentColumns != 0)
    return op.emitOpError("expected a static Dv, a multiple of ")
           << kFragmentColumns << ", got " << type;
  if (failed(checkExtents(op)))
    return failure();
  constexpr int64_t kMost = 64;
  SmallVector<OpFoldResult> sizes(type.getRank() - 1, rewriter.getIndexAttr(1));
  sizes.back() = rewriter.getIndexAttr(getMergedRows(op, kMost));
  const gpu::MappingId ids[] = {gpu::MappingId::DimZ, gpu::MappingId::DimY, gpu::MappingId::DimX};
  SmallVector<Attribute> mapping;
  for (gpu::MappingId id : ArrayRef(ids).take_back(sizes.size()))
    mapping.push_back(gpu::GPUBlockMappingAttr::get(rewriter.getContext(), id));
  scf::SCFTilingOptions options;
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setTileSizes(sizes);
  options.setMapping(mapping);
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(rewriter, op, options);
  if (failed(tiled))
    return failure();
  rewriter.replaceOp(op, tiled->replacements);
  return success();
}

/// A sum over whole tensors, on a GPU: over tiles of the one dimension that it keeps.
static LogicalResult tileSum(RewriterBase &rewriter, linalg::GenericOp op) {
  constexpr int64_t kKept = 64;
  if (op.getNumParallelLoops() != 1)
    return op.emitOpError("expected a sum in one dimension, got one in ")
           << op.getNumParallelLoops();
  if (failed(checkExtents(op)))
    return failure();
  SmallVector<OpFoldResult> sizes;
  for (utils::IteratorType type : op.getIteratorTypesArray())
    sizes.push_back(rewriter.getIndexAttr(type == utils::IteratorType::parallel ? kKept : 0));
  scf::SCFTilingOptions options;
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setTileSizes(sizes);
  options.setMapping({gpu::GPUBlockMappingAttr::get(rewriter.getContext(), gpu::MappingId::DimX)});
  rewriter.setInsertionPoint(op);
  // The interface is an external model, which programs register.
  auto tileable = cast<TilingInterface>(op.getOperation());
  FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(rewriter, tileable, options);
  if (failed(tiled))
    return failure();
  rewriter.replaceOp(op, tiled->replacements);
  return success();
}

namespace {
struct TileToGridPass
    : RoomPass<attn::impl::TileToGridPassBase<TileToGridPass>, Room::Problem, Room::Grid> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<TilingInterface> ops;
    getOperation()->walk([&](TilingInterface op) {
      // Gradients of captured tensors are sums over tiles: attn-online-softmax makes their grid.
      if (auto query = dyn_cast<AttentionGradQueryOp>(op.getOperation());
          query && !query.getWrt().empty())
        return;
      if (isa<AttentionOp, RowDeltaOp, AttentionGradDeltaOp, AttentionGradQueryOp,
              AttentionGradKeyValueOp>(op))
        ops.push_back(op);
    });
    for (TilingInterface op : ops)
      if (failed(tileToGrid(rewriter, op)))
        return failure();
    if (!getOperation()->hasAttr(plan::PlanDialect::kTargetAttrName))
      return success();
    SmallVector<MergeOp> merges;
    getOperation()->walk([&](MergeOp merge) {
      if (!merge->getParentOfType<scf::ForallOp>())
        merges.push_back(merge);
    });
    for (MergeOp merge : merges)
      if (failed(tileMerge(rewriter, merge)))
        return failure();
    SmallVector<linalg::GenericOp> sums;
    getOperation()->walk([&](linalg::GenericOp sum) {
      if (!sum->getParentOfType<scf::ForallOp>())
        sums.push_back(sum);
    });
    for (linalg::GenericOp sum : sums)
      if (failed(tileSum(rewriter, sum)))
        return failure();
    return success();
  }
};
} // namespace
