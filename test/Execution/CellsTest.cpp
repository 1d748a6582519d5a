//===- CellsTest.cpp - masks that read tables at quotients of positions -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Blocks of a mask that are larger than tiles, as large, or smaller, of any density, alone or with
// something by element beside them; the reference evaluates each element. What is drawn depends on
// the seed and the number only.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/GradExecution.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {
namespace {

class CellsGenerator {
public:
  CellsGenerator(uint64_t seed, unsigned number) : random(seed * 1000003 + number) {}

  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  template <typename T> T pick(std::initializer_list<T> from) {
    return from.begin()[between(0, from.size() - 1)];
  }

  Variant drawMask() {
    const std::initializer_list<int64_t> sizes = {1, 16, 64, 128, 128, 256};
    rows = pick(sizes);
    keys = pick(sizes);
    // A threshold of 0 keeps nothing, one of kTableSize everything.
    int64_t least = between(0, kTableSize);
    Variant variant = {"Cells", "", {{Capture::Buckets, "%table", "tensor<?x?x?xi32>", "HMN"}}};
    std::string division = pick({"floordivsi", "divui", "divsi"});
    variant.text = llvm::formatv("mask(%b, %h, %m, %n) {{\n"
                                 "    %rows = arith.constant {0} : index\n"
                                 "    %keys = arith.constant {1} : index\n"
                                 "    %least = arith.constant {2} : i32\n"
                                 "    %i = arith.{3} %m, %rows : index\n"
                                 "    %j = arith.{3} %n, %keys : index\n"
                                 "    %number = tensor.extract %table[%h, %i, %j] : {4}\n"
                                 "    %block = arith.cmpi slt, %number, %least : i32\n",
                                 rows, keys, least, division, variant.captures[0].type);
    variant.text += drawElements(variant);
    variant.text += "    attn.yield %keep : i1\n  }";
    return variant;
  }

  /// Rows and keys end within a block, or after some.
  Extents drawExtents() {
    int64_t keyHeads = between(1, 2);
    return {between(1, 2 * rows + 40), between(1, 2 * keys + 40), between(1, 2),
            keyHeads * between(1, 2), keyHeads};
  }

private:
  std::string drawElements(Variant &variant) {
    std::string join = pick({"andi", "andi", "ori"});
    std::string past = "    %fine = arith.cmpi sle, %n, %m : index\n";
    std::string both = "    %keep = arith." + join + " %block, %fine : i1\n";
    switch (between(0, 4)) {
    case 0:
      return past + both;
    case 1:
      variant.captures.push_back(kQueryIds);
      variant.captures.push_back(kKeyIds);
      return "    %row = tensor.extract %ids_q[%b, %m] : tensor<?x?xi32>\n"
             "    %key = tensor.extract %ids_k[%b, %n] : tensor<?x?xi32>\n"
             "    %fine = arith.cmpi eq, %row, %key : i32\n" +
             both;
    case 2:
      // A second table of larger blocks, of which the diagonal keeps some.
      return past + "    %zero = arith.constant 0 : index\n"
                    "    %other = tensor.extract %table[%h, %zero, %j] : tensor<?x?x?xi32>\n"
                    "    %four = arith.constant 4 : i32\n"
                    "    %some = arith.cmpi slt, %other, %four : i32\n"
                    "    %part = arith.andi %some, %fine : i1\n"
                    "    %keep = arith.ori %block, %part : i1\n";
    default:
      return "    %keep = arith.andi %block, %block : i1\n";
    }
  }

  std::mt19937_64 random;
  int64_t rows = 1, keys = 1;
};

struct RandomCellsTest : testing::TestWithParam<unsigned> {};

TEST_P(RandomCellsTest, MatchReference) {
  CellsGenerator generator(getOptions().seed, GetParam());
  const std::vector<std::string> types = getOptions().device->getTypes();
  Problem problem;
  problem.type = types[generator.between(0, types.size() - 1)];
  problem.d = generator.pick<int64_t>({16, 64, 64, 128});
  problem.dv = generator.pick({problem.d, int64_t(64)});
  problem.withLse = generator.between(0, 1);
  Variant variant = generator.drawMask();
  std::vector<Extents> extents = {generator.drawExtents(), generator.drawExtents()};
  Execution(GetParam()).check(variant, problem, extents);
  Execution(GetParam()).checkDroppedKeys(variant, problem, {extents[0]});
  GradExecution(GetParam()).check(variant, problem, extents);
  if (HasFailure())
    std::printf("%s\nreproduce: ExecutionTest %s --seed=%llu --gtest_filter=*RandomCellsTest*/%u\n",
                variant.text.c_str(), getOptions().command.c_str(),
                (unsigned long long)(getOptions().seed), GetParam());
}

INSTANTIATE_TEST_SUITE_P(All, RandomCellsTest, testing::Range(0u, 12u));

} // namespace
} // namespace attn::test
