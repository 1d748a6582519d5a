//===- MaskProblems.h - random problems for masks ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_MASKPROBLEMS_H
#define ATTN_TEST_UNIT_MASKPROBLEMS_H

#include "test/Unit/ArithInterpreter.h"
#include "test/Unit/MaskWriter.h"

#include <cstdlib>
#include <random>

namespace attn::test {

inline unsigned seed() {
  static unsigned chosen = [] {
    const char *given = getenv("ATTN_MASK_SEED");
    return given ? unsigned(strtoul(given, nullptr, 10)) : std::random_device()();
  }();
  return chosen;
}
inline std::mt19937 generator(seed());

inline int64_t random(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator);
}

/// Of one name: libc has another `random`.
inline const MaskWriter::Draw draw = [](int64_t low, int64_t high) { return random(low, high); };

inline constexpr int64_t tileSizes[] = {1, 3, 8, 16, 32, 64};
inline constexpr int64_t batches = 2;

struct Problem {
  int64_t m, n, off, w, p, c;
  bool flag;
  Tensor len, idq, idk;
  /// Numbers of any size.
  int64_t big = 0, huge = 0;
};

inline Tensor sortedIds(int64_t columns) {
  Tensor ids{columns, {}};
  for (int64_t b = 0; b < batches; ++b) {
    int64_t id = random(-2, 2);
    int64_t length = random(1, 40);
    for (int64_t i = 0; i < columns; ++i) {
      if (random(0, length) == 0)
        id += random(1, 2);
      ids.elements.push_back(id);
    }
  }
  return ids;
}

inline Problem randomProblem() {
  Problem problem;
  int64_t limit = random(0, 14) == 0 ? 300 : 70;
  problem.m = random(0, limit);
  problem.n = random(0, limit);
  problem.off = random(0, 1) ? problem.n - problem.m : random(-40, 40);
  problem.w = random(0, 40);
  problem.p = random(-3, 60);
  problem.c = random(1, 20);
  problem.flag = random(0, 1);
  for (int64_t i = 0; i < std::max(batches, problem.n); ++i)
    problem.len.elements.push_back(random(0, problem.n + 5));
  llvm::sort(problem.len.elements);
  problem.idq = sortedIds(problem.m);
  problem.idk = sortedIds(problem.n);
  return problem;
}

/// Queries are the last rows of the keys: M <= N, off = N - M, ids of queries are ids of keys.
inline Problem selfProblem() {
  Problem problem = randomProblem();
  if (problem.m > problem.n)
    problem.m = problem.n;
  problem.off = problem.n - problem.m;
  if (problem.n == 0)
    return problem;
  problem.idq = {problem.m, {}};
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t i = 0; i < problem.m; ++i)
      problem.idq.elements.push_back(problem.idk.elements[b * problem.n + problem.off + i]);
  return problem;
}

/// `len` tells where rows and keys stand in a sequence whose ids are those of keys.
inline Problem tableProblem() {
  Problem problem = selfProblem();
  while (problem.n == 0)
    problem = selfProblem();
  for (int64_t &position : problem.len.elements)
    position = random(0, problem.n - 1);
  llvm::sort(problem.len.elements);
  return problem;
}

/// Sums with positions do not wrap in 64 bits, but do in 32; those of two of them wrap in both.
inline int64_t wideNumber() {
  const int64_t sizes[] = {0, int64_t(1) << 29, int64_t(1) << 31, int64_t(1) << 62,
                           INT64_MAX - 1000};
  int64_t number = sizes[random(0, 4)] + random(-60, 60);
  return random(0, 1) ? number : -number;
}

/// `len` tells where rows or keys stand; some elements are far beyond all positions.
inline Problem farTableProblem() {
  Problem problem = randomProblem();
  while (int64_t(problem.len.elements.size()) < problem.m)
    problem.len.elements.push_back(random(0, problem.n + 5));
  for (int64_t &position : problem.len.elements)
    if (random(0, 3) == 0)
      position = wideNumber();
  llvm::sort(problem.len.elements);
  return problem;
}

/// What masks compare positions with is far beyond them, or not; the last ids are the largest.
inline Problem wideProblem() {
  Problem problem = randomProblem();
  problem.big = wideNumber();
  problem.huge = random(0, 2) ? wideNumber() : problem.big + random(-9, 9);
  int64_t last = INT32_MIN;
  for (const Tensor *ids : {&problem.idq, &problem.idk})
    for (int64_t id : ids->elements)
      last = std::max(last, id);
  for (Tensor *ids : {&problem.idq, &problem.idk})
    for (int64_t &id : ids->elements)
      id += INT32_MAX - last;
  return problem;
}

} // namespace attn::test

#endif // ATTN_TEST_UNIT_MASKPROBLEMS_H
