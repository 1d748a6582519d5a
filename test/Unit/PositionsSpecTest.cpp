//===- PositionsSpecTest.cpp - parts of a whole in include/attn/Compiler.h ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Rows of a whole in two calls, forward and backward, against one call of the whole: causal, a
// window, ALiBi, documents and dropout mean the whole.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/SpecCall.h"
#include <cmath>
#include <numeric>
#include <random>

using namespace attn;
using namespace attn::test;

namespace {
constexpr int64_t kHeads = 4, kKeyHeads = 2, kRows = 11, kKeys = 14, kD = 8;

struct Results {
  Floats output, lse, dQuery, dKey, dValue, dSlopes{{kHeads}};
};

struct Problem {
  Problem() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (Floats *floats : {&query, &key, &value, &dOutput})
      for (float &x : floats->data)
        x = normal(random);
    for (int64_t h = 0; h < kHeads; ++h)
      slopes.data[h] = 0.1f * float(h + 1);
  }

  /// Of these rows and keys, which are all that there are where positions are the call's own.
  Results run(const AttentionSpec &spec, std::vector<int32_t> rows, std::vector<int32_t> keys);

  Floats query{{1, kHeads, kRows, kD}}, key{{1, kKeyHeads, kKeys, kD}},
      value{{1, kKeyHeads, kKeys, kD}}, dOutput{{1, kHeads, kRows, kD}}, slopes{{kHeads}};
  std::vector<int32_t> queryIds = {0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2},
                       keyIds = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
  int64_t seed = 5;
};
} // namespace

/// These rows of each head of (1, heads, rows, D) or (1, heads, rows).
static Floats take(const Floats &of, const std::vector<int32_t> &rows) {
  std::vector<int64_t> extents = of.shape;
  extents[2] = static_cast<int64_t>(rows.size());
  Floats taken(extents);
  int64_t columns = extents.size() > 3 ? extents[3] : 1;
  for (int64_t h = 0; h < extents[1]; ++h)
    for (size_t i = 0; i < rows.size(); ++i)
      for (int64_t d = 0; d < columns; ++d)
        taken.data[(h * extents[2] + int64_t(i)) * columns + d] =
            of.data[(h * of.shape[2] + rows[i]) * columns + d];
  return taken;
}

Results Problem::run(const AttentionSpec &spec, std::vector<int32_t> rows,
                     std::vector<int32_t> keys) {
  Floats q = take(query, rows), k = take(key, keys), v = take(value, keys),
         back = take(dOutput, rows);
  Results found{q, Floats({1, kHeads, q.shape[2]}), q, k, v};
  std::vector<int32_t> total = {kRows, kKeys};
  const std::vector<int64_t> one = {1}, two = {2}, ofIds = {1, kRows}, ofKeyIds = {1, kKeys};
  const std::vector<int64_t> extents[] = {{q.shape[2]}, {k.shape[2]}};
  std::vector<LaunchArgument> arguments = {q.view(), k.view(), v.view()};
  for (auto [kind, positions] :
       {std::pair(spec.rowPositions, &rows), std::pair(spec.keyPositions, &keys)}) {
    // An origin is the first element.
    if (kind != Positions::Own)
      arguments.emplace_back(
          makeView(positions->data(), DataType::I32,
                   kind == Positions::Origin ? one : extents[positions == &keys]));
  }
  if (spec.rowPositions != Positions::Own || spec.keyPositions != Positions::Own)
    arguments.emplace_back(makeView(total.data(), DataType::I32, two));
  arguments.emplace_back(makeView(queryIds.data(), DataType::I32, ofIds));
  arguments.emplace_back(makeView(keyIds.data(), DataType::I32, ofKeyIds));
  arguments.emplace_back(slopes.view());
  arguments.emplace_back(makeView(&seed, DataType::I64, one));
  auto call = [&](bool isGradient, const std::vector<Floats *> &more) {
    callSpec(spec, isGradient, arguments, more);
  };
  call(false, {&found.output, &found.lse});
  call(true, {&found.output, &found.lse, &back, &found.dQuery, &found.dKey, &found.dValue,
              &found.dSlopes});
  return found;
}

static void expectNear(const Floats &got, const Floats &wanted, const char *name) {
  ASSERT_EQ(got.shape, wanted.shape) << name;
  for (size_t i = 0; i < got.data.size(); ++i)
    if (std::isinf(wanted.data[i]))
      EXPECT_EQ(got.data[i], wanted.data[i]) << name << ' ' << i;
    else
      EXPECT_NEAR(got.data[i], wanted.data[i], 2e-5) << name << ' ' << i;
}

static AttentionSpec makeSpec() {
  AttentionSpec spec;
  spec.headDim = kD;
  spec.causal = Causal::BottomRight;
  spec.windowLeft = 6;
  spec.hasAlibi = spec.hasDocuments = true;
  spec.dropout = 0.3;
  spec.returnsLse = true;
  return spec;
}

TEST(PositionsSpecTest, RowsOfTheWholeInTwoCalls) {
  Problem problem;
  AttentionSpec spec = makeSpec();
  std::vector<int32_t> all(kRows), keys(kKeys);
  std::iota(all.begin(), all.end(), 0);
  std::iota(keys.begin(), keys.end(), 0);
  Results whole = problem.run(spec, all, keys);
  spec.rowPositions = Positions::Table;
  Results sums = whole;
  for (Floats *floats : {&sums.dKey, &sums.dValue, &sums.dSlopes})
    std::fill(floats->data.begin(), floats->data.end(), 0.0f);
  for (const std::vector<int32_t> &rows :
       {std::vector<int32_t>{0, 1, 2, 9, 10}, std::vector<int32_t>{3, 4, 5, 6, 7, 8}}) {
    Results part = problem.run(spec, rows, keys);
    expectNear(part.output, take(whole.output, rows), "output");
    expectNear(part.lse, take(whole.lse, rows), "lse");
    expectNear(part.dQuery, take(whole.dQuery, rows), "dQuery");
    for (auto [sum, of] : {std::pair(&sums.dKey, &part.dKey), std::pair(&sums.dValue, &part.dValue),
                           std::pair(&sums.dSlopes, &part.dSlopes)})
      for (size_t i = 0; i < sum->data.size(); ++i)
        sum->data[i] += of->data[i];
  }
  expectNear(sums.dKey, whole.dKey, "dKey");
  expectNear(sums.dValue, whole.dValue, "dValue");
  expectNear(sums.dSlopes, whole.dSlopes, "dSlopes");
}

/// Rows from 6 on keep keys from 3 on alone, by the window, and the first five rows the first
/// eight, by the diagonal.
TEST(PositionsSpecTest, EachKindOfPositions) {
  Problem problem;
  AttentionSpec spec = makeSpec();
  auto list = [](int32_t first, int32_t last) {
    std::vector<int32_t> found(last - first);
    std::iota(found.begin(), found.end(), first);
    return found;
  };
  Results whole = problem.run(spec, list(0, kRows), list(0, kKeys));
  struct Part {
    Positions ofRows, ofKeys;
    std::vector<int32_t> rows, keys;
  };
  using enum Positions;
  // Of a document that the rows are not in, tables may leave keys out too.
  for (const Part &part :
       {Part{Own, Table, list(0, 5), list(0, 8)}, Part{Origin, Own, list(6, kRows), list(0, kKeys)},
        Part{Origin, Table, list(6, kRows), list(6, kKeys)},
        Part{Table, Origin, {6, 8, 10}, list(3, kKeys)},
        Part{Table, Table, {6, 8, 10}, {6, 7, 8, 9, 10, 11, 12, 13}}}) {
    SCOPED_TRACE(testing::Message() << int(part.ofRows) << ' ' << int(part.ofKeys));
    spec.rowPositions = part.ofRows;
    spec.keyPositions = part.ofKeys;
    Results found = problem.run(spec, part.rows, part.keys);
    expectNear(found.output, take(whole.output, part.rows), "output");
    expectNear(found.lse, take(whole.lse, part.rows), "lse");
    expectNear(found.dQuery, take(whole.dQuery, part.rows), "dQuery");
  }
}

TEST(PositionsSpecTest, NotWithOtherPlaces) {
  AttentionSpec spec;
  spec.headDim = kD;
  spec.keyPositions = Positions::Table;
  spec.pageSize = 16;
  Status status = checkSpec(spec);
  EXPECT_EQ(status.code, StatusCode::InvalidArgument);
  EXPECT_EQ(status.message.rfind("keyPositions: expected no pages, lengths or sequences", 0), 0u)
      << status.message;
}
