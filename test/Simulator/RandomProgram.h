//===- RandomProgram.h - programs of room 4 that nobody has written ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_RANDOMPROGRAM_H
#define ATTN_TEST_SIMULATOR_RANDOMPROGRAM_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace attn::test {

/// Writes a kernel with one to about five products: operands from memory, from registers and from
/// registers through shared memory; tiles that several products read; loops in loops, conditions,
/// and blocks that go on to other rows. Values stay small whatever is drawn.
class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed);

  static constexpr unsigned numInputs = 3;

  std::string text;
  /// Of all inputs, and of the output.
  int64_t rows = 0, outputRows = 0;
  int64_t stages = 1;

private:
  /// What an op may use where it stands.
  struct Scope {
    /// Accumulators; tiles of `height` and of 64 rows in memory's type; positions of rows.
    std::vector<std::string> tiles, high, low, positions, conditions;
  };

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  bool flip(double probability) { return std::bernoulli_distribution(probability)(random); }
  const std::string &pick(const std::vector<std::string> &list) {
    return list[size_t(pick(0, int64_t(list.size()) - 1))];
  }

  /// Writes `name = what` and returns the name.
  std::string emit(const std::string &what);
  std::string load(bool isHigh);
  std::string narrow(const std::string &tile, bool isSquare);
  std::string scale(const std::string &tile, bool isSquare);
  std::string multiply(const std::string &acc);
  std::string exchange(const std::string &acc);
  /// One to two statements that change the accumulator, which is returned.
  std::string block(int depth, std::string acc);
  std::string loop(int depth, const std::string &acc);
  std::string whileLoop(int depth, const std::string &acc);
  std::string condition(int depth, const std::string &acc);

  std::mt19937_64 random;
  int64_t height = 64, names = 0, products = 0;
  Scope scope;
};

} // namespace attn::test

#endif // ATTN_TEST_SIMULATOR_RANDOMPROGRAM_H
