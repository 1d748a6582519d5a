//===- ScheduleRuleTest.cpp - the rule's choices are ones that the later rooms accept ------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace attn;

namespace {
/// Bytes of shared memory as tile-promote-operands gives places: 16-bit elements, columns that are
/// summed over in steps of 32 bytes, the widest slab that the rows fill.
class SharedMemory {
public:
  SharedMemory() { context.loadDialect<tile::TileDialect>(); }

  int64_t getBytes(int64_t rows, int64_t columns, bool isSummed) {
    if (isSummed)
      columns = llvm::alignTo(columns, 16);
    int64_t swizzle = columns >= 64 ? 128 : columns >= 32 ? 64 : 32;
    auto type = tile::SharedType::getChecked(
        [&] { return mlir::emitError(mlir::UnknownLoc::get(&context)); }, &context, {rows, columns},
        mlir::BFloat16Type::get(&context), swizzle, kStages);
    return type ? type.getStageBytes() : -1;
  }

  static constexpr int64_t kStages = 2;

private:
  mlir::MLIRContext context;
};
} // namespace

/// Registers of a thread that scores, their weights in 16 bits and the accumulator take.
static int64_t countRegisters(int64_t blockN, int64_t valueDim) {
  return blockN / 2 + blockN / 4 + valueDim / 2;
}

static void expectAccepted(SharedMemory &memory, const GPUProblem &problem) {
  BlockSizes sizes = chooseForCUDA(problem);
  int64_t step = getGPUKeyStep(problem.headDim, problem.valueDim);
  SCOPED_TRACE(testing::Message() << "D " << problem.headDim << " Dv " << problem.valueDim
                                  << " weight " << problem.work.weight << " rule "
                                  << sizes.rule.str());
  ASSERT_TRUE(sizes.blockM == 128 || sizes.blockM == 192);
  ASSERT_GE(sizes.blockN, step);
  ASSERT_LE(sizes.blockN, 256);
  ASSERT_EQ(sizes.blockN % step, 0);
  int64_t key = memory.getBytes(sizes.blockN, problem.headDim, /*isSummed=*/true),
          value = memory.getBytes(sizes.blockN, problem.valueDim, /*isSummed=*/false),
          query = memory.getBytes(sizes.blockM, problem.headDim, /*isSummed=*/true);
  ASSERT_GT(key, 0);
  ASSERT_GT(value, 0);
  ASSERT_GT(query, 0);
  ASSERT_LE(query + SharedMemory::kStages * (key + value), tile::kMaxSharedBytes);
  ASSERT_LE(countRegisters(sizes.blockN, problem.valueDim), sizes.blockM == 192 ? 160 : 240);
}

// All head dimensions that a GPU takes, and all that regions may ask for.
TEST(ScheduleRule, EveryChoiceForCUDAIsAccepted) {
  SharedMemory memory;
  for (int64_t d = 8; d <= 256; d += 8)
    for (int64_t dv = 8; dv <= 256; dv += 8)
      for (unsigned flags = 0; flags < 32; ++flags)
        for (int64_t weight : {0, 6, 7, 8, 10, 14, 15, 16, 18, 21, 22, 24, 27, 28, 33, 1000}) {
          GPUProblem problem{d, dv};
          problem.isMasked = flags & 1;
          problem.scoreReadsTensors = flags & 2;
          problem.work = {bool(flags & 4), bool(flags & 8), weight};
          problem.splits = flags & 16 ? 7 : 1;
          expectAccepted(memory, problem);
          if (HasFatalFailure())
            return;
        }
}

TEST(ScheduleRule, EveryChoiceForCPUIsPositive) {
  for (int64_t lanes : {4, 8, 16})
    for (bool bf16Pairs : {false, true}) {
      BlockSizes sizes = chooseForCPU(lanes, bf16Pairs);
      EXPECT_GT(sizes.blockM, 0);
      EXPECT_GT(sizes.blockN, 0);
      EXPECT_EQ(sizes.blockM % lanes, 0);
    }
}
