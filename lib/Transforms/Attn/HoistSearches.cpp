//===- HoistSearches.cpp - attn-hoist-searches ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A binary search of 8192 keys is 13 reads of memory, each of which waits for the one before, and
// sorted documents take four: longer than four tiles of keys.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"

namespace attn {
#define GEN_PASS_DEF_HOISTSEARCHESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// The searches of a grid that another one can run.
struct Hoisted {
  scf::ForallOp grid;
  /// What they find, in the order of the block; indices.
  SmallVector<Value> found;
  /// Whether that is something else for each batch, head and tile.
  std::array<bool, 3> differs = {false, false, true};
};
} // namespace

/// The grid of blocks that runs the search whatever its branches do, or null.
static scf::ForallOp getGrid(scf::WhileOp search) {
  Operation *parent = search->getParentOp();
  while (isa<scf::ForOp>(parent))
    parent = parent->getParentOp();
  auto grid = dyn_cast<scf::ForallOp>(parent);
  return isGridOverTiles(grid) ? grid : scf::ForallOp();
}

/// Whether what the search finds can be computed in a block of another grid, and from which of its
/// own grid's indices.
static bool canHoist(scf::WhileOp search, scf::ForallOp grid, llvm::SmallDenseSet<Value> &indices) {
  llvm::SmallDenseSet<Value> ofSearch;
  bool hasIndices = llvm::all_of(search.getResults(), [&](Value found) {
    return found.use_empty() || found.getType().isIndex();
  });
  if (!grid || !hasIndices || failed(collectIndices(search.getResult(0), grid, ofSearch)))
    return false;
  indices.insert(ofSearch.begin(), ofSearch.end());
  return true;
}

//===----------------------------------------------------------------------------------------===//
// The grid before
//===----------------------------------------------------------------------------------------===//

/// What all searches read of the block that is no search's result, computed before one is chosen:
/// control flow on scalars reads elements of arguments only.
static void copyInputs(OpBuilder &builder, IRMapping &mapping, Hoisted &hoisted) {
  for (Value found : hoisted.found) {
    Operation *search = found.getDefiningOp();
    llvm::SetVector<Value> inputs;
    getUsedValuesDefinedAbove(search->getRegions(), inputs);
    inputs.insert_range(search->getOperands());
    for (Value input : inputs) {
      llvm::SetVector<Operation *> slice;
      BackwardSliceOptions options;
      options.inclusive = true;
      options.filter = [&](Operation *op) { return hoisted.grid->isProperAncestor(op); };
      if (succeeded(getBackwardSlice(input, &slice, options)) &&
          llvm::none_of(slice, llvm::IsaPred<scf::WhileOp>))
        copyInto(builder, mapping, input, hoisted.grid);
    }
  }
}

/// What the search with the number of the block finds.
static Value emitChoice(OpBuilder &builder, Hoisted &hoisted, const IRMapping &inputs, Value number,
                        size_t first = 0) {
  Location loc = hoisted.grid.getLoc();
  IRMapping mapping(inputs);
  Value found = hoisted.found[first];
  if (first + 1 == hoisted.found.size())
    return copyInto(builder, mapping, found, hoisted.grid);
  Value at = arith::ConstantIndexOp::create(builder, loc, first);
  Value isThis = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, number, at);
  auto branch =
      scf::IfOp::create(builder, loc, builder.getIndexType(), isThis, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(branch.thenBlock());
  scf::YieldOp::create(builder, loc, copyInto(builder, mapping, found, hoisted.grid));
  builder.setInsertionPointToEnd(branch.elseBlock());
  scf::YieldOp::create(builder, loc, emitChoice(builder, hoisted, inputs, number, first + 1));
  return branch.getResult(0);
}

/// A grid over (searches, B', H', M tiles), whose result is (B', H', M tiles, searches).
static Value emitSearches(OpBuilder &builder, Hoisted &hoisted) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(hoisted.grid);
  Location loc = hoisted.grid.getLoc();
  OpFoldResult one = builder.getIndexAttr(1), count = builder.getIndexAttr(hoisted.found.size());
  Value empty = emitEmptyBefore(builder, hoisted.grid, hoisted.differs, count);
  SmallVector<OpFoldResult> ends = getEndsBefore(hoisted.grid, hoisted.differs),
                            steps = hoisted.grid.getMixedStep();
  ends.insert(ends.begin(), count);
  steps.insert(steps.begin(), one);
  scf::ForallOp grid = emitGridBefore(builder, loc, ends, steps, empty);

  SmallVector<Value> ivs = grid.getInductionVars();
  IRMapping mapping;
  mapping.map(ValueRange(hoisted.grid.getInductionVars()), ArrayRef(ivs).drop_front());
  copyInputs(builder, mapping, hoisted);
  Value found = emitChoice(builder, hoisted, mapping, ivs.front());
  Value element = arith::IndexCastOp::create(builder, loc, builder.getI32Type(), found);
  Value list = tensor::FromElementsOp::create(builder, loc, element);
  SmallVector<OpFoldResult> offsets = getTileOfRows(builder, loc, grid), sizes(4, one),
                            strides(4, one);
  offsets.push_back(ivs.front());
  builder.setInsertionPointToEnd(grid.getTerminator().getBody());
  tensor::ParallelInsertSliceOp::create(builder, loc, list, grid.getRegionOutArgs()[0], offsets,
                                        sizes, strides);
  return grid.getResult(0);
}

static void hoist(RewriterBase &rewriter, Hoisted &hoisted) {
  Value found = emitSearches(rewriter, hoisted);
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(hoisted.grid.getBody());
  SmallVector<Value> tile = getTileBefore(rewriter, hoisted.grid, hoisted.differs);
  for (auto [number, value] : llvm::enumerate(hoisted.found)) {
    Location loc = value.getLoc();
    Value at = arith::ConstantIndexOp::create(rewriter, loc, number);
    rewriter.replaceAllUsesWith(value, emitReadBefore(rewriter, loc, found, tile, at));
  }
}

namespace {
struct HoistSearchesPass
    : RoomPass<attn::impl::HoistSearchesPassBase<HoistSearchesPass>, Room::Online, Room::Online> {
  LogicalResult transform() override {
    llvm::MapVector<Operation *, std::pair<Hoisted, llvm::SmallDenseSet<Value>>> byGrid;
    SmallVector<scf::WhileOp> searches;
    getOperation()->walk([&](scf::WhileOp search) {
      scf::ForallOp grid = getGrid(search);
      llvm::SmallDenseSet<Value> indices;
      if (search->getNumResults() == 0 || !canHoist(search, grid, indices)) {
        remark::missed(search.getLoc(), remark::RemarkOpts::name("hoist-searches").category("attn"))
            << "searched in each block: it depends on what only the block computes";
        return;
      }
      auto &[hoisted, ofGrid] = byGrid[grid];
      hoisted.grid = grid;
      ofGrid.insert(indices.begin(), indices.end());
      llvm::copy_if(search.getResults(), std::back_inserter(hoisted.found),
                    [](Value found) { return !found.use_empty(); });
      searches.push_back(search);
    });
    IRRewriter rewriter(&getContext());
    for (auto &[grid, entry] : byGrid) {
      auto &[hoisted, indices] = entry;
      hoisted.differs = getDifferences(hoisted.grid, indices);
      if (!hoisted.found.empty())
        hoist(rewriter, hoisted);
    }
    // One may read what another has found.
    for (scf::WhileOp search : llvm::reverse(searches))
      rewriter.eraseOp(search);
    return success();
  }
};
} // namespace
