//===- Footprint.cpp - the bytes that an array lies in
//------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Footprint.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace attn {

std::optional<Footprint> Footprint::find(const TensorView &view, ArrayRef<int64_t> strides) {
  Footprint found;
  found.elementSize = getByteSize(view.type);
  found.first = reinterpret_cast<uintptr_t>(view.data);
  uint64_t before = 0, after = found.elementSize - 1;
  for (int32_t dim = 0; dim < view.rank; ++dim) {
    if (view.shape[dim] < 2 || strides[dim] == 0)
      continue;
    uint64_t count = view.shape[dim];
    uint64_t length = SaturatingMultiply(AbsoluteValue(strides[dim]), found.elementSize);
    uint64_t &way = strides[dim] < 0 ? before : after;
    way = SaturatingMultiplyAdd(length, count - 1, way);
    found.steps.push_back({length, count});
  }
  if (before > found.first || after > UINT64_MAX - found.first)
    return std::nullopt;
  found.last = found.first + after;
  found.first -= before;
  llvm::sort(found.steps, [](Step a, Step b) { return a.length < b.length; });
  return found;
}

bool Footprint::hasOwnElements() const {
  uint64_t length = elementSize;
  for (Step step : steps) {
    if (step.length < length)
      return false;
    length += step.length * (step.count - 1);
  }
  return true;
}

/// Of the bytes that are left when addresses count modulo a period.
uint64_t Footprint::getWidth(uint64_t period) const {
  uint64_t width = elementSize;
  for (Step step : steps)
    if (step.length % period != 0)
      width += step.length * (step.count - 1);
  return width;
}

bool Footprint::isApart(const Footprint &other, uint64_t period) const {
  // From this array's first byte to the first one of the other after it.
  uint64_t distance = (other.first - first) % period;
  if (other.first < first) {
    uint64_t back = (first - other.first) % period;
    distance = back == 0 ? 0 : period - back;
  }
  uint64_t mine = getWidth(period), its = other.getWidth(period);
  return mine <= distance && its <= period - distance;
}

bool Footprint::mayOverlap(const Footprint &other) const {
  if (last < other.first || other.last < first)
    return false;
  auto isPeriod = [&](Step step) { return isApart(other, step.length); };
  return llvm::none_of(steps, isPeriod) && llvm::none_of(other.steps, isPeriod);
}

} // namespace attn
