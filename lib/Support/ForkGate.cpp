//===- ForkGate.cpp - work that no fork may cut in two ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/ForkGate.h"
#include <atomic>
#include <mutex>
#include <new>
#include <pthread.h>

namespace attn {

// A reader-writer lock would be the same, but cannot be unlocked in the child.
namespace {
struct Gate {
  /// Held by who enters, for a moment, and by who forks, until that is done.
  std::mutex mutex;
  /// The threads inside.
  std::atomic<int> inside = 0;
};
} // namespace

static constinit Gate gate;
static thread_local int depth = 0;

static void waitUntilAlone() {
  gate.mutex.lock();
  int own = depth != 0;
  for (int seen; (seen = gate.inside.load()) != own;)
    gate.inside.wait(seen);
}

static void openInParent() { gate.mutex.unlock(); }

static void openInChild() {
  int own = depth != 0;
  new (&gate) Gate;
  gate.inside = own;
}

ForkGate::ForkGate() {
  if (depth++)
    return;
  std::lock_guard<std::mutex> lock(gate.mutex);
  static bool isRegistered = false;
  if (!isRegistered)
    isRegistered = pthread_atfork(waitUntilAlone, openInParent, openInChild) == 0;
  ++gate.inside;
}

ForkGate::~ForkGate() {
  if (--depth)
    return;
  --gate.inside;
  gate.inside.notify_all();
}

} // namespace attn
