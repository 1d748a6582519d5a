//===- HalfMachine.cpp - a machine that nobody makes ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Every number that a room takes from a Hopper by itself is wrong on this one: products are of 32
// rows by 64 threads, a thread has 32 registers fewer, and half of the shared memory is there.
// Nobody has measured it, so it has no rows.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Schedule/GradBlock.h"
#include "test/Execution/Sources.h"
#include "test/Execution/TestDevice.h"
#include "gtest/gtest.h"

namespace attn::test {

static constexpr RoleBudget kBudgets[] = {{208, 208}, {24, 208}, {32, 152}, {24, 112},
                                          {24, 88},   {24, 80},  {24, 64}};
static constexpr RoleBudget kStayBudgets[] = {{40, 208}, {40, 208}, {32, 152}, {40, 104},
                                              {40, 88},  {24, 80},  {40, 64}};

static Machine makeHalf() {
  Machine half = *findMachine("sm_90a");
  half.name = "half";
  half.product.name = "half";
  half.product.threads = 64;
  half.product.rows = 32;
  half.roles = {kBudgets, kStayBudgets};
  half.warpgroupThreads = 64;
  half.sharedBytes /= 2;
  half.stages = 32;
  half.registers /= 2;
  half.mostRegisters = 223;
  return half;
}

void registerHalfMachine() {
  static const Machine half = makeHalf();
  registerMachine(half);
}

/// What the passes for the machine say of causal attention, down to a room.
static std::string compileForHalf(Room last, llvm::StringRef named = "") {
  Problem problem;
  problem.type = "bf16";
  Sources sources;
  mlir::OwningOpRef<mlir::ModuleOp> module = sources.parse(makeSource(kCausal, problem));
  mlir::MLIRContext *context = module->getContext();
  if (!named.empty()) {
    context->loadDialect<plan::PlanDialect>();
    (*module)->setAttr(plan::PlanDialect::kTargetAttrName, plan::TargetAttr::get(context, named));
  }
  std::string said;
  mlir::ScopedDiagnosticHandler handler(
      context, [&](mlir::Diagnostic &diagnostic) { said += diagnostic.str() + "\n"; });
  PipelineOptions options;
  options.target = "half";
  mlir::PassManager pm(context);
  buildPipeline(pm, options, last);
  EXPECT_EQ(succeeded(pm.run(*module)), said.empty()) << said;
  return said;
}

TEST(HalfMachineTest, RoomsAskTheMachine) { EXPECT_EQ(compileForHalf(Room::Async), ""); }

/// Nothing multiplies 32 rows by 64 threads.
TEST(HalfMachineTest, HasNoInstructions) {
  EXPECT_NE(compileForHalf(Room::Thread)
                .find("expected products of 64 rows by 128 threads, got half of 32 rows by 64"),
            std::string::npos);
}

/// Whatever is refused, no error tells a Hopper's numbers.
TEST(HalfMachineTest, ErrorsHaveItsNumbers) {
  const Machine &half = *findMachine("half");
  unsigned numRefused = 0;
  auto check = [&](const std::string &why) {
    numRefused += !why.empty();
    for (llvm::StringRef hoppers : {"sm_90a", "232448", "240 registers", "multiples of 64"})
      EXPECT_EQ(why.find(hoppers), std::string::npos) << why;
  };
  for (int64_t d : {12, 64, 256, 320})
    for (int64_t rows : {16, 32, 64, 100, 192, 512})
      for (int64_t keys : {8, 64, 128, 512})
        for (int64_t stages : {1, 2, 4, 40}) {
          GPUBlock block{d, d, 2, {.blockM = rows, .blockN = keys, .stages = stages}};
          block.schedule.consumers = std::clamp<int64_t>(rows / 32, 1, 7);
          check(refuseBlock(half, block));
          for (bool rowsRun : {false, true})
            check(refuseGradBlock(half, {d, d, 2, rowsRun, rows, keys, stages}));
        }
  EXPECT_GT(numRefused, 700u);
  EXPECT_EQ(refuseBlock(half, {64, 64, 2, {.blockM = 100, .blockN = 64, .consumers = 3}}),
            "expected block_m in multiples of 32 up to 224 on half, got 100; the nearest is 128");
}

TEST(HalfMachineTest, IsNotWhatAProgramNames) {
  EXPECT_EQ(compileForHalf(Room::Async, "sm_90a"),
            "expected the target sm_90a of the program, got half\n");
}

} // namespace attn::test
