//===- MaskSet.h - the intervals a mask keeps and drops ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// From a mask region to intervals: the region becomes a disjunction of conjunctions of linear
// conditions, and each conjunction is projected on the running position, over the positions of a
// block.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_MASKSET_H
#define ATTN_LIB_ANALYSIS_MASKTILES_MASKSET_H

#include "lib/Analysis/MaskTiles/Bound.h"
#include "mlir/IR/Region.h"

#include <optional>

namespace attn {

/// A fact that a caller may know about a captured integer tensor.
enum class TensorFact {
  /// Signed values do not decrease along the last dimension.
  NonDecreasing
};
using FactOf = llvm::function_ref<std::optional<TensorFact>(mlir::Value tensor)>;

/// The running positions in [begin, end), if the guard holds; a null bound is open, a null guard
/// holds.
struct Interval {
  bound::Expr begin = nullptr;
  bound::Expr end = nullptr;
  bound::Expr guard = nullptr;
  /// Every key in it, and no other, is one of the set if the guard holds, whatever the rows are.
  /// May be false for an interval of which it is true.
  bool isExact = false;
};

/// Beyond this many disjuncts a part of a mask counts as opaque.
inline constexpr unsigned maxDisjuncts = 16;

/// Intervals that cover the running positions where the mask is `polarity` for some position of the
/// block: { n : some m of [FixedBegin, FixedEnd) has mask(m, n) == polarity } where keys run. The
/// cover is the set itself for conditions that MaskTiles.h lists as exact. An empty region is true.
llvm::SmallVector<Interval, 2> coverRunning(bound::ExprPool &pool, mlir::Region &mask,
                                            MaskAxis running, bool polarity, FactOf factOf);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_MASKSET_H
