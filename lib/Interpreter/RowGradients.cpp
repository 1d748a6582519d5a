//===- RowGradients.cpp - what one row gives to gradients ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/RowGradients.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace attn {

Error RowGradients::compute(const RowScores &rows, ArrayRef<int64_t> at) {
  for (int64_t n = 0; n < rows.keys; ++n) {
    double score = rows.scores[n].f;
    bool isDropped = score == kLowest || isEmpty;
    double weight = weights[n].f = isDropped ? 0 : std::exp(std::min(score - lse, 0.0)),
           product = 0;
    for (int64_t i = 0; i < width && weight != 0; ++i)
      product += gradient[i].f * value[n * width + i].f;
    adjoints[n].f = weight == 0 ? 0 : weight * (product * rows.factors[n].f - delta);
  }
  if (!grad)
    return Error::success();
  std::vector<Lane> ofScores = rows.products;
  RegionProgram::Gradients gradients = {adjoints.data(), weights.data()};
  if (Error error = grad->run(at[0], at[1], at[2], at[3], rows.keys, ofScores.data(), gradients))
    return error;
  adjoints = std::move(ofScores);
  return Error::success();
}

std::vector<double> computeDelta(const DenseTensor &output, const DenseTensor &gradient,
                                 const DenseTensor *lseGradient) {
  int64_t width = output.getShape().back();
  int64_t rows = 1;
  for (int64_t extent : output.getShape().drop_back())
    rows *= extent;
  std::vector<double> delta(rows);
  for (int64_t row = 0; row < rows; ++row) {
    delta[row] = lseGradient ? -lseGradient->data()[row].f : 0;
    for (int64_t i = row * width; i < (row + 1) * width; ++i)
      delta[row] += gradient.data()[i].f * output.data()[i].f;
  }
  return delta;
}

void DeltaSums::add(const RowGradients &row) {
  for (auto [p, dt] : zip_equal(row.weights, row.adjoints)) {
    if (p.f == 0)
      continue;
    weight += p.f;
    residual += dt.f;
  }
}

double DeltaSums::end(double negLse2, double delta, double lseGradient, double sink) const {
  double ofSink = sink == kLowest ? 0 : std::exp2(sink * kLog2e + negLse2), total = weight + ofSink;
  double slack = std::clamp(std::abs(negLse2) * GradDeltaEndOp::kSlackOfLse,
                            GradDeltaEndOp::kLeastSlack, GradDeltaEndOp::kMostSlack);
  return std::abs(total - 1) <= slack ? delta + ((residual - ofSink * delta) / total - lseGradient)
                                      : delta;
}

double roundBase2(double lse) { return float(lse) * kF32Log2e; }

double getLow(double lse) {
  double low = lse * double(kF32Log2e) - roundBase2(lse);
  return std::isfinite(low) ? low : 0;
}

double getNegLse2(double lse) { return lse == kLowest ? kLowest : -lse * kLog2e; }

} // namespace attn
