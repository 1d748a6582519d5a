//===- GuardedTensor.cpp - tensors as the execution tests lay them out ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GuardedTensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cstring>
#include <random>

namespace attn::test {

/// NaN in every floating-point type, and -1.
static constexpr uint8_t kGuardOfInputs = 0xff;
static constexpr uint8_t kGuardOfOutputs = 0xa5;

GuardedTensor::GuardedTensor(Array &array, bool isOutput, Memory memory, uint64_t seed)
    : array(array), shape(array.getShape()), strides(array.getStrides()),
      guard(isOutput ? kGuardOfOutputs : kGuardOfInputs) {
  if (memory >= Memory::Random && shape.size() == 4)
    drawStrides(seed);
  int64_t last = 0;
  for (auto [extent, stride] : llvm::zip_equal(shape, strides))
    last += std::max<int64_t>(extent - 1, 0) * stride;
  int64_t size = array.size() ? (last + 1) * getByteSize(array.getKind()) : 0;
  bytes.assign(size + 2 * kGuardBytes, guard);
  forEachElement(
      [](char *place, char *element, int64_t size) { std::memcpy(place, element, size); });
}

llvm::Error GuardedTensor::copyBack() {
  forEachElement([&](char *place, char *element, int64_t size) {
    std::memcpy(element, place, size);
    std::memset(place, guard, size);
  });
  auto touched = llvm::find_if(bytes, [&](uint8_t b) { return b != guard; });
  if (touched == bytes.end())
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("expected writes inside the result only, got one at byte {0} from its start",
                    touched - bytes.begin() - kGuardBytes)
          .str());
}

void GuardedTensor::forEachRow(llvm::function_ref<void(int64_t, int64_t)> fn) {
  int64_t size = getByteSize(array.getKind()), begin = 0, end = 0;
  const char *first = reinterpret_cast<const char *>(bytes.data()) + kGuardBytes;
  forEachElement([&](char *place, char *, int64_t) {
    int64_t at = place - first;
    if (at != end) {
      fn(begin, end - begin);
      begin = at;
    }
    end = at + size;
  });
  fn(begin, end - begin);
}

/// Any order of the first three dimensions; gaps that keep rows at multiples of 16 bytes.
void GuardedTensor::drawStrides(uint64_t seed) {
  std::mt19937_64 random(seed);
  unsigned order[] = {0, 1, 2};
  std::shuffle(std::begin(order), std::end(order), random);
  int64_t step = 16 / getByteSize(array.getKind());
  auto pad = [&](int64_t extent) {
    return (extent + step - 1) / step * step + step * int64_t(random() % 3);
  };
  strides = {0, 0, 0, 1};
  int64_t stride = pad(std::max<int64_t>(shape[3], 1));
  for (unsigned dim : order) {
    strides[dim] = stride;
    stride = pad(stride * std::max<int64_t>(shape[dim], 1));
  }
}

/// Calls `fn` with each element's place in `bytes` and in the array.
void GuardedTensor::forEachElement(llvm::function_ref<void(char *, char *, int64_t)> fn) {
  int64_t size = getByteSize(array.getKind());
  llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
  for (int64_t i = 0; i < array.size(); ++i) {
    int64_t place = 0, element = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) {
      place += index[dim] * strides[dim];
      element += index[dim] * array.getStrides()[dim];
    }
    fn(reinterpret_cast<char *>(bytes.data()) + kGuardBytes + place * size,
       static_cast<char *>(array.data()) + element * size, size);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

} // namespace attn::test
