//===- Isolation.h - a process for what may crash ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_ISOLATION_H
#define ATTN_TEST_FUZZ_ISOLATION_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace attn::fuzz {

/// What a child is doing, in memory that its parent sees and that outlives it.
struct Progress {
  enum Stage { Mutate, Verify, Act };
  /// The mutant at work.
  uint64_t index;
  Stage stage;
  /// Mutations tried, those that gave valid IR, programs acted on, actions, those refused.
  uint64_t candidates, valid, mutants, actions, refused;
  /// An Action, a Fault, and what they are about.
  int actionKind, faultKind;
  char action[512], origin[256], pass[256], detail[1024];
  /// What is being parsed while a mutation is made.
  char parsing[2048];
  bool isParsingType;
  /// Of the fatal signal.
  int signal, numFrames;
  void *frames[96];
};

/// Copies text into a field of Progress, cut to its size.
template <size_t size> void store(char (&field)[size], llvm::StringRef text) {
  text = text.take_front(size - 1);
  __builtin_memcpy(field, text.data(), text.size());
  field[text.size()] = 0;
}

/// How a child ended.
struct Ending {
  enum Kind { Finished, Crashed, Hung, Exited, Reported };
  Kind kind = Finished;
  /// A copy of its last state, and the end of what it wrote to standard error.
  Progress progress;
  std::string log;
};

class Isolation {
public:
  Isolation(double cpuSeconds);
  ~Isolation();

  /// Runs `body` in a child of this process, on copies of all that is here.
  Ending run(llvm::function_ref<void(Progress &)> body);

  Progress &getProgress() { return *progress; }

  /// In the child: gives the next piece of work its time.
  void startClock();
  /// In the child: ends it, because of what progress says.
  [[noreturn]] static void report();

private:
  Progress *progress;
  int log;
  double cpuSeconds;
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_ISOLATION_H
