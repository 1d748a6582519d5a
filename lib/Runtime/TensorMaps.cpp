//===- TensorMaps.cpp - tensor maps of launch arguments ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/TensorMaps.h"
#include "lib/Plan/DataTypes.h"
#include <algorithm>
#include <atomic>
#include <cstdio>

namespace attn {

static constexpr DataType mappedTypes[] = {DataType::BF16, DataType::F16, DataType::F32,
                                           DataType::F8E4M3FN, DataType::F8E5M2};

static cuda::TensorMapType getMapType(DataType type) {
  switch (type) {
  case DataType::BF16:
    return cuda::MapBFloat16;
  case DataType::F16:
    return cuda::MapFloat16;
  case DataType::F32:
    return cuda::MapFloat32;
  default:
    // Copies do not interpret what they copy; the type only decides the fill, which is zero.
    return cuda::MapUInt8;
  }
}

//===----------------------------------------------------------------------------------------===//
// The plan's side
//===----------------------------------------------------------------------------------------===//

Result<TensorMapEncoder> TensorMapEncoder::create(const TensorMap &map, unsigned argument) {
  auto fail = [&](const std::string &message) {
    return Status{StatusCode::InvalidKernel,
                  message + " in the tensor map of argument " + std::to_string(argument), ""};
  };
  static std::atomic<uint64_t> nextId{1};
  TensorMapEncoder encoder;
  encoder.id = nextId.fetch_add(1, std::memory_order_relaxed);
  encoder.argument = argument;

  std::optional<DataType> type = findDataType(map.elementType);
  if (!type || std::count(std::begin(mappedTypes), std::end(mappedTypes), *type) == 0)
    return fail("expected bf16, f16, f32, f8E4M3FN or f8E5M2, got '" + map.elementType + "'");
  encoder.type = *type;
  if (map.dims.empty() || map.dims.size() > 5 || map.dims.size() != map.box.size())
    return fail("expected 1 to 5 dimensions and as many box sizes, got " +
                std::to_string(map.dims.size()) + " and " + std::to_string(map.box.size()));
  encoder.rank = static_cast<unsigned>(map.dims.size());
  for (unsigned i = 0; i < encoder.rank; ++i) {
    if (map.dims[i] >= 8 || std::count(map.dims.begin(), map.dims.end(), map.dims[i]) != 1)
      return fail("expected distinct dimensions below 8, got " + std::to_string(map.dims[i]));
    if (map.box[i] < 1 || map.box[i] > 256)
      return fail("expected box sizes from 1 to 256, got " + std::to_string(map.box[i]));
    encoder.dims[i] = static_cast<uint8_t>(map.dims[i]);
    encoder.box[i] = map.box[i];
  }

  int64_t rowBytes = map.box[0] * getByteSize(encoder.type);
  if (rowBytes % 16 != 0)
    return fail("expected an inner box of a multiple of 16 bytes, got " + std::to_string(rowBytes));
  if (map.swizzle != 0 && rowBytes > map.swizzle)
    return fail("expected an inner box of at most the swizzle's " + std::to_string(map.swizzle) +
                " bytes, got " + std::to_string(rowBytes));
  switch (map.swizzle) {
  case 0:
    encoder.swizzle = cuda::SwizzleNone;
    return encoder;
  case 32:
    encoder.swizzle = cuda::Swizzle32;
    return encoder;
  case 64:
    encoder.swizzle = cuda::Swizzle64;
    return encoder;
  case 128:
    encoder.swizzle = cuda::Swizzle128;
    return encoder;
  }
  return fail("expected a swizzle of 0, 32, 64 or 128 bytes, got " + std::to_string(map.swizzle));
}

//===----------------------------------------------------------------------------------------===//
// The thread's table
//===----------------------------------------------------------------------------------------===//

struct TensorMapEncoder::Slot {
  cuda::TensorMapObject map;
  Key key;
};

/// A direct-mapped table: 64 maps, 16 KiB. Two keys in one slot only cost encodings.
TensorMapEncoder::Slot &TensorMapEncoder::findSlot(const Key &key) {
  // Zero-initialised, and no encoder has the id 0.
  static thread_local Slot slots[64];
  uint64_t hash = key.encoder * 0x9e3779b97f4a7c15u;
  hash ^= reinterpret_cast<uintptr_t>(key.data);
  for (unsigned i = 0; i < 5; ++i)
    hash = (hash ^ (key.sizes[i] + (uint64_t(key.strides[i]) << 32))) * 0xff51afd7ed558ccdu;
  return slots[hash >> 58];
}

Status TensorMapEncoder::encode(const Driver &driver, const TensorView &tensor, void *anyAddress,
                                cuda::TensorMapObject &map) const {
  if (tensor.type != type)
    return Status::aboutArgument(argument, "expected ",
                                 std::string(" of type ") + getName(type) + ", got " +
                                     getName(tensor.type),
                                 std::string("convert it, or compile for ") + getName(tensor.type));

  Key key{id, tensor.data, {}, {}};
  bool empty = isEmpty(tensor);
  unsigned named = 0;
  for (unsigned i = 0; i < rank; ++i) {
    if (dims[i] >= tensor.rank)
      return Status::aboutArgument(argument, "expected ",
                                   " of at least " + std::to_string(dims[i] + 1) +
                                       " dimensions, got " + std::to_string(tensor.rank));
    named |= 1u << dims[i];
    key.sizes[i] = empty ? 1 : tensor.shape[dims[i]];
    key.strides[i] = key.sizes[i] == 1 ? 0 : getStride(tensor, dims[i]);
  }
  if (empty)
    key.data = anyAddress;
  else
    for (int dim = 0; dim < tensor.rank; ++dim)
      if (!(named >> dim & 1) && tensor.shape[dim] != 1)
        return Status::aboutArgument(argument, "expected dimension " + std::to_string(dim) + " of ",
                                     " to have size 1, got " + std::to_string(tensor.shape[dim]),
                                     "compile for this shape");

  Slot &slot = findSlot(key);
  if (!(slot.key == key)) {
    slot.key.encoder = 0;
    if (Status status = encodeKey(driver, key, slot.map); !status.ok())
      return status;
    slot.key = key;
  }
  map = slot.map;
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------------------------===//

/// `position` is an index into `dims`, not the innermost.
Status TensorMapEncoder::checkStride(int64_t stride, unsigned position) const {
  int64_t bytes = getByteSize(type);
  int64_t step = 16 / bytes;
  // Below 2^40 bytes.
  int64_t limit = (int64_t(1) << 40) / bytes;
  if (stride >= 0 && stride < limit && stride % step == 0)
    return {};
  std::string before =
      "expected the stride of dimension " + std::to_string(dims[position]) + " of ";
  if (stride < 0 || stride >= limit)
    return Status::aboutArgument(argument, std::move(before),
                                 " to be from 0 to " + std::to_string(limit - step) +
                                     " elements, got " + std::to_string(stride),
                                 "copy the tensor into row-major order");
  return Status::aboutArgument(argument, std::move(before),
                               " to be a multiple of " + std::to_string(step) +
                                   " elements (16 bytes), got " + std::to_string(stride),
                               "pad the rows so that the stride is " +
                                   std::to_string((stride / step + 1) * step));
}

Status TensorMapEncoder::encodeKey(const Driver &driver, const Key &key,
                                   cuda::TensorMapObject &map) const {
  int64_t bytes = getByteSize(type);
  uintptr_t address = reinterpret_cast<uintptr_t>(key.data);
  if (address % 16 != 0 || !address) {
    char text[32];
    std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(address));
    return Status::aboutArgument(argument, "expected the address of ",
                                 std::string(" to be a multiple of 16 bytes and not null, got ") +
                                     text,
                                 "start the tensor at a multiple of " + std::to_string(16 / bytes) +
                                     " elements of its allocation, or copy it");
  }
  if (key.sizes[0] != 1 && key.strides[0] != 1)
    return Status::aboutArgument(
        argument, "expected the stride of dimension " + std::to_string(dims[0]) + " of ",
        " to be 1, got " + std::to_string(key.strides[0]),
        "copy the tensor so that this dimension is the innermost in memory");

  uint64_t sizes[5], strides[5];
  uint32_t elementStrides[5];
  for (unsigned i = 0; i < rank; ++i) {
    if (key.sizes[i] < 1 || key.sizes[i] > int64_t(1) << 32)
      return Status::aboutArgument(
          argument, "expected the size of dimension " + std::to_string(dims[i]) + " of ",
          " to be from 0 to 4294967296, got " + std::to_string(key.sizes[i]),
          "split the problem along this dimension");
    sizes[i] = key.sizes[i];
    elementStrides[i] = 1;
    if (i == 0)
      continue;
    if (Status status = checkStride(key.strides[i], i); !status.ok())
      return status;
    // The stride of a dimension of size 1 means nothing, but has to be a valid one.
    strides[i - 1] = key.sizes[i] == 1 ? 16 : key.strides[i] * bytes;
  }
  cuda::Code code = driver.TensorMapEncodeTiled(
      &map, getMapType(type), rank, key.data, sizes, strides, box.data(), elementStrides,
      cuda::InterleaveNone, swizzle, cuda::Promotion128, cuda::FillZero);
  return driver.check(code, "encode the tensor map of argument " + std::to_string(argument));
}

} // namespace attn
