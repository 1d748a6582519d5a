//===- Clock.h - events that are known to have happened ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Races are found by order, not by luck: two accesses race when neither is known to precede the
// other, in whatever order this run happens to execute them. The knowledge of a party is a vector
// clock, with one component for everybody whose steps can be waited for:
//
//   * the leader of each warpgroup, its first thread, who issues copies and arrives at barriers;
//   * the rest of each warpgroup. They run the same program as their leader, but their acts are
//     known to others only after a barrier at which all threads of the warpgroup meet;
//   * each warpgroup's matrix products: component = groups complete, learnt by tile.mma_wait;
//     (that also tells the acts of the other threads of the warpgroup when they started it);
//   * each leader's stores of shared tiles: component = groups read, learnt by tile.store_wait;
//   * each warpgroup's gatherings of rows: component = those begun, learnt by whoever waits for the
//     barrier at which its threads arrive when they have landed;
//   * nothing of other blocks: their components are others (GlobalAccesses.h);
//   * each mbarrier: component = phases complete, learnt by tile.barrier_wait, which is how a copy
//     becomes known to be there.
//
// Threads write shared memory through the generic proxy, products and copies use the asynchronous
// one. A write is known *to that proxy* only if a tile.fence lies on the way; so everyone carries a
// second clock, which synchronization passes on like the first and only fences bring up to date.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_CLOCK_H
#define ATTN_LIB_SIMULATOR_CLOCK_H

#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdint>
#include <vector>

namespace attn::sim {

/// The point in time when `component` reached `time`.
struct Epoch {
  unsigned component;
  uint32_t time;
};

/// The knowledge of a party; missing components are 0.
class Clock {
public:
  uint32_t get(unsigned component) const { return component < times.size() ? times[component] : 0; }
  void raise(unsigned component, uint32_t time) {
    if (times.size() <= component)
      times.resize(component + 1, 0);
    times[component] = std::max(times[component], time);
  }
  bool knows(Epoch epoch) const { return get(epoch.component) >= epoch.time; }
  void join(const Clock &other) {
    if (times.size() < other.times.size())
      times.resize(other.times.size(), 0);
    for (size_t i = 0; i < other.times.size(); ++i)
      times[i] = std::max(times[i], other.times[i]);
  }
  void clear() { times.clear(); }

private:
  std::vector<uint32_t> times;
};

/// Knowledge of accesses, and of those that the asynchronous proxy sees.
struct Knowledge {
  Clock all, fenced;

  void join(const Knowledge &other) {
    all.join(other.all);
    fenced.join(other.fenced);
  }
  void fence() { fenced.join(all); }
  /// Of acts of asynchronous hardware: no fence is needed to see them.
  void learn(Epoch epoch) {
    all.raise(epoch.component, epoch.time);
    fenced.raise(epoch.component, epoch.time);
  }
  void clear() {
    all.clear();
    fenced.clear();
  }
};

/// Threads that act as one: the leader of a warpgroup or the rest of it.
struct Agent {
  unsigned component = 0;
  uint32_t time = 0;
  Knowledge knowledge;

  Epoch tick() {
    knowledge.all.raise(component, ++time);
    return {component, time};
  }
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_CLOCK_H
