//===- FootprintTest.cpp - which arrays share bytes, against counting them
//----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Footprint.h"
#include "llvm/ADT/SmallVector.h"
#include "gtest/gtest.h"
#include <array>
#include <bitset>
#include <random>

using namespace attn;

namespace {
constexpr int kRank = 3, kExtent = 6;
/// Elements of the whole array, in 32 bits each.
constexpr int kElements = kExtent * kExtent * kExtent;

/// A part of a row-major array: a range with a step in each dimension.
struct Part {
  std::array<int64_t, kRank> first, count, step;
};
} // namespace

static std::array<int64_t, kRank> getStrides(const Part &part) {
  std::array<int64_t, kRank> strides;
  for (int64_t dim = kRank - 1, whole = 1; dim >= 0; --dim, whole *= kExtent)
    strides[dim] = whole * part.step[dim];
  return strides;
}

static int64_t getOffset(const Part &part) {
  int64_t offset = 0;
  for (int dim = 0; dim < kRank; ++dim)
    offset = offset * kExtent + part.first[dim];
  return offset;
}

static Footprint find(const Part &part, std::array<int64_t, kRank> strides) {
  TensorView view;
  view.data = reinterpret_cast<void *>(uintptr_t(0x1000 + 4 * getOffset(part)));
  view.type = DataType::F32;
  view.rank = kRank;
  view.shape = part.count.data();
  std::optional<Footprint> found = Footprint::find(view, strides);
  EXPECT_TRUE(found);
  return *found;
}

static std::bitset<3 * kElements> count(const Part &part, std::array<int64_t, kRank> strides) {
  std::bitset<3 * kElements> found;
  for (int64_t i = 0; i < part.count[0]; ++i)
    for (int64_t j = 0; j < part.count[1]; ++j)
      for (int64_t k = 0; k < part.count[2]; ++k)
        found.set(getOffset(part) + i * strides[0] + j * strides[1] + k * strides[2]);
  return found;
}

static Part makePart(std::mt19937 &random) {
  Part part;
  auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int dim = 0; dim < kRank; ++dim) {
    part.step[dim] = draw(1, 2) * (draw(0, 4) ? 1 : -1);
    part.count[dim] = draw(1, kExtent / std::abs(part.step[dim]));
    int64_t last = (part.count[dim] - 1) * part.step[dim];
    part.first[dim] = draw(std::max<int64_t>(-last, 0), kExtent - 1 - std::max<int64_t>(last, 0));
  }
  return part;
}

TEST(FootprintTest, PartsOfOneArray) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    Part a = makePart(random), b = makePart(random);
    auto ofA = getStrides(a), ofB = getStrides(b);
    bool shares = (count(a, ofA) & count(b, ofB)).any();
    bool mayShare = find(a, ofA).mayOverlap(find(b, ofB));
    ASSERT_TRUE(mayShare || !shares);
    EXPECT_TRUE(find(a, ofA).hasOwnElements());
    // With one step in all dimensions some dimension tells parts apart that share nothing.
    if (a.step == b.step)
      ASSERT_EQ(mayShare, shares);
  }
}

TEST(FootprintTest, AnyStrides) {
  std::mt19937 random(2);
  std::uniform_int_distribution<int64_t> draw(0, 24);
  for (int i = 0; i < 20000; ++i) {
    Part a = makePart(random), b = makePart(random);
    std::array<int64_t, kRank> ofA = {draw(random), draw(random), draw(random)},
                               ofB = getStrides(b);
    bool shares = (count(a, ofA) & count(b, ofB)).any();
    ASSERT_TRUE(find(a, ofA).mayOverlap(find(b, ofB)) || !shares);
    ASSERT_TRUE(find(b, ofB).mayOverlap(find(a, ofA)) || !shares);
  }
}

TEST(FootprintTest, OutsideOfTheAddressSpace) {
  int64_t shape[] = {3, 5};
  TensorView view;
  view.data = reinterpret_cast<void *>(uintptr_t(0x1000));
  view.type = DataType::F32;
  view.rank = 2;
  view.shape = shape;
  EXPECT_TRUE(Footprint::find(view, {int64_t(1) << 60, 1}));
  for (int64_t stride : {int64_t(1) << 61, int64_t(1) << 62, INT64_MAX, INT64_MIN, int64_t(-2000)})
    EXPECT_FALSE(Footprint::find(view, {stride, 1})) << stride;
}
