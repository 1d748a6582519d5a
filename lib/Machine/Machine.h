//===- Machine.h - what code has to know of a GPU ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// One table for each kind of GPU. IR names its machine in `plan.target` on the module
// (#plan.target); passes, verifiers, the simulator and room 8 read their numbers here and have none
// of their own. The choice among the sizes that a machine can do is policy and stands with the
// rule.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_MACHINE_H
#define ATTN_LIB_MACHINE_MACHINE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace attn {

/// How long things take: numbers per cycle of one multiprocessor unless said otherwise.
struct Costs {
  /// The nominal clock, and what the power limit leaves of it under matrix products.
  double clockGHz, loadedClockGHz;
  int64_t multiprocessors;
  /// Dense 16-bit floating-point operations; twice that for 8 bits.
  double tensorFlops;
  double exps;
  /// Instructions of one lane.
  double lanes;
  double sharedBytes;
  /// From L2, all multiprocessors busy.
  double memoryBytes;
  /// From HBM: what a block reads first. Latencies are in cycles.
  double copyLatency, copyBytes;
  double productLatency, waitLatency, arriveLatency, exchangeLatency;
  double launchCycles, blockCycles;
  /// GB, 10^9 bytes, that HBM moves in a second at most.
  int64_t memoryRate;

  double getPeakTflops(unsigned elementBits) const {
    return tensorFlops * (elementBits == 8 ? 2 : 1) * clockGHz * double(multiprocessors) / 1000;
  }
};

/// Registers of a thread, by role, in a block of one producer warpgroup and some consumers.
struct RoleBudget {
  int64_t producer, consumer;
};

struct Machine {
  /// As ptxas and LLVM name it.
  llvm::StringLiteral name;
  /// The oldest PTX that has all the instructions in use, as a feature of LLVM.
  llvm::StringLiteral ptx;

  // Products of one warpgroup.
  int64_t warpgroupThreads;
  /// Rows of the result, the step of its columns and the most of them.
  int64_t productRows, productColumnStep, productColumns;
  /// Bytes of an operand's row that one product sums over.
  int64_t sumBytes;
  /// Registers that a thread needs besides the accumulator of a product in flight: its operand,
  /// addresses.
  int64_t productRegisters;

  // A block.
  int64_t warpgroups;
  int64_t sharedBytes;
  /// Bytes of a multiprocessor's shared memory that the machine takes for each block in addition.
  int64_t reservedBytes;
  /// Where a stage may begin: the period of the widest swizzle.
  int64_t stageBytes;
  /// Uses of a ring that may be in flight.
  int64_t stages;

  // Registers: of a multiprocessor; what budgets are multiples of; the least and the most of a
  // thread.
  int64_t registers, registerStep, leastRegisters, mostRegisters;
  /// By the number of consumers, from 1; and where producers keep more, as in blocks that stay.
  llvm::ArrayRef<RoleBudget> budgets, stayBudgets;

  /// Rows of the box of one tensor map's copy.
  int64_t boxRows;

  Costs costs;

  /// Registers of each thread of a block at its launch: all registers, shared out evenly over
  /// `resident` blocks of a multiprocessor.
  int64_t getLaunchRegisters(int64_t numWarpgroups, int64_t resident = 1) const {
    return registers / (resident * numWarpgroups * warpgroupThreads) / registerStep * registerStep;
  }
  /// Those that all threads of such a block start with.
  int64_t getBlockRegisters(int64_t numWarpgroups, int64_t resident = 1) const {
    return getLaunchRegisters(numWarpgroups, resident) * numWarpgroups * warpgroupThreads;
  }
  /// Of one block that has a multiprocessor for itself, or of several, whose producers keep more.
  RoleBudget getBudget(int64_t consumers, bool stays, int64_t resident = 1) const {
    const RoleBudget &budget = (stays || resident > 1 ? stayBudgets : budgets)[consumers - 1];
    if (resident == 1)
      return budget;
    int64_t launch = getLaunchRegisters(consumers + 1, resident) * (consumers + 1),
            each = (launch - budget.producer) / consumers / registerStep * registerStep;
    return {budget.producer, std::min(each, budget.consumer)};
  }
  /// Shared memory of each of so many blocks that a multiprocessor has at a time.
  int64_t getBlockBytes(int64_t resident) const {
    return (sharedBytes + reservedBytes) / resident - reservedBytes;
  }
  /// The most consumers of one producer.
  int64_t getMostConsumers() const { return static_cast<int64_t>(budgets.size()); }
};

/// The machine of that name, or null.
const Machine *findMachine(llvm::StringRef name);

/// The machine of a program that names none.
const Machine &getDefaultMachine();

/// "sm_90a", or "sm_90a or sm_100a": for errors.
std::string listMachines();

} // namespace attn

#endif // ATTN_LIB_MACHINE_MACHINE_H
