//===- Sequences.h - sequences of any lengths, one after the other -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_SEQUENCES_H
#define ATTN_TEST_EXECUTION_SEQUENCES_H

#include "test/Execution/Problem.h"

namespace attn::test {

/// The extents of a call with sequences.
struct Sequences {
  std::vector<int64_t> queryOffsets, keyOffsets;
  /// Rows of all sequences, and the most of one.
  int64_t rows, keys, mostRows, mostKeys;
  int64_t heads = 2, keyHeads = 1;
  /// The sequence whose keys and values are NaN, if there is one.
  int64_t poisoned = -1;
  /// Whether results are unspecified, as sequences overlap.
  bool isBroken = false;

  int64_t countBatches() const { return int64_t(queryOffsets.size()) - 1; }
};

/// Where the rows of a sequence are (s20).
struct Place {
  int64_t begin, count;
};
Place findPlace(const Sequences &sequences, int64_t batch, bool ofKeys);
/// Of each row, or key, whether a sequence has it, perhaps one that is poisoned.
std::vector<bool> findPlaced(const Sequences &sequences, bool ofKeys, bool withPoisoned);

/// The offsets and the most rows, as arguments.
void addOffsets(const Sequences &sequences, const Problem &problem, std::vector<Input> &inputs);

/// (rows, H, D) to (1, H, count, D), and back; or without D.
void gather(Array &rows, Place place, Array &to);
void scatter(Array &from, Place place, Array &rows);
/// NaN in rows that are not placed.
void poisonOthers(Array &rows, const std::vector<bool> &isPlaced);
/// The rows that are placed.
Array keepPlaced(Array &rows, const std::vector<bool> &isPlaced);
/// Fails the test where rows that are not placed differ from `before`.
void expectUntouched(Array &rows, Array &before, const std::vector<bool> &isPlaced);

/// The captured tensors of the variant, for all sequences.
std::vector<Input> makeCaptured(const Variant &variant, const Problem &dense, const Extents &whole,
                                uint64_t seed);
/// Adds them as arguments; offsets are arguments already.
void addCaptured(const Variant &variant, std::vector<Input> &captured, std::vector<Input> &inputs);
/// Lets inputs of one sequence by itself, after query, key and value, be those of all sequences.
void takeCaptured(const Variant &variant, std::vector<Input> &captured, int64_t batch,
                  std::vector<Input> &alone);

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_SEQUENCES_H
