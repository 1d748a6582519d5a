//===- Timing.h - the GPU's time for launches -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_TIMING_H
#define ATTN_LIB_RUNTIME_TIMING_H

#include "lib/Runtime/Device.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn {

struct TimingOptions {
  /// Runs before the first measurement, in milliseconds of GPU time; at least one launch.
  double warmupMs = 100;
  /// Measures until this much GPU time has passed. A burst flatters: the chip is limited by power,
  /// and its clock falls after some 100 ms of work.
  double measureMs = 400;
  /// Launches between two events. More of them hide the host's share of short kernels.
  unsigned launchesPerSample = 10;
};

/// Milliseconds of GPU time for one launch, one number for each sample, by a pair of events around
/// `launchesPerSample` calls of `launch` on `stream`. Synchronises. To compare kernels, interleave
/// calls of this in one process.
///
/// Errors: CaptureInProgress, DriverFailure, and those of `launch`.
Result<std::vector<double>> timeLaunches(const DeviceContext &context, void *stream,
                                         llvm::function_ref<Status()> launch,
                                         const TimingOptions &options = {});

} // namespace attn

#endif // ATTN_LIB_RUNTIME_TIMING_H
