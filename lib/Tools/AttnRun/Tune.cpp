//===- Tune.cpp - the sizes that a search tries ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Tune.h"
#include "llvm/ADT/Sequence.h"

using namespace attn;
using namespace llvm;

/// What noise may look like.
static constexpr double kNoise = 0.01;

/// The rule's first. What a machine has no room for is refused when it is compiled.
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

Expected<Tuning> attn::tune(Device device, function_ref<Expected<double>(TileSizes)> measure,
                            function_ref<void(unsigned, unsigned)> progress) {
  SmallVector<TileSizes> all = listSizes(device);
  Tuning tuning;
  for (auto [index, sizes] : enumerate(all)) {
    progress(index, all.size());
    Expected<double> time = measure(sizes);
    if (!time) {
      if (index == 0)
        return time.takeError();
      consumeError(time.takeError());
      ++tuning.numRefused;
      continue;
    }
    ++tuning.numTried;
    if (index == 0)
      tuning.rule = tuning.fastest = *time;
    if (*time < tuning.fastest && *time < (1 - kNoise) * tuning.rule) {
      tuning.fastest = *time;
      tuning.sizes = sizes;
    }
  }
  return tuning;
}
