//===- ArrayTest.cpp - host arrays and random inputs ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Array.h"
#include "lib/Support/Memory.h"
#include "lib/Support/Random.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace attn;
using llvm::APFloat;
using llvm::APInt;

static double toDouble(const llvm::fltSemantics &semantics, uint16_t bits) {
  APFloat value(semantics, APInt(16, bits));
  bool losesInfo = false;
  value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

static uint16_t round(const llvm::fltSemantics &semantics, double number) {
  APFloat value(number);
  bool losesInfo = false;
  value.convert(semantics, APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

/// Every pattern there and back, and the doubles between and beside neighbours, where rounding is
/// decided.
static void checkAllPatterns(const llvm::fltSemantics &semantics, float (*widen)(uint16_t),
                             uint16_t (*narrow)(double)) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    double value = toDouble(semantics, bits);
    double widened = widen(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widened)) << bits;
      EXPECT_TRUE(std::isnan(widen(narrow(widened)))) << bits;
      continue;
    }
    EXPECT_EQ(llvm::bit_cast<uint64_t>(value), llvm::bit_cast<uint64_t>(widened)) << bits;
    EXPECT_EQ(narrow(value), bits);
    double next = toDouble(semantics, bits + 1);
    double middle = value + (next - value) / 2;
    if (!std::isfinite(middle))
      middle = value * 1.0001;
    for (double x : {middle, std::nextafter(middle, value), std::nextafter(middle, next)})
      EXPECT_EQ(narrow(x), round(semantics, x)) << bits << " " << x;
  }
  for (double x :
       {1e300, -1e300, 65519.999, 65520.0, 3.4e38, 3.3961775292304601e38, 1e-300, 0x1p-25,
        0x1.8p-25, 0x1p-134, 0x1.0000001p-134, std::numeric_limits<double>::denorm_min()})
    EXPECT_EQ(narrow(x), round(semantics, x)) << x;
}

/// Every byte is the number that its fields say, and rounds to itself; between two numbers the
/// nearer one wins, and of two the even one.
template <typename Widen, typename Round>
static void expectExact(Widen widen, Round round, unsigned end) {
  for (unsigned bits = 0; bits < end; ++bits) {
    double number = widen(bits), next = widen(bits + 1);
    EXPECT_EQ(round(number), bits);
    EXPECT_EQ(round(-number), bits | 0x80);
    EXPECT_EQ(widen(bits | 0x80), -number);
    if (bits + 1 == end)
      break;
    EXPECT_LT(number, next);
    double middle = (number + next) / 2;
    EXPECT_EQ(round(middle), bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(round(std::nextafter(middle, 0)), bits);
    EXPECT_EQ(round(std::nextafter(middle, next)), bits + 1);
  }
}

TEST(ArrayTest, FloatsOf8BitsAreExact) {
  expectExact(e4m3ToFloat, doubleToE4M3, 0x7f);
  expectExact(e5m2ToFloat, doubleToE5M2, 0x7c);
  EXPECT_EQ(e4m3ToFloat(0x7e), 448);
  EXPECT_EQ(e4m3ToFloat(0x01), 0x1p-9f);
  EXPECT_EQ(e5m2ToFloat(0x7b), 57344);
  EXPECT_EQ(e5m2ToFloat(0x01), 0x1p-16f);
  // What is beyond the last number is no number, or infinite.
  EXPECT_EQ(doubleToE4M3(464), 0x7e);
  EXPECT_EQ(doubleToE4M3(465), 0x7f);
  EXPECT_EQ(doubleToE4M3(-INFINITY), 0xff);
  EXPECT_TRUE(std::isnan(e4m3ToFloat(0xff)));
  EXPECT_EQ(doubleToE5M2(61440), 0x7c);
  EXPECT_EQ(doubleToE5M2(INFINITY), 0x7c);
  EXPECT_TRUE(std::isinf(e5m2ToFloat(0xfc)));
  EXPECT_TRUE(std::isnan(e5m2ToFloat(doubleToE5M2(NAN))));
}

TEST(ArrayTest, Half) { checkAllPatterns(APFloat::IEEEhalf(), halfToFloat, doubleToHalf); }
TEST(ArrayTest, BFloat) { checkAllPatterns(APFloat::BFloat(), bfloatToFloat, doubleToBFloat); }

TEST(ArrayTest, ReadsAndWritesInRowMajorOrder) {
  for (ElementKind kind : {ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F64,
                           ElementKind::I8, ElementKind::I32, ElementKind::I64}) {
    Array rows = llvm::cantFail(Array::allocate(kind, {2, 3, 4, 5}));
    Array swapped = llvm::cantFail(Array::allocate(kind, {2, 3, 4, 5}, {0, 2, 1, 3}));
    EXPECT_EQ(rows.getStrides(), llvm::ArrayRef<int64_t>({60, 20, 5, 1}));
    EXPECT_EQ(swapped.getStrides(), llvm::ArrayRef<int64_t>({60, 5, 15, 1}));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(rows.data()) % 64, 0u);
    for (Array *array : {&rows, &swapped}) {
      for (int64_t i = 0; i < 120; ++i)
        array->set(i, double(i));
      for (int64_t i = 0; i < 120; ++i)
        EXPECT_EQ(array->get(i), i);
      double some[50];
      array->read(17, some);
      for (int64_t i = 0; i < 50; ++i)
        EXPECT_EQ(some[i], 17 + i);
      Array doubles = llvm::cantFail(array->convert(ElementKind::F64));
      EXPECT_EQ(doubles.getStrides(), array->getStrides());
      for (int64_t i = 0; i < 120; ++i)
        EXPECT_EQ(doubles.get(i), i);
    }
    // Element (1, 2, 3, 4) of either layout.
    EXPECT_EQ(rows.get(119), swapped.get(119));
  }
}

TEST(ArrayTest, EmptyAndScalar) {
  Array empty = llvm::cantFail(Array::allocate(ElementKind::F32, {4, 0, 8}));
  EXPECT_EQ(empty.size(), 0);
  EXPECT_NE(empty.data(), nullptr);
  empty.poison();
  fillNormal(empty, 1);
  Array copy = llvm::cantFail(empty.convert(ElementKind::F64));
  EXPECT_EQ(copy.size(), 0);
  Array scalar = llvm::cantFail(Array::allocate(ElementKind::I32, {}));
  scalar.set(0, 7);
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(scalar.get(0), 7);
}

TEST(ArrayTest, IntegersSaturate) {
  Array array = llvm::cantFail(Array::allocate(ElementKind::I8, {4}));
  array.write(0, {1e9, -1e9, std::nan(""), -7.9});
  EXPECT_EQ(array.get(0), 127);
  EXPECT_EQ(array.get(1), -128);
  EXPECT_EQ(array.get(2), 0);
  EXPECT_EQ(array.get(3), -7);
  Array large = llvm::cantFail(Array::allocate(ElementKind::I64, {2}));
  large.write(0, {1e30, -1e30});
  EXPECT_EQ(large.dataAs<int64_t>()[0], std::numeric_limits<int64_t>::max());
  EXPECT_EQ(large.dataAs<int64_t>()[1], std::numeric_limits<int64_t>::min());
}

static std::string getError(llvm::ArrayRef<int64_t> shape, ElementKind kind = ElementKind::F32) {
  llvm::Expected<Array> array = Array::allocate(kind, shape);
  return array ? "" : llvm::toString(array.takeError());
}

TEST(ArrayTest, ReportsErrors) {
  int64_t large = int64_t(1) << 62;
  EXPECT_EQ(getError({large, large}), "expected a number of elements below 2^63, got shape "
                                      "4611686018427387904x4611686018427387904");
  EXPECT_EQ(getError({0, large, large}), "expected a number of elements below 2^63, got shape "
                                         "0x4611686018427387904x4611686018427387904");
  EXPECT_EQ(getError({large}),
            "expected a size below 2^63 bytes, got shape 4611686018427387904 of f32");
  EXPECT_EQ(getError({-1}), "expected extents of at least 0, got -1");
  EXPECT_NE(getError({large}, ElementKind::I8).find("(the memory available)"), std::string::npos);
  EXPECT_FALSE(bool(checkAvailableMemory(0, "nothing")));
  EXPECT_NE(llvm::toString(checkAvailableMemory(~uint64_t(0) - 1, "a test")).find("for a test"),
            std::string::npos);
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(7), "7 B");
}

TEST(ArrayTest, Poison) {
  for (ElementKind kind :
       {ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F64}) {
    Array array = llvm::cantFail(Array::allocate(kind, {10}));
    array.poison();
    EXPECT_EQ(array.countPoisoned(), 10);
    EXPECT_TRUE(std::isnan(array.get(3)));
    array.set(3, std::numeric_limits<double>::quiet_NaN());
    array.set(4, 0);
    EXPECT_EQ(array.countPoisoned(), 8);
  }
}

TEST(RandomTest, Normal) {
  for (ElementKind kind :
       {ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F64}) {
    Array array = llvm::cantFail(Array::allocate(kind, {1000, 200}));
    fillNormal(array, 42);
    double sum = 0, squares = 0, fourths = 0, largest = 0;
    for (int64_t i = 0; i < array.size(); ++i) {
      double x = array.get(i);
      sum += x, squares += x * x, fourths += x * x * x * x;
      largest = std::max(largest, std::fabs(x));
    }
    double n = double(array.size());
    EXPECT_NEAR(sum / n, 0, 0.01);
    EXPECT_NEAR(squares / n, 1, 0.02);
    EXPECT_NEAR(fourths / n, 3, 0.1);
    EXPECT_GT(largest, 3.5);
    EXPECT_LE(largest, 4.75);
  }
}

TEST(RandomTest, RoundsLikeTheConversions) {
  Array exact = llvm::cantFail(Array::allocate(ElementKind::F64, {300000}));
  fillNormal(exact, 11);
  for (ElementKind kind : {ElementKind::F16, ElementKind::BF16}) {
    Array rounded = llvm::cantFail(Array::allocate(kind, {300000}));
    fillNormal(rounded, 11);
    Array converted = llvm::cantFail(exact.convert(kind));
    for (int64_t i = 0; i < exact.size(); ++i)
      ASSERT_EQ(rounded.get(i), converted.get(i)) << exact.get(i);
  }
}

TEST(RandomTest, SameInEveryLayout) {
  Array rows = llvm::cantFail(Array::allocate(ElementKind::F32, {2, 3, 4, 5}));
  Array swapped = llvm::cantFail(Array::allocate(ElementKind::F32, {2, 3, 4, 5}, {0, 2, 1, 3}));
  fillNormal(rows, 7);
  fillNormal(swapped, 7);
  int64_t changed = 0;
  Array other = llvm::cantFail(Array::allocate(ElementKind::F32, {2, 3, 4, 5}));
  fillNormal(other, 8);
  for (int64_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.get(i), swapped.get(i));
    changed += rows.get(i) != other.get(i);
  }
  EXPECT_GT(changed, 110);
  EXPECT_NE(deriveSeed(1, "q"), deriveSeed(1, "k"));
  EXPECT_NE(deriveSeed(1, "q"), deriveSeed(2, "q"));
}

TEST(RandomTest, Integers) {
  Array array = llvm::cantFail(Array::allocate(ElementKind::I32, {3, 1000}));
  fillUniform(array, 3, -2, 4);
  int64_t counts[7] = {};
  for (int64_t i = 0; i < array.size(); ++i) {
    ASSERT_GE(array.get(i), -2);
    ASSERT_LE(array.get(i), 4);
    ++counts[int(array.get(i)) + 2];
  }
  for (int64_t count : counts)
    EXPECT_GT(count, 300);
  fillSorted(array, 3, 5);
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t i = 1; i < 1000; ++i) {
      EXPECT_LE(array.get(row * 1000 + i - 1), array.get(row * 1000 + i));
      EXPECT_LE(array.get(row * 1000 + i), 4);
    }
  EXPECT_GE(array.get(999), 1);
}
