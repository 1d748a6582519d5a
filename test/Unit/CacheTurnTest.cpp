//===- CacheTurnTest.cpp - processes that want the same kernel -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/CacheFixture.h"
#include <atomic>
#include <chrono>
#include <signal.h>
#include <sys/mman.h>
#include <thread>

using namespace attn;
namespace fs = llvm::sys::fs;

namespace {
/// Processes that want key 1 from one directory.
class TurnTest : public CacheTest {
protected:
  struct Shared {
    std::atomic<int> started, compilations;
  };
  struct Outcome {
    bool isRight;
    int compilations;
    double seconds;
  };

  void SetUp() override {
    CacheTest::SetUp();
    void *memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared = new (memory) Shared{};
  }
  void TearDown() override {
    munmap(shared, sizeof(Shared));
    CacheTest::TearDown();
  }

  static void sleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }
  static void waitFor(const std::atomic<int> &count, int value) {
    while (count < value)
      sleepMs(1);
  }

  /// A process whose compilation takes so long; its exit code is 0 if its image is right.
  pid_t spawn(int compileMs) {
    pid_t child = fork();
    if (child == 0)
      _exit(!want(compileMs).isRight);
    return child;
  }

  /// The same in this process, by a cache that has nothing in memory.
  Outcome want(int compileMs) {
    KernelCache cache(options);
    int compilations = 0;
    ++shared->started;
    auto start = std::chrono::steady_clock::now();
    Result<KernelCache::Image> image = cache.getOrCompile(makeKey(1), [&]() -> Result<KernelImage> {
      ++compilations;
      ++shared->compilations;
      sleepMs(compileMs);
      return makeImage(1);
    });
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return {image && **image == makeImage(1), compilations, elapsed.count()};
  }

  static int join(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  Shared *shared = nullptr;
  static constexpr int forever = 1000000;
};
} // namespace

TEST_F(TurnTest, ProcessesShareACompilation) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(spawn(300));
  for (pid_t child : children)
    EXPECT_EQ(join(child), 0);
  EXPECT_EQ(shared->compilations, 1);
  EXPECT_EQ(listFiles(".kernel").size(), 1u);
  EXPECT_TRUE(listFiles(".tmp").empty());
}

TEST_F(TurnTest, OtherKeysDoNotWait) {
  pid_t owner = spawn(forever);
  waitFor(shared->compilations, 1);
  KernelCache cache(options);
  auto compile = []() -> Result<KernelImage> { return makeImage(2); };
  EXPECT_TRUE(cache.getOrCompile(makeKey(2), compile));
  EXPECT_TRUE(remarks.empty());
  kill(owner, SIGKILL);
  join(owner);
}

TEST_F(TurnTest, KilledProcessesHoldNobody) {
  pid_t owner = spawn(forever);
  waitFor(shared->compilations, 1);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(spawn(100));
  waitFor(shared->started, 5);
  sleepMs(50);
  EXPECT_EQ(shared->compilations, 1);
  kill(owner, SIGKILL);
  join(owner);
  for (pid_t child : children)
    EXPECT_EQ(join(child), 0);
  // That of the killed one, and one more.
  EXPECT_EQ(shared->compilations, 2);
}

TEST_F(TurnTest, StoppedProcessesHoldNobodyForLong) {
  pid_t owner = spawn(1000);
  waitFor(shared->compilations, 1);
  kill(owner, SIGSTOP);
  // One who would wait for long has what another one leaves, who does not.
  options.maxWaitSeconds = 60;
  pid_t patient = spawn(forever);
  waitFor(shared->started, 2);
  options.maxWaitSeconds = 0.2;
  Outcome outcome = want(1);
  EXPECT_TRUE(outcome.isRight);
  EXPECT_EQ(outcome.compilations, 1);
  EXPECT_GE(outcome.seconds, 0.2);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "compiled although another process has been compiling the same for 0.2 s");
  EXPECT_EQ(join(patient), 0);
  EXPECT_EQ(shared->compilations, 2);
  kill(owner, SIGCONT);
  EXPECT_EQ(join(owner), 0);
  EXPECT_EQ(want(forever).compilations, 0);
}

TEST_F(TurnTest, FailuresPassTheTurnOn) {
  KernelCache cache(options);
  auto fail = []() -> Result<KernelImage> { return Status{StatusCode::InvalidKernel, "no", ""}; };
  EXPECT_FALSE(cache.getOrCompile(makeKey(1), fail));
  EXPECT_EQ(want(1).compilations, 1);
  EXPECT_TRUE(remarks.empty());
}

// A child that was forked during a compilation has the owner's open files.
TEST_F(TurnTest, ChildrenOfForksKeepNoTurn) {
  KernelCache cache(options);
  pid_t child = -1;
  auto failAndFork = [&]() -> Result<KernelImage> {
    child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    return Status{StatusCode::InvalidKernel, "no", ""};
  };
  EXPECT_FALSE(cache.getOrCompile(makeKey(1), failAndFork));
  Outcome outcome = want(1);
  EXPECT_LT(outcome.seconds, 5);
  EXPECT_TRUE(remarks.empty());
  kill(child, SIGKILL);
  join(child);
}

TEST_F(TurnTest, CachesOfOneProcessTakeTurns) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { right += want(100).isRight; });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(right, 8);
  EXPECT_EQ(shared->compilations, 1);
}

TEST_F(TurnTest, WithoutLocks) {
  // Nothing that could be locked.
  ASSERT_EQ(mkdir(options.directory.c_str(), 0700), 0);
  ASSERT_EQ(mkdir((options.directory + "/locks").c_str(), 0700), 0);
  pid_t owner = spawn(forever);
  waitFor(shared->compilations, 1);
  Outcome outcome = want(1);
  EXPECT_TRUE(outcome.isRight);
  EXPECT_EQ(outcome.compilations, 1);
  EXPECT_TRUE(remarks.empty());
  kill(owner, SIGKILL);
  join(owner);
}

TEST_F(TurnTest, EvictionLeavesTheLocks) {
  EXPECT_EQ(want(1).compilations, 1);
  struct stat status;
  ASSERT_EQ(stat((options.directory + "/locks").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  setAge(options.directory + "/locks", 2 * 3600);
  CacheDirectory(options).evict();
  EXPECT_EQ(stat((options.directory + "/locks").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 0);
}
