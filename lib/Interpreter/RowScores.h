//===- RowScores.h - the scores of one row ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_ROWSCORES_H
#define ATTN_LIB_INTERPRETER_ROWSCORES_H

#include "lib/Interpreter/RegionProgram.h"

namespace attn {

inline constexpr double kLowest = -std::numeric_limits<double>::infinity();
inline constexpr double kLog2e = 1.4426950408889634074;

/// The row that attention is about: its scores against `keys` keys.
struct RowScores {
  const Lane *query = nullptr, *key = nullptr;
  int64_t headDim = 0, keys = 0;
  /// Of the keys, those that the row can keep: the first so many.
  int64_t available = 0;
  double scale = 1;
  RegionProgram *score = nullptr, *mask = nullptr;
  /// Whether finite scores stay within kLargestScore; in base 2 the region sees to it.
  bool isBounded = false;
  /// S and T of each key, the factor F of its weight, and whether it is kept.
  std::vector<Lane> products, scores, factors, keep;

  explicit RowScores(int64_t keys)
      : keys(keys), available(keys), products(keys), scores(keys), factors(keys, Lane{.f = 1}),
        keep(keys, Lane{.i = -1}) {}

  /// S[n], 0 where it is dropped, T[n], -inf there, and F[n] of the row at (b, h, m, n...).
  llvm::Error compute(int64_t b, int64_t h, int64_t m, int64_t n);

  double getMax(double initial) const;
};

/// sum += weight * value over `width` elements.
void accumulate(Lane *sum, double weight, const Lane *value, int64_t width);

/// The extents must agree at run time where the types leave them open.
llvm::Error checkExtents(mlir::Operation *op, llvm::ArrayRef<std::pair<int64_t, int64_t>> pairs);
llvm::Error checkData(mlir::Operation *op, llvm::ArrayRef<const DenseTensor *> tensors);

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_ROWSCORES_H
