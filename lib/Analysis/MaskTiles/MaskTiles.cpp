//===- MaskTiles.cpp - which tiles a mask keeps -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/MaskTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn::bound;

namespace attn {

namespace {
/// Positions [begin, end), if valid. Both ends lie in [0, NumRunning] where it matters.
struct Piece {
  Expr begin, end, valid;
};

/// Intervals clipped to the positions that exist. Those that start at 0 are one piece,
/// [0, prefixEnd), and so are those that end with the last one, [suffixBegin, NumRunning): these
/// two need no validity, which is what keeps the bounds of common masks short.
struct Pieces {
  Pieces(ExprPool &pool, ArrayRef<Interval> intervals);
  SmallVector<Piece, 2> all(ExprPool &pool) const;

  Expr prefixEnd, suffixBegin;
  SmallVector<Piece, 2> middles;
};
} // namespace

Pieces::Pieces(ExprPool &pool, ArrayRef<Interval> intervals) {
  Expr zero = pool.constant(0), numRunning = pool.symbol(Symbol::NumRunning);
  prefixEnd = zero;
  suffixBegin = numRunning;
  for (const Interval &interval : intervals) {
    Expr guard = interval.guard ? interval.guard : pool.boolean(true);
    Expr begin = interval.begin ? pool.max({zero, interval.begin}) : zero;
    Expr end = interval.end ? pool.min({numRunning, interval.end}) : numRunning;
    end = pool.max({zero, end});
    if (begin == zero)
      prefixEnd = pool.max({prefixEnd, pool.select(guard, end, zero)});
    else if (end == numRunning)
      suffixBegin = pool.min({suffixBegin, pool.select(guard, begin, numRunning)});
    else
      middles.push_back({begin, end, pool.conjunction({guard, pool.less(begin, end)})});
  }
}

SmallVector<Piece, 2> Pieces::all(ExprPool &pool) const {
  Expr zero = pool.constant(0), numRunning = pool.symbol(Symbol::NumRunning);
  SmallVector<Piece, 2> pieces;
  if (prefixEnd != zero)
    pieces.push_back({zero, prefixEnd, pool.less(zero, prefixEnd)});
  if (suffixBegin != numRunning)
    pieces.push_back({suffixBegin, numRunning, pool.less(suffixBegin, numRunning)});
  pieces.append(middles);
  return pieces;
}

MaskTiles MaskTiles::analyze(Region &mask, FactOf factOf, MaskAxis running) {
  MaskTiles result;
  result.mask = &mask;
  result.running = running;
  result.kept = coverRunning(*result.pool, mask, running, true, factOf);
  result.dropped = coverRunning(*result.pool, mask, running, false, factOf);
  // Clipping takes differences, which may be too large as well.
  result.livePieces();
  result.ranges(/*tileSize=*/1);
  if (result.pool->hasOverflowed())
    result.kept = result.dropped = {Interval()};
  return result;
}

static bool isEverything(const Interval &interval) {
  return !interval.begin && !interval.end && !interval.guard;
}

bool MaskTiles::knowsNoFullTile() const { return llvm::any_of(dropped, isEverything); }

bool MaskTiles::boundsKept() const { return llvm::none_of(kept, isEverything); }

bool MaskTiles::isUndecided() const { return !boundsKept() && knowsNoFullTile(); }

bool MaskTiles::keepsFromFirst() const {
  return llvm::none_of(kept, [](const Interval &interval) { return interval.begin; });
}

bool MaskTiles::keepsOneInterval() const {
  bool isExact = llvm::all_of(kept, [](const Interval &interval) { return interval.isExact; });
  // Of several, those with an end in common are one.
  return isExact && (kept.size() <= 1 || keepsFromFirst());
}

/// Tiles [first, second) that hold a kept position.
static std::pair<Expr, Expr> liveTiles(ExprPool &pool, ArrayRef<Interval> kept, int64_t tileSize) {
  Expr zero = pool.constant(0), numRunning = pool.symbol(Symbol::NumRunning);
  Expr size = pool.constant(tileSize);
  SmallVector<Piece, 2> pieces = Pieces(pool, kept).all(pool);
  if (pieces.empty())
    return {zero, zero};
  if (pieces.size() == 1) {
    auto [begin, end, valid] = pieces[0];
    if (begin == zero)
      return {zero, pool.ceilDiv(end, tileSize)};
    return {pool.floorDiv(pool.select(valid, begin, zero), size),
            pool.ceilDiv(pool.select(valid, end, zero), tileSize)};
  }
  SmallVector<Expr, 4> begins, ends;
  for (const Piece &piece : pieces) {
    begins.push_back(pool.select(piece.valid, piece.begin, numRunning));
    ends.push_back(pool.select(piece.valid, piece.end, zero));
  }
  Expr end = pool.ceilDiv(pool.max(ends), tileSize);
  return {pool.min({pool.floorDiv(pool.min(begins), size), end}), end};
}

/// The longest run of whole tiles that hold no dropped position; possibly empty or in the wrong
/// order.
static std::pair<Expr, Expr> fullTiles(ExprPool &pool, ArrayRef<Interval> dropped,
                                       int64_t tileSize) {
  Expr zero = pool.constant(0), size = pool.constant(tileSize);
  Pieces pieces(pool, dropped);
  // Between the prefix and the suffix; the suffix starts at NumRunning at the latest, and rounding
  // down leaves out the tile that is not whole.
  Expr start = pool.ceilDiv(pieces.prefixEnd, tileSize);
  Expr cap = pool.floorDiv(pieces.suffixBegin, size);
  if (pieces.middles.empty())
    return {start, cap};

  SmallVector<std::pair<Expr, Expr>, 2> obstacles;
  for (const Piece &piece : pieces.middles)
    obstacles.push_back({pool.floorDiv(pool.select(piece.valid, piece.begin, zero), size),
                         pool.ceilDiv(pool.select(piece.valid, piece.end, zero), tileSize)});
  // A run starts after the prefix or after an obstacle, and ends at the first obstacle that is not
  // before its start.
  auto runFrom = [&](Expr first) {
    SmallVector<Expr, 4> ends = {cap};
    for (auto [from, to] : obstacles)
      ends.push_back(pool.select(pool.less(first, to), from, cap));
    return std::pair(first, pool.max({first, pool.min(ends)}));
  };
  std::pair<Expr, Expr> best = runFrom(start);
  for (auto [from, to] : obstacles) {
    std::pair<Expr, Expr> run = runFrom(pool.max({start, to}));
    Expr isLonger = pool.less(pool.sub(best.second, best.first), pool.sub(run.second, run.first));
    best = {pool.select(isLonger, run.first, best.first),
            pool.select(isLonger, run.second, best.second)};
  }
  return best;
}

bool MaskTiles::dropsOnlyFirst() const {
  return !knowsNoFullTile() &&
         llvm::none_of(dropped, [](const Interval &interval) { return interval.begin; });
}

TileRanges<Expr> MaskTiles::ranges(int64_t tileSize, bool lastMayBeFull) const {
  Expr zero = pool->constant(0);
  auto [begin, end] = liveTiles(*pool, kept, tileSize);
  auto [fullBegin, fullEnd] = fullTiles(*pool, dropped, tileSize);
  // Full tiles are live, so only an empty run can leave [begin, end). When the run starts at tile 0
  // and so do the live tiles, an empty one is already in its place.
  if (begin == end) {
    fullBegin = fullEnd = begin;
  } else if (begin != zero || fullBegin != zero) {
    fullBegin = pool->min({pool->max({fullBegin, begin}), end});
    fullEnd = pool->max({pool->min({fullEnd, end}), fullBegin});
  }
  if (lastMayBeFull && dropsOnlyFirst())
    fullEnd = end;
  // Rare enough to give up rather than to track which bound it was.
  if (pool->hasOverflowed()) {
    begin = fullBegin = fullEnd = zero;
    end = pool->ceilDiv(pool->symbol(Symbol::NumRunning), tileSize);
  }
  return {pool->scale(begin, tileSize), pool->scale(fullBegin, tileSize),
          pool->scale(fullEnd, tileSize), pool->scale(end, tileSize)};
}

SmallVector<std::pair<Expr, Expr>, 2> MaskTiles::livePieces() const {
  SmallVector<Piece, 2> pieces = Pieces(*pool, kept).all(*pool);
  SmallVector<std::pair<Expr, Expr>, 2> live;
  if (pieces.size() > 1)
    for (const Piece &piece : pieces)
      live.push_back({piece.begin, pool->select(piece.valid, piece.end, pool->constant(0))});
  return live;
}

MaskTiles::Ranges MaskTiles::emitRanges(OpBuilder &builder, Location loc, const MaskBlock &block,
                                        int64_t tileSize, bool lastMayBeFull) const {
  Emitter emitter(builder, loc, mask);
  emitter.bind(Symbol::FixedBegin, block.fixedBegin);
  emitter.bind(Symbol::FixedEnd, block.fixedEnd);
  emitter.bind(Symbol::NumRunning, block.numRunning);
  if (!mask->empty()) {
    emitter.bind(mask->getArgument(0), block.b);
    emitter.bind(mask->getArgument(1), block.h);
  }
  TileRanges<Expr> symbolic = ranges(tileSize, lastMayBeFull);
  Ranges result;
  result.begin = emitter.emit(symbolic.begin);
  result.fullBegin = emitter.emit(symbolic.fullBegin);
  result.fullEnd = emitter.emit(symbolic.fullEnd);
  result.end = emitter.emit(symbolic.end);
  auto mayDiffer = [](Value a, Value b) { return !isEqualConstantIntOrValue(a, b); };
  result.mayHaveLeftPartial = mayDiffer(result.begin, result.fullBegin);
  result.mayHaveFull = mayDiffer(result.fullBegin, result.fullEnd);
  result.mayHaveRightPartial = mayDiffer(result.fullEnd, result.end);
  for (auto [begin, end] : livePieces())
    result.live.push_back({emitter.emit(begin), emitter.emit(end)});
  return result;
}

Value MaskTiles::emitTileIsLive(OpBuilder &builder, Location loc, const Ranges &ranges,
                                Value tileBegin, Value tileEnd) {
  Value live;
  auto less = [&](Value a, Value b) {
    return builder.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, a, b);
  };
  for (auto [begin, end] : ranges.live) {
    Value meets =
        builder.createOrFold<arith::AndIOp>(loc, less(begin, tileEnd), less(tileBegin, end));
    live = live ? builder.createOrFold<arith::OrIOp>(loc, live, meets) : meets;
  }
  return live;
}

TileRanges<int64_t> MaskTiles::evaluateRanges(const Environment &environment, int64_t tileSize,
                                              bool lastMayBeFull) const {
  TileRanges<Expr> symbolic = ranges(tileSize, lastMayBeFull);
  return {evaluate(symbolic.begin, environment), evaluate(symbolic.fullBegin, environment),
          evaluate(symbolic.fullEnd, environment), evaluate(symbolic.end, environment)};
}

bool MaskTiles::evaluateTileIsLive(const Environment &environment, int64_t tileBegin,
                                   int64_t tileEnd) const {
  auto pieces = livePieces();
  return pieces.empty() || llvm::any_of(pieces, [&](auto &piece) {
           return evaluate(piece.first, environment) < tileEnd &&
                  tileBegin < evaluate(piece.second, environment);
         });
}

static std::string toString(ArrayRef<Interval> intervals, Names &names) {
  if (intervals.empty())
    return "nothing";
  std::string position = names[Symbol::Running].str();
  SmallVector<std::string> texts;
  for (const Interval &interval : intervals) {
    SmallVector<std::string> parts;
    if (interval.begin)
      parts.push_back(position + " >= " + toString(interval.begin, names));
    if (interval.end)
      parts.push_back(position + " < " + toString(interval.end, names));
    std::string text = parts.empty() ? "every " + position : llvm::join(parts, " and ");
    if (interval.guard)
      text += " if " + toString(interval.guard, names);
    texts.push_back(text);
  }
  return llvm::join(texts, ", or ");
}

std::string MaskTiles::describe() const {
  if (isUndecided())
    return "undecided, every tile is partial";
  Names names(running);
  std::string keeps = toString(kept, names);
  return "keeps " + keeps + "; drops " + toString(dropped, names);
}

} // namespace attn
