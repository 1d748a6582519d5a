//===- RandomTest.cpp - random attentions against the f64 reference -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A configuration is a mask, a score, types, D, Dv, and what a call adds: extents, heads, strides.
// Compiling takes longer than running, so twenty calls share a kernel. What a group draws depends
// on the seed and the number of the group only: `--random=N --seed=S --gtest_filter=*Random*/17`
// repeats one.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {
namespace {

constexpr unsigned kCallsPerKernel = 20;

class Generator {
public:
  Generator(uint64_t seed, unsigned group) : random(seed * 1000003 + group) {}

  Problem drawProblem() {
    TestDevice &device = *getOptions().device;
    Problem p;
    std::vector<std::string> types = device.getTypes();
    p.type = pick(types);
    p.d = drawColumns(device.getColumnMultiple());
    p.dv = chance(3) ? drawColumns(device.getColumnMultiple()) : p.d;
    p.withLse = chance(2);
    p.memory = pick(std::vector<Memory>{Memory::RowMajor, Memory::RowsFirst, Memory::Random});
    return p;
  }

  Variant drawVariant() {
    Variant variant;
    std::vector<std::string> parts, captures;
    unsigned numMasks = between(0, 2), numScores = between(0, 2);
    for (unsigned i = 0; i < numMasks; ++i)
      addMask(variant, parts, captures);
    if (numScores > 0 && chance(2))
      parts.push_back(
          llvm::formatv("#attn.softcap<{0}.0 : f32>", pick(std::vector<int>{2, 5, 30})));
    if (numScores > 0 && chance(2)) {
      parts.push_back("#attn.alibi<" + drawAlignment() + ">");
      addCapture(variant, captures, kSlopes, "%slopes : tensor<?xf32>");
    }
    if (numScores > 1) {
      parts.push_back(
          llvm::formatv("#attn.relative_bias<{0}, {1}>", between(0, 99), drawAlignment()));
      addCapture(variant, captures, kBias, "%bias : tensor<?x?xbf16>");
    }
    if (!parts.empty())
      variant.text = "variants [" + llvm::join(parts, ", ") + "]";
    if (!captures.empty())
      variant.text += " captures(" + joinCaptures(captures) + ")";
    if (chance(4)) {
      variant.captures.push_back(kScale);
      variant.text += " scale(%factor)";
    }
    if (chance(3)) {
      variant.captures.push_back(kSink);
      variant.text += " sink(%sink : tensor<?xf32>)";
    }
    if (chance(6))
      variant.text += drawScoreRegion();
    if (chance(6))
      variant.text += drawMaskRegion();
    variant.name = "Random";
    return variant;
  }

  Extents drawExtents() {
    Extents e;
    e.m = drawLength();
    e.n = chance(3) ? e.m : drawLength();
    e.batch = between(1, 3);
    e.keyHeads = between(1, 3);
    e.heads = e.keyHeads * between(1, 4);
    if (chance(50))
      e.batch = 0;
    // The reference takes a nanosecond for each product.
    while (e.batch * e.heads * e.m * e.n > 400 * 400) {
      e.m = (e.m + 1) / 2;
      e.batch = 1;
    }
    return e;
  }

private:
  int64_t between(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
  /// One time in `of`.
  bool chance(int64_t of) { return between(1, of) == 1; }
  template <typename T> T pick(const std::vector<T> &from) {
    return from[between(0, from.size() - 1)];
  }
  std::string drawAlignment() { return chance(2) ? "top_left" : "bottom_right"; }

  int64_t drawColumns(int64_t multiple) {
    if (chance(2))
      return pick(std::vector<int64_t>{64, 128, 128, 96, 80, 192, 256});
    return multiple * between(1, 256 / multiple);
  }

  /// Around the edges of tiles, or anything.
  int64_t drawLength() {
    if (chance(25))
      return 0;
    if (chance(3))
      return std::max<int64_t>(
          1, pick(std::vector<int64_t>{1, 8, 16, 64, 80, 96, 128, 176, 256, 384}) + between(-1, 1));
    return chance(2) ? between(1, 140) : between(1, 600);
  }

  static void addCapture(Variant &variant, std::vector<std::string> &captures,
                         const Capture &capture, const std::string &typed) {
    variant.captures.push_back(capture);
    captures.push_back(typed);
  }

  /// "%a : t, %b : u" is written as "%a, %b : t, u".
  static std::string joinCaptures(const std::vector<std::string> &captures) {
    std::string names, types;
    for (llvm::StringRef capture : captures) {
      auto [name, type] = capture.split(" : ");
      names += (names.empty() ? "" : ", ") + name.str();
      types += (types.empty() ? "" : ", ") + type.str();
    }
    return names + " : " + types;
  }

  void addMask(Variant &variant, std::vector<std::string> &parts,
               std::vector<std::string> &captures) {
    std::string alignment = drawAlignment();
    auto captured = [&](const Capture &capture) {
      return llvm::any_of(variant.captures,
                          [&](const Capture &c) { return c.kind == capture.kind; });
    };
    switch (between(0, 7)) {
    case 0:
    case 1:
      return parts.push_back("#attn.causal<" + alignment + ">");
    case 2:
      return parts.push_back(llvm::formatv("#attn.window<{0}, {1}, {2}>",
                                           pick(std::vector<int>{-1, 0, 5, 64, 100, 200}),
                                           pick(std::vector<int>{0, 1, 30, 130}), alignment));
    case 3:
      return parts.push_back(llvm::formatv("#attn.prefix<{0}, {1}>", between(0, 200), alignment));
    case 4:
      return parts.push_back(llvm::formatv("#attn.chunked<{0}, {1}>", between(1, 200), alignment));
    case 5:
      if (captured(kLengths))
        return;
      parts.push_back("#attn.prefix<-1, " + alignment + ">");
      return addCapture(variant, captures, kLengths, "%lengths : tensor<?xi32>");
    case 6:
      if (captured(kLengths))
        return;
      parts.push_back("#attn.key_length");
      return addCapture(variant, captures, kLengths, "%lengths : tensor<?xi32>");
    case 7:
      if (captured(kQueryIds))
        return;
      parts.push_back("#attn.document");
      bool isSorted = chance(2);
      addCapture(variant, captures, kQueryIds,
                 isSorted ? "%sorted_q : tensor<?x?xi32>" : "%ids_q : tensor<?x?xi32>");
      addCapture(variant, captures, kKeyIds,
                 isSorted ? "%sorted_k : tensor<?x?xi32>" : "%ids_k : tensor<?x?xi32>");
      if (isSorted)
        variant.prologue = kSortedIds;
      return;
    }
  }

  /// A product with a constant and the head's number added; a slope against the distance.
  std::string drawScoreRegion() {
    std::string distance = chance(2) ? "%m, %n" : "%n, %m";
    return llvm::formatv(
        " score(%s, %b, %h, %m, %n) {{\n"
        "    %slope = arith.constant {0} : f32\n"
        "    %d = arith.subi {1} : index\n    %i = arith.index_cast %d : index to i32\n"
        "    %x = arith.sitofp %i : i32 to f32\n    %y = arith.mulf %x, %slope : f32\n"
        "    %z = math.tanh %y : f32\n    %t = arith.addf %s, %z : f32\n"
        "    attn.yield %t : f32\n  }",
        pick(std::vector<const char *>{"0.01", "0.125", "-0.5"}), distance);
  }

  /// Columns or rows by a remainder: nothing that an analysis of intervals could decide.
  std::string drawMaskRegion() {
    return llvm::formatv(
        " mask(%b, %h, %m, %n) {{\n"
        "    %c = arith.constant {0} : index\n    %z = arith.constant 0 : index\n"
        "    %hn = arith.addi {1}, %h : index\n    %r = arith.remui %hn, %c : index\n"
        "    %keep = arith.cmpi {2}, %r, %z : index\n    attn.yield %keep : i1\n  }",
        between(2, 7), chance(2) ? "%n" : "%m", chance(2) ? "ne" : "eq");
  }

  std::mt19937_64 random;
};

struct RandomTest : testing::TestWithParam<unsigned> {};

TEST_P(RandomTest, MatchesReference) {
  TestOptions &options = getOptions();
  unsigned first = GetParam() * kCallsPerKernel;
  Generator generator(options.seed, GetParam());
  Variant variant = generator.drawVariant();
  Problem problem = generator.drawProblem();
  std::vector<Extents> extents;
  for (unsigned i = first; i < std::min(first + kCallsPerKernel, options.numRandom); ++i)
    extents.push_back(generator.drawExtents());
  Execution(options.seed * 1000003 + GetParam()).check(variant, problem, extents);
}

// --random=0.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RandomTest);
INSTANTIATE_TEST_SUITE_P(All, RandomTest,
                         testing::Range(0u, (getOptions().numRandom + kCallsPerKernel - 1) /
                                                kCallsPerKernel));

} // namespace
} // namespace attn::test
