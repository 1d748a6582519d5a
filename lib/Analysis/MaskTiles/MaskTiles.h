//===- MaskTiles.h - which tiles a mask keeps -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// A mask region is a predicate keep(b, h, m, n). A block owns the rows [m0, m1) of one (b, h) and
// walks over keys in tiles [n0, n0 + BN). A tile is *skip* when no element is kept, *full* when all
// are, *partial* otherwise. This analysis finds, from the operations of the region, arithmetic on
// m0, m1 and run-time scalars that gives the status of every tile; no mask is ever evaluated.
//
// Two sets decide everything. K is the set of keys that some row of the block keeps, D the set of
// keys that some row drops:
//
//   skip(tile)  <=>  tile and K are disjoint          full(tile)  <=>  tile and D are disjoint
//
// K is a projection of the mask, and D is the same projection of its negation. So one routine
// serves both, and it may err on one side only. A cover of K (or D) that is too large turns a skip
// (or full) tile into a partial tile: this costs time and never changes a result.
//
// The routine: write the predicate as a disjunction of conjunctions of `linear(m, n, ...) >= 0`.
// Solve each condition for n; it becomes n >= L(m), n <= U(m), or a condition on m alone, which
// tightens the rows. A conjunction keeps n in [L(m), U(m)] for row m. Over all rows these intervals
// join into one: from L at the row where it is least to U at the row where it is greatest. A
// condition without this form constrains nothing.
//
// Causal, as a worked example. The region says n <= m + off (off = N - M for bottom_right).
//
//   K: one conjunction {n <= m + off}. No L; U(m) = m + off is greatest in the last row, m1 - 1.
//      K = { n <= m1 - 1 + off }, so the last tile with a kept key ends at
//      end = ceil(clamp(m1 + off, 0, N) / BN) * BN, and begin = 0.
//   D: one conjunction {n >= m + off + 1}. L is least in the first row, m0. No U.
//      D = { n >= m0 + off + 1 }, so the tiles without a dropped key end at
//      fullEnd = floor(clamp(m0 + off + 1, 0, N) / BN) * BN, and fullBegin = 0.
//
//   m0 +  # # # # # # . . . . . .      # kept   BN = 4
//      |  # # # # # # # . . . . .
//   m1 +  # # # # # # # # . . . .      tiles: full, partial, skip
//         0       4       8            fullEnd = 4, end = 8
//
// The loop over n runs [begin, fullBegin) with the mask, [fullBegin, fullEnd) without it and
// [fullEnd, end) with it again; for causal the first loop is statically absent. The last tile is
// never full when it is not whole, so the middle loop needs no bounds check either. The caller may
// say that the last tile may be full (`lastMayBeFull`): then a mask that drops only the first
// positions leaves no third loop.
//
// A tensor that the caller knows to be non-decreasing along its last dimension gives bounds too:
// `ids[n] >= x` is n >= (first n with ids[n] >= x), found by one binary search per block.
//
// A block may own keys [n0, n1) instead and walk over rows, as gradients of keys and values do. The
// theory is the same with the two positions exchanged, so the code speaks of the `Fixed` position,
// of which the block owns some, and of the `Running` one. Causal again, for a block of keys:
//
//   K: { m >= n - off } is least at the first key:   begin = floor(clamp(n0 - off, 0, M) / BM) * BM
//   D: { m <= n - off - 1 } is greatest at the last: fullBegin = ceil(clamp(n1 - 1 - off, 0, M) /
//   BM) * BM
//
// A status is exact if it is the one that evaluating the mask would give, except as noted at
// `fullBegin`. Exact are:
//
// * any mix of and/or/xor/not/select over comparisons whose sides differ by m - n, m or n alone and
//   block constants, up to `maxDisjuncts` disjuncts;
// * chunks m / C == n / C, alone and with a diagonal n <= m or a window of the same origin;
// * documents ids_q[m] == ids_k[n]: always for full, and for skip when every running id between two
//   ids of the block also occurs in the block. Self attention is such a case, with a diagonal or
//   window of the same origin too.
//
// Conservative are other coefficients (2 * n <= m), other mixes of chunks or searches with a
// diagonal, remainders of n, and every condition that is not linear. Other coefficients are solved
// by a quotient: c * n + d <= m keeps n <= floor((m - d) / c), whatever number d is.
//
// Numbers that are compared with positions may be of any size (Narrow.h): a window of 2^63 - 1 keys
// has no limit.
//
// Assumptions:
//
// * positions are below 2^28, and 0 <= m0 < m1 <= M (or 0 <= n0 < n1 <= N);
// * index and 64-bit arithmetic of the region does not wrap; narrower arithmetic must say nsw or
//   provably fit;
// * a run-time divisor of an unsigned division is positive as a signed number;
// * ops of the region that depend on b and h alone may be executed once at the start of a block.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_MASKTILES_H
#define ATTN_LIB_ANALYSIS_MASKTILES_MASKTILES_H

#include "lib/Analysis/MaskTiles/MaskSet.h"

#include <memory>

namespace attn {

/// One block of the grid: a batch, a head, the rows [fixedBegin, fixedEnd) and the number of keys,
/// or the keys and the number of rows; all of index type.
struct MaskBlock {
  mlir::Value b, h, fixedBegin, fixedEnd, numRunning;
};

/// Bounds of the three loops over the running position; multiples of the tile size, in ascending
/// order. The end exceeds the number of positions by less than a tile.
template <typename T> struct TileRanges {
  /// Start of the first tile that is not skip.
  T begin;
  /// [fullBegin, fullEnd) is the longest run of full, whole tiles, and empty when there is none.
  /// Full tiles outside of that run are treated as partial.
  T fullBegin;
  T fullEnd;
  /// End of the last tile that is not skip.
  T end;
};

class MaskTiles {
public:
  /// The region must outlive the result. An empty region keeps everything. `running` is what the
  /// ranges are about.
  static MaskTiles analyze(mlir::Region &mask, FactOf factOf = nullptr,
                           MaskAxis running = MaskAxis::Keys);

  /// Nothing is ever dropped: the mask may go.
  bool isAlwaysFull() const { return dropped.empty(); }
  /// Nothing is ever kept.
  bool isAlwaysSkip() const { return kept.empty(); }
  /// Nothing is known: every tile is partial.
  bool isUndecided() const;

  /// Some positions are known to be kept by no row: the first or the last ones, or all if a guard
  /// does not hold.
  bool boundsKept() const;

  /// No tile is known to be full.
  bool knowsNoFullTile() const;

  /// Any set of fixed positions keeps one interval, without holes. May be false for a mask of which
  /// this is true.
  bool keepsOneInterval() const;
  /// Such an interval starts with the first position.
  bool keepsFromFirst() const;

  struct Ranges : TileRanges<mlir::Value> {
    /// False when the loop is statically known to be empty.
    bool mayHaveLeftPartial, mayHaveFull, mayHaveRightPartial;
    /// When the kept positions may form several intervals, these, as [first, second); else empty.
    llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 2> live;
  };
  /// Emits values that are constant in the block, at the insertion point, where all that the mask
  /// region captures must be visible. With `lastMayBeFull` a last tile that is not whole is full
  /// where all that it has is kept.
  Ranges emitRanges(mlir::OpBuilder &builder, mlir::Location loc, const MaskBlock &block,
                    int64_t tileSize, bool lastMayBeFull = false) const;

  /// An i1 that is false when the tile [tileBegin, tileEnd) of a partial range is skip; null when
  /// the ranges hold no such tile.
  static mlir::Value emitTileIsLive(mlir::OpBuilder &builder, mlir::Location loc,
                                    const Ranges &ranges, mlir::Value tileBegin,
                                    mlir::Value tileEnd);

  /// The same answers as numbers.
  TileRanges<int64_t> evaluateRanges(const bound::Environment &environment, int64_t tileSize,
                                     bool lastMayBeFull = false) const;
  bool evaluateTileIsLive(const bound::Environment &environment, int64_t tileBegin,
                          int64_t tileEnd) const;

  /// One line for a remark: "keeps n < m1 + s0; drops n >= m0 + s0 + 1", the sets K and D with
  /// the captured scalars numbered.
  std::string describe() const;

private:
  TileRanges<bound::Expr> ranges(int64_t tileSize, bool lastMayBeFull = false) const;
  /// The mask drops only the first positions: all positions after these are kept, and there may be
  /// some.
  bool dropsOnlyFirst() const;
  llvm::SmallVector<std::pair<bound::Expr, bound::Expr>, 2> livePieces() const;

  std::shared_ptr<bound::ExprPool> pool = std::make_shared<bound::ExprPool>();
  mlir::Region *mask = nullptr;
  MaskAxis running = MaskAxis::Keys;
  llvm::SmallVector<Interval, 2> kept, dropped;
};

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_MASKTILES_H
