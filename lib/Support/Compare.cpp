//===- Compare.cpp - the error of a result ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Compare.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace llvm;

namespace attn {

static constexpr int64_t chunkSize = 1024;

/// The root mean square of the finite elements. Scaled by the largest of them, so that no square
/// overflows.
static double getRms(const Array &array) {
  double chunk[chunkSize], largest = 0, sum = 0;
  int64_t count = 0;
  for (bool isSumming : {false, true}) {
    for (int64_t first = 0; first < array.size(); first += chunkSize) {
      MutableArrayRef values(chunk, std::min(chunkSize, array.size() - first));
      array.read(first, values);
      for (double value : values) {
        if (!std::isfinite(value))
          continue;
        if (isSumming)
          sum += (value / largest) * (value / largest);
        else
          largest = std::max(largest, std::fabs(value));
        count += isSumming;
      }
    }
    if (largest == 0)
      return 0;
  }
  return largest * std::sqrt(sum / count);
}

Expected<Comparison> compare(const Array &result, const Array &reference) {
  if (result.getShape() != reference.getShape())
    return createStringError("expected a result of shape " + formatShape(reference.getShape()) +
                             ", got " + formatShape(result.getShape()));
  Comparison comparison;
  comparison.numElements = result.size();

  double floor = getRms(reference), squares = 0;
  double values[chunkSize], wanted[chunkSize];
  int64_t numNaN = 0, numNaNWanted = 0, numBoth = 0;
  for (int64_t first = 0; first < result.size(); first += chunkSize) {
    int64_t count = std::min(chunkSize, result.size() - first);
    result.read(first, MutableArrayRef(values, count));
    reference.read(first, MutableArrayRef(wanted, count));
    for (int64_t i = 0; i < count; ++i) {
      double x = values[i], r = wanted[i];
      numNaNWanted += std::isnan(r);
      if (std::isnan(x)) {
        numBoth += std::isnan(r);
        if (numNaN++ == 0)
          comparison.worst = first + i;
        continue;
      }
      if (x == r) // Also equal infinities, whose difference is NaN.
        continue;
      double error = std::fabs(x - r);
      if (std::isnan(error)) // The reference is NaN.
        error = std::numeric_limits<double>::infinity();
      double relative = std::isinf(error) ? error : error / std::max(std::fabs(r), floor);
      comparison.maxAbsolute = std::max(comparison.maxAbsolute, error);
      squares += error * error;
      if (relative > comparison.maxRelative) {
        comparison.maxRelative = relative;
        if (numNaN == 0)
          comparison.worst = first + i;
      }
    }
  }
  // Where the definition writes nothing, and has no NaN of its own, nothing is wanted.
  int64_t numStays = numNaNWanted == reference.countPoisoned() ? numBoth : 0;
  int64_t numPoisoned = result.countPoisoned();
  comparison.numUnwritten = std::max<int64_t>(numPoisoned - numStays, 0);
  comparison.numNaN = numNaN - numPoisoned;
  if (result.size())
    comparison.rms = std::sqrt(squares / result.size());
  return comparison;
}

double getDefaultTolerance(ElementKind coarsest, bool roundsWeights) {
  switch (coarsest) {
  case ElementKind::BF16:
    return 3.8e-2;
  case ElementKind::F16:
    // An eighth of bf16's, for three more bits; PyTorch's own differ by up to 3.9e-3 on a GPU.
    return roundsWeights ? 4.8e-3 : 1.2e-3;
  case ElementKind::F8E4M3FN:
  case ElementKind::F8E5M2:
    // Weights of three bits of mantissa; what is read is what the reference reads.
    return roundsWeights ? 4e-1 : 2e-5;
  case ElementKind::F32:
  case ElementKind::F64: // Scores are accumulated in f32 whatever the type of the inputs.
    return 2e-5;
  default:
    return 0;
  }
}

} // namespace attn
