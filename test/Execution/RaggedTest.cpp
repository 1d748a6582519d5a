//===- RaggedTest.cpp - sequences of any lengths, with numbers --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Sequences, one after the other, are each by itself. Rows of no sequence are NaN in what is read,
// and keep what they hold in what is written.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "test/Execution/Main.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {
namespace {

/// Causal from the end of each sequence, as its offsets say.
const Variant kEndCausal = {
    "EndCausal",
    "mask(%b, %h, %m, %n) {\n"
    "    %c1 = arith.constant 1 : index\n    %next = arith.addi %b, %c1 : index\n"
    "    %q0 = tensor.extract %offsets_q[%b] : tensor<?xi32>\n"
    "    %q1 = tensor.extract %offsets_q[%next] : tensor<?xi32>\n"
    "    %k0 = tensor.extract %offsets_k[%b] : tensor<?xi32>\n"
    "    %k1 = tensor.extract %offsets_k[%next] : tensor<?xi32>\n"
    "    %rows = arith.subi %q1, %q0 : i32\n    %keys = arith.subi %k1, %k0 : i32\n"
    "    %shift = arith.subi %keys, %rows : i32\n"
    "    %by = arith.index_cast %shift : i32 to index\n"
    "    %last = arith.addi %m, %by : index\n"
    "    %keep = arith.cmpi sle, %n, %last : index\n    attn.yield %keep : i1\n  }",
    {{Capture::Offsets, "%offsets_q", "tensor<?xi32>"},
     {Capture::Offsets, "%offsets_k", "tensor<?xi32>"}}};

std::vector<Variant> getMasks() {
  std::vector<Variant> masks = {kFull, kCausal, kEndCausal};
  for (const Variant &variant : getVariants())
    if (llvm::is_contained({"Window", "SoftcapCausal", "AlibiCausal", "SinkCausal", "KeyLength",
                            "CausalTopLeft", "SinksAndWindow", "Undecidable"},
                           llvm::StringRef(variant.name)))
      masks.push_back(variant);
  return masks;
}

/// Offsets of sequences of these lengths, the first of which begins at `begin`.
std::vector<int64_t> sumUp(llvm::ArrayRef<int64_t> lengths, int64_t begin = 0) {
  std::vector<int64_t> offsets = {begin};
  for (int64_t length : lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

/// What there is between one sequence of all rows and many of none.
std::vector<Sequences> getSequences() {
  return {
      // One sequence of all.
      {sumUp({70}), sumUp({130}), 70, 130, 70, 130},
      // None without rows or keys, more rows than keys, and room behind the last.
      {sumUp({0, 5, 70, 3, 0}), sumUp({9, 0, 31, 150, 0}), 90, 200, 70, 150, 4, 2, 3},
      // Rows in front of the first sequence, and a sequence that is cut.
      {sumUp({9, 40, 2}, 7), sumUp({33, 80, 2}, 11), 64, 130, 30, 64, 2, 2, 0},
      // None at all.
      {{0}, {0}, 3, 3, 3, 3},
      {{0, 0, 0}, {0, 0, 0}, 1, 1, 1, 1},
      {{0, 0}, {0, 0}, 0, 0, 0, 0},
  };
}

/// Those in which a mask says what it should. Offsets tell nothing of where a sequence is cut.
std::vector<Sequences> getSequences(const Variant &mask) {
  std::vector<Sequences> sequences = getSequences();
  if (mask.name == kEndCausal.name)
    llvm::erase_if(sequences, [](const Sequences &each) { return each.mostRows == 30; });
  return sequences;
}

/// With lse in every second problem, with zeros between sequences in two of four, and types in
/// turn.
Problem makeProblem(size_t i) {
  std::vector<std::string> types = getOptions().device->getTypes();
  Problem problem;
  problem.isRagged = true;
  problem.withLse = i % 2;
  problem.clears = i / 2 % 2;
  problem.type = types[i % types.size()];
  return problem;
}

/// Offsets that fall, or leave [0, T]: what is outside stays as it is.
std::vector<Sequences> getBroken() {
  constexpr int64_t most = 2147480000, least = std::numeric_limits<int32_t>::min();
  return {
      {{-5, 7, 3, 1000, most, 12}, {least, 90, 20, most, -1, 60}, 40, 100, 33, 100, 2, 1, -1, true},
      {{41, 45, 50}, {101, 200, 300}, 40, 100, 33, 100, 2, 1, -1, true},
      {{most, least, most}, {most, least, most}, 40, 100, 40, 100, 2, 1, -1, true},
  };
}

std::vector<std::pair<int64_t, int64_t>> getBlocks() {
  if (getOptions().device->getColumnMultiple() != 1)
    return {{0, 0}, {64, 64}, {64, 80}, {128, 64}};
  return {{0, 0}, {16, 48}, {80, 112}, {5, 7}};
}

TEST(RaggedTest, IsEachByItself) {
  Execution execution;
  std::vector<std::pair<int64_t, int64_t>> blocks = getBlocks();
  for (auto [i, mask] : llvm::enumerate(getMasks())) {
    Problem problem = makeProblem(i);
    std::tie(problem.blockM, problem.blockN) = blocks[i % blocks.size()];
    execution.checkRagged(mask, problem, getSequences(mask));
  }
}

TEST(RaggedTest, StaysInside) {
  for (bool isWide : {false, true}) {
    Problem problem;
    problem.isRagged = problem.withLse = true;
    problem.wideTable = problem.clears = isWide;
    problem.type = getOptions().device->getTypes().back();
    std::vector<Sequences> sequences = getBroken();
    for (Sequences &each : sequences)
      for (int64_t &offset : each.queryOffsets)
        offset += isWide ? int64_t(offset > 40) << 32 : 0;
    Execution().checkRagged(kFull, problem, sequences);
    Execution().checkRagged(kCausal, problem, sequences);
  }
}

/// With the sizes that the device's rule chooses, and keys in parts.
TEST(RaggedTest, HeadDimsAndParts) {
  std::vector<Sequences> sequences = {getSequences()[1]};
  for (auto [d, dv, splits] : {std::tuple(128, 128, 1), {256, 256, 1}, {72, 40, 1}, {64, 64, 3}}) {
    Problem problem;
    problem.isRagged = problem.withLse = true;
    problem.wideTable = true;
    problem.type = getOptions().device->getTypes().front();
    problem.d = d;
    problem.dv = dv;
    problem.splits = splits;
    Execution().checkRagged(kCausal, problem, sequences);
    Execution().checkRagged(kFull, problem, sequences);
  }
}

/// Heads that share keys are rows of a few rows of each sequence, on GPUs.
TEST(RaggedTest, PackedHeads) {
  if (getOptions().device->getColumnMultiple() == 1)
    return;
  std::vector<Sequences> sequences = {
      {sumUp({1, 3, 0, 2}), sumUp({70, 9, 33, 150}), 8, 270, 3, 150, 8, 2, 1},
      {sumUp({2, 1}, 3), sumUp({0, 130}, 5), 9, 150, 2, 130, 6, 2}};
  for (const Variant &mask : getMasks())
    for (int64_t splits : {1, 3}) {
      Problem problem;
      problem.isRagged = true;
      problem.withLse = splits == 1;
      problem.type = getOptions().device->getTypes().front();
      problem.slots = 4;
      problem.splits = splits;
      if (mask.name != kEndCausal.name)
        Execution().checkRagged(mask, problem, sequences);
    }
}

TEST(RaggedGradTest, IsEachByItself) {
  GradExecution execution;
  for (auto [i, mask] : llvm::enumerate(getMasks()))
    execution.checkRagged(mask, makeProblem(i), getSequences(mask));
}

/// With --fused, blocks that own keys add to gradients of queries where heads have 128 columns.
TEST(RaggedGradTest, WideHeads) {
  GradExecution execution;
  for (auto [i, mask] : llvm::enumerate(getMasks())) {
    Problem problem = makeProblem(i);
    problem.d = problem.dv = 128;
    std::vector<Sequences> sequences = getSequences(mask);
    sequences.resize(3);
    execution.checkRagged(mask, problem, sequences);
  }
}

TEST(RaggedGradTest, StaysInside) {
  Problem problem;
  problem.isRagged = problem.wideTable = true;
  problem.type = getOptions().device->getTypes().back();
  for (int64_t columns : {64, 128}) {
    problem.d = problem.dv = columns;
    problem.clears = columns == 128;
    GradExecution().checkRagged(kFull, problem, getBroken());
    GradExecution().checkRagged(kCausal, problem, getBroken());
  }
}

TEST(RaggedGradTest, HeadDims) {
  std::vector<Sequences> sequences = {getSequences()[1]};
  for (auto [d, dv] : {std::pair(128, 128), {256, 256}, {72, 40}, {64, 128}}) {
    Problem problem;
    problem.isRagged = true;
    problem.type = getOptions().device->getTypes().front();
    problem.d = d;
    problem.dv = dv;
    GradExecution().checkRagged(kCausal, problem, sequences);
    GradExecution().checkRagged(kFull, problem, sequences);
  }
}

/// From one sequence to many, drawn with a seed of the run's own.
class RandomRagged : public testing::Test {
protected:
  int64_t draw(int64_t most) { return int64_t(random() % uint64_t(most + 1)); }
  Sequences drawSequences(int64_t batches);
  Problem drawProblem(bool withLse);
  Variant drawMask() {
    std::vector<Variant> masks = getMasks();
    return masks[random() % masks.size()];
  }

  uint64_t seed = getOptions().pagedSeed ? *getOptions().pagedSeed : std::random_device()();
  std::mt19937_64 random{seed};
  testing::ScopedTrace trace{__FILE__, __LINE__, "--paged-seed=" + std::to_string(seed)};
};

Sequences RandomRagged::drawSequences(int64_t batches) {
  int64_t longest = batches > 17 ? 3 : 90;
  std::vector<int64_t> rows, keys;
  for (int64_t b = 0; b < batches; ++b) {
    rows.push_back(draw(4) ? draw(longest) : 0);
    keys.push_back(draw(4) ? draw(longest) : 0);
  }
  Sequences s = {sumUp(rows, draw(5)), sumUp(keys, draw(5)), 0, 0, longest, longest};
  s.rows = s.queryOffsets.back() + 1 + draw(9);
  s.keys = s.keyOffsets.back() + 1 + draw(9);
  s.poisoned = draw(batches);
  return s;
}

Problem RandomRagged::drawProblem(bool withLse) {
  Problem problem;
  problem.isRagged = true;
  problem.withLse = withLse;
  problem.clears = draw(1);
  problem.type = getOptions().device->getTypes()[random() % 2];
  return problem;
}

using RandomRaggedTest = RandomRagged;
TEST_F(RandomRaggedTest, IsEachByItself) {
  bool isOnCPU = getOptions().device->getColumnMultiple() == 1;
  std::vector<Sequences> sequences;
  for (int64_t batches : {1, 3, 17, isOnCPU ? 4096 : 40})
    sequences.push_back(drawSequences(batches));
  for (bool withLse : {false, true}) {
    Problem problem = drawProblem(withLse);
    Execution(seed).checkRagged(drawMask(), problem, sequences);
  }
}

using RandomRaggedGradTest = RandomRagged;
TEST_F(RandomRaggedGradTest, IsEachByItself) {
  std::vector<Sequences> sequences;
  for (int64_t batches : {1, 3, 17})
    sequences.push_back(drawSequences(batches));
  for (bool withLse : {false, true}) {
    Problem problem = drawProblem(withLse);
    problem.d = draw(1) ? 64 : 128;
    problem.dv = draw(1) ? 64 : 128;
    GradExecution(seed).checkRagged(drawMask(), problem, sequences);
  }
}

} // namespace
} // namespace attn::test
