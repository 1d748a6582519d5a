//===- ThreadPool.cpp - the threads that run kernels ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Target/CPU/HostInfo.h"
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <pthread.h>

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

/// Never destroyed: a thread of the pool may still run when the process ends, and there is nothing
/// to wait for.
class Pool {
public:
  Pool() = default;
  /// In the child of a fork, from the pool of its parent.
  explicit Pool(Pool &parent) : requested(parent.getRequested()), parent(&parent) {}

  unsigned getRequested() const { return requested.load(std::memory_order_relaxed); }
  void request(unsigned count) { requested.store(count, std::memory_order_relaxed); }

  unsigned countWanted() const {
    if (unsigned count = getRequested())
      return count;
    Expected<HostInfo> host = getHostInfo();
    if (host)
      return host->numThreads;
    consumeError(host.takeError());
    return 1;
  }

  /// Asks up to `helpers` threads to join a loop: fewer, or none, when the system has no more.
  void share(const std::shared_ptr<Loop> &loop, unsigned helpers) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      while (numWorkers < helpers && startWorker())
        ++numWorkers;
      helpers = std::min(helpers, numWorkers);
      queue.insert(queue.end(), helpers, loop);
    }
    for (unsigned i = 0; i < helpers; ++i)
      wake.notify_one();
  }

private:
  bool startWorker();
  [[noreturn]] void work();

  std::mutex mutex;
  std::condition_variable wake;
  /// Below: guarded by `mutex`.
  std::deque<std::shared_ptr<Loop>> queue;
  /// One less than threads: the calling thread works too. Idle ones cost nothing, so none ends.
  unsigned numWorkers = 0;

  std::atomic<unsigned> requested = 0;
  /// Only so that it is not taken for lost.
  Pool *const parent = nullptr;
};
} // namespace

static thread_local bool isInLoop = false;

// Not std::thread, which throws, nor LLVM's pool, which aborts, when there is no thread to be had.
bool Pool::startWorker() {
  pthread_t thread;
  auto start = [](void *pool) -> void * { static_cast<Pool *>(pool)->work(); };
  if (pthread_create(&thread, nullptr, start, this))
    return false;
  pthread_detach(thread);
  return true;
}

void Pool::work() {
  isInLoop = true;
  for (;;) {
    std::shared_ptr<Loop> loop;
    {
      std::unique_lock<std::mutex> lock(mutex);
      wake.wait(lock, [&] { return !queue.empty(); });
      loop = std::move(queue.front());
      queue.pop_front();
    }
    loop->run();
  }
}

static Pool *pool = nullptr;

static Pool &getPool() {
  // The child of a fork has none of the threads, and perhaps a mutex that one of them held: it
  // starts afresh. The memory of its parent's pool is never freed, once for each fork.
  static bool isMade = [] {
    pool = new Pool;
    pthread_atfork(nullptr, nullptr, [] { pool = new Pool(*pool); });
    return true;
  }();
  (void)isMade;
  return *pool;
}

void setThreadCount(unsigned count) { getPool().request(count); }

unsigned getThreadCount() { return getPool().countWanted(); }

void parallelFor(int64_t count, function_ref<void(int64_t)> fn) {
  int64_t helpers = 0;
  if (count > 1 && !isInLoop)
    helpers = std::min<int64_t>(getPool().countWanted(), count) - 1;
  if (helpers < 1) {
    for (int64_t i = 0; i < count; ++i)
      fn(i);
    return;
  }

  auto loop = std::make_shared<Loop>(count, fn);
  getPool().share(loop, static_cast<unsigned>(helpers));
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

extern "C" int64_t attn_cpu_threads() { return attn::getThreadCount(); }
