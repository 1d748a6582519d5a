//===- CompareTest.cpp - the error of a result ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Compare.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace attn;

static constexpr double infinity = std::numeric_limits<double>::infinity();

static Array make(llvm::ArrayRef<double> values, ElementKind kind = ElementKind::F64) {
  Array array = llvm::cantFail(Array::allocate(kind, {int64_t(values.size())}));
  array.write(0, values);
  return array;
}

static Comparison run(const Array &result, const Array &reference) {
  return llvm::cantFail(compare(result, reference));
}

TEST(CompareTest, Errors) {
  // rms of the reference: sqrt((9 + 16 + 0 + 0) / 4) = 2.5.
  Comparison c = run(make({3, 4.5, 0, 0.25}), make({3, 4, 0, 0}));
  EXPECT_EQ(c.numElements, 4);
  EXPECT_DOUBLE_EQ(c.maxAbsolute, 0.5);
  EXPECT_DOUBLE_EQ(c.maxRelative, 0.125);
  EXPECT_EQ(c.worst, 1);
  EXPECT_DOUBLE_EQ(c.rms, std::sqrt((0.25 + 0.0625) / 4));
  EXPECT_TRUE(c.isWithin(0.125));
  EXPECT_FALSE(c.isWithin(0.124));
}

TEST(CompareTest, Infinities) {
  Comparison same = run(make({-infinity, 1}), make({-infinity, 1}));
  EXPECT_EQ(same.maxRelative, 0);
  EXPECT_TRUE(same.isWithin(0));
  EXPECT_EQ(run(make({infinity}), make({-infinity})).maxRelative, infinity);
  EXPECT_EQ(run(make({0}), make({-infinity})).maxRelative, infinity);
  EXPECT_EQ(run(make({-infinity, 1}), make({0, 1})).maxRelative, infinity);
}

TEST(CompareTest, NaNAndUnwritten) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  Array result = make({1, 2, 3, 4}, ElementKind::F32);
  result.poison();
  result.set(0, 1);
  result.set(2, nan);
  Comparison c = run(result, make({1, 2, 3, 4}));
  EXPECT_EQ(c.numNaN, 1);
  EXPECT_EQ(c.numUnwritten, 2);
  EXPECT_EQ(c.worst, 1);
  EXPECT_FALSE(c.isWithin(infinity));
  EXPECT_FALSE(run(make({nan}), make({nan})).isWithin(infinity));
  EXPECT_EQ(run(make({1}), make({nan})).maxRelative, infinity);
}

/// Where the definition writes nothing, a result that does is wrong.
TEST(CompareTest, WhatStays) {
  Array reference = make({1, 2, 3}, ElementKind::BF16), result = make({1, 2, 3}, ElementKind::F32);
  for (Array *array : {&reference, &result})
    array->poison();
  reference.set(0, 1);
  result.set(0, 1);
  EXPECT_TRUE(run(result, reference).isWithin(0));
  result.set(1, 2);
  EXPECT_FALSE(run(result, reference).isWithin(1));
  result.set(1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(run(result, reference).numNaN, 1);
  EXPECT_FALSE(run(result, reference).isWithin(infinity));
  reference.set(1, 2);
  result.poison();
  result.set(0, 1);
  EXPECT_EQ(run(result, reference).numUnwritten, 1);
}

TEST(CompareTest, ZeroReference) {
  EXPECT_EQ(run(make({0, 0}), make({0, 0})).maxRelative, 0);
  EXPECT_EQ(run(make({0, 1e-9}), make({0, 0})).maxRelative, infinity);
  EXPECT_EQ(run(make({0.0}), make({-0.0})).maxRelative, 0);
}

TEST(CompareTest, EmptyIsRight) {
  Comparison c = run(make({}), make({}));
  EXPECT_TRUE(c.isWithin(0));
  EXPECT_EQ(c.rms, 0);
}

TEST(CompareTest, LargeValuesDoNotOverflow) {
  Comparison c = run(make({1e300, 2e300}), make({1e300, 1e300}));
  EXPECT_DOUBLE_EQ(c.maxRelative, 1);
}

TEST(CompareTest, ShapesMustAgree) {
  llvm::Expected<Comparison> c = compare(make({1, 2}), make({1}));
  ASSERT_FALSE(bool(c));
  EXPECT_EQ(llvm::toString(c.takeError()), "expected a result of shape 1, got 2");
}
