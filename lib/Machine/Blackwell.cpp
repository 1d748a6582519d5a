//===- Blackwell.cpp - B200, B300, RTX 50 and RTX PRO Blackwell -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// One thread copies boxes and roles have budgets, as on a Hopper. Those for data centers sum
// products in tensor memory. On the others warps multiply from registers in the shared memory of an
// RTX 30. The numbers are those of data sheets, and nobody has measured costs.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Blackwell.h"
#include "lib/Machine/Ampere.h"
#include "lib/Machine/Hopper.h"
#include "lib/Machine/Swizzle.h"

using namespace attn;

/// One consumer has as many as a thread can name; more share what the producer leaves.
static constexpr RoleBudget kBudgets[] = {{24, 256}, {24, 240}, {32, 160}, {24, 112},
                                          {24, 88},  {24, 80},  {24, 64}};
/// A producer that goes on counts pieces too.
static constexpr RoleBudget kStayBudgets[] = {{40, 256}, {40, 232}, {32, 160}, {40, 104},
                                              {40, 88},  {24, 80},  {40, 64}};

//===----------------------------------------------------------------------------------------===//
// With tensor memory
//===----------------------------------------------------------------------------------------===//

static constexpr Chip kB200[] = {{.name = "B200",
                                  .multiprocessors = 148,
                                  .clockGHz = 1.85,
                                  .loadedClockGHz = 1.7,
                                  .memoryTBs = 8}};
static constexpr Chip kB300[] = {{.name = "B300",
                                  .multiprocessors = 148,
                                  .clockGHz = 1.85,
                                  .loadedClockGHz = 1.7,
                                  .memoryTBs = 8}};

/// Of which `name` has so many exponentials each cycle.
static constexpr Machine makeLarge(llvm::StringLiteral name, double exps,
                                   llvm::ArrayRef<Chip> chips) {
  return {.name = name,
          .ptx = "+ptx88",
          .isUntried = true,

          .product = {.name = "tcgen05",
                      .form = Product::Form::Tensor,
                      .threads = 128,
                      .rows = 128,
                      .steps = 1,
                      .columnStep = 8,
                      .columns = 256,
                      .sumBytes = 32,
                      .registers = 32,
                      .isAsync = false},
          .tensor = {.lanes = 128, .columns = 512},
          .copy = kBoxCopy,
          .roles = {.budgets = kBudgets, .stayBudgets = kStayBudgets},
          .overlapsLaunches = true,
          .addedTogether = 4,

          .warpgroupThreads = 128,
          .warpgroups = 8,
          .sharedBytes = int64_t{227} * 1024,
          .reservedBytes = 1024,
          .stageBytes = kPlaceBytes,
          .stages = 64,

          .registers = 65536,
          .registerStep = 8,
          .leastRegisters = 24,
          .mostRegisters = 255,

          .costs = {.tensorFlops = 8192,
                    .exps = exps,
                    .lanes = 128,
                    .sharedBytes = 128,
                    .memoryBytes = 40,
                    .copyLatency = 400,
                    .copyBytes = 126,
                    .productLatency = 200,
                    .waitLatency = 40,
                    .arriveLatency = 20,
                    .exchangeLatency = 130,
                    .launchCycles = 5000,
                    .blockCycles = 900,
                    .tensorBytes = 512},
          .chips = chips};
}

constinit const Machine attn::kBlackwell = makeLarge("sm_100a", 16, kB200);
constinit const Machine attn::kBlackwellUltra = makeLarge("sm_103a", 32, kB300);

//===----------------------------------------------------------------------------------------===//
// Without
//===----------------------------------------------------------------------------------------===//

static constexpr Chip kChips[] = {{.name = "RTX 5090",
                                   .multiprocessors = 170,
                                   .clockGHz = 2.41,
                                   .loadedClockGHz = 2.3,
                                   .memoryTBs = 1.792},
                                  {.name = "RTX 5080",
                                   .multiprocessors = 84,
                                   .clockGHz = 2.62,
                                   .loadedClockGHz = 2.5,
                                   .memoryTBs = 0.96}};

constinit const Machine attn::kBlackwellSmall = {
    .name = "sm_120a",
    .ptx = "+ptx87",

    .product = kWarpProduct,
    .copy = kBoxCopy,
    .roles = {.budgets = kBudgets, .stayBudgets = kStayBudgets},
    .overlapsLaunches = true,
    .addedTogether = 4,

    .warpgroupThreads = 128,
    .warpgroups = 8,
    .sharedBytes = int64_t{99} * 1024,
    .reservedBytes = 1024,
    .stageBytes = kPlaceBytes,
    .stages = 64,

    .registers = 65536,
    .registerStep = 8,
    .leastRegisters = 24,
    .mostRegisters = 255,

    // GeForce cards sum 16-bit products in f32 at half of the rate.
    .costs = {.tensorFlops = 512,
              .exps = 16,
              .lanes = 128,
              .sharedBytes = 128,
              .memoryBytes = 40,
              .copyLatency = 400,
              .copyBytes = 64,
              .productLatency = 35,
              .waitLatency = 40,
              .arriveLatency = 20,
              .exchangeLatency = 30,
              .launchCycles = 5000,
              .blockCycles = 900},
    .chips = kChips};
