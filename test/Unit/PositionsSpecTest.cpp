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

#include "attn/Compiler.h"
#include "gtest/gtest.h"
#include <cmath>
#include <numeric>
#include <random>

using namespace attn;

namespace {
constexpr int64_t kHeads = 4, kKeyHeads = 2, kRows = 11, kKeys = 14, kD = 8;

/// (1, heads, rows, D) in memory, or any other shape.
struct Floats {
  explicit Floats(std::vector<int64_t> extents) : shape(std::move(extents)) {
    data.resize(
        std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<int64_t>()));
  }
  /// These rows of each head.
  Floats take(const std::vector<int32_t> &rows) const {
    std::vector<int64_t> extents = shape;
    extents[2] = static_cast<int64_t>(rows.size());
    Floats taken(extents);
    int64_t columns = shape.size() > 3 ? shape[3] : 1;
    for (int64_t h = 0; h < shape[1]; ++h)
      for (size_t i = 0; i < rows.size(); ++i)
        for (int64_t d = 0; d < columns; ++d)
          taken.data[(h * extents[2] + int64_t(i)) * columns + d] =
              data[(h * shape[2] + rows[i]) * columns + d];
    return taken;
  }
  TensorView view() {
    return {data.data(), DataType::F32, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
  }

  std::vector<int64_t> shape;
  std::vector<float> data;
};

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
  Results run(AttentionSpec spec, std::vector<int32_t> rows, const std::vector<int32_t> &keys);

  Floats query{{1, kHeads, kRows, kD}}, key{{1, kKeyHeads, kKeys, kD}},
      value{{1, kKeyHeads, kKeys, kD}}, dOutput{{1, kHeads, kRows, kD}}, slopes{{kHeads}};
  std::vector<int32_t> queryIds = {0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2},
                       keyIds = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2};
  int64_t seed = 5;
};
} // namespace

Results Problem::run(AttentionSpec spec, std::vector<int32_t> rows,
                     const std::vector<int32_t> &keys) {
  Floats q = query.take(rows), k = key.take(keys), v = value.take(keys), back = dOutput.take(rows);
  Results found{q, Floats({1, kHeads, q.shape[2]}), q, k, v};
  auto view = [](void *data, DataType type, const std::vector<int64_t> &shape) {
    return TensorView{data, type, static_cast<int32_t>(shape.size()), shape.data(), nullptr};
  };
  std::vector<int32_t> total = {kRows, kKeys}, first = {keys.front()};
  const std::vector<int64_t> one = {1}, two = {2}, ofRows = {q.shape[2]}, ofIds = {1, kRows},
                             ofKeyIds = {1, kKeys};
  std::vector<LaunchArgument> arguments = {q.view(), k.view(), v.view()};
  if (spec.rowPositions == Positions::Table)
    arguments.emplace_back(view(rows.data(), DataType::I32, ofRows));
  if (spec.keyPositions == Positions::Origin)
    arguments.emplace_back(view(first.data(), DataType::I32, one));
  if (spec.rowPositions != Positions::Own)
    arguments.emplace_back(view(total.data(), DataType::I32, two));
  arguments.emplace_back(view(queryIds.data(), DataType::I32, ofIds));
  arguments.emplace_back(view(keyIds.data(), DataType::I32, ofKeyIds));
  arguments.emplace_back(slopes.view());
  arguments.emplace_back(view(&seed, DataType::I64, one));
  auto call = [&](bool isGradient, std::vector<Floats *> more) {
    spec.isGradient = isGradient;
    Result<CompiledFunction> function = compile(spec);
    ASSERT_TRUE(bool(function)) << function.getStatus().str() << getSource(spec);
    std::vector<LaunchArgument> all = arguments;
    for (Floats *floats : more)
      all.emplace_back(floats->view());
    Status status = function->run(all);
    ASSERT_TRUE(status.ok()) << status.str();
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
    expectNear(part.output, whole.output.take(rows), "output");
    expectNear(part.lse, whole.lse.take(rows), "lse");
    expectNear(part.dQuery, whole.dQuery.take(rows), "dQuery");
    for (auto [sum, of] : {std::pair(&sums.dKey, &part.dKey), std::pair(&sums.dValue, &part.dValue),
                           std::pair(&sums.dSlopes, &part.dSlopes)})
      for (size_t i = 0; i < sum->data.size(); ++i)
        sum->data[i] += of->data[i];
  }
  expectNear(sums.dKey, whole.dKey, "dKey");
  expectNear(sums.dValue, whole.dValue, "dValue");
  expectNear(sums.dSlopes, whole.dSlopes, "dSlopes");
}

TEST(PositionsSpecTest, KeysFromAnOriginOn) {
  Problem problem;
  AttentionSpec spec = makeSpec();
  std::vector<int32_t> all(kRows), keys(kKeys);
  std::iota(all.begin(), all.end(), 0);
  std::iota(keys.begin(), keys.end(), 0);
  Results whole = problem.run(spec, all, keys);
  // By the window these rows keep keys from 3 on alone.
  std::vector<int32_t> rows = {6, 8, 10}, last(keys.begin() + 3, keys.end());
  spec.rowPositions = Positions::Table;
  spec.keyPositions = Positions::Origin;
  Results part = problem.run(spec, rows, last);
  expectNear(part.output, whole.output.take(rows), "output");
  expectNear(part.lse, whole.lse.take(rows), "lse");
  expectNear(part.dQuery, whole.dQuery.take(rows), "dQuery");
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
