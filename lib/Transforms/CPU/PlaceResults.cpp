//===- PlaceResults.cpp - attn-cpu-place-results ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_CPUPLACERESULTSPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Whether the rows of a tile, `count` from `row` of the batch on, end where queries of the same
/// sequences do: attn-tile-to-grid has bounded both.
static bool endsWithQueries(PlaceOp place, scf::ForallOp grid, OpFoldResult row,
                            OpFoldResult count) {
  bool ends = false;
  grid.walk([&](tensor::ExtractSliceOp slice) {
    auto view = slice.getSource().getDefiningOp<RaggedOp>();
    ends |= view && view.getOffsets() == place.getOffsets() &&
            isEqualConstantIntOrValue(slice.getMixedOffsets()[2], row) &&
            isEqualConstantIntOrValue(slice.getMixedSizes()[2], count);
  });
  return ends;
}

/// The same insertion, (b, h, m[, 0]) of (1, 1, rows[, Dv]), into the rows of all sequences.
static void placeRows(PlaceOp place, scf::ForallOp grid, tensor::ParallelInsertSliceOp insert) {
  OpBuilder b(grid.getTerminator());
  Location loc = insert.getLoc();
  SmallVector<OpFoldResult> offsets = insert.getMixedOffsets(), sizes = insert.getMixedSizes();
  Value source = insert.getSource();
  OpFoldResult total = tensor::getMixedSize(b, loc, place.getDest(), 0);
  // Rows past M have no tile: M bounds nothing here.
  Sequence sequence = emitSequence(b, loc, place.getOffsets(), total, /*most=*/total, offsets[0]);
  Value row = getValueOrCreateConstantIndexOp(b, loc, offsets[2]);
  if (!endsWithQueries(place, grid, offsets[2], sizes[2])) {
    Value rest = arith::SubIOp::create(b, loc, sequence.rows, row);
    rest = arith::MinSIOp::create(b, loc, rest, getValueOrCreateConstantIndexOp(b, loc, sizes[2]));
    sizes[2] =
        arith::MaxSIOp::create(b, loc, rest, arith::ConstantIndexOp::create(b, loc, 0)).getResult();
    auto type = cast<RankedTensorType>(source.getType());
    size_t rank = type.getRank();
    SmallVector<OpFoldResult> zeros(rank, b.getIndexAttr(0)), ones(rank, b.getIndexAttr(1)),
        kept(ArrayRef(sizes).take_back(sizes.size() - 2));
    kept.insert(kept.begin(), rank - kept.size(), b.getIndexAttr(1));
    // A merge has rows of a batch and a head, which are not dimensions of rows of sequences.
    if (rank == sizes.size())
      type = tensor::ExtractSliceOp::inferCanonicalRankReducedResultType(rank - 2, type, kept);
    else
      type = tensor::ExtractSliceOp::inferResultType(type, kept);
    source = tensor::ExtractSliceOp::create(b, loc, type, source, zeros, kept, ones);
  }
  offsets[0] = b.createOrFold<arith::AddIOp>(loc, sequence.begin, row);
  sizes[0] = sizes[2];
  for (auto *list : {&offsets, &sizes})
    list->erase(list->begin() + 2);
  b.setInsertionPoint(insert);
  tensor::ParallelInsertSliceOp::create(b, loc, source, insert.getDest(), offsets, sizes,
                                        SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(1)));
  insert.erase();
}

/// Lets the grid that makes what is placed have the rows of all sequences as its result.
static LogicalResult placeResult(PlaceOp place) {
  Value source = place.getSource();
  auto cast = source.getDefiningOp<tensor::CastOp>();
  if (cast && cast->hasOneUse())
    source = cast.getSource();
  auto grid = source.getDefiningOp<scf::ForallOp>();
  if (!grid || !source.hasOneUse())
    return place.emitOpError("expected a result of a grid that is read nowhere else");
  IRRewriter rewriter(place.getContext());
  DominanceInfo dominance(place->getParentOfType<func::FuncOp>());
  if (failed(
          moveValueDefinitions(rewriter, {place.getDest(), place.getOffsets()}, grid, dominance)))
    return place.emitOpError("expected a place that there is before the grid");
  unsigned number = llvm::cast<OpResult>(source).getResultNumber();
  BlockArgument argument = grid.getRegionIterArgs()[number];
  SmallVector<tensor::ParallelInsertSliceOp> inserts;
  for (Operation *user : argument.getUsers()) {
    inserts.push_back(dyn_cast<tensor::ParallelInsertSliceOp>(user));
    if (!inserts.back() || !inserts.back().hasUnitStride())
      return place.emitOpError("expected a result into which its grid inserts tiles, got '")
             << user->getName() << "'";
  }
  grid.getOutputsMutable()[number].set(place.getDest());
  argument.setType(place.getType());
  source.setType(place.getType());
  for (tensor::ParallelInsertSliceOp insert : inserts)
    placeRows(place, grid, insert);
  place.replaceAllUsesWith(source);
  place.erase();
  if (cast && cast->use_empty())
    cast.erase();
  return success();
}

namespace {
struct CPUPlaceResultsPass : RoomPass<attn::impl::CPUPlaceResultsPassBase<CPUPlaceResultsPass>,
                                      Room::Online, Room::Online> {
  LogicalResult transform() override {
    SmallVector<PlaceOp> places;
    getOperation()->walk([&](PlaceOp place) { places.push_back(place); });
    return success(
        llvm::all_of(places, [](PlaceOp place) { return succeeded(placeResult(place)); }));
  }
};
} // namespace
