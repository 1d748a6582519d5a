//===- Finding.h - objections of the simulator ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_FINDING_H
#define ATTN_LIB_SIMULATOR_FINDING_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace attn::sim {

/// A mistake in the program: the kinds that issue 5 lists.
struct Finding {
  enum class Kind {
    /// Read of a shared tile that the copy into it does not precede.
    EarlyRead,
    /// Write to a shared tile that somebody may still read or write.
    EarlyWrite,
    /// Written by threads, used by products or copies, no fence between.
    MissingFence,
    /// Registers of a product touched while it is in flight.
    InFlight,
    /// Bytes expected and bytes copied differ.
    Transaction,
    /// More arrivals than the barrier counts, or a wait for another phase than meant.
    Phase,
    Deadlock,
    /// Accesses to an element of global memory, one of them a write, that nothing orders.
    Race,
    /// Shared memory, global memory or a ring, outside of its bounds.
    OutOfBounds,
    /// Shared memory or registers.
    Budget,
    Uninitialized,
    /// Work in flight at the end of the block.
    Unfinished,
    /// Something that the hardware cannot do: a barrier used before tile.sync, a misaligned box.
    Invalid
  };
  /// One party: its act, and the place of it.
  struct Note {
    mlir::Operation *op;
    std::string text;
  };

  Kind kind;
  mlir::Operation *op;
  std::string text;
  std::vector<Note> notes;

  /// Emits it as an error of `op` with its notes.
  void emit() const;
  void print(llvm::raw_ostream &os) const;
};

llvm::StringRef getName(Finding::Kind kind);

/// "file.mlir:3:7", or the location as MLIR prints it.
std::string describeLocation(mlir::Location location);

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_FINDING_H
