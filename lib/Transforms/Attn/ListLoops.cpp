//===- ListLoops.cpp - loops over lists of tiles ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ListLoops.h"
#include "lib/Transforms/Attn/DiagonalKeys.h"
#include "lib/Transforms/Attn/GridsBefore.h"
#include "lib/Transforms/Attn/StepRanges.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace attn;

namespace {
/// The list of the block, or of a head's turn in it, read in the block.
struct List {
  Value tiles, counts;
  SmallVector<Value> position;
};
} // namespace

static List findList(OpBuilder &builder, Listed &listed, scf::ForallOp lists) {
  List list{lists.getResult(0), lists.getResult(1),
            getTileBefore(builder, listed.grid, listed.differs)};
  if (listed.heads && listed.differs[1])
    list.position[1] = listed.over.step.getOrigin()[1];
  return list;
}

/// Lets the mask of the step that made `next` have what it reads once a tile as scalars. Where
/// there is one case the mask has none any more.
static void setConditionsOf(OpBuilder &builder, Listed &listed, ValueRange next) {
  auto step = next[0].getDefiningOp<AbsorbingOpInterface>();
  if (step.getMask().empty() || getCaseConditions(step.getMask(), listed.tile).empty())
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(step);
  auto values = emitConditions(builder, step.getMask(), listed.tile, step.getOrigin());
  setConditions(step.getMask(), listed.tile, values);
}

/// Steps on the tiles at the places [begin, end) of the list. Tiles that the mask cuts have it; the
/// last of all may be short, if it is among them.
static ValueRange emitLoop(OpBuilder &builder, Listed &listed, const List &list, Value begin,
                           Value end, bool isCut, bool hasLast, ValueRange state) {
  StepLoop &over = listed.over;
  Location loc = over.loop->getLoc();
  auto loop = scf::ForOp::create(builder, loc, begin, end, emitConstant(builder, loc, 1), state);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  Value n0 = emitReadBefore(builder, loc, list.tiles, list.position, loop.getInductionVar());
  ValueRange running = loop.getRegionIterArgs(), next;
  if (isCut && hasLast) {
    next = emitPartialStep(builder, over, n0, running);
  } else {
    OpFoldResult size = builder.getIndexAttr(over.tileSize);
    if (hasLast)
      size = emitTileSize(builder, loc, over.tileSize, n0, over.length);
    next = emitTileStep(builder, over.step, over.sources, over.origin, n0, size, running, isCut);
    if (isCut && over.hasNoHoles)
      setKeptKeys(next, kKeepsPrefix);
    else if (isCut && over.keepsDiagonal)
      setKeptKeys(next, kKeepsDiagonal);
  }
  setConditionsOf(builder, listed, next);
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

/// Whether the mask cuts tiles that are not the last: some case does.
static bool mayCut(Listed &listed) {
  return !listed.isComputed || listed.hasParts() ||
         llvm::any_of(listed.cases.getCases(),
                      [](const auto &each) { return !each.tiles.isAlwaysFull(); });
}

bool attn::visitsInOneLoop(Listed &listed) { return !mayCut(listed); }

/// The tiles at the front of the list from place `begin` to `numCut`, and then those at its end,
/// which the mask does not cut. Where no step is certain, the last of all is the first at the
/// front.
static ValueRange emitBoth(OpBuilder &builder, Listed &listed, const List &list, Value begin,
                           Value numCut, ValueRange state) {
  Location loc = listed.over.loop->getLoc();
  bool hasLast = !listed.isCertain(), isCut = mayCut(listed);
  state = emitLoop(builder, listed, list, begin, numCut, isCut, hasLast, state);
  if (visitsInOneLoop(listed))
    return state;
  Value one = emitConstant(builder, loc, 1);
  Value numWhole = emitReadBefore(builder, loc, list.counts, list.position, one);
  Value end = getValueOrCreateConstantIndexOp(builder, loc,
                                              tensor::getMixedSize(builder, loc, list.tiles, 3));
  Value first = arith::SubIOp::create(builder, loc, end, numWhole);
  return emitLoop(builder, listed, list, first, end, /*isCut=*/false, /*hasLast=*/false, state);
}

/// The tiles of the list, the first on its own: it is certain to be there, if any is, and it alone
/// may be short.
static SmallVector<Value> emitCertain(OpBuilder &builder, Listed &listed, const List &list,
                                      Value numCut, ValueRange inits) {
  Location loc = listed.over.loop->getLoc();
  Value zero = emitConstant(builder, loc, 0), one = emitConstant(builder, loc, 1);
  Value first = emitReadBefore(builder, loc, list.tiles, list.position, zero);
  ValueRange state = emitPartialStep(builder, listed.over, first, inits);
  setConditionsOf(builder, listed, state);
  return SmallVector<Value>(emitBoth(builder, listed, list, one, numCut, state));
}

/// Keys behind the last that a row of the block keeps may hold anything, and are in no tile if the
/// mask keeps all before it: where the only case keeps some of a tile, it does so from the tile's
/// first key on.
static void boundTiles(OpBuilder &builder, Listed &listed) {
  StepLoop &over = listed.over;
  if (!listed.isComputed || listed.cases.getCases().size() != 1)
    return;
  const MaskTiles &tiles = listed.cases.getCases().front().tiles;
  if (tiles.isAlwaysFull() || !tiles.keepsOneInterval() || !tiles.keepsFromFirst())
    return;
  Location loc = over.loop.getLoc();
  ValueRange at = over.step.getOrigin();
  Value owned = getValueOrCreateConstantIndexOp(builder, loc, listed.owned);
  Value end = arith::AddIOp::create(builder, loc, at[2], owned);
  over.length =
      tiles.emitRanges(builder, loc, {at[0], at[1], at[2], end, over.length}, /*tileSize=*/1).end;
  over.hasNoHoles = true;
}

void attn::emitLoopsOverLists(RewriterBase &rewriter, Listed &listed, scf::ForallOp lists) {
  StepLoop &over = listed.over;
  Location loc = over.loop.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(over.loop);
  List list = findList(rewriter, listed, lists);
  Value zero = emitConstant(rewriter, loc, 0);
  Value numCut = emitReadBefore(rewriter, loc, list.counts, list.position, zero);
  ValueRange inits = over.loop.getInitArgs();
  if (!listed.isCertain()) {
    if (!listed.hasParts())
      simplifyMask(listed.getMask(), listed.tile, listed.cases);
    rewriter.replaceOp(over.loop, emitBoth(rewriter, listed, list, zero, numCut, inits));
    return;
  }
  over.keepsDiagonal = keepsDiagonal(over);
  boundTiles(rewriter, listed);
  simplifyMask(listed.getMask(), listed.tile, listed.cases);
  Value hasTiles = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, zero, numCut);
  auto any = scf::IfOp::create(rewriter, loc, inits.getTypes(), hasTiles, /*withElseRegion=*/true);
  rewriter.setInsertionPointToEnd(any.elseBlock());
  scf::YieldOp::create(rewriter, loc, inits);
  rewriter.setInsertionPointToEnd(any.thenBlock());
  scf::YieldOp::create(rewriter, loc, emitCertain(rewriter, listed, list, numCut, inits));
  rewriter.replaceOp(over.loop, any.getResults());
}

std::string attn::describe(Listed &listed) {
  size_t count = listed.cases.getConditions().size();
  std::string text = listed.isComputed ? "listed by " + std::to_string(count) +
                                             (count == 1 ? " read" : " reads") + " a tile"
                                       : "listed by the mask's elements";
  if (!listed.isComputed && count)
    text += " where reads of a tile allow any";
  if (listed.hasParts())
    text += " of its parts; listed tiles keep the mask";
  else if (count && listed.cases.getCases().size() == 1)
    text += "; in listed tiles the mask " + listed.cases.getCases().front().tiles.describe();
  return text;
}
