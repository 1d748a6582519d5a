//===- Barriers.h - mbarriers and named barriers ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_BARRIERS_H
#define ATTN_LIB_SIMULATOR_BARRIERS_H

#include "lib/Simulator/Clock.h"
#include "lib/Simulator/Finding.h"
#include <optional>

namespace attn::sim {

/// An mbarrier. A phase is complete when all arrivals have come and the bytes that were expected
/// are the bytes that were copied; then the next begins. Copies belong to the phase in which they
/// were started.
class Barrier {
public:
  Barrier(mlir::Operation *op, int64_t arrivals, unsigned component)
      : op(op), arrivals(arrivals), pending(arrivals), component(component) {}

  std::optional<Finding> arrive(mlir::Operation *by, const Agent &agent, int64_t count = 1);
  std::optional<Finding> expect(mlir::Operation *by, const Agent &agent, int64_t bytes);
  std::optional<Finding> startCopy(mlir::Operation *by, int64_t bytes);
  std::optional<Finding> finishCopy(mlir::Operation *by, int64_t bytes);

  /// Whether a wait for this parity is over: the phase before the current one has it.
  bool passes(unsigned parity) const { return (phase & 1) != parity; }
  /// The knowledge of everybody who has waited for it.
  const Knowledge &getCompleted() const { return completed; }
  int64_t getPhase() const { return phase; }
  /// The epoch at which a copy that is started now will be known to be done.
  Epoch getCopyEpoch() const { return {component, uint32_t(phase + 1)}; }

  mlir::Operation *getOp() const { return op; }
  /// "1 of 2 arrivals, 0 of 16384 bytes".
  std::string describe() const;
  bool hasBytesMissing() const { return pending == 0 && copied != expected; }
  /// The ops that announced bytes in this phase.
  llvm::ArrayRef<Finding::Note> getNotes() const { return notes; }

  /// When the barrier was initialised.
  Epoch initialized{0, 0};

private:
  std::optional<Finding> checkBytes(mlir::Operation *by);
  void tryToComplete();

  mlir::Operation *op;
  int64_t arrivals, pending;
  unsigned component;
  int64_t phase = 0, expected = 0, started = 0, copied = 0;
  Knowledge arriving, completed;
  std::vector<Finding::Note> notes;
};

/// A named barrier of the block (bar.sync, bar.arrive), or the one of tile.sync.
struct NamedBarrier {
  int64_t threads = 0, arrived = 0;
  /// The op that declared `threads`.
  mlir::Operation *op = nullptr;
  Knowledge arriving;
  /// Fibers that wait.
  llvm::SmallVector<unsigned, 8> waiting;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_BARRIERS_H
