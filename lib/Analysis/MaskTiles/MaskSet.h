//===- MaskSet.h - the key intervals a mask keeps and drops -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// From a mask region to intervals: the region becomes a disjunction of conjunctions of linear
// conditions, and each conjunction is projected on the key position over the rows of a block.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_MASKTILES_MASKSET_H
#define ATTN_ANALYSIS_MASKTILES_MASKSET_H

#include "lib/Analysis/MaskTiles/Bound.h"
#include "mlir/IR/Region.h"

#include <optional>

namespace attn {

/// What a caller may know about a captured integer tensor.
enum class TensorFact {
  /// Signed values do not decrease along the last dimension.
  NonDecreasing
};
using FactOf = llvm::function_ref<std::optional<TensorFact>(mlir::Value tensor)>;

/// The keys in [begin, end), if the guard holds; a null bound is open, a null guard holds.
struct KeyInterval {
  bound::Expr begin = nullptr;
  bound::Expr end = nullptr;
  bound::Expr guard = nullptr;
};

/// Beyond this many disjuncts a part of a mask counts as opaque.
inline constexpr unsigned maxDisjuncts = 16;

/// Intervals that cover { n : some row of [RowBegin, RowEnd) has mask(m, n) == polarity }. The
/// cover is the set itself for conditions that MaskTiles.h lists as exact. An empty region is true.
llvm::SmallVector<KeyInterval, 2> coverKeys(bound::ExprPool &pool, mlir::Region &mask,
                                            bool polarity, FactOf factOf);

} // namespace attn

#endif // ATTN_ANALYSIS_MASKTILES_MASKSET_H
