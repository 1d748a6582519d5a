//===- PagedSpecTest.cpp - pages and lengths of include/attn/Compiler.h ---===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A program that compiles an AttentionSpec and calls it, against the definition in f64. All memory
// of a call lies between pages that nobody may touch: what reads outside of a pool ends the test.
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "test/Unit/GuardedMemory.h"
#include "gtest/gtest.h"
#include <climits>
#include <cmath>
#include <random>

using namespace attn;
using test::Guarded;

namespace {
struct Sizes {
  int64_t batch = 3, heads = 4, keyHeads = 2, rows = 5, entries = 4, pages = 9;
};

/// The tensors of one call in f32, which its errors are about.
struct Call {
  /// `headsFirst`: a page has its heads before its rows, (Np, Hkv, P, D) in memory.
  explicit Call(const AttentionSpec &spec, Sizes sizes = {}, bool atEnd = true,
                bool headsFirst = false);

  Status run(const CompiledFunction &function);

  /// Where key n of a sequence and head is, in rows of all keys; -1: in no page.
  int64_t findRow(int64_t b, int64_t head, int64_t n) const;
  bool isKept(int64_t b, int64_t m, int64_t n) const;
  /// Compares all rows with the definition.
  void expectRight() const;
  void expectIntact() const;

  AttentionSpec spec;
  Sizes s;
  int64_t d, dv, p, n;
  bool headsFirst;
  Guarded<float> query, key, value;
  Guarded<int32_t> table, lengths;
  Guarded<float> sink, output, lse;
  float scale = 0.4f;
  /// What a test spoils; no strides are row-major.
  std::vector<int64_t> keyShape, valueShape, tableShape, lengthShape, keyStrides, valueStrides;
  float *keyData = key.data(), *valueData = value.data();
};
} // namespace

Call::Call(const AttentionSpec &spec, Sizes sizes, bool atEnd, bool headsFirst)
    : spec(spec), s(sizes), d(spec.headDim), dv(spec.valueDim ? spec.valueDim : d),
      p(spec.pageSize ? spec.pageSize : 7), n(s.entries * p), headsFirst(headsFirst),
      query(s.batch * s.heads * s.rows * d, atEnd),
      key((spec.pageSize ? s.pages * p : s.batch * n) * s.keyHeads * d, atEnd),
      value((spec.pageSize ? s.pages * p : s.batch * n) * s.keyHeads * dv, atEnd),
      table(s.batch * s.entries, atEnd), lengths(s.batch, atEnd), sink(s.heads, atEnd),
      output(s.batch * s.heads * s.rows * dv, atEnd), lse(s.batch * s.heads * s.rows, atEnd) {
  std::mt19937 engine(static_cast<unsigned>(p * 31 + d));
  std::normal_distribution<float> normal;
  for (auto *values : {&query, &key, &value, &sink})
    for (float &x : *values)
      x = normal(engine);
  for (int32_t &entry : table)
    entry = static_cast<int32_t>(engine() % std::max<int64_t>(s.pages, 1));
  for (int32_t &length : lengths)
    length = static_cast<int32_t>(engine() % (n + 1));
  for (auto *values : {&output, &lse})
    for (float &x : *values)
      x = NAN;
  if (spec.pageSize)
    keyShape = {s.pages, p, s.keyHeads, d}, valueShape = {s.pages, p, s.keyHeads, dv};
  else
    keyShape = {s.batch, s.keyHeads, n, d}, valueShape = {s.batch, s.keyHeads, n, dv};
  if (headsFirst) {
    keyStrides = {p * s.keyHeads * d, d, p * d, 1};
    valueStrides = {p * s.keyHeads * dv, dv, p * dv, 1};
  }
  tableShape = {s.batch, s.entries};
  lengthShape = {s.batch};
}

Status Call::run(const CompiledFunction &function) {
  const std::vector<int64_t> queryShape = {s.batch, s.heads, s.rows, d};
  const std::vector<int64_t> outputShape = {s.batch, s.heads, s.rows, dv};
  const std::vector<int64_t> rows = {s.batch, s.heads, s.rows}, heads = {s.heads};
  auto view = [](void *data, DataType type, const std::vector<int64_t> &shape,
                 const std::vector<int64_t> &strides = {}) {
    return TensorView{data, type, static_cast<int32_t>(shape.size()), shape.data(),
                      strides.empty() ? nullptr : strides.data()};
  };
  std::vector<LaunchArgument> arguments = {
      view(query.data(), DataType::F32, queryShape),
      view(keyData, DataType::F32, keyShape, keyStrides),
      view(valueData, DataType::F32, valueShape, valueStrides)};
  if (spec.pageSize)
    arguments.emplace_back(view(table.data(), DataType::I32, tableShape));
  if (spec.hasLengths)
    arguments.emplace_back(view(lengths.data(), DataType::I32, lengthShape));
  if (spec.hasScale)
    arguments.emplace_back(scale);
  if (spec.hasSink)
    arguments.emplace_back(view(sink.data(), DataType::F32, heads));
  arguments.emplace_back(view(output.data(), DataType::F32, outputShape));
  if (spec.returnsLse)
    arguments.emplace_back(view(lse.data(), DataType::F32, rows));
  return function.run(arguments);
}

int64_t Call::findRow(int64_t b, int64_t head, int64_t at) const {
  if (!spec.pageSize)
    return (b * s.keyHeads + head) * n + at;
  int64_t page = table[b * s.entries + at / p], row = at % p;
  if (page < 0 || page >= s.pages)
    return -1;
  return headsFirst ? (page * s.keyHeads + head) * p + row : (page * p + row) * s.keyHeads + head;
}

bool Call::isKept(int64_t b, int64_t m, int64_t at) const {
  int64_t length = spec.hasLengths ? lengths[b] : n, own = m + length - s.rows;
  return at < length && (spec.causal != Causal::TopLeft || at <= m) &&
         (spec.causal != Causal::BottomRight || at <= own) &&
         (spec.windowLeft < 0 || at >= own - spec.windowLeft) &&
         (spec.windowRight < 0 || at <= own + spec.windowRight);
}

void Call::expectRight() const {
  for (int64_t row = 0; row < s.batch * s.heads * s.rows; ++row) {
    int64_t m = row % s.rows, head = row / s.rows % s.heads, b = row / s.rows / s.heads;
    double factor = spec.hasScale ? double(scale) : 1 / std::sqrt(double(d));
    double total = spec.hasSink ? std::exp(double(sink[head])) : 0;
    std::vector<double> sums(dv);
    for (int64_t at = 0; at < n; ++at) {
      if (!isKept(b, m, at))
        continue;
      int64_t from = findRow(b, head / (s.heads / s.keyHeads), at);
      ASSERT_GE(from, 0) << "a kept key is in no page";
      double product = 0;
      for (int64_t i = 0; i < d; ++i)
        product += double(query[row * d + i]) * key[from * d + i];
      double weight = std::exp(product * factor);
      total += weight;
      for (int64_t i = 0; i < dv; ++i)
        sums[i] += weight * value[from * dv + i];
    }
    for (int64_t i = 0; i < dv; ++i)
      ASSERT_NEAR(output[row * dv + i], total > 0 ? sums[i] / total : 0, 2e-5)
          << "b=" << b << " h=" << head << " m=" << m << " column " << i;
    if (spec.returnsLse && total > 0)
      ASSERT_NEAR(lse[row], std::log(total), 2e-5) << "b=" << b << " h=" << head << " m=" << m;
    else if (spec.returnsLse)
      ASSERT_EQ(lse[row], -INFINITY) << "b=" << b << " h=" << head << " m=" << m;
  }
}

void Call::expectIntact() const {
  for (const auto *values : {&query, &key, &value, &sink, &output, &lse})
    EXPECT_TRUE(values->isIntact());
  EXPECT_TRUE(table.isIntact() && lengths.isIntact());
}

namespace {
AttentionSpec makeSpec(int64_t page, bool hasLengths = true) {
  AttentionSpec spec;
  spec.headDim = 16;
  spec.valueDim = 24;
  spec.pageSize = page;
  spec.hasLengths = hasLengths;
  spec.returnsLse = true;
  return spec;
}

CompiledFunction compileRight(const AttentionSpec &spec) {
  Result<CompiledFunction> function = compile(spec);
  EXPECT_TRUE(function) << function.getStatus().str() << "\n" << getSource(spec);
  return *function;
}

void expectRight(const CompiledFunction &function, Call &call) {
  Status status = call.run(function);
  ASSERT_TRUE(status.ok()) << status.str();
  call.expectRight();
  call.expectIntact();
}
} // namespace

TEST(PagedSpecTest, DescribesItsArguments) {
  AttentionSpec spec = makeSpec(16);
  spec.hasScale = spec.hasSink = true;
  FunctionInfo info = compileRight(spec).getInfo();
  const std::vector<std::string> names = {"query",     "key_cache", "value_cache", "page_table",
                                          "seqused_k", "scale",     "sink"};
  ASSERT_EQ(info.arguments.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(info.arguments[i].name, names[i]);
  EXPECT_EQ(info.arguments[1].shape, (std::vector<int64_t>{-1, 16, -1, 16}));
  EXPECT_EQ(info.arguments[2].shape, (std::vector<int64_t>{-1, 16, -1, 24}));
  EXPECT_EQ(info.arguments[1].letters, (std::vector<std::string>{"Np", "P", "Hkv", "D"}));
  EXPECT_EQ(info.arguments[2].letters, (std::vector<std::string>{"Np", "P", "Hkv", "Dv"}));
  EXPECT_EQ(info.arguments[3].letters, (std::vector<std::string>{"B", "C"}));
  EXPECT_EQ(info.arguments[3].type, DataType::I32);
  EXPECT_EQ(info.arguments[4].letters, (std::vector<std::string>{"B"}));
  EXPECT_EQ(info.arguments[4].type, DataType::I32);
  ASSERT_EQ(info.results.size(), 2u);
  EXPECT_EQ(info.results[0].name, "output");
}

TEST(PagedSpecTest, IsTheDefinition) {
  for (int64_t page : {0, 1, 3, 16, 64})
    for (bool hasLengths : {false, true})
      for (auto [causal, left, right] :
           {std::tuple(Causal::No, -1, -1), std::tuple(Causal::TopLeft, -1, -1),
            std::tuple(Causal::BottomRight, -1, -1), std::tuple(Causal::BottomRight, 6, -1),
            std::tuple(Causal::No, 4, 2), std::tuple(Causal::No, -1, 0)}) {
        SCOPED_TRACE("page " + std::to_string(page) + (hasLengths ? " lengths " : " ") +
                     std::to_string(int(causal)) + " window " + std::to_string(left) + " " +
                     std::to_string(right));
        AttentionSpec spec = makeSpec(page, hasLengths);
        spec.causal = causal;
        spec.windowLeft = left, spec.windowRight = right;
        spec.hasScale = left >= 0, spec.hasSink = right >= 0;
        CompiledFunction function = compileRight(spec);
        // Many entries of small pages, so that there are several tiles.
        int64_t entries = page ? std::max<int64_t>(160 / page, 2) : 30;
        for (int64_t rows : {1, 5, 70})
          for (bool atEnd : {false, true}) {
            Call call(spec, {.rows = rows, .entries = entries, .pages = 2 * entries}, atEnd,
                      /*headsFirst=*/page && rows == 5);
            expectRight(function, call);
          }
      }
}

TEST(PagedSpecTest, EntriesOfNobodyHoldAnything) {
  for (int64_t page : {1, 3, 16, 64}) {
    SCOPED_TRACE("page " + std::to_string(page));
    AttentionSpec spec = makeSpec(page);
    spec.causal = Causal::BottomRight;
    CompiledFunction function = compileRight(spec);
    Call call(spec, {.entries = 6});
    call.lengths[0] = 0, call.lengths[1] = int32_t(2 * page + 1), call.lengths[2] = int32_t(page);
    const int32_t nothing[] = {-1, int32_t(call.s.pages), 2147480000, INT_MIN, INT_MAX};
    for (int64_t b = 0; b < call.s.batch; ++b)
      for (int64_t j = (call.lengths[b] + page - 1) / page; j < call.s.entries; ++j)
        call.table[b * call.s.entries + j] = nothing[(b + j) % 5];
    expectRight(function, call);
  }
}

/// Keys that no row keeps are NaN: pages that no table names, and rows after a sequence's end.
TEST(PagedSpecTest, WhatNobodyKeepsIsNotRead) {
  for (int64_t page : {1, 3, 16, 64}) {
    SCOPED_TRACE("page " + std::to_string(page));
    AttentionSpec spec = makeSpec(page);
    spec.windowLeft = 2 * page, spec.windowRight = 0;
    CompiledFunction function = compileRight(spec);
    Call call(spec, {.rows = 1, .entries = 8, .pages = 24});
    for (int32_t i = 0; i < int32_t(call.table.size()); ++i)
      call.table[i] = int32_t(call.table.size()) - 1 - i;
    std::vector<bool> isKept(call.key.size() / call.d);
    for (int64_t b = 0; b < call.s.batch; ++b)
      for (int64_t n = 0; n < call.n; ++n)
        for (int64_t head = 0; head < call.s.keyHeads; ++head)
          if (call.isKept(b, 0, n))
            isKept[call.findRow(b, head, n)] = true;
    for (size_t row = 0; row < isKept.size(); ++row)
      if (!isKept[row]) {
        std::fill_n(&call.key[row * call.d], call.d, NAN);
        std::fill_n(&call.value[row * call.dv], call.dv, NAN);
      }
    expectRight(function, call);
  }
}

/// Nobody looks at what a table holds before the call. Results are then anything.
TEST(PagedSpecTest, WrongTablesReadNothingElse) {
  for (int64_t page : {1, 3, 16, 64})
    for (bool hasLengths : {false, true})
      for (bool atEnd : {false, true}) {
        AttentionSpec spec = makeSpec(page, hasLengths);
        CompiledFunction function = compileRight(spec);
        Call call(spec, {.entries = 7}, atEnd);
        const int32_t wrong[] = {-1, int32_t(call.s.pages), 2147480000, INT_MIN, INT_MAX, -7};
        for (size_t i = 0; i < call.table.size(); ++i)
          call.table[i] = wrong[i % 6];
        for (int32_t &length : call.lengths)
          length = int32_t(call.n);
        Status status = call.run(function);
        EXPECT_TRUE(status.ok()) << status.str();
        call.expectIntact();
        // Of two pools each has its own number of pages; these two are the last before the guard.
        for (size_t i = 0; i < call.table.size(); ++i)
          call.table[i] = int32_t(i % call.s.pages);
        call.valueShape[0] = 2;
        call.valueData = call.value.end() - 2 * page * call.s.keyHeads * call.dv;
        EXPECT_TRUE(call.run(function).ok());
        call.expectIntact();
      }
}

TEST(PagedSpecTest, BrokenLengths) {
  for (int64_t page : {0, 1, 3, 16, 64})
    for (Causal causal : {Causal::No, Causal::BottomRight})
      for (bool atEnd : {false, true}) {
        AttentionSpec spec = makeSpec(page);
        spec.causal = causal;
        CompiledFunction function = compileRight(spec);
        Call call(spec, {.batch = 6}, atEnd);
        const int32_t broken[] = {-1, INT_MIN, 0, int32_t(call.n + 1), INT_MAX, 1};
        std::copy_n(broken, 6, call.lengths.data());
        SCOPED_TRACE("page " + std::to_string(page));
        expectRight(function, call);
      }
}

/// Places in a pool are more than 32 bits say: its pages lie 2^31 elements apart.
TEST(PagedSpecTest, PagesFarApart) {
  constexpr int64_t distance = int64_t(1) << 31;
  AttentionSpec spec = makeSpec(16);
  CompiledFunction function = compileRight(spec);
  Call call(spec, {.pages = 3});
  size_t bytes = call.s.pages * distance * sizeof(float);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    GTEST_SKIP() << "expected 24 GiB of addresses";
  call.keyData = static_cast<float *>(memory);
  int64_t size = call.p * call.s.keyHeads * call.d;
  for (int64_t page = 0; page < call.s.pages; ++page)
    std::copy_n(&call.key[page * size], size, call.keyData + page * distance);
  call.keyStrides = {distance, call.s.keyHeads * call.d, call.d, 1};
  expectRight(function, call);
  munmap(memory, bytes);
}

TEST(PagedSpecTest, NothingIsACallToo) {
  AttentionSpec spec = makeSpec(16);
  spec.causal = Causal::BottomRight;
  CompiledFunction function = compileRight(spec);
  for (Sizes sizes : {Sizes{.batch = 0}, Sizes{.rows = 0}, Sizes{.entries = 0},
                      Sizes{.entries = 0, .pages = 0}}) {
    Call call(spec, sizes);
    expectRight(function, call);
  }
}

TEST(PagedSpecTest, ErrorsNameTheArgument) {
  AttentionSpec spec = makeSpec(16);
  CompiledFunction function = compileRight(spec);
  auto getError = [&](auto spoil) {
    Call call(spec);
    spoil(call);
    Status status = call.run(function);
    EXPECT_EQ(status.code, StatusCode::InvalidArgument);
    EXPECT_TRUE(std::isnan(call.output[0]));
    return status.message;
  };
  EXPECT_EQ(getError([](Call &c) { c.keyShape[1] = 8; }),
            "key_cache: expected 16 in dimension 1, which the function was compiled for, got shape "
            "(9, 8, 2, 16)");
  EXPECT_EQ(getError([](Call &c) { c.valueShape[2] = 1; }),
            "value_cache: expected Hkv=2 as in key_cache in dimension 2, got shape (9, 16, 1, 24)");
  EXPECT_EQ(getError([](Call &c) { c.keyShape[2] = c.valueShape[2] = 3; }),
            "query: expected H to be a multiple of Hkv, got H=4 and Hkv=3");
  EXPECT_EQ(getError([](Call &c) { c.tableShape[0] = 2; }),
            "page_table: expected B=3 as in query in dimension 0, got shape (2, 4)");
  EXPECT_EQ(getError([](Call &c) { c.tableShape = {12}; }),
            "page_table: expected 2 dimensions, got 1");
  EXPECT_EQ(getError([](Call &c) { c.lengthShape[0] = 2; }),
            "seqused_k: expected at least B=3 elements in dimension 0, which is read at those "
            "positions, got shape (2)");
  EXPECT_EQ(getError([](Call &c) { c.tableShape[1] = 1 << 25; }),
            "page_table: expected fewer than 2^29 positions, got 536870912");
  // Tables have entries, so that there is a page which a wrong one can be taken for.
  EXPECT_EQ(getError([](Call &c) { c.keyShape[0] = c.valueShape[0] = 0; }),
            "key_cache: expected at least Np=1 elements in dimension 0, which is read at those "
            "positions, got shape (0, 16, 2, 16)");

  spec.pageSize = -1;
  EXPECT_EQ(compile(spec).getStatus().str(),
            "invalid argument: pageSize: expected a number of keys from 0 on, got -1");
  spec.pageSize = 8, spec.windowLeft = -2;
  EXPECT_EQ(compile(spec).getStatus().code, StatusCode::InvalidKernel);
  spec.isRagged = true;
  EXPECT_EQ(compile(spec).getStatus().message,
            "isRagged: expected no pages, lengths or documents beside sequences, got one of them");
}

TEST(PagedSpecTest, PagesOfAnySizeHaveKernels) {
  AttentionSpec spec;
  spec.headDim = 64, spec.hasLengths = true;
  spec.type = DataType::BF16;
  CompileOptions cuda;
  cuda.device = DeviceKind::CUDA;
  for (int64_t page : {1, 8, 17, 64}) {
    spec.pageSize = page;
    Result<KernelImage> image = emit(getSource(spec), cuda);
    EXPECT_TRUE(image) << page << ": " << image.getStatus().str();
  }
}
