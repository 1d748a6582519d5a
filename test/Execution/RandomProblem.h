//===- RandomProblem.h - attentions drawn at random -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_RANDOMPROBLEM_H
#define ATTN_TEST_EXECUTION_RANDOMPROBLEM_H

#include "test/Execution/TestDevice.h"
#include <random>

namespace attn::test {

/// Draws one kernel and what it is called with. What it draws depends on the seed, the number of
/// the kernel and the device only.
class ProblemGenerator {
public:
  ProblemGenerator(uint64_t seed, unsigned kernel, TestDevice &device);

  /// The masks, scores, scale and sink of a pair that the kernel's number decides, so that a run of
  /// 120 kernels holds every pair (and each alone), and now and then others besides.
  Variant drawVariant();
  /// Any type, D, Dv and schedule that the device takes.
  Problem drawProblem();
  /// For gradients: the same, or a score that moves with a tensor; and no more schedules than the
  /// device has for gradients.
  Variant drawGradVariant();
  Problem drawGradProblem();
  std::pair<Variant, Problem> drawGradients() {
    Variant variant = drawGradVariant();
    return {variant, drawGradProblem()};
  }
  /// Those of scores of 1e4 to 1e9 under up to two masks, or a sink.
  std::pair<Variant, Problem> drawLargeGradients();
  /// Small: no tensor of more than 150 rows, for tools that make each access slow.
  Extents drawExtents(bool isSmall);

private:
  struct Draft;
  Draft makeDraft();
  void addPart(unsigned part, Draft &draft);
  void addMask(unsigned part, Draft &draft);
  void addDocument(bool isSorted, Draft &draft);
  std::string drawScoreRegion();
  std::string drawMaskRegion();

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  /// One time in `of`.
  bool chance(int64_t of) { return between(1, of) == 1; }
  template <typename T> T pick(const std::vector<T> &from) {
    return from[between(0, from.size() - 1)];
  }
  std::string drawAlignment() { return chance(2) ? "top_left" : "bottom_right"; }
  int64_t drawColumns();
  int64_t drawLength();

  std::mt19937_64 random;
  unsigned kernel;
  TestDevice &device;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_RANDOMPROBLEM_H
