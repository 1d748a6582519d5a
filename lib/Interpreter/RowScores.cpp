//===- RowScores.cpp - the scores of one row --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/RowScores.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace attn {

Error RowScores::compute(int64_t b, int64_t h, int64_t m, int64_t n) {
  fill(keep, Lane{.i = -1});
  if (mask)
    if (Error error = mask->run(b, h, m, n, keys, keep.data()))
      return error;
  for (int64_t i = available; i < keys; ++i)
    keep[i].i = 0;
  for (int64_t i = 0; i < keys; ++i) {
    double sum = 0;
    if (keep[i].i)
      for (int64_t d = 0; d < headDim; ++d)
        sum += query[d].f * key[i * headDim + d].f;
    products[i].f = scale * sum;
  }
  scores = products;
  if (score)
    if (Error error = score->run(b, h, m, n, keys, scores.data(), std::nullopt, factors.data()))
      return error;
  for (int64_t i = 0; i < keys; ++i)
    if (!keep[i].i)
      scores[i].f = kLowest;
    else if (isBounded && scores[i].f != kLowest)
      scores[i].f = std::clamp<double>(scores[i].f, -kLargestScore, kLargestScore);
  return Error::success();
}

double RowScores::getMax(double initial) const {
  for (const Lane &lane : scores)
    initial = std::isnan(lane.f) ? lane.f : std::max(initial, lane.f);
  return initial;
}

void accumulate(Lane *sum, double weight, const Lane *value, int64_t width) {
  for (int64_t i = 0; i < width; ++i)
    sum[i].f += weight * value[i].f;
}

Error checkExtents(Operation *op, ArrayRef<std::pair<int64_t, int64_t>> pairs) {
  for (auto [a, b] : pairs)
    if (a != b)
      return makeOpError(op, "expected operands whose extents agree, got " + Twine(a) + " and " +
                                 Twine(b));
  return Error::success();
}

Error checkData(Operation *op, ArrayRef<const DenseTensor *> tensors) {
  for (const DenseTensor *tensor : tensors)
    if (!tensor->hasData())
      return makeOpError(op, "expected tensors with data, got a shape only");
  return Error::success();
}

} // namespace attn
