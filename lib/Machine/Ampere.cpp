//===- Ampere.cpp - A100, A10, RTX 30, L40S and RTX 40 ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Warps multiply from registers, and threads copy. A newer GPU runs the code of an older one of
// these: sm_80 runs on all that there are. The numbers are those of data sheets, and nobody has
// measured costs.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Ampere.h"
#include "lib/Machine/Swizzle.h"

using namespace attn;

static constexpr Copy kCopy = {.kind = Copy::Kind::Threads,
                               .signal = Copy::Signal::Group,
                               .rows = 256,
                               .rank = 5,
                               .addsInBulk = false};

static constexpr Costs kCosts = {.tensorFlops = 2048,
                                 .exps = 16,
                                 .lanes = 64,
                                 .sharedBytes = 128,
                                 .memoryBytes = 40,
                                 .copyLatency = 500,
                                 .copyBytes = 64,
                                 .productLatency = 35,
                                 .waitLatency = 40,
                                 .arriveLatency = 20,
                                 .exchangeLatency = 30,
                                 .launchCycles = 5000,
                                 .blockCycles = 900};

static constexpr Machine makeMachine(llvm::StringLiteral name, llvm::StringLiteral ptx,
                                     int64_t sharedKiB, double tensorFlops, double lanes,
                                     llvm::ArrayRef<Chip> chips) {
  Machine machine = {.name = name,
                     .ptx = ptx,
                     .product = kWarpProduct,
                     .copy = kCopy,
                     .roles = {},
                     .overlapsLaunches = false,
                     .addedTogether = 1,
                     .warpgroupThreads = 128,
                     .warpgroups = 8,
                     .sharedBytes = sharedKiB * 1024,
                     .reservedBytes = 1024,
                     .stageBytes = kPlaceBytes,
                     .stages = 2,
                     .registers = 65536,
                     .registerStep = 8,
                     .leastRegisters = 24,
                     .mostRegisters = 255,
                     .costs = kCosts,
                     .chips = chips};
  machine.costs.tensorFlops = tensorFlops;
  machine.costs.lanes = lanes;
  return machine;
}

static constexpr Chip kA100[] = {{.name = "A100",
                                  .multiprocessors = 108,
                                  .clockGHz = 1.41,
                                  .loadedClockGHz = 1.3,
                                  .memoryTBs = 2.039},
                                 {.name = "A30",
                                  .multiprocessors = 56,
                                  .clockGHz = 1.44,
                                  .loadedClockGHz = 1.3,
                                  .memoryTBs = 0.933}};
static constexpr Chip kA10[] = {{.name = "A10",
                                 .multiprocessors = 72,
                                 .clockGHz = 1.695,
                                 .loadedClockGHz = 1.2,
                                 .memoryTBs = 0.6}};
static constexpr Chip kL40S[] = {{.name = "L40S",
                                  .multiprocessors = 142,
                                  .clockGHz = 2.52,
                                  .loadedClockGHz = 2.0,
                                  .memoryTBs = 0.864}};

constinit const Machine attn::kAmpere = makeMachine("sm_80", "+ptx80", 163, 2048, 64, kA100);
constinit const Machine attn::kAmpereSmall = makeMachine("sm_86", "+ptx80", 99, 1024, 128, kA10);
constinit const Machine attn::kAda = makeMachine("sm_89", "+ptx84", 99, 1024, 128, kL40S);
