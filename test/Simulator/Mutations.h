//===- Mutations.h - kernels with one mistake -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_MUTATIONS_H
#define ATTN_TEST_SIMULATOR_MUTATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace attn::test {

/// One change to one op.
struct Mutation {
  enum Kind {
    Remove,
    /// Bytes, arrivals, threads.
    More,
    Fewer,
    TogglePrevious,
    /// The slot operand is the next use, or the one before; or the same stage in the other phase.
    NextSlot,
    SlotBefore,
    OtherPhase,
    /// Another barrier or place of the same type, the first after this one.
    OtherBarrier,
    OtherPlace,
    /// Of tile.next: two steps. Of tile.slot: starts at the second use.
    OneMore,
    /// One more group may be in flight.
    PendingMore,
    /// A tile does not go through the wait.
    Untie,
    ToggleArrive,
    OtherId,
    /// An arrival comes before the wait in front of it.
    BeforeWait,
    /// Threads arrive when they have started to gather rows, not when these have landed.
    BeforeLanding,
    /// Rows from one further on are gathered.
    OtherRow
  };
  Kind kind;
  /// The op's number in the kernel, in the order of the text.
  unsigned op;
  /// "remove 'tile.fence' (op 41)".
  std::string text;
};

/// Every mutation of every op that has to do with synchronisation, without those that change
/// nothing:
///
///   * who waits for the phase *before* the first use of a ring waits for nothing;
///   * arrivals, expectations and copies do not look at the phase of their slot, stages neither;
///   * where a whole role meets at a named barrier, its number does not matter;
///   * who waits for the release of the use that comes after waits for more than needed;
///   * nobody waits for the release of the last use, which stands behind the loops;
///   * without roles, the last wait is for copies that no loop has read, and copies for a second
///   loop
///     stand also where the first has no turn: loops of attention have some;
///   * stages of rings that have one slot are alike.
std::vector<Mutation> getMutations(mlir::func::FuncOp kernel);

/// Changes a kernel that is a copy of the one they are mutations of.
void apply(const Mutation &mutation, mlir::func::FuncOp kernel);

} // namespace attn::test

#endif // ATTN_TEST_SIMULATOR_MUTATIONS_H
