//===- Timing.cpp - the GPU's time for launches -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Timing.h"
#include <algorithm>

namespace attn {

namespace {
/// Two events, destroyed at the end of the scope.
class EventPair {
public:
  explicit EventPair(const Driver &driver) : driver(driver) {
    code = driver.EventCreate(&start, 0);
    if (code == cuda::Success)
      code = driver.EventCreate(&end, 0);
  }
  ~EventPair() {
    for (cuda::Event event : {start, end})
      if (event)
        (void)driver.EventDestroy(event);
  }

  cuda::Code getCode() const { return code; }

  /// Milliseconds of one launch on average over `count` of them.
  Result<double> measure(cuda::Stream stream, unsigned count,
                         llvm::function_ref<Status()> launch) const {
    cuda::Code code = driver.EventRecord(start, stream);
    for (unsigned i = 0; i < count && code == cuda::Success; ++i)
      if (Status status = launch(); !status.ok())
        return status;
    float elapsed = 0;
    if (code == cuda::Success)
      code = driver.EventRecord(end, stream);
    if (code == cuda::Success)
      code = driver.EventSynchronize(end);
    if (code == cuda::Success)
      code = driver.EventElapsedTime(&elapsed, start, end);
    if (code != cuda::Success)
      return driver.check(code, "time launches");
    return static_cast<double>(elapsed) / count;
  }

private:
  const Driver &driver;
  cuda::Event start = nullptr, end = nullptr;
  cuda::Code code;
};
} // namespace

Result<std::vector<double>> timeLaunches(const DeviceContext &context, void *stream,
                                         llvm::function_ref<Status()> launch,
                                         const TimingOptions &options) {
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  cuda::Stream cudaStream = static_cast<cuda::Stream>(stream);
  cuda::CaptureStatus capture = cuda::CaptureNone;
  cuda::Code code = scope.getCode();
  if (code == cuda::Success)
    code = driver.StreamIsCapturing(cudaStream, &capture);
  if (code != cuda::Success)
    return driver.check(code, "time launches");
  if (capture != cuda::CaptureNone)
    return Status{StatusCode::CaptureInProgress,
                  "expected a stream that is not being captured, for timing it synchronises",
                  "load and time kernels before the capture begins"};
  EventPair events(driver);
  if (events.getCode() != cuda::Success)
    return driver.check(events.getCode(), "create events");

  unsigned count = std::max(options.launchesPerSample, 1u);
  std::vector<double> samples;
  auto measureFor = [&](double milliseconds) -> Status {
    samples.clear();
    for (double elapsed = 0; samples.empty() || elapsed < milliseconds;) {
      Result<double> sample = events.measure(cudaStream, count, launch);
      if (!sample)
        return sample.takeStatus();
      samples.push_back(*sample);
      // Launches of nothing take no time: the floor ends the loop.
      elapsed += std::max(*sample * count, 1e-3);
    }
    return {};
  };
  if (Status status = measureFor(options.warmupMs); !status.ok())
    return status;
  if (Status status = measureFor(options.measureMs); !status.ok())
    return status;
  return samples;
}

} // namespace attn
