//===- LargeScores.h - scores of which f32 has no fractions left ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Gradients must belong to the weights that f32 makes of a score, and these are far from f64's
// where a step of f32 is a tenth, or a hundred. So the reference is f64 of what f32 computes:
//
//   s = scale * q . k        the same number in both: small integers and powers of two
//   T = round(s * f + x)     f a power of two, x captured
//   round(c * T)             c = log2(e) as f32 holds it; both passes round this product alike
//
// In f64, `round` to the 24 digits of f32 is p - (p - u) with p = (2^29 + 1) u. The derivative of
// that is 1. The reference gets round(c * T) / c for a score.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_LARGESCORES_H
#define ATTN_TEST_EXECUTION_LARGESCORES_H

#include "test/Execution/Problem.h"

namespace attn::test {

/// Of a captured tensor with such dims, from B, H, M and N; the rank of none is 0.
Capture makeLargeCapture(const char *dims);

/// The score s * factor + large[..], with that tensor.
std::string makeLargeScore(double factor, const Capture &large);
/// The same as f32 computes it, for the reference; without a tensor, of s alone. `truncates`: the
/// product with log2(e) is rounded towards zero.
std::string makeLargeReference(double factor, const Capture *large, bool truncates);

/// Numbers from 1e4 to 1e9 of either sign: everywhere, here and there, as padding of -1e9, or as
/// neighbours in f32.
void fillLarge(Array &array, uint64_t seed);
/// Integers from -2 to 2.
void fillSmallIntegers(Array &array, uint64_t seed);
/// Multiplies every other row, as `seed` has it, by 2^exponent.
void enlargeRows(Array &array, uint64_t seed, int64_t exponent);
double getLargest(Array &array);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_LARGESCORES_H
