//===- Array.cpp - host arrays that own their memory ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Array.h"
#include "lib/Support/Memory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace attn {

StringRef getName(ElementKind kind) {
  static constexpr StringLiteral names[] = {"f16",    "bf16", "f32", "f64", "f8E4M3FN",
                                            "f8E5M2", "i1",   "i8",  "i32", "i64"};
  return names[static_cast<unsigned>(kind)];
}

int64_t getByteSize(ElementKind kind) {
  static constexpr int64_t sizes[] = {2, 2, 4, 8, 1, 1, 1, 1, 4, 8};
  return sizes[static_cast<unsigned>(kind)];
}

bool isFloat(ElementKind kind) { return kind <= ElementKind::F8E5M2; }

//===----------------------------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------------------------===//

float bfloatToFloat(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    // Exact: a subnormal is an integer multiple of 2^-24.
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  uint32_t biased = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return bit_cast<float>(sign | biased << 23 | mantissa << 13);
}

float e5m2ToFloat(uint8_t bits) { return halfToFloat(static_cast<uint16_t>(bits << 8)); }

float e4m3ToFloat(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f)
    return bit_cast<float>(static_cast<uint32_t>(bits & 0x80) << 24 | 0x7fc00000);
  // As an f16 it is 2^8 times too small, subnormal or not.
  return halfToFloat(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7)) * 0x1p8f;
}

/// Rounds the magnitude of a number to a format without an end: the bits of exponent and mantissa.
/// Carries out of the mantissa move into the exponent by plain addition, also from the subnormals
/// into the normals.
template <int mantissaBits, int minExponent> static uint32_t roundMagnitude(double value) {
  uint64_t bits = bit_cast<uint64_t>(value);
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  int shift = 52 - mantissaBits + std::max(0, minExponent - exponent);
  if (shift > 54)
    return 0;
  uint64_t significand = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
  uint64_t kept = significand >> shift;
  uint64_t rest = significand & ((uint64_t(1) << shift) - 1);
  uint64_t half = uint64_t(1) << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  uint64_t lifted = exponent < minExponent ? 0 : exponent - minExponent;
  return static_cast<uint32_t>((lifted << mantissaBits) + kept);
}

static uint8_t getSign8(double value) {
  return static_cast<uint8_t>(bit_cast<uint64_t>(value) >> 56) & 0x80;
}

uint8_t doubleToE4M3(double value) {
  constexpr uint32_t nan = 0x7f;
  uint32_t bits = std::isfinite(value) ? roundMagnitude<3, -6>(value) : nan;
  return getSign8(value) | static_cast<uint8_t>(std::min(bits, nan));
}

uint8_t doubleToE5M2(double value) {
  constexpr uint32_t infinity = 0x7c, nan = 0x7e;
  if (std::isnan(value))
    return getSign8(value) | nan;
  uint32_t bits = std::isinf(value) ? infinity : roundMagnitude<2, -14>(value);
  return getSign8(value) | static_cast<uint8_t>(std::min(bits, infinity));
}

/// Rounds to an IEEE-like format of 16 bits, from whose largest numbers carries reach infinity.
template <int exponentBits> static uint16_t roundTo16(double value) {
  constexpr int mantissaBits = 15 - exponentBits;
  constexpr int minExponent = 2 - (1 << (exponentBits - 1));
  constexpr int maxExponent = 1 - minExponent;
  constexpr uint16_t infinity = ((1 << exponentBits) - 1) << mantissaBits;

  uint64_t bits = bit_cast<uint64_t>(value);
  uint16_t sign = static_cast<uint16_t>(bits >> 48) & 0x8000;
  uint64_t fraction = bits & ((uint64_t(1) << 52) - 1);
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  if (exponent == 1024 && fraction) // Quiet, and the head of the payload stays.
    return sign | infinity | (1 << (mantissaBits - 1)) | (fraction >> (52 - mantissaBits));
  if (exponent > maxExponent)
    return sign | infinity;
  return sign | static_cast<uint16_t>(roundMagnitude<mantissaBits, minExponent>(value));
}

uint16_t doubleToHalf(double value) { return roundTo16<5>(value); }
uint16_t doubleToBFloat(double value) { return roundTo16<8>(value); }

/// A conversion from double to integer is undefined outside the range of the type.
template <typename T> static T toInteger(double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  if (!(value >= low))
    return std::isnan(value) ? 0 : std::numeric_limits<T>::min();
  return value >= -low ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

template <typename T, typename Fn>
static void readRun(const char *data, int64_t stride, MutableArrayRef<double> to, Fn convert) {
  const T *from = reinterpret_cast<const T *>(data);
  for (size_t i = 0; i < to.size(); ++i)
    to[i] = convert(from[i * stride]);
}

template <typename T, typename Fn>
static void writeRun(char *data, int64_t stride, ArrayRef<double> from, Fn convert) {
  T *to = reinterpret_cast<T *>(data);
  for (size_t i = 0; i < from.size(); ++i)
    to[i * stride] = convert(from[i]);
}

static void readRun(ElementKind kind, const char *data, int64_t stride,
                    MutableArrayRef<double> to) {
  auto same = [](auto value) { return static_cast<double>(value); };
  switch (kind) {
  case ElementKind::F16:
    return readRun<uint16_t>(data, stride, to, halfToFloat);
  case ElementKind::BF16:
    return readRun<uint16_t>(data, stride, to, bfloatToFloat);
  case ElementKind::F32:
    return readRun<float>(data, stride, to, same);
  case ElementKind::F64:
    return readRun<double>(data, stride, to, same);
  case ElementKind::F8E4M3FN:
    return readRun<uint8_t>(data, stride, to, e4m3ToFloat);
  case ElementKind::F8E5M2:
    return readRun<uint8_t>(data, stride, to, e5m2ToFloat);
  case ElementKind::I1:
    return readRun<uint8_t>(data, stride, to, same);
  case ElementKind::I8:
    return readRun<int8_t>(data, stride, to, same);
  case ElementKind::I32:
    return readRun<int32_t>(data, stride, to, same);
  case ElementKind::I64:
    return readRun<int64_t>(data, stride, to, same);
  }
}

static void writeRun(ElementKind kind, char *data, int64_t stride, ArrayRef<double> from) {
  switch (kind) {
  case ElementKind::F16:
    return writeRun<uint16_t>(data, stride, from, doubleToHalf);
  case ElementKind::BF16:
    return writeRun<uint16_t>(data, stride, from, doubleToBFloat);
  case ElementKind::F32:
    return writeRun<float>(data, stride, from, [](double x) { return static_cast<float>(x); });
  case ElementKind::F64:
    return writeRun<double>(data, stride, from, [](double x) { return x; });
  case ElementKind::F8E4M3FN:
    return writeRun<uint8_t>(data, stride, from, doubleToE4M3);
  case ElementKind::F8E5M2:
    return writeRun<uint8_t>(data, stride, from, doubleToE5M2);
  case ElementKind::I1:
    return writeRun<uint8_t>(data, stride, from, [](double x) { return x != 0; });
  case ElementKind::I8:
    return writeRun<int8_t>(data, stride, from, toInteger<int8_t>);
  case ElementKind::I32:
    return writeRun<int32_t>(data, stride, from, toInteger<int32_t>);
  case ElementKind::I64:
    return writeRun<int64_t>(data, stride, from, toInteger<int64_t>);
  }
}

//===----------------------------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------------------------===//

std::string formatShape(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(map_range(shape,
                              [](int64_t extent) {
                                return extent < 0 ? std::string("?") : std::to_string(extent);
                              }),
                    "x");
}

Expected<int64_t> countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return createStringError("expected extents of at least 0, got " + Twine(extent));
    // Zero extents are left to the end: an overflow of the others is a mistake of the caller all
    // the same.
    overflow |= MulOverflow(count, std::max<int64_t>(extent, 1), count);
  }
  if (overflow)
    return createStringError("expected a number of elements below 2^63, got shape " +
                             formatShape(shape));
  return is_contained(shape, 0) ? 0 : count;
}

Expected<int64_t> countBytes(ElementKind kind, ArrayRef<int64_t> shape) {
  Expected<int64_t> count = countElements(shape);
  if (!count)
    return count;
  int64_t bytes = 0;
  if (MulOverflow(*count, getByteSize(kind), bytes) ||
      bytes > std::numeric_limits<int64_t>::max() - 64)
    return createStringError("expected a size below 2^63 bytes, got shape " + formatShape(shape) +
                             " of " + getName(kind));
  return bytes;
}

//===----------------------------------------------------------------------------------------===//
// Array
//===----------------------------------------------------------------------------------------===//

Expected<Array> Array::allocate(ElementKind kind, ArrayRef<int64_t> shape,
                                ArrayRef<unsigned> order) {
  Expected<int64_t> bytes = countBytes(kind, shape);
  if (!bytes)
    return bytes.takeError();

  Array array;
  array.kind = kind;
  array.shape.assign(shape.begin(), shape.end());
  array.strides.assign(shape.size(), 1);
  array.numElements = *bytes / getByteSize(kind);
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    size_t dim = order.empty() ? i : order[i];
    array.strides[dim] = stride;
    stride *= std::max<int64_t>(shape[dim], 1);
  }

  // The system grants more than it has, unless the size is absurd; small sizes need no question.
  constexpr int64_t large = int64_t(256) << 20;
  if (*bytes >= large)
    if (Error error = checkAvailableMemory(*bytes, "an array of shape " + formatShape(shape) +
                                                       " of " + getName(kind).str()))
      return std::move(error);
  // Never empty: a kernel may form the address of an array without elements.
  size_t padded = alignTo(static_cast<uint64_t>(*bytes) + 1, 64);
  array.storage.reset(static_cast<char *>(std::aligned_alloc(64, padded)));
  if (!array.storage)
    return createStringError("expected " + Twine(padded) + " bytes of memory for shape " +
                             formatShape(shape) + " of " + getName(kind) +
                             ", got none from the system");
  std::memset(array.storage.get(), 0, padded);
  return array;
}

void Array::forEachRun(int64_t first, int64_t count, RunFn fn) const {
  // Dimensions that continue the innermost run are folded into it: a row-major array is one run.
  int64_t size = getByteSize(kind), runLength = 1, runStride = 1;
  size_t outer = shape.size();
  for (; outer > 0; --outer) {
    if (shape[outer - 1] == 1)
      continue;
    if (runLength == 1)
      runStride = strides[outer - 1];
    else if (strides[outer - 1] != runStride * runLength)
      break;
    runLength *= shape[outer - 1];
  }
  for (int64_t done = 0; done < count;) {
    int64_t position = first + done, within = position % runLength;
    int64_t offset = within * runStride, rest = position / runLength;
    for (size_t dim = outer; dim-- > 0; rest /= shape[dim])
      offset += rest % shape[dim] * strides[dim];
    int64_t length = std::min(runLength - within, count - done);
    fn(storage.get() + offset * size, runStride, length, done);
    done += length;
  }
}

void Array::read(int64_t first, MutableArrayRef<double> to) const {
  forEachRun(first, to.size(), [&](char *data, int64_t stride, int64_t length, int64_t at) {
    readRun(kind, data, stride, to.slice(at, length));
  });
}

void Array::write(int64_t first, ArrayRef<double> from) {
  forEachRun(first, from.size(), [&](char *data, int64_t stride, int64_t length, int64_t at) {
    writeRun(kind, data, stride, from.slice(at, length));
  });
}

double Array::get(int64_t position) const {
  double value = 0;
  read(position, value);
  return value;
}

void Array::fill(double value) {
  // The elements fill the storage without gaps, so their order does not matter.
  char element[8];
  writeRun(kind, element, 1, value);
  int64_t size = getByteSize(kind);
  for (int64_t i = 0; i < numElements; ++i)
    std::memcpy(storage.get() + i * size, element, size);
}

Expected<Array> Array::convert(ElementKind to) const {
  SmallVector<unsigned> order(llvm::to_vector(llvm::seq<unsigned>(getRank())));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return strides[a] != strides[b] ? strides[a] > strides[b] : a < b;
  });
  Expected<Array> result = allocate(to, shape, order);
  if (!result)
    return result.takeError();
  // The same order in memory on both sides: one pass over the storage, in chunks that stay cached.
  double chunk[512];
  int64_t fromSize = getByteSize(kind), toSize = getByteSize(to);
  for (int64_t i = 0; i < numElements; i += std::size(chunk)) {
    size_t length = std::min<int64_t>(std::size(chunk), numElements - i);
    readRun(kind, storage.get() + i * fromSize, 1, MutableArrayRef(chunk, length));
    writeRun(to, result->storage.get() + i * toSize, 1, ArrayRef(chunk, length));
  }
  return std::move(*result);
}

/// Quiet NaNs with a payload; arithmetic on x86 gives the payload 0.
static uint64_t getPoison(ElementKind kind) {
  switch (kind) {
  case ElementKind::F16:
    return 0x7eadu;
  case ElementKind::BF16:
    return 0x7fedu;
  case ElementKind::F32:
    return 0x7fedbeefu;
  case ElementKind::F64:
    return 0x7ffdeadbeefdeadbu;
  case ElementKind::F8E4M3FN:
    return 0xffu;
  case ElementKind::F8E5M2:
    return 0x7du;
  case ElementKind::I1:
    return 1;
  default:
    return 0x5a5a5a5a5a5a5a5au;
  }
}

void Array::poison() {
  uint64_t pattern = getPoison(kind);
  int64_t size = getByteSize(kind);
  for (int64_t i = 0; i < numElements; ++i)
    std::memcpy(storage.get() + i * size, &pattern, size);
}

int64_t Array::countPoisoned() const {
  if (!isFloat(kind))
    return 0;
  uint64_t pattern = getPoison(kind);
  int64_t size = getByteSize(kind), count = 0;
  for (int64_t i = 0; i < numElements; ++i)
    count += std::memcmp(storage.get() + i * size, &pattern, size) == 0;
  return count;
}

} // namespace attn
