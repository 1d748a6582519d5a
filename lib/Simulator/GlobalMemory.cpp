//===- GlobalMemory.cpp - elements of a kernel's arguments ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/GlobalMemory.h"
#include <algorithm>
#include <limits>

namespace attn::sim {

Argument Argument::of(Array &array) {
  Argument argument;
  argument.memory.kind = array.getKind();
  argument.memory.data = static_cast<char *>(array.data());
  argument.memory.shape.assign(array.getShape().begin(), array.getShape().end());
  argument.memory.strides.assign(array.getStrides().begin(), array.getStrides().end());
  return argument;
}

template <typename T> static T *at(const Memory &memory, int64_t offset) {
  return reinterpret_cast<T *>(memory.data) + offset;
}

Lane readLane(const Memory &memory, int64_t offset) {
  Lane lane{.i = 0};
  bool hasData = memory.data != nullptr;
  switch (memory.kind) {
  case ElementKind::F16:
    lane.f = hasData ? halfToFloat(*at<uint16_t>(memory, offset)) : NAN;
    break;
  case ElementKind::BF16:
    lane.f = hasData ? bfloatToFloat(*at<uint16_t>(memory, offset)) : NAN;
    break;
  case ElementKind::F32:
    lane.f = hasData ? *at<float>(memory, offset) : NAN;
    break;
  case ElementKind::F64:
    lane.f = hasData ? *at<double>(memory, offset) : NAN;
    break;
  case ElementKind::F8E4M3FN:
    lane.f = hasData ? e4m3ToFloat(*at<uint8_t>(memory, offset)) : NAN;
    break;
  case ElementKind::F8E5M2:
    lane.f = hasData ? e5m2ToFloat(*at<uint8_t>(memory, offset)) : NAN;
    break;
  case ElementKind::I1:
    lane.i = hasData && *at<int8_t>(memory, offset) ? -1 : 0;
    break;
  case ElementKind::I8:
    lane.i = hasData ? *at<int8_t>(memory, offset) : 0;
    break;
  case ElementKind::I32:
    lane.i = hasData ? *at<int32_t>(memory, offset) : 0;
    break;
  case ElementKind::I64:
    lane.i = hasData ? *at<int64_t>(memory, offset) : 0;
    break;
  }
  return lane;
}

std::optional<int64_t> Memory::getPagedOffset(int64_t batch, int64_t row) const {
  int64_t entry = batch * paged->table->strides[0] + row / paged->page * paged->table->strides[1],
          page = readLane(*paged->table, entry).i;
  if (page < 0 || page >= paged->pages)
    return std::nullopt;
  return page * paged->pageStride + row % paged->page * strides[2];
}

std::pair<int64_t, int64_t> Memory::getSequence(int64_t batch) const {
  auto getOffset = [&](int64_t index, int64_t least) {
    int64_t offset = readLane(*ragged->offsets, index * ragged->offsets->strides[0]).i;
    return std::clamp<int64_t>(offset, least, ragged->total);
  };
  int64_t begin = getOffset(batch, 0), end = getOffset(batch + 1, begin);
  return {begin, std::min(end - begin, ragged->most)};
}

void writeLane(const Memory &memory, int64_t offset, Lane value) {
  if (!memory.data)
    return;
  switch (memory.kind) {
  case ElementKind::F16:
    *at<uint16_t>(memory, offset) = doubleToHalf(value.f);
    return;
  case ElementKind::BF16:
    *at<uint16_t>(memory, offset) = doubleToBFloat(value.f);
    return;
  case ElementKind::F32:
    *at<float>(memory, offset) = float(value.f);
    return;
  case ElementKind::F64:
    *at<double>(memory, offset) = value.f;
    return;
  case ElementKind::F8E4M3FN:
    *at<uint8_t>(memory, offset) = doubleToE4M3(value.f);
    return;
  case ElementKind::F8E5M2:
    *at<uint8_t>(memory, offset) = doubleToE5M2(value.f);
    return;
  case ElementKind::I1:
    *at<int8_t>(memory, offset) = value.i != 0;
    return;
  case ElementKind::I8:
    *at<int8_t>(memory, offset) = int8_t(value.i);
    return;
  case ElementKind::I32:
    *at<int32_t>(memory, offset) = int32_t(value.i);
    return;
  case ElementKind::I64:
    *at<int64_t>(memory, offset) = value.i;
    return;
  }
}

void readNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count, float *to) {
  if (memory.kind == ElementKind::BF16 && memory.data) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = bfloatToFloat(*at<uint16_t>(memory, offset + i * stride));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    Lane lane = readLane(memory, offset + i * stride);
    to[i] = isFloat(memory.kind) ? float(lane.f) : float(lane.i);
  }
}

void addNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count,
                const float *what) {
  for (int64_t i = 0; i < count; ++i) {
    Lane sum = readLane(memory, offset + i * stride);
    writeLane(memory, offset + i * stride, {.f = float(sum.f) + what[i]});
  }
}

void writeNumbers(const Memory &memory, int64_t offset, int64_t stride, int64_t count,
                  const float *from) {
  for (int64_t i = 0; i < count; ++i)
    writeLane(memory, offset + i * stride, {.f = from[i]});
}

} // namespace attn::sim
