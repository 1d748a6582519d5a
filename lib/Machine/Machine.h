//===- Machine.h - what code has to know of a GPU ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A machine is a table of instructions and of what a block may take. IR names its machine in
// `plan.target` on the module (#plan.target). Passes, verifiers, the simulator and room 8 read
// their numbers here and have none of their own. They ask what a machine can do, never which one it
// is. The GPUs that are such a machine are its chips. The choice among the sizes that a machine can
// do is policy and stands with the rule (lib/Transforms/Attn/Policy.h).
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_MACHINE_MACHINE_H
#define ATTN_LIB_MACHINE_MACHINE_H

#include "lib/Machine/Lanes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>

namespace attn {

/// One instruction that multiplies matrices. A unit is whoever issues one: a warp, or a warpgroup.
struct Product {
  /// Where the rhs is read from, registers or shared memory; or also where the sum is: in tensor
  /// memory, with a lhs from shared or tensor memory.
  enum class Form { Registers, Shared, Tensor };

  /// The layouts of a unit's rows have it (#tile.acc).
  llvm::StringLiteral name;
  Form form;
  /// Threads of a unit, in whole warps, and the rows that they have of the result.
  int64_t threads, rows;
  /// The most results that a unit has, one below the other, so that it reads the other operand once
  /// for all of them.
  int64_t steps;
  /// The step of the result's columns and the most of them.
  int64_t columnStep, columns;
  /// Bytes of an operand's row that one product sums over.
  int64_t sumBytes;
  /// Registers that a thread needs besides the accumulator of a product in flight: its operand,
  /// addresses.
  int64_t registers;
  /// Whether its sum is registers of threads that go on while it runs.
  bool isAsync;
  /// Whether it multiplies floats of 8 bits, of whose rhs the summed dimension is contiguous.
  bool multipliesNarrow = false;

  int64_t getWarps() const { return threads / kLanes; }
  /// Whole fragments.
  int64_t getWarpRows() const { return rows / getWarps(); }
};

/// Memory of a multiprocessor for the sums of products: a lane for each row of a unit's product,
/// and columns of 32 bits, of which units have equal shares.
struct TensorMemory {
  int64_t lanes = 0, columns = 0;
};

/// The least that a block claims of it.
inline constexpr int64_t kLeastColumns = 32;

/// How tiles come to shared memory.
struct Copy {
  /// By all threads, or as boxes of a tensor map, for which one thread asks.
  enum class Kind { Threads, Boxes };
  /// How threads hear of it: a group that they wait for, or bytes that a barrier counts.
  enum class Signal { Group, Bytes };

  Kind kind;
  Signal signal;
  /// Rows of one box, and the most dimensions of its memory.
  int64_t rows, rank;
  /// Whether a box is added to memory as well as stored.
  bool addsInBulk;
};

/// Registers of a thread, by role, in a block of one producer warpgroup and some consumers.
struct RoleBudget {
  int64_t producer, consumer;
};

/// The roles of a block. Without budgets there are none.
struct Roles {
  /// By the number of consumers, from 1; and where producers keep more, as in blocks that stay.
  llvm::ArrayRef<RoleBudget> budgets, stayBudgets;
  /// Of a warpgroup that transposes tiles, where products need that.
  int64_t transposer = 0;
};

/// How long things take: numbers per cycle of one multiprocessor unless said otherwise.
struct Costs {
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
  /// Of tensor memory, to and from registers.
  double tensorBytes = 0;
};

/// A GPU that one can buy. No kernel depends on it; predictions and the ways of a call may.
struct Chip {
  llvm::StringLiteral name;
  int64_t multiprocessors;
  /// The nominal clock, and what the power limit leaves of it under matrix products.
  double clockGHz, loadedClockGHz;
  /// Terabytes per second that its memory gives.
  double memoryTBs;

  double getPeakTflops(const Costs &costs, unsigned elementBits) const {
    return costs.tensorFlops * (elementBits == 8 ? 2 : 1) * clockGHz * double(multiprocessors) /
           1000;
  }
};

struct Machine {
  /// As ptxas and LLVM name it.
  llvm::StringLiteral name;
  /// The oldest PTX that has all the instructions in use, as a feature of LLVM.
  llvm::StringLiteral ptx;
  /// Whether nobody has run kernels of it on such a GPU. Then a device takes it only by its name,
  /// and else an older machine, whose text it runs too.
  bool isUntried = false;

  Product product;
  TensorMemory tensor = {};
  Copy copy;
  Roles roles;
  /// Whether a kernel may start before the one before it ends.
  bool overlapsLaunches;
  /// Neighbours of f32 that a thread adds to memory at once.
  int64_t addedTogether;

  // A block, in warpgroups: groups of threads that a role is made of.
  int64_t warpgroupThreads, warpgroups;
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
  /// Those that every thread wants besides the tiles that a program of room 6 counts: addresses,
  /// coordinates, slots. Below them ptxas spills. 0: nobody has compared the count with ptxas.
  int64_t otherRegisters = 0;

  Costs costs;

  /// The first is the one that stands for all.
  llvm::ArrayRef<Chip> chips;

  /// The products that warpgroups issue side by side, and the rows that one warpgroup has of them.
  int64_t getUnits(int64_t numWarpgroups) const {
    return numWarpgroups * warpgroupThreads / product.threads;
  }
  int64_t getWarpgroupRows() const { return getUnits(1) * product.rows; }
  int64_t getWarps(int64_t numWarpgroups) const {
    return numWarpgroups * warpgroupThreads / kLanes;
  }
  /// Registers of a thread for a tile of so many columns, whose rows a warpgroup's products have.
  int64_t getTileRegisters(int64_t columns) const {
    return getWarpgroupRows() * columns / warpgroupThreads;
  }

  /// Columns of tensor memory for the rows of one of so many units.
  int64_t getColumns(int64_t units) const { return tensor.columns / units; }

  /// Whether roles divide the work of a block: some threads copy, others compute.
  bool hasRoles() const { return !roles.budgets.empty(); }

  /// Registers of each thread of a block at its launch: all registers, shared out evenly over
  /// `resident` blocks of a multiprocessor.
  int64_t getLaunchRegisters(int64_t numWarpgroups, int64_t resident = 1) const {
    return registers / (resident * numWarpgroups * warpgroupThreads) / registerStep * registerStep;
  }
  /// Those that all threads of such a block start with.
  int64_t getBlockRegisters(int64_t numWarpgroups, int64_t resident = 1) const {
    return getLaunchRegisters(numWarpgroups, resident) * numWarpgroups * warpgroupThreads;
  }
  /// The most that a role may ask for: whole steps, of which the last register has no name.
  int64_t getMostBudget() const {
    return (mostRegisters + registerStep - 1) / registerStep * registerStep;
  }
  /// Whether a role of so many warpgroups may have so many registers in each thread.
  bool allowsRole(int64_t numWarpgroups, int64_t budget) const {
    return numWarpgroups >= 1 && numWarpgroups <= warpgroups && budget >= leastRegisters &&
           budget <= getMostBudget() && budget % registerStep == 0;
  }
  /// "1 to 8 warpgroups and registers in multiples of 8 from 24 to 256": for errors.
  std::string listRoles() const;

  /// Of one block that has a multiprocessor for itself, or of several, whose producers keep more.
  /// Without roles all threads have the same.
  RoleBudget getBudget(int64_t consumers, bool stays, int64_t resident = 1) const {
    if (!hasRoles())
      return {0, std::min(getLaunchRegisters(consumers, resident), getMostBudget())};
    const RoleBudget &budget =
        (stays || resident > 1 ? roles.stayBudgets : roles.budgets)[consumers - 1];
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
  /// The most consumers of one producer, or of a block without one.
  int64_t getMostConsumers() const {
    return hasRoles() ? static_cast<int64_t>(roles.budgets.size()) : warpgroups;
  }
  /// The most rows that so many consumers multiply.
  int64_t getMostRows(int64_t consumers) const {
    return consumers * getWarpgroupRows() * product.steps;
  }
};

/// All machines, the default first.
llvm::ArrayRef<const Machine *> getMachines();

/// The machine of that name, or null.
const Machine *findMachine(llvm::StringRef name);

/// The machine of a program that names none.
const Machine &getDefaultMachine();

/// "sm_90a, sm_120a or sm_80": for errors.
std::string listMachines();

/// The product of that name of any machine, or null.
const Product *findProduct(llvm::StringRef name);

/// "wgmma", or "wgmma or mma.sync": for errors.
std::string listProducts();

/// The most that any machine has, where a type or an attribute cannot know its machine.
int64_t getMostOfAny(int64_t Machine::*number);

/// Adds a machine that lives as long as the process, and is not the default. Not while others are
/// looked for.
void registerMachine(const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_MACHINE_MACHINE_H
