//===- Blackwell.cpp - RTX 50 and RTX PRO Blackwell -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// One thread copies boxes and roles have budgets, as on a Hopper. Warps multiply from registers in
// the shared memory of an RTX 30. The numbers are those of data sheets, and nobody has measured
// costs.
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
