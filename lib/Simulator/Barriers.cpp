//===- Barriers.cpp - mbarriers ---------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Barriers.h"

using namespace llvm;

namespace attn::sim {

void Barrier::tryToComplete() {
  if (pending != 0 || copied != expected)
    return;
  ++phase;
  pending = arrivals;
  expected = started = copied = 0;
  arriving.learn({component, uint32_t(phase)});
  completed.join(arriving);
  arriving.clear();
  notes.clear();
}

/// Once nobody is left to arrive, more bytes on their way than expected complete the phase early.
std::optional<Finding> Barrier::checkBytes(mlir::Operation *by) {
  if (pending != 0 || started <= expected)
    return std::nullopt;
  return Finding{Finding::Kind::Transaction, by,
                 "a phase of the barrier expects " + std::to_string(expected) +
                     " bytes, copies bring " + std::to_string(started),
                 notes};
}

std::optional<Finding> Barrier::arrive(mlir::Operation *by, const Agent &agent, int64_t count) {
  if (pending < count)
    return Finding{Finding::Kind::Phase,
                   by,
                   "arrival at a barrier whose " + std::to_string(arrivals) +
                       " arrivals of this phase have all come",
                   {{op, "the barrier is initialised here"}}};
  pending -= count;
  arriving.join(agent.knowledge);
  if (auto finding = checkBytes(by))
    return finding;
  tryToComplete();
  return std::nullopt;
}

std::optional<Finding> Barrier::expect(mlir::Operation *by, const Agent &agent, int64_t bytes) {
  expected += bytes;
  notes.push_back({by, std::to_string(bytes) + " bytes are expected here"});
  return arrive(by, agent);
}

std::optional<Finding> Barrier::startCopy(mlir::Operation *by, int64_t bytes) {
  started += bytes;
  notes.push_back({by, std::to_string(bytes) + " bytes are copied here"});
  return checkBytes(by);
}

std::optional<Finding> Barrier::finishCopy(mlir::Operation *by, int64_t bytes) {
  copied += bytes;
  tryToComplete();
  return std::nullopt;
}

std::string Barrier::describe() const {
  std::string text =
      std::to_string(arrivals - pending) + " of " + std::to_string(arrivals) + " arrivals";
  if (expected || started)
    text += ", " + std::to_string(copied) + " of " + std::to_string(expected) + " bytes";
  return text;
}

} // namespace attn::sim
