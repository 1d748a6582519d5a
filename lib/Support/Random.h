//===- Random.h - inputs that a seed reproduces -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_RANDOM_H
#define ATTN_LIB_SUPPORT_RANDOM_H

#include "lib/Support/Array.h"

namespace attn {

/// Every element depends on the seed and its row-major position only, not on the layout in memory
/// or on what was filled before: the same seed is the same tensor in every layout.
///
/// Standard normal values, at most 4.6 in size; for floating-point arrays.
void fillNormal(Array &array, uint64_t seed);

/// Integers in [low, high], for any array.
void fillUniform(Array &array, uint64_t seed, int64_t low, int64_t high);

/// Document ids: along the last dimension they start at 0 and grow by 0 or 1, `numDocuments`
/// documents of random lengths in each row.
void fillSorted(Array &array, uint64_t seed, int64_t numDocuments);

/// A seed for the tensor called `name`, so that tensors of one run are independent.
uint64_t deriveSeed(uint64_t seed, llvm::StringRef name);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_RANDOM_H
