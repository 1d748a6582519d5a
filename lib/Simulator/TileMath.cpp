//===- TileMath.cpp - arithmetic on register tiles --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/TileMath.h"
#include "lib/Support/Array.h"
#include "llvm/ADT/APFloat.h"
#include <bit>
#include <cmath>
#include <vector>

namespace attn::sim {

static float roundToBFloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  bool isNaN = (bits & 0x7fffffff) > 0x7f800000;
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000;
  return std::bit_cast<float>(isNaN ? bits | 0x400000 : rounded);
}

/// The 8-bit types, by way of LLVM's software floats.
static float roundBySemantics(float value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  number.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToFloat();
}

void roundTo(Number number, float *values, int64_t count) {
  switch (number) {
  case Number::F32:
  case Number::Integer:
    return;
  case Number::BF16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = roundToBFloat(values[i]);
    return;
  case Number::F16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = halfToFloat(doubleToHalf(values[i]));
    return;
  case Number::F8E4M3FN:
  case Number::F8E5M2:
    for (int64_t i = 0; i < count; ++i)
      values[i] =
          roundBySemantics(values[i], number == Number::F8E4M3FN ? llvm::APFloat::Float8E4M3FN()
                                                                 : llvm::APFloat::Float8E5M2());
    return;
  }
}

template <typename F>
static void map2(float *result, const float *const *in, int64_t count, F function) {
  const float *a = in[0], *b = in[1];
  for (int64_t i = 0; i < count; ++i)
    result[i] = function(a[i], b[i]);
}

void runFast(FastOp op, float *result, const float *const *in, int64_t count) {
  const float *a = in[0];
  switch (op) {
  case FastOp::None:
    return;
  case FastOp::Add:
    return map2(result, in, count, [](float x, float y) { return x + y; });
  case FastOp::Sub:
    return map2(result, in, count, [](float x, float y) { return x - y; });
  case FastOp::Mul:
    return map2(result, in, count, [](float x, float y) { return x * y; });
  case FastOp::Div:
    return map2(result, in, count, [](float x, float y) { return x / y; });
  case FastOp::Max:
    return map2(result, in, count, [](float x, float y) { return x > y || x != x ? x : y; });
  case FastOp::MaxNum:
    return map2(result, in, count, [](float x, float y) { return x > y || y != y ? x : y; });
  case FastOp::Neg:
    for (int64_t i = 0; i < count; ++i)
      result[i] = -a[i];
    return;
  case FastOp::Fma:
    for (int64_t i = 0; i < count; ++i)
      result[i] = float(double(a[i]) * double(in[1][i]) + double(in[2][i]));
    return;
  case FastOp::Exp2:
    for (int64_t i = 0; i < count; ++i)
      result[i] = std::exp2(a[i]);
    return;
  case FastOp::Copy:
    std::copy_n(a, count, result);
    return;
  }
}

/// Rows of b contiguous, four rows of the result at a time.
static void multiplyRows(float *result, Matrix a, const float *b, int64_t m, int64_t n, int64_t k) {
  int64_t i = 0;
  for (; i + 4 <= m; i += 4) {
    float *r0 = result + i * n, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n;
    for (int64_t p = 0; p < k; ++p) {
      const float *row = b + p * n, *left = a.data + i * a.rowStride + p * a.columnStride;
      float a0 = left[0], a1 = left[a.rowStride], a2 = left[2 * a.rowStride],
            a3 = left[3 * a.rowStride];
      for (int64_t j = 0; j < n; ++j) {
        float x = row[j];
        r0[j] += a0 * x;
        r1[j] += a1 * x;
        r2[j] += a2 * x;
        r3[j] += a3 * x;
      }
    }
  }
  for (; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      float x = a.data[i * a.rowStride + p * a.columnStride];
      for (int64_t j = 0; j < n; ++j)
        result[i * n + j] += x * b[p * n + j];
    }
}

void multiply(float *result, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k) {
  if (b.columnStride == 1 && b.rowStride == n)
    return multiplyRows(result, a, b.data, m, n, k);
  std::vector<float> packed(n * k);
  for (int64_t p = 0; p < k; ++p)
    for (int64_t j = 0; j < n; ++j)
      packed[p * n + j] = b.data[p * b.rowStride + j * b.columnStride];
  multiplyRows(result, a, packed.data(), m, n, k);
}

void reduceRows(float *result, const float *values, int64_t rows, int64_t columns, int64_t parts,
                bool isMax) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t part = 0; part < parts; ++part) {
      bool isFirst = true;
      float total = 0;
      for (int64_t column = 0; column < columns; ++column) {
        if (parts > 1 && column / 2 % parts != part)
          continue;
        float value = values[row * columns + column];
        total = isFirst                           ? value
                : !isMax                          ? total + value
                : value > total || value != value ? value
                                                  : total;
        isFirst = false;
      }
      result[row * parts + part] = total;
    }
}

} // namespace attn::sim
