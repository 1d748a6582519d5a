//===- SplitKV.cpp - attn-split-kv -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/DealParts.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/MergedRows.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Pages.h"
#include "lib/Transforms/Attn/PartGrid.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/Target.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Remarks.h"

namespace attn {
#define GEN_PASS_DEF_SPLITKVPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// One grid whose block is: slices, an initial state, one online_attention, one normalize, the
/// insertions of its results.
struct Grid {
  scf::ForallOp forall;
  OnlineAttentionOp online;
  NormalizeOp normalize;
  /// Where each result of normalize goes, in order.
  SmallVector<tensor::ParallelInsertSliceOp> inserts;
};
} // namespace

/// Whether result `index` of the grid, the first with columns, is (B, H, M[, Dv]) in an element
/// type that partial results merge to, and is nothing but the place of the insertions.
static bool isResultOfGrid(const Grid &grid, unsigned index) {
  tensor::ParallelInsertSliceOp insert = grid.inserts[index], output = grid.inserts[0];
  scf::ForallOp forall = grid.forall;
  Type element = insert.getDestType().getElementType();
  unsigned rank = index == 0 ? 4 : 3;
  if (insert.getDest() != forall.getRegionOutArgs()[index] || !insert.getDest().hasOneUse() ||
      insert.getDestType().getRank() != rank || insert.getSourceType().getRank() != rank - 2 ||
      !insert.hasUnitStride())
    return false;
  if (!element.isF32() && (index > 0 || (!element.isF16() && !element.isBF16())))
    return false;
  SmallVector<OpFoldResult> offsets = output.getMixedOffsets(), sizes = output.getMixedSizes();
  return llvm::equal(insert.getMixedOffsets(), ArrayRef(offsets).take_front(rank)) &&
         llvm::equal(insert.getMixedSizes(), ArrayRef(sizes).take_front(rank));
}

/// Whether the device is to decide on the number of parts; one without multiprocessors does not.
static bool fills(Operation *op, ScheduleAttr schedule) { return schedule->fill && isForGPU(op); }

/// Whether the number of parts is known from all keys alone.
static bool countsKeys(Operation *op, ScheduleAttr schedule) {
  return fills(op, schedule) || schedule->fixedSplit > 0;
}

static FailureOr<Grid> matchGrid(OnlineAttentionOp op, ScheduleAttr schedule) {
  Grid grid = {op->getParentOfType<scf::ForallOp>(), op, nullptr, {}};
  if (!grid.forall || op->getBlock() != grid.forall.getBody() || !op->getResult(0).hasOneUse())
    return failure();
  grid.normalize = dyn_cast<NormalizeOp>(*op->getResult(0).user_begin());
  if (!grid.normalize || grid.normalize->getNumResults() != grid.forall.getNumResults())
    return failure();
  for (Value result : grid.normalize->getResults()) {
    auto insert = result.hasOneUse() ? dyn_cast<tensor::ParallelInsertSliceOp>(*result.user_begin())
                                     : nullptr;
    if (!insert)
      return failure();
    grid.inserts.push_back(insert);
  }
  bool isState =
      llvm::equal(op->getResults(), ValueRange{grid.normalize.getAcc(), grid.normalize.getRowMax(),
                                               grid.normalize.getRowSum()});
  if (!isState || grid.forall.getRank() != 3)
    return failure();
  for (unsigned index = 0; index < grid.inserts.size(); ++index)
    if (!isResultOfGrid(grid, index))
      return failure();
  // The number of parts is known before the grid, from the keys there.
  auto slice = op.getKey().getDefiningOp<tensor::ExtractSliceOp>();
  bool knowsKeys = slice && slice.getSourceType().getRank() == 4 &&
                   !grid.forall->isAncestor(slice.getSource().getParentBlock()->getParentOp());
  if (countsKeys(op, schedule) && !knowsKeys)
    return failure();
  return grid;
}

namespace {
/// The keys that parts share out: `count` of them from `begin` on.
struct LiveKeys {
  OpFoldResult begin, count;
  /// Whether the mask says more than that there are so many.
  bool isBounded = false;
};
} // namespace

/// The keys that some row of the block keeps, as the mask bounds them. A cache has room for many
/// more keys than a sequence has.
static LiveKeys emitLiveKeys(RewriterBase &rewriter, OnlineAttentionOp op, OpFoldResult n) {
  LiveKeys all = {rewriter.getIndexAttr(0), n};
  if (op.getMask().empty())
    return all;
  Location loc = op.getLoc();
  auto probe = cast<OnlineAttentionOp>(rewriter.clone(*op));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(probe);
  SmallVector<Value> at = getValueOrCreateConstantIndexOp(rewriter, loc, probe.getMixedOrigin());
  shiftMask(rewriter, loc, probe.getMask(), /*position=*/3, getAsOpFoldResult(at[3]));
  MaskTiles tiles = MaskTiles::analyze(probe.getMask(), factOf);
  if (!tiles.boundsKept()) {
    rewriter.eraseOp(probe);
    return all;
  }
  Value rows =
      getValueOrCreateConstantIndexOp(rewriter, loc, getRows(rewriter, loc, op.getQuery()));
  MaskBlock block = {at[0], at[1], at[2], arith::AddIOp::create(rewriter, loc, at[2], rows),
                     getValueOrCreateConstantIndexOp(rewriter, loc, n)};
  MaskTiles::Ranges live = tiles.emitRanges(rewriter, loc, block, /*tileSize=*/1);
  rewriter.eraseOp(probe);
  Value begin = live.begin;
  // Tiles of pages begin at multiples of their size, as what reads them does.
  if (auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      schedule && readsPages(op.getKey())) {
    Value tile = arith::ConstantIndexOp::create(rewriter, loc, schedule->blockN);
    begin = arith::SubIOp::create(rewriter, loc, begin,
                                  arith::RemUIOp::create(rewriter, loc, begin, tile));
  }
  Value count = rewriter.createOrFold<arith::SubIOp>(loc, live.end, begin);
  return {getAsOpFoldResult(begin), getAsOpFoldResult(count), /*isBounded=*/true};
}

/// Keys of a part: a multiple of block_n, so that only the last part of all has a short tile. Where
/// the mask leaves few keys, some parts get none, since a part of one or two tiles costs what it
/// starts and merges. A fixed split is what it is.
static OpFoldResult emitPartSize(OpBuilder &builder, Location loc, const LiveKeys &live,
                                 OpFoldResult n, OpFoldResult parts, ScheduleAttr schedule,
                                 bool fills) {
  if (schedule->fixedSplit > 0)
    return builder.getIndexAttr(schedule->fixedSplit);
  AffineExpr length, count;
  bindSymbols(builder.getContext(), length, count);
  int64_t blockN = schedule->blockN;
  auto share = [&](OpFoldResult keys) {
    return affine::makeComposedFoldedAffineApply(
        builder, loc, length.ceilDiv(count * blockN) * blockN, {keys, parts});
  };
  OpFoldResult size = share(live.count);
  if (!live.isBounded || !fills)
    return size;
  // No more than a part of all keys, so that a full cache is split as if there were no mask.
  OpFoldResult least = affine::makeComposedFoldedAffineMin(
      builder, loc,
      AffineMap::get(0, 1, {length, builder.getAffineConstantExpr(blockN * kLeastTilesOfParts)},
                     builder.getContext()),
      {share(n)});
  return builder.createOrFold<arith::MaxSIOp>(loc,
                                              getValueOrCreateConstantIndexOp(builder, loc, size),
                                              getValueOrCreateConstantIndexOp(builder, loc, least));
}

/// All keys, of which a slice of the block is visible here, in parts of so many.
static OpFoldResult countPartsOf(OpBuilder &builder, Grid &grid, int64_t keys) {
  auto slice = grid.online.getKey().getDefiningOp<tensor::ExtractSliceOp>();
  AffineExpr size;
  bindSymbols(builder.getContext(), size);
  Location loc = grid.forall.getLoc();
  return affine::makeComposedFoldedAffineApply(
      builder, loc, size.ceilDiv(keys), {tensor::getMixedSize(builder, loc, slice.getSource(), 2)});
}

/// How many parts there are: what the schedule says, or of all keys that there is room for, or what
/// fills the device, but none of fewer than a few tiles.
static OpFoldResult getParts(OpBuilder &builder, Grid &grid, ScheduleAttr schedule, bool slots) {
  if (schedule->fixedSplit > 0)
    return countPartsOf(builder, grid, schedule->fixedSplit);
  if (!fills(grid.online, schedule))
    return builder.getIndexAttr(schedule->splits);
  scf::ForallOp forall = grid.forall;
  Location loc = forall.getLoc();
  SmallVector<Value> blocks;
  for (auto [bound, step] : llvm::zip_equal(forall.getMixedUpperBound(), forall.getMixedStep())) {
    AffineExpr size;
    bindSymbols(builder.getContext(), size);
    blocks.push_back(getValueOrCreateConstantIndexOp(
        builder, loc,
        affine::makeComposedFoldedAffineApply(builder, loc,
                                              size.ceilDiv(*getConstantIntValue(step)), {bound})));
  }
  Value most = getValueOrCreateConstantIndexOp(
      builder, loc, countPartsOf(builder, grid, schedule->blockN * kLeastTilesOfParts));
  return CountPartsOp::create(builder, loc, builder.getIndexType(), blocks, most, schedule->splits,
                              slots)
      .getResult();
}

/// A slice of keys [offset, offset + size) of a (N, X) value.
static Value sliceKeys(OpBuilder &builder, Location loc, Value value, OpFoldResult offset,
                       OpFoldResult size) {
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  return tensor::ExtractSliceOp::create(
      builder, loc, value, ArrayRef<OpFoldResult>{offset, zero},
      ArrayRef<OpFoldResult>{size, tensor::getMixedSize(builder, loc, value, 1)},
      ArrayRef<OpFoldResult>{one, one});
}

/// Lets the op absorb these keys alone, of those that it absorbs.
static void absorbKeys(RewriterBase &rewriter, OnlineAttentionOp op, OpFoldResult begin,
                       OpFoldResult keys) {
  Location loc = op.getLoc();
  AffineExpr index, length;
  bindSymbols(rewriter.getContext(), index, length);
  SmallVector<OpFoldResult> position = op.getMixedOrigin();
  position[3] =
      affine::makeComposedFoldedAffineApply(rewriter, loc, index + length, {position[3], begin});
  SmallVector<Value> origin = getValueOrCreateConstantIndexOp(rewriter, loc, position);
  Value key = sliceKeys(rewriter, loc, op.getKey(), begin, keys);
  Value value = sliceKeys(rewriter, loc, op.getValue(), begin, keys);
  rewriter.modifyOpInPlace(op, [&] {
    op.getKeyMutable().assign(key);
    op.getValueMutable().assign(value);
    op.getOriginMutable().assign(origin);
  });
}

/// Lets the op absorb part `part` of the keys that its mask keeps. Says whether the mask bounds
/// them.
static bool restrictKeys(RewriterBase &rewriter, OnlineAttentionOp op, Value part,
                         OpFoldResult parts, ScheduleAttr schedule) {
  Location loc = op.getLoc();
  rewriter.setInsertionPoint(op);
  OpFoldResult n = tensor::getMixedSize(rewriter, loc, op.getKey(), 0);
  // A fixed split counts from the first key of all, whatever the mask keeps.
  LiveKeys live = schedule->fixedSplit > 0 ? LiveKeys{rewriter.getIndexAttr(0), n}
                                           : emitLiveKeys(rewriter, op, n);
  OpFoldResult size = emitPartSize(rewriter, loc, live, n, parts, schedule, fills(op, schedule));
  AffineExpr index, length, total;
  bindSymbols(rewriter.getContext(), index, length, total);
  MLIRContext *context = rewriter.getContext();
  OpFoldResult before = affine::makeComposedFoldedAffineMin(
      rewriter, loc, AffineMap::get(0, 3, {index * length, total}, context),
      {part, size, live.count});
  OpFoldResult keys = affine::makeComposedFoldedAffineMin(
      rewriter, loc, AffineMap::get(0, 3, {length, total - index}, context),
      {before, size, live.count});
  OpFoldResult begin = before;
  if (live.isBounded) {
    Value first = getValueOrCreateConstantIndexOp(
        rewriter, loc,
        affine::makeComposedFoldedAffineApply(rewriter, loc, index + length, {live.begin, before}));
    // At most the number of keys, so that the analysis of the part's mask knows a position.
    Value most = getValueOrCreateConstantIndexOp(rewriter, loc, n);
    begin = arith::MinUIOp::create(rewriter, loc, first, most).getResult();
  }
  absorbKeys(rewriter, op, begin, keys);
  return live.isBounded;
}

/// Lets the block absorb the part of the slot, of that part's sequence. Returns which part of the
/// sequence it is.
static Value restrictToSlot(RewriterBase &rewriter, OnlineAttentionOp op, scf::ForallOp split,
                            const DealtParts &dealt) {
  Location loc = op.getLoc();
  Value slot = split.getInductionVars()[0], batch = split.getInductionVars()[1];
  auto slice = op.getKey().getDefiningOp<tensor::ExtractSliceOp>();
  rewriter.setInsertionPointToStart(split.getBody());
  Value keys = getValueOrCreateConstantIndexOp(
      rewriter, loc, tensor::getMixedSize(rewriter, loc, slice.getSource(), 2));
  DealtPart part = emitDealtPart(rewriter, loc, dealt, slot, keys);
  rewriter.replaceAllUsesWith(batch, part.sequence);
  rewriter.setInsertionPoint(op);
  absorbKeys(rewriter, op, getAsOpFoldResult(part.begin), getAsOpFoldResult(part.keys));
  return part.part;
}

/// The same in f32, with the log-sum-exp. The sink counts once: in the first part.
static NormalizeOp emitPartial(RewriterBase &rewriter, NormalizeOp normalize, Value part) {
  Location loc = normalize.getLoc();
  rewriter.setInsertionPoint(normalize);
  Value sink = normalize.getSink();
  if (sink) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    Value first = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, part, zero), none;
    if (isa<RankedTensorType>(sink.getType()))
      none = emitFill(rewriter, loc, getRows(rewriter, loc, sink), -infinity);
    else
      none =
          arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(-infinity)).getResult();
    sink = arith::SelectOp::create(rewriter, loc, first, sink, none);
  }
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, normalize.getAcc());
  Type f32 = rewriter.getF32Type();
  SmallVector<Value> outs = {tensor::EmptyOp::create(rewriter, loc, sizes, f32)};
  for (unsigned i = 0, rows = normalize.getLseLow() ? 2 : 1; i < rows; ++i)
    outs.push_back(tensor::EmptyOp::create(rewriter, loc, ArrayRef<OpFoldResult>(sizes[0]), f32));
  return NormalizeOp::create(rewriter, loc, ValueRange(outs).getTypes(), normalize.getAcc(),
                             normalize.getRowMax(), normalize.getRowSum(), sink, outs[0], outs[1],
                             normalize.getLseLow() ? outs[2] : Value());
}

/// Lets the block (already moved into the four-dimensional grid) yield f32, of part `part` of a
/// sequence, at `place` of the first dimension of partial results, (place, b, h, m[, 0]).
static void yieldPart(RewriterBase &rewriter, const Grid &grid, Value part, Value place,
                      OpFoldResult batch) {
  Location loc = grid.online->getLoc();
  NormalizeOp partial = emitPartial(rewriter, grid.normalize, part);
  // Partial tensors are the grid's new region arguments.
  auto forall = partial->getParentOfType<scf::ForallOp>();
  tensor::ParallelInsertSliceOp output = grid.inserts[0];
  SmallVector<OpFoldResult> offsets = output.getMixedOffsets(), extents = output.getMixedSizes();
  if (batch)
    offsets.front() = batch;
  offsets.insert(offsets.begin(), OpFoldResult(place));
  extents.insert(extents.begin(), rewriter.getIndexAttr(1));
  SmallVector<OpFoldResult> strides(offsets.size(), rewriter.getIndexAttr(1));
  rewriter.setInsertionPointToEnd(forall.getTerminator().getBody());
  for (auto [result, argument] :
       llvm::zip_equal(partial->getResults(), forall.getRegionOutArgs())) {
    bool hasColumns = result == partial->getResult(0);
    tensor::ParallelInsertSliceOp::create(rewriter, loc, result, argument, offsets, extents,
                                          strides);
    if (!hasColumns)
      continue;
    offsets.pop_back();
    extents.pop_back();
    strides.pop_back();
  }
  for (tensor::ParallelInsertSliceOp insert : grid.inserts)
    rewriter.eraseOp(insert);
  rewriter.eraseOp(grid.normalize);
}

/// Whether rows of its results go to sequences.
static bool isPlaced(Operation *op) {
  return op && llvm::any_of(op->getUsers(), llvm::IsaPred<PlaceOp>);
}

/// Lets a block merge into tiles of its own. attn-cpu-place-results moves the results of such a
/// grid, of which no tile may be a slice then.
static void mergeIntoTiles(RewriterBase &rewriter, MergeOp merge) {
  rewriter.setInsertionPoint(merge);
  for (OpOperand &place : merge.getDpsInitsMutable()) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, merge.getLoc(), place.get());
    Type element = cast<RankedTensorType>(place.get().getType()).getElementType();
    Value tile = tensor::EmptyOp::create(rewriter, merge.getLoc(), sizes, element);
    rewriter.modifyOpInPlace(merge, [&] { place.set(tile); });
  }
}

/// How keys are split.
enum class Split : uint8_t { All, Kept, Dealt };

static std::string describeParts(ScheduleAttr schedule) {
  if (schedule->fixedSplit > 0)
    return ("into parts of " + Twine(schedule->fixedSplit)).str();
  return ("over " + Twine(schedule->fill ? "up to " : "") + Twine(schedule->splits) + " blocks")
      .str();
}

static std::string describe(Split split, ScheduleAttr schedule) {
  if (split == Split::Dealt)
    return "keys that the mask keeps are split by the lengths of sequences";
  return ("keys" + Twine(split == Split::Kept ? " that the mask keeps" : "") + " are split " +
          describeParts(schedule))
      .str();
}

/// Whether sequences get parts by their lengths, or a remark why not.
static bool isDealt(const Grid &grid, ScheduleAttr schedule) {
  if (!schedule->balance || schedule->fixedSplit > 0 || !fills(grid.online, schedule))
    return false;
  StringRef why = refuseDeal(grid.forall, grid.online);
  if (!why.empty())
    remark::missed(grid.online->getLoc(), remark::RemarkOpts::name("split-kv").category("attn"))
        << ("sequences have as many parts: " + why).str();
  return why.empty();
}

/// The f32 output and the parts of the log-sum-exp of `parts` blocks of each tile: (S, B, H, M,
/// Dv), and (S, B, H, M) for each. Of slots, which tell their batch, B is 1.
static SmallVector<Value> emitPartials(OpBuilder &builder, scf::ForallOp forall, OpFoldResult parts,
                                       bool ofSlots, bool hasLow) {
  Location loc = forall.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, forall.getOutputs()[0]);
  if (ofSlots)
    sizes[0] = builder.getIndexAttr(1);
  sizes.insert(sizes.begin(), parts);
  SmallVector<Value> partials = {
      tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type())};
  sizes.pop_back();
  for (unsigned i = 0, rows = hasLow ? 2 : 1; i < rows; ++i)
    partials.push_back(tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type()));
  return partials;
}

/// Merges partial results into the grid's, by tiles of rows.
static FailureOr<MergeOp> emitMerge(RewriterBase &rewriter, scf::ForallOp forall,
                                    ValueRange outputs, ValueRange partials,
                                    ScheduleAttr schedule) {
  bool hasLow = partials.size() > 2;
  auto merge =
      MergeOp::create(rewriter, forall.getLoc(), outputs.getTypes(), partials[0], partials[1],
                      hasLow ? partials[2] : Value(), outputs[0],
                      outputs.size() > 1 ? outputs[1] : Value(), hasLow ? outputs[2] : Value());
  // In which turns parts are merged may not depend on how many a cache has room for.
  if (schedule->fixedSplit > 0)
    merge->setAttr(kScheduleAttrName, schedule);
  rewriter.replaceOp(forall, merge->getResults());
  scf::SCFTilingOptions options;
  options.setLoopType(scf::SCFTilingOptions::LoopType::ForallOp);
  options.setTileSizes({rewriter.getIndexAttr(1), rewriter.getIndexAttr(1),
                        rewriter.getIndexAttr(getMergedRows(merge, schedule->blockM))});
  options.setMapping(getBlockMapping(rewriter.getContext(), /*rank=*/3));
  rewriter.setInsertionPoint(merge);
  bool goesElsewhere = !isForGPU(merge) && isPlaced(merge);
  FailureOr<scf::SCFTilingResult> tiled = scf::tileUsingSCF(rewriter, merge, options);
  if (failed(tiled))
    return failure();
  if (goesElsewhere)
    for (Operation *tile : tiled->tiledOps)
      mergeIntoTiles(rewriter, cast<MergeOp>(tile));
  rewriter.replaceOp(merge, tiled->replacements);
  return cast<MergeOp>(tiled->tiledOps.front());
}

/// Lets a block of a merge join the slots of its sequence.
static void joinSlots(RewriterBase &rewriter, MergeOp merge, const DealtParts &dealt, Value slots,
                      ValueRange partials) {
  Location loc = merge.getLoc();
  auto grid = merge->getParentOfType<scf::ForallOp>();
  rewriter.setInsertionPointToStart(grid.getBody());
  auto [first, count] = emitSlotsOf(rewriter, loc, dealt, grid.getInductionVars()[0], slots);
  rewriter.setInsertionPoint(merge);
  for (auto [operand, partial] :
       llvm::zip(merge->getOpOperands().take_front(partials.size()), partials)) {
    auto slice = operand.get().getDefiningOp<tensor::ExtractSliceOp>();
    SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(), sizes = slice.getMixedSizes();
    offsets[0] = first;
    offsets[1] = rewriter.getIndexAttr(0);
    sizes[0] = count;
    Value ofSequence = tensor::ExtractSliceOp::create(rewriter, loc, partial, offsets, sizes,
                                                      slice.getMixedStrides());
    rewriter.modifyOpInPlace(merge, [&] { operand.set(ofSequence); });
    rewriter.eraseOp(slice);
  }
}

/// The same number of parts for each sequence. Says how keys are split, or fails if none are.
static FailureOr<Split> splitEvenly(RewriterBase &rewriter, Grid &grid, ScheduleAttr schedule) {
  scf::ForallOp forall = grid.forall;
  SmallVector<Value> outputs(forall.getOutputs());
  OpFoldResult parts = getParts(rewriter, grid, schedule, /*slots=*/false);
  SmallVector<Value> partials =
      emitPartials(rewriter, forall, parts, /*ofSlots=*/false, bool(grid.normalize.getLseLow()));
  // The old results are not read in the body: their block arguments only receive the insertions,
  // which are replaced.
  scf::ForallOp split = addParts(rewriter, forall, parts, partials);
  Value part = split.getInductionVars().front();
  bool isBounded = restrictKeys(rewriter, grid.online, part, parts, schedule);
  yieldPart(rewriter, grid, part, part, /*batch=*/{});
  rewriter.setInsertionPointAfter(split);
  if (failed(emitMerge(rewriter, forall, outputs, split.getResults(), schedule)))
    return failure();
  return isBounded ? Split::Kept : Split::All;
}

/// Parts for sequences by their lengths. The longest parts are those of the first slots, which
/// start first with all heads.
static FailureOr<Split> splitByLength(RewriterBase &rewriter, Grid &grid, ScheduleAttr schedule) {
  scf::ForallOp forall = grid.forall;
  Location loc = forall.getLoc();
  SmallVector<Value> outputs(forall.getOutputs());
  bool hasLow = bool(grid.normalize.getLseLow());
  OpFoldResult parts = getParts(rewriter, grid, schedule, /*slots=*/true);
  Value slots = getValueOrCreateConstantIndexOp(rewriter, loc, parts);
  DealtParts dealt = dealParts(rewriter, forall, grid.online, slots);
  SmallVector<Value> partials = emitPartials(rewriter, forall, parts, /*ofSlots=*/true, hasLow);
  scf::ForallOp split =
      addParts(rewriter, forall, parts, partials, /*headsFirst=*/true, /*slots=*/true);
  Value part = restrictToSlot(rewriter, grid.online, split, dealt);
  yieldPart(rewriter, grid, part, split.getInductionVars()[0],
            OpFoldResult(rewriter.getIndexAttr(0)));
  rewriter.setInsertionPointAfter(split);
  // Tiles of a merge whose parts are the slots of its sequence.
  SmallVector<Value> ofSequences = emitPartials(rewriter, forall, parts, /*ofSlots=*/false, hasLow);
  FailureOr<MergeOp> merge = emitMerge(rewriter, forall, outputs, ofSequences, schedule);
  if (failed(merge))
    return failure();
  joinSlots(rewriter, *merge, dealt, slots, split.getResults());
  for (Value partial : ofSequences)
    if (partial.use_empty())
      rewriter.eraseOp(partial.getDefiningOp());
  return Split::Dealt;
}

namespace {
struct SplitKVPass
    : RoomPass<attn::impl::SplitKVPassBase<SplitKVPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    SmallVector<OnlineAttentionOp> ops;
    getOperation()->walk([&](OnlineAttentionOp op) { ops.push_back(op); });
    for (OnlineAttentionOp op : ops) {
      auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
      if (!schedule || (schedule->splits == 1 && !schedule->fixedSplit))
        continue;
      Location loc = op.getLoc();
      // A part of no keys would start where there are none.
      if (op.getKey().getType().getDimSize(0) == 0) {
        remark::missed(loc, remark::RemarkOpts::name("split-kv").category("attn"))
            << "keys are not split: there are none";
        continue;
      }
      if (!schedule->fixedSplit && !isForGPU(op) &&
          isPlaced(op->getParentOfType<scf::ForallOp>())) {
        remark::missed(loc, remark::RemarkOpts::name("split-kv").category("attn"))
            << "keys are not split: a CPU merges no rows that attn.place takes";
        continue;
      }
      FailureOr<Grid> grid = matchGrid(op, schedule);
      if (succeeded(grid))
        rewriter.setInsertionPoint(grid->forall);
      FailureOr<Split> split = failure();
      if (succeeded(grid))
        split = isDealt(*grid, schedule) ? splitByLength(rewriter, *grid, schedule)
                                         : splitEvenly(rewriter, *grid, schedule);
      if (failed(split) && schedule->fixedSplit > 0)
        return op.emitOpError("expected f16, bf16 or f32 results that leave the grid directly, "
                              "which a fixed_split of ")
               << schedule->fixedSplit << " keys can merge";
      if (failed(split))
        remark::missed(loc, remark::RemarkOpts::name("split-kv").category("attn"))
            << "keys are not split: the results do not leave the grid directly";
      else
        remark::passed(loc, remark::RemarkOpts::name("split-kv").category("attn"))
            << describe(*split, schedule);
    }
    return success();
  }
};
} // namespace
