//===- PagedTest.cpp - keys and values in pages, with numbers ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Paged keys are dense keys, to the bit. The grid is page sizes x memory orders x masks x tiles;
// a sample of it with a seed of the run's own takes seconds, and `make test-serving` runs the
// whole.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Execution.h"
#include "test/Execution/Main.h"
#include "gtest/gtest.h"
#include <random>

namespace attn::test {
namespace {

/// Masks of serving: lengths, causal from a sequence's end, and a window before it.
const Variant kLength = {
    "Length",
    "mask(%b, %h, %m, %n) {\n"
    "    %len = tensor.extract %lengths[%b] : tensor<?xi32>\n"
    "    %to = arith.index_cast %len : i32 to index\n"
    "    %keep = arith.cmpi slt, %n, %to : index\n    attn.yield %keep : i1\n  }",
    {kLengths}};
const Variant kSequenceEnd = {
    "SequenceEnd",
    "mask(%b, %h, %m, %n) {\n"
    "    %c3 = arith.constant 3 : index\n"
    "    %len = tensor.extract %lengths[%b] : tensor<?xi32>\n"
    "    %to = arith.index_cast %len : i32 to index\n    %from = arith.subi %to, %c3 : index\n"
    "    %last = arith.addi %from, %m : index\n"
    "    %past = arith.cmpi sle, %n, %last : index\n"
    "    %is = arith.cmpi slt, %n, %to : index\n    %keep = arith.andi %past, %is : i1\n"
    "    attn.yield %keep : i1\n  }",
    {kLengths}};
const Variant kEvicted = {
    "Evicted",
    "mask(%b, %h, %m, %n) {\n"
    "    %c70 = arith.constant 70 : index\n"
    "    %len = tensor.extract %lengths[%b] : tensor<?xi32>\n"
    "    %to = arith.index_cast %len : i32 to index\n    %low = arith.subi %to, %c70 : index\n"
    "    %near = arith.cmpi sge, %n, %low : index\n"
    "    %is = arith.cmpi slt, %n, %to : index\n    %keep = arith.andi %near, %is : i1\n"
    "    attn.yield %keep : i1\n  }",
    {kLengths}};

std::vector<Variant> getMasks() {
  std::vector<Variant> masks = {kFull, kCausal, kLength, kSequenceEnd, kEvicted};
  for (const Variant &variant : getVariants())
    if (llvm::is_contained({"Window", "SoftcapCausal", "AlibiCausal", "SinkCausal", "KeyLength"},
                           llvm::StringRef(variant.name)))
      masks.push_back(variant);
  return masks;
}

/// The axes of the grid. Cell i has value i of each, in an order of the axis.
struct Grid {
  std::vector<int64_t> pages;
  std::vector<std::pair<int64_t, int64_t>> blocks;
  std::vector<Variant> masks = getMasks();
  std::vector<std::string> types = getOptions().device->getTypes();
  bool isOfGPU = getOptions().device->getColumnMultiple() != 1;

  Grid() {
    // Threads of a GPU gather the rows of pages that have no box.
    pages = {16, 1, 32, 2, 48, 3, 64, 4, 128, 8, 256, 17};
    blocks = isOfGPU ? decltype(blocks){{0, 0}, {64, 64}, {64, 80}, {0, 0}, {128, 64}}
                     : decltype(blocks){{0, 0}, {16, 48}, {80, 112}, {5, 7}};
  }

  static constexpr Memory kMemory[] = {Memory::RowMajor, Memory::RowsFirst, Memory::Random};
  static constexpr int64_t kSplits[] = {1, 3, 1}, kSlots[] = {0, 8, 0, 4};

  void check(size_t page, size_t block, size_t mask, size_t type, size_t memory, size_t splits,
             size_t slots, Execution &execution) const {
    Problem problem;
    problem.page = pages[page % pages.size()];
    std::tie(problem.blockM, problem.blockN) = blocks[block % blocks.size()];
    problem.type = types[type % types.size()];
    problem.memory = kMemory[memory % 3];
    problem.splits = kSplits[splits % 3];
    problem.slots = isOfGPU ? kSlots[slots % 4] : 0;
    problem.withLse = slots % 2;
    problem.wideTable = (page + type) % 2;
    int64_t few = problem.page, many = std::max<int64_t>(problem.page, 208 / few * few);
    execution.checkPaged(
        masks[mask % masks.size()], problem,
        {{3, many, 3, 8, 2}, {1, 3 * few, 2, 4, 1}, {130, many, 1, 2, 2}, {2, 0, 1, 2, 1}});
  }

  void checkSome(unsigned count, uint64_t seed) const {
    Execution execution(seed);
    std::mt19937_64 random(seed);
    size_t first[7];
    for (size_t &each : first)
      each = random() % 1000;
    // Axes step by numbers that their lengths do not divide, so that values meet in other ways.
    for (unsigned i = 0; i < count; ++i)
      check(first[0] + i, first[1] + i + i / 6, first[2] + i + i / 11, first[3] + i + i / 5,
            first[4] + i + i / 7, first[5] + i + i / 3, first[6] + i + i / 4, execution);
    if (execution.numRuns > 0 && count >= masks.size())
      EXPECT_GT(execution.numHoles, 0);
  }
};

/// Every value of every axis, with a seed of this run's own.
TEST(RandomPagedTest, IsDense) {
  uint64_t seed = getOptions().pagedSeed ? *getOptions().pagedSeed : std::random_device()();
  SCOPED_TRACE("--paged-seed=" + std::to_string(seed));
  Grid().checkSome(getOptions().numPaged, seed);
}

/// Parts of the keys that a mask keeps begin where it does, within a page; tiles of pages do not.
TEST(PagedTest, PartsBeginWithATile) {
  Execution execution(/*seed=*/7);
  for (const Variant &mask : getMasks()) {
    if (!llvm::is_contained({"Evicted", "Window", "SinkCausal"}, llvm::StringRef(mask.name)))
      continue;
    Problem problem;
    problem.type = getOptions().device->getTypes().back();
    problem.page = 16;
    problem.slots = getOptions().device->getColumnMultiple() != 1 ? 8 : 0;
    problem.splits = problem.slots ? 1 : 3;
    execution.checkPaged(mask, problem, {{1, 992, 2, 8, 2}, {3, 400, 1, 4, 1}});
  }
}

/// `make test-serving`.
TEST(PagedTest, DISABLED_GridIsDense) {
  Grid grid;
  Execution execution(getOptions().seed);
  size_t i = 0;
  for (size_t page = 0; page < grid.pages.size(); ++page)
    for (size_t mask = 0; mask < grid.masks.size(); ++mask)
      for (size_t memory = 0; memory < 3; ++memory, ++i)
        for (size_t block = 0; block < grid.blocks.size(); ++block)
          grid.check(page, block, mask, i + block, memory, i / 2 + block, i + block, execution);
}

/// With the sizes that the device's rule chooses, for calls of one row and of many.
TEST(PagedTest, RuleChooses) {
  size_t i = 0;
  for (auto [d, page] : {std::pair(64, 16), std::pair(64, 64), std::pair(128, 16),
                         std::pair(128, 64), std::pair(256, 16), std::pair(256, 64),
                         std::pair(64, 1), std::pair(128, 8), std::pair(256, 3)})
    for (const Variant &mask : getMasks()) {
      Problem problem;
      problem.d = problem.dv = d;
      problem.page = page;
      problem.type = getOptions().device->getTypes()[i++ % 2];
      problem.way = "auto";
      int64_t many = 192 / page * page, fewer = 128 / page * page;
      Execution().checkPaged(mask, problem, {{1, many, 2, 8, 2}, {70, fewer, 1, 2, 1}});
    }
}

static void checkHeadDims(int64_t page) {
  for (auto [d, dv] :
       {std::pair(128, 128), std::pair(256, 256), std::pair(192, 128), std::pair(72, 40)}) {
    Problem problem;
    problem.page = page;
    problem.type = getOptions().device->getTypes().back();
    problem.blockM = 64;
    problem.blockN = 32;
    std::tie(problem.d, problem.dv) = std::pair<int64_t, int64_t>(d, dv);
    Execution().checkPaged(kLength, problem, {{5, 96, 2, 2, 1}});
  }
}

TEST(PagedTest, HeadDims) { checkHeadDims(32); }

/// Rows of nine pieces, and of five with padding behind them, share no power of two with a warp.
TEST(PagedTest, HeadDimsOfGatheredRows) { checkHeadDims(3); }

} // namespace
} // namespace attn::test
