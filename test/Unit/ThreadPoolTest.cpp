//===- ThreadPoolTest.cpp - loops that threads share ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Cheap to build, so that continuous integration runs it under ThreadSanitizer.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/ThreadPool.h"
#include "gtest/gtest.h"
#include <thread>
#include <vector>

using namespace attn;

namespace {

/// Calls every index once; what they write is seen behind the loop.
void expectEveryIndex(int64_t count) {
  std::vector<int64_t> visits(count, 0);
  parallelFor(count, [&](int64_t i) { visits[i] += i + 1; });
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(visits[i], i + 1);
}

} // namespace

TEST(ThreadPoolTest, CallsEveryIndexOnce) {
  for (unsigned threads : {1, 2, 5, 0}) {
    setThreadCount(threads);
    for (int64_t count : {0, 1, 2, 7, 1000})
      expectEveryIndex(count);
  }
}

TEST(ThreadPoolTest, ManyThreadsLoopAtOnce) {
  setThreadCount(4);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([=] {
      for (int round = 0; round < 100; ++round)
        expectEveryIndex(1 + (caller * 13 + round) % 40);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST(ThreadPoolTest, LoopsInLoopsRunOnTheirThread) {
  setThreadCount(3);
  parallelFor(20, [](int64_t) {
    std::thread::id self = std::this_thread::get_id();
    parallelFor(5, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
  });
}

TEST(ThreadPoolTest, CountsChangeWhileOthersLoop) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([] {
      for (int round = 0; round < 50; ++round)
        expectEveryIndex(20);
    });
  for (unsigned threads = 1; threads < 8; ++threads) {
    setThreadCount(threads);
    std::thread([] { expectEveryIndex(100); }).join();
    EXPECT_EQ(getThreadCount(), threads);
  }
  for (std::thread &caller : callers)
    caller.join();
  setThreadCount(0);
}
