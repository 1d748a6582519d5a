//===- Compare.h - the error of a result ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_COMPARE_H
#define ATTN_LIB_SUPPORT_COMPARE_H

#include "lib/Support/Array.h"

namespace attn {

/// How far a result x is from its reference r.
///
/// The relative error of one element is |x - r| / max(|r|, rms(r)), where rms(r) is the root mean
/// square of the finite reference elements. The floor keeps an element that is small by
/// cancellation from being judged on a scale that no sum of larger terms can hold; and unlike a
/// division by max|r| it does not let one large element excuse the rest.
///
/// Equal infinities are exact (a row that keeps nothing has lse = -inf); an infinity against
/// anything else is an infinite error. NaN never agrees with anything, but where the reference
/// still holds the poison of Array::poison, the result is to hold it too.
struct Comparison {
  int64_t numElements = 0;
  double maxAbsolute = 0;
  double maxRelative = 0;
  double rms = 0;
  /// Row-major position of the largest relative error, or of the first NaN if there is one.
  int64_t worst = -1;
  /// NaN in the result, without those never written.
  int64_t numNaN = 0;
  /// Elements that still hold the poison, where the reference does not.
  int64_t numUnwritten = 0;

  bool isWithin(double tolerance) const {
    return numNaN == 0 && numUnwritten == 0 && maxRelative <= tolerance;
  }
};

/// Compares element by element in row-major order; the layouts in memory may differ. An error when
/// the shapes do.
llvm::Expected<Comparison> compare(const Array &result, const Array &reference);

/// The largest relative error that a correct kernel may have when `coarsest` is the least precise
/// type among its inputs and outputs. `roundsWeights`: weights have that type when they meet the
/// values, as tensor cores ask for.
double getDefaultTolerance(ElementKind coarsest, bool roundsWeights = false);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_COMPARE_H
