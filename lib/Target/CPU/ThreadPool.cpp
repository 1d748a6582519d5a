//===- ThreadPool.cpp - the threads that run kernels ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Target/CPU/HostInfo.h"
#include "llvm/Support/ThreadPool.h"
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

using namespace llvm;

namespace attn {

namespace {
/// One loop. Shared by the caller and the workers because a worker may arrive when the loop is
/// over: it then finds no index left and must not find a dead stack frame either.
struct Loop {
  Loop(int64_t count, function_ref<void(int64_t)> fn) : count(count), fn(fn) {}

  /// `fn` is only called for an index below `count`, which keeps the caller waiting.
  void run() {
    int64_t finished = 0;
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count; ++finished)
      fn(i);
    if (finished && done.fetch_add(finished, std::memory_order_acq_rel) + finished == count)
      done.notify_all();
  }

  void wait() {
    // The last indices usually end within microseconds of each other, less than a sleep costs.
    for (int spin = 0; spin < 2000; ++spin)
      if (done.load(std::memory_order_acquire) == count)
        return;
    for (int64_t seen; (seen = done.load(std::memory_order_acquire)) != count;)
      done.wait(seen, std::memory_order_acquire);
  }

  const int64_t count;
  const function_ref<void(int64_t)> fn;
  // Apart, because every index writes one and every waiting thread reads the other.
  alignas(64) std::atomic<int64_t> next = 0;
  alignas(64) std::atomic<int64_t> done = 0;
};

struct Pool {
  std::mutex mutex;
  unsigned requested = 0;
  /// One worker less than threads: the calling thread works too.
  std::shared_ptr<StdThreadPool> workers;
  unsigned numThreads = 0;

  std::shared_ptr<StdThreadPool> get() {
    std::lock_guard<std::mutex> lock(mutex);
    update();
    return workers;
  }

  unsigned count() {
    std::lock_guard<std::mutex> lock(mutex);
    return wanted();
  }

private:
  unsigned wanted() {
    if (requested)
      return requested;
    Expected<HostInfo> host = getHostInfo();
    if (host)
      return host->numThreads;
    consumeError(host.takeError());
    return 1;
  }

  void update() {
    unsigned threads = wanted();
    if (threads == numThreads)
      return;
    numThreads = threads;
    workers.reset();
    if (threads < 2)
      return;
    ThreadPoolStrategy strategy;
    strategy.ThreadsRequested = threads - 1;
    workers = std::make_shared<StdThreadPool>(strategy);
  }
};
} // namespace

static Pool &getPool() {
  static Pool pool;
  return pool;
}

static thread_local bool isInLoop = false;

void setThreadCount(unsigned count) {
  Pool &pool = getPool();
  std::lock_guard<std::mutex> lock(pool.mutex);
  pool.requested = count;
}

unsigned getThreadCount() { return getPool().count(); }

void parallelFor(int64_t count, function_ref<void(int64_t)> fn) {
  std::shared_ptr<StdThreadPool> workers;
  if (count > 1 && !isInLoop)
    workers = getPool().get();
  if (!workers) {
    for (int64_t i = 0; i < count; ++i)
      fn(i);
    return;
  }

  auto loop = std::make_shared<Loop>(count, fn);
  int64_t helpers = std::min<int64_t>(workers->getMaxConcurrency(), count - 1);
  for (int64_t i = 0; i < helpers; ++i)
    workers->async([loop] {
      isInLoop = true;
      loop->run();
      isInLoop = false;
    });
  isInLoop = true;
  loop->run();
  isInLoop = false;
  loop->wait();
}

} // namespace attn

extern "C" void attn_cpu_parallel_for(void (*body)(void *context, int64_t index), void *context,
                                      int64_t count) {
  attn::parallelFor(count, [&](int64_t index) { body(context, index); });
}
