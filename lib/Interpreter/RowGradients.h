//===- RowGradients.h - the part of gradients that one row gives --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_ROWGRADIENTS_H
#define ATTN_LIB_INTERPRETER_ROWGRADIENTS_H

#include "lib/Interpreter/RowScores.h"

namespace attn {

/// P and dS of a row, from its scores.
struct RowGradients {
  /// The row's d_output and the values of its keys, of `width` columns.
  const Lane *gradient = nullptr, *value = nullptr;
  int64_t width = 0;
  /// The natural logarithm of the sum of its weights, and delta.
  double lse = 0, delta = 0;
  /// No key weighs anything, whatever `lse`.
  bool isEmpty = false;
  RegionProgram *grad = nullptr;
  /// P and dS of each key; where P is 0, dS means nothing.
  std::vector<Lane> weights, adjoints;

  explicit RowGradients(int64_t keys) : weights(keys), adjoints(keys) {}

  /// g3, g5, g6, g8 and g13 of the row at (b, h, m, n...) that `rows` has the scores of.
  llvm::Error compute(const RowScores &rows, llvm::ArrayRef<int64_t> at);
};

/// g2: rowsum(d_output * output) - d_lse of each row; without d_lse it is 0.
std::vector<double> computeDelta(const DenseTensor &output, const DenseTensor &gradient,
                                 const DenseTensor *lseGradient);

/// g17: the sums that say how far delta of a row is off.
struct DeltaSums {
  double weight = 0, residual = 0;

  /// Adds the terms of the keys, with the adjoints of T.
  void add(const RowGradients &row);
  /// Delta without its error; a sink of -inf is none.
  double end(double negLse2, double delta, double lseGradient, double sink) const;
};

/// g15: -lse * log2(e), and -inf for a row that keeps nothing.
double getNegLse2(double lse);

/// s17: the logarithm in base 2 as f32 rounds it, which is not that of a sum of f64, and what that
/// loses: 0 of an infinite one.
double roundBase2(double lse);
double getLow(double lse);

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_ROWGRADIENTS_H
