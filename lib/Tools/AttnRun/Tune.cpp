//===- Tune.cpp - the sizes that a search tries ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Tune.h"
#include "llvm/ADT/STLExtras.h"

using namespace attn;
using namespace llvm;

/// The largest gain that may be noise.
static constexpr double kNoise = 0.01;
/// Of so many of the fastest sizes, blocks that stay are tried too.
static constexpr size_t kStaying = 3;

/// The rule's first. Sizes for which a machine has no room are refused when they are compiled.
static SmallVector<TileSizes> listSizes(Device device) {
  SmallVector<TileSizes> sizes(1);
  if (device == Device::CUDA) {
    for (int64_t blockM : {64, 128, 192})
      for (int64_t blockN = 16; blockN <= 176; blockN += 16)
        sizes.push_back({blockM, blockN});
    return sizes;
  }
  constexpr int64_t all[] = {16, 32, 48, 64, 96, 128};
  for (int64_t blockM : all)
    for (int64_t blockN : all)
      sizes.push_back({blockM, blockN});
  return sizes;
}

namespace {
class Search {
public:
  Search(function_ref<Expected<double>(TileSizes)> measure,
         function_ref<void(unsigned, unsigned)> progress, size_t total)
      : measure(measure), progress(progress), total(total) {}

  /// Fails where the rule's sizes do; others that are refused are counted.
  Error take(TileSizes sizes) {
    progress(tuning.numTried + tuning.numRefused, total);
    Expected<double> time = measure(sizes);
    if (!time) {
      if (times.empty())
        return time.takeError();
      consumeError(time.takeError());
      ++tuning.numRefused;
      return Error::success();
    }
    ++tuning.numTried;
    if (times.empty())
      tuning.rule = tuning.fastest = *time;
    times.push_back({*time, sizes});
    if (*time < tuning.fastest && *time < (1 - kNoise) * tuning.rule) {
      tuning.fastest = *time;
      tuning.sizes = sizes;
    }
    return Error::success();
  }

  SmallVector<TileSizes> getFastest(size_t count) {
    stable_sort(times, less_first());
    SmallVector<TileSizes> fastest;
    for (const auto &[time, sizes] : ArrayRef(times).take_front(count))
      fastest.push_back(sizes);
    return fastest;
  }

  Tuning tuning;

private:
  function_ref<Expected<double>(TileSizes)> measure;
  function_ref<void(unsigned, unsigned)> progress;
  size_t total;
  SmallVector<std::pair<double, TileSizes>> times;
};
} // namespace

Expected<Tuning> attn::tune(Device device, bool letStay,
                            function_ref<Expected<double>(TileSizes)> measure,
                            function_ref<void(unsigned, unsigned)> progress) {
  SmallVector<TileSizes> all = listSizes(device);
  size_t numStaying = letStay ? kStaying : 0;
  Search search(measure, progress, all.size() + numStaying);
  for (TileSizes sizes : all)
    if (Error error = search.take(sizes))
      return std::move(error);
  for (TileSizes sizes : search.getFastest(numStaying)) {
    sizes.stay = true;
    if (Error error = search.take(sizes))
      return std::move(error);
  }
  return search.tuning;
}
