//===- Stopwatch.h - elapsed time -------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_STOPWATCH_H
#define ATTN_LIB_SUPPORT_STOPWATCH_H

#include <chrono>

namespace attn {

/// Measures from its construction on.
class Stopwatch {
public:
  double elapsedMs() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  /// The time since the last lap.
  double lapMs() {
    double elapsed = elapsedMs();
    start = Clock::now();
    return elapsed;
  }

private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
};

} // namespace attn

#endif // ATTN_LIB_SUPPORT_STOPWATCH_H
