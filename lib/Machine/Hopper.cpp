//===- Hopper.cpp - H100 and H200 -------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Hopper.h"
#include "lib/Machine/Swizzle.h"

using namespace attn;

/// The producer needs few of the registers that the threads of a block start with; the consumers
/// share the rest. With five or six warpgroups these are 480 for one thread of each, not 512: each
/// starts with a multiple of 8. Two warpgroups start with more than both may keep.
static constexpr RoleBudget kBudgets[] = {{240, 240}, {24, 240}, {32, 160}, {24, 112},
                                          {24, 88},   {24, 80},  {24, 64}};
/// A producer that goes on counts pieces too.
static constexpr RoleBudget kStayBudgets[] = {{40, 240}, {40, 232}, {32, 160}, {40, 104},
                                              {40, 88},  {24, 80},  {40, 64}};

/// Both run plain matrix products at 680 of the 989 TFLOP/s that the nominal clock allows.
static constexpr Chip kChips[] = {{.name = "H200",
                                   .multiprocessors = 132,
                                   .clockGHz = 1.83,
                                   .loadedClockGHz = 1.4,
                                   .memoryTBs = 4.8},
                                  {.name = "H100",
                                   .multiprocessors = 132,
                                   .clockGHz = 1.83,
                                   .loadedClockGHz = 1.4,
                                   .memoryTBs = 3.35}};

constinit const Machine attn::kHopper = {
    .name = "sm_90a",
    // Copies into shared::cta; drivers from R565 on take it.
    .ptx = "+ptx86",

    .product = {.name = "wgmma",
                .form = Product::Form::Shared,
                .threads = 128,
                .rows = 64,
                .steps = 1,
                .columnStep = 8,
                .columns = 256,
                .sumBytes = 32,
                .registers = 16,
                .isAsync = true,
                .multipliesNarrow = true},
    .copy = kBoxCopy,
    .roles = {.budgets = kBudgets, .stayBudgets = kStayBudgets, .transposer = 40},
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
    .otherRegisters = 16,

    .costs = {.tensorFlops = 4096,
              .exps = 16,
              .lanes = 128,
              .sharedBytes = 128,
              .memoryBytes = 40,
              .copyLatency = 400,
              .copyBytes = 126,
              .productLatency = 130,
              .waitLatency = 40,
              .arriveLatency = 20,
              .exchangeLatency = 130,
              .launchCycles = 5000,
              .blockCycles = 900},
    .chips = kChips};
