//===- Random.cpp - inputs that a seed reproduces ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Random.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <cmath>
#include <vector>

using namespace llvm;

namespace attn {

/// SplitMix64 at position `counter` of the stream of `seed`.
static uint64_t hash(uint64_t seed, uint64_t counter) {
  uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t deriveSeed(uint64_t seed, StringRef name) {
  uint64_t result = seed;
  for (unsigned char c : name)
    result = hash(result, c);
  return hash(result, name.size());
}

/// The quantile function of the normal distribution by P. J. Acklam's rational approximations
/// (relative error 1.2e-9), for p in (0, 0.5].
static double quantile(double p) {
  if (p < 0.02425) {
    double q = std::sqrt(-2 * std::log(p));
    double numerator = 7.784894002430293e-03;
    numerator = -(numerator * q + 3.223964580411365e-01);
    numerator = numerator * q - 2.400758277161838e+00;
    numerator = numerator * q - 2.549732539343734e+00;
    numerator = numerator * q + 4.374664141464968e+00;
    numerator = numerator * q + 2.938163982698783e+00;
    double denominator = 7.784695709041462e-03;
    denominator = denominator * q + 3.224671290700398e-01;
    denominator = denominator * q + 2.445134137142996e+00;
    denominator = denominator * q + 3.754408661907416e+00;
    return numerator / (denominator * q + 1);
  }
  double q = p - 0.5, r = q * q;
  double numerator = -3.969683028665376e+01;
  numerator = numerator * r + 2.209460984245205e+02;
  numerator = numerator * r - 2.759285104469687e+02;
  numerator = numerator * r + 1.383577518672690e+02;
  numerator = numerator * r - 3.066479806614716e+01;
  numerator = numerator * r + 2.506628277459239e+00;
  double denominator = -5.447609879822406e+01;
  denominator = denominator * r + 1.615858368580409e+02;
  denominator = denominator * r - 1.556989798598866e+02;
  denominator = denominator * r + 6.680131188771972e+01;
  denominator = denominator * r - 1.328068155288572e+01;
  return numerator * q / (denominator * r + 1);
}

/// Quantiles at multiples of 2^-16, between which values are interpolated. The outermost knots
/// stand in for infinity.
static const std::vector<float> &getKnots() {
  static const std::vector<float> knots = [] {
    constexpr int count = 1 << 16;
    std::vector<float> result(count + 1);
    for (int i = 0; i <= count / 2; ++i) {
      double value = quantile(i ? double(i) / count : 0.125 / count);
      result[i] = static_cast<float>(value);
      result[count - i] = -result[i];
    }
    return result;
  }();
  return knots;
}

static float normalFromBits(const float *knots, uint32_t bits) {
  const float *knot = knots + (bits >> 16);
  return knot[0] + (knot[1] - knot[0]) * (static_cast<float>(bits & 0xffff) * 0x1p-16f);
}

// Rounding without the general conversions, which take longer than drawing the value: what is drawn
// is finite and far below the largest half.

static uint16_t smallToHalf(float value) {
  uint32_t bits = bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  // A subnormal half is a multiple of 2^-24, the last place of a float in [0.5, 1).
  if (magnitude < 0x38800000)
    return sign | (bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000);
  return sign | (magnitude - ((127 - 15) << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
}

static uint16_t finiteToBFloat(float value) {
  uint32_t bits = bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T, typename Fn>
static void fillNormalRuns(Array &array, uint64_t seed, Fn convert) {
  const float *knots = getKnots().data();
  array.forEachRun(0, array.size(), [&](char *data, int64_t stride, int64_t count, int64_t first) {
    T *to = reinterpret_cast<T *>(data);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t position = first + i;
      uint64_t bits = hash(seed, position);
      to[i * stride] = convert(normalFromBits(knots, static_cast<uint32_t>(bits >> 32)));
    }
  });
}

void fillNormal(Array &array, uint64_t seed) {
  switch (array.getKind()) {
  case ElementKind::F16:
    return fillNormalRuns<uint16_t>(array, seed, smallToHalf);
  case ElementKind::BF16:
    return fillNormalRuns<uint16_t>(array, seed, finiteToBFloat);
  case ElementKind::F32:
    return fillNormalRuns<float>(array, seed, [](float x) { return x; });
  case ElementKind::F64:
    return fillNormalRuns<double>(array, seed, [](float x) { return x; });
  case ElementKind::F8E4M3FN:
    return fillNormalRuns<uint8_t>(array, seed, doubleToE4M3);
  case ElementKind::F8E5M2:
    return fillNormalRuns<uint8_t>(array, seed, doubleToE5M2);
  default:
    return fillUniform(array, seed, 0, 1);
  }
}

void fillUniform(Array &array, uint64_t seed, int64_t low, int64_t high) {
  // Modulo 2^64: a span of zero is the whole range.
  uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  double chunk[512];
  for (int64_t first = 0; first < array.size(); first += std::size(chunk)) {
    int64_t count = std::min<int64_t>(std::size(chunk), array.size() - first);
    for (int64_t i = 0; i < count; ++i) {
      uint64_t bits = hash(seed, first + i);
      uint64_t drawn =
          span ? static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * span >> 64) : bits;
      chunk[i] = static_cast<double>(static_cast<int64_t>(static_cast<uint64_t>(low) + drawn));
    }
    array.write(first, ArrayRef(chunk, count));
  }
}

void fillSorted(Array &array, uint64_t seed, int64_t numDocuments) {
  if (array.size() == 0)
    return;
  int64_t length = array.getRank() ? array.getShape().back() : 1;
  numDocuments = std::clamp<int64_t>(numDocuments, 1, length);
  std::vector<double> row(length);
  std::vector<int64_t> starts(numDocuments - 1);
  for (int64_t first = 0; first < array.size(); first += length) {
    // Starts may coincide; a document without elements then only leaves its id unused.
    for (size_t i = 0; i < starts.size(); ++i)
      starts[i] = static_cast<int64_t>(hash(seed, first + i) % static_cast<uint64_t>(length));
    llvm::sort(starts);
    size_t id = 0;
    for (int64_t i = 0; i < length; ++i) {
      if (id < starts.size() && starts[id] <= i)
        ++id;
      row[i] = static_cast<double>(id);
    }
    array.write(first, row);
  }
}

} // namespace attn
