//===- threads.cpp - the C interface from many threads ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Threads do what those of a Python program do: they compile the same and different functions at
// once, call kernels of their own and one that all share, free them, make mistakes and read the
// messages, and ask for explanations, while the thread that started them forks children
// that call and end. Built with TSan (`make test-tsan`) it is the test of the thread pool and the
// caches.
//
//   threads [THREADS [ROUNDS [CHILDREN]]]
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static std::atomic<int> failures = 0;

#define EXPECT(condition)                                                                          \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      std::fprintf(stderr, "%s:%d: expected %s; last message: %s\n", __FILE__, __LINE__,           \
                   #condition, attn_last_message());                                               \
      ++failures;                                                                                  \
    }                                                                                              \
  } while (0)

/// A causal or full attention with head dimension `columns`.
static std::string makeSource(int columns, bool isCausal) {
  std::string type = "tensor<?x?x?x" + std::to_string(columns) + "xf32>";
  return "func.func @f(%q: " + type + ", %k: " + type + ", %v: " + type + ") -> " + type +
         " {\n  %o = attn.attention %q, %k, %v " +
         (isCausal ? "variants [#attn.causal<top_left>] " : "") + ": " + type + ", " + type + ", " +
         type + " -> " + type + "\n  return %o : " + type + "\n}\n";
}

/// The arguments of a call: ones, but for the last row of the values.
class Call {
public:
  static constexpr int64_t kBatch = 2, kHeads = 3, kRows = 37;

  explicit Call(int64_t columns) : columns(columns) {
    for (std::vector<float> &tensor : storage)
      tensor.assign(kBatch * kHeads * kRows * columns, 1.0f);
    for (int64_t head = 0; head < kBatch * kHeads; ++head)
      for (int64_t column = 0; column < columns; ++column)
        storage[2][((head + 1) * kRows - 1) * columns + column] = 1.0f + kRows;
    shape[3] = columns;
    for (int i = 0; i < 4; ++i) {
      attn_tensor &tensor = tensors[i];
      tensor = {};
      tensor.data = storage[i].data();
      tensor.device.device_type = ATTN_DL_CPU;
      tensor.ndim = 4;
      tensor.dtype = {ATTN_DL_FLOAT, 32, 1};
      tensor.shape = shape;
      addresses[i] = &tensor;
    }
  }

  /// Equal scores: a row is the mean of the values that it keeps, 1 or, with the last, 2.
  void run(const attn_kernel *kernel, bool isCausal) {
    std::fill(storage[3].begin(), storage[3].end(), NAN);
    EXPECT(attn_run(kernel, addresses, 4, nullptr) == ATTN_OK);
    bool isMean = true;
    for (size_t i = 0; i < storage[3].size(); ++i) {
      bool keepsLast = !isCausal || int64_t(i) / columns % kRows == kRows - 1;
      isMean &= std::fabs(storage[3][i] - (keepsLast ? 2.0f : 1.0f)) < 1e-4f;
    }
    EXPECT(isMean);
  }

private:
  int64_t columns, shape[4] = {kBatch, kHeads, kRows, 0};
  std::vector<float> storage[4];
  attn_tensor tensors[4];
  const attn_tensor *addresses[4];
};

/// What a round makes of its number: every thread gets to every kind, not in the same order.
static void runRound(unsigned thread, unsigned round, const attn_kernel *shared) {
  Call sharedCall(16);
  sharedCall.run(shared, /*isCausal=*/true);

  // Others compile the same at this moment, or free it.
  int columns = 4 << (round % 3);
  bool isCausal = round % 2;
  std::string source = makeSource(columns, isCausal);
  attn_options *options = nullptr;
  EXPECT(attn_options_create(&options) == ATTN_OK);
  EXPECT(attn_options_set(options, "threads", thread % 2 ? "2" : "3") == ATTN_OK);
  if (round % 4 == 3)
    EXPECT(attn_options_set(options, "cache", "off") == ATTN_OK);
  attn_kernel *kernel = nullptr;
  EXPECT(attn_compile(source.c_str(), options, &kernel) == ATTN_OK);
  if (kernel) {
    Call call(columns);
    call.run(kernel, isCausal);
    call.run(kernel, isCausal);
  }
  attn_kernel_free(kernel);

  // Messages belong to the thread.
  std::string key = "key-of-" + std::to_string(thread);
  EXPECT(attn_options_set(options, key.c_str(), "1") == ATTN_INVALID_ARGUMENT);
  EXPECT(std::strstr(attn_last_message(), key.c_str()));
  EXPECT(attn_compile("func.func @f(", nullptr, &kernel) == ATTN_INVALID_KERNEL);

  if (thread == round % 4) {
    char *text = nullptr;
    EXPECT(attn_explain(source.c_str(), options, "online", &text) == ATTN_OK);
    attn_string_free(text);
  }
  attn_options_free(options);
}

/// A child calls and ends as a program does. A child that hangs is killed by the alarm.
static void forkChild(const attn_kernel *shared) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Call(16).run(shared, /*isCausal=*/true);
    std::exit(failures ? 1 : 0);
  }
  int status = -1;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child);
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int argc, char **argv) {
  unsigned numThreads = argc > 1 ? std::atoi(argv[1]) : 6;
  unsigned numRounds = argc > 2 ? std::atoi(argv[2]) : 6;
  unsigned mostChildren = argc > 3 ? std::atoi(argv[3]) : 0;
  attn_kernel *shared = nullptr;
  EXPECT(attn_compile(makeSource(16, /*isCausal=*/true).c_str(), nullptr, &shared) == ATTN_OK);
  if (!shared)
    return 1;
  std::vector<std::thread> threads;
  std::atomic<unsigned> running = numThreads;
  for (unsigned i = 0; i < numThreads; ++i)
    threads.emplace_back([&, i] {
      for (unsigned round = 0; round < numRounds; ++round)
        runRound(i, i + round, shared);
      --running;
    });
  unsigned numChildren = 0;
  for (; running > 0 && numChildren < mostChildren; ++numChildren)
    forkChild(shared);
  for (std::thread &thread : threads)
    thread.join();
  attn_kernel_free(shared);
  std::printf("%u threads, %u rounds, %u children, %d failures\n", numThreads, numRounds,
              numChildren, failures.load());
  return failures ? 1 : 0;
}
