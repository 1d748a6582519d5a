//===- TrainingSpecTest.cpp - what training says in include/attn/Compiler.h -===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Caps, ALiBi, documents, dropout and gradients of an AttentionSpec, against the definition in f64
// and its differences.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/SpecCall.h"
#include <cmath>
#include <functional>
#include <random>

using namespace attn;
using namespace attn::test;

namespace {
constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kRows = 5, kKeys = 9, kD = 8, kDv = 16;

/// One call of the attention of a spec, and of its gradients.
struct Call {
  explicit Call(const AttentionSpec &spec) : spec(spec) {
    this->spec.headDim = kD, this->spec.valueDim = kDv, this->spec.returnsLse = true;
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (Floats *floats : {&query, &key, &value, &sink, &dOutput})
      for (float &x : floats->data)
        x = normal(random);
    for (float &x : slopes.data)
      x = 0.1f + 0.2f * std::abs(normal(random));
  }

  void run();
  /// The scalar whose gradients are computed: the sum of output * d_output, by the definition.
  double define() const;
  bool isKept(int64_t b, int64_t m, int64_t n) const;
  /// Compares a gradient with differences of the definition.
  void expectGradient(Floats &of, const Floats &got, const char *name);

  AttentionSpec spec;
  Floats query{{kBatch, kHeads, kRows, kD}}, key{{kBatch, kKeyHeads, kKeys, kD}},
      value{{kBatch, kKeyHeads, kKeys, kDv}}, slopes{{kHeads}}, sink{{kHeads}};
  Floats output{{kBatch, kHeads, kRows, kDv}}, lse{{kBatch, kHeads, kRows}},
      dOutput{{kBatch, kHeads, kRows, kDv}};
  Floats dQuery{query.shape}, dKey{key.shape}, dValue{value.shape}, dSink{{kHeads}},
      dSlopes{{kHeads}};
  std::vector<int32_t> lengths = {6, 9}, queryIds = {0, 0, 1, 1, 2, 0, 1, 1, 1, 2},
                       keyIds = {0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 1, 1, 1, 1, 1, 2, 2};
  int64_t seed = 42;
};
} // namespace

void Call::run() {
  const std::vector<int64_t> one = {1}, batch = {kBatch}, rows = {kBatch, kRows},
                             keys = {kBatch, kKeys};
  std::vector<LaunchArgument> arguments = {query.view(), key.view(), value.view()};
  if (spec.hasLengths)
    arguments.emplace_back(makeView(lengths.data(), DataType::I32, batch));
  if (spec.hasDocuments) {
    arguments.emplace_back(makeView(queryIds.data(), DataType::I32, rows));
    arguments.emplace_back(makeView(keyIds.data(), DataType::I32, keys));
  }
  if (spec.hasAlibi)
    arguments.emplace_back(slopes.view());
  if (spec.dropout > 0)
    arguments.emplace_back(makeView(&seed, DataType::I64, one));
  if (spec.hasScale)
    arguments.emplace_back(0.4f);
  if (spec.hasSink)
    arguments.emplace_back(sink.view());
  ASSERT_NO_FATAL_FAILURE(callSpec(spec, false, arguments, {&output, &lse}));
  std::vector<Floats *> more = {&output, &lse, &dOutput, &dQuery, &dKey, &dValue};
  if (spec.hasSink)
    more.push_back(&dSink);
  if (spec.hasAlibi)
    more.push_back(&dSlopes);
  callSpec(spec, true, arguments, more);
}

bool Call::isKept(int64_t b, int64_t m, int64_t n) const {
  int64_t length = spec.hasLengths ? lengths[b] : kKeys, own = m + length - kRows;
  return n < length && (spec.causal != Causal::BottomRight || n <= own) &&
         (spec.windowLeft < 0 || n >= own - spec.windowLeft) &&
         (!spec.hasDocuments || queryIds[b * kRows + m] == keyIds[b * kKeys + n]);
}

double Call::define() const {
  double sum = 0;
  for (int64_t row = 0; row < kBatch * kHeads * kRows; ++row) {
    int64_t m = row % kRows, h = row / kRows % kHeads, b = row / kRows / kHeads;
    int64_t first = (b * kKeyHeads + h / (kHeads / kKeyHeads)) * kKeys;
    int64_t own = m + (spec.hasLengths ? lengths[b] : kKeys) - kRows;
    double total = spec.hasSink ? std::exp(double(sink.data[h])) : 0, weighted = 0;
    for (int64_t n = 0; n < kKeys; ++n) {
      if (!isKept(b, m, n))
        continue;
      double score = 0, product = 0;
      for (int64_t i = 0; i < kD; ++i)
        score += double(query.data[row * kD + i]) * key.data[(first + n) * kD + i];
      score *= spec.hasScale ? double(0.4f) : 1 / std::sqrt(double(kD));
      if (spec.softcap > 0)
        score = spec.softcap * std::tanh(score / spec.softcap);
      if (spec.hasAlibi)
        score -= double(slopes.data[h]) * double(std::abs(own - n));
      for (int64_t i = 0; i < kDv; ++i)
        product += double(value.data[(first + n) * kDv + i]) * dOutput.data[row * kDv + i];
      total += std::exp(score);
      weighted += std::exp(score) * product;
    }
    sum += total > 0 ? weighted / total : 0;
  }
  return sum;
}

void Call::expectGradient(Floats &of, const Floats &got, const char *name) {
  for (size_t i = 0; i < of.data.size(); ++i) {
    float kept = of.data[i];
    // Exact in f32, so that the difference is of what the definition reads.
    constexpr float step = 1.0f / 512;
    of.data[i] = kept + step;
    double above = define(), high = of.data[i];
    of.data[i] = kept - step;
    double below = define(), low = of.data[i];
    of.data[i] = kept;
    ASSERT_NEAR(got.data[i], (above - below) / (high - low), 3e-4) << name << "[" << i << "]";
  }
}

static double dot(const Floats &a, const Floats &b) {
  double sum = 0;
  for (size_t i = 0; i < a.data.size(); ++i)
    sum += double(a.data[i]) * b.data[i];
  return sum;
}

static void expectRight(const AttentionSpec &spec) {
  Call call(spec);
  ASSERT_NO_FATAL_FAILURE(call.run());
  EXPECT_NEAR(dot(call.output, call.dOutput), call.define(), 1e-4);
  call.expectGradient(call.query, call.dQuery, "query");
  call.expectGradient(call.key, call.dKey, "key");
  call.expectGradient(call.value, call.dValue, "value");
  if (spec.hasSink)
    call.expectGradient(call.sink, call.dSink, "sink");
  if (spec.hasAlibi)
    call.expectGradient(call.slopes, call.dSlopes, "slopes");
}

TEST(TrainingSpecTest, Gradients) {
  AttentionSpec spec;
  spec.causal = Causal::BottomRight, spec.hasScale = spec.hasSink = true, spec.windowLeft = 2;
  expectRight(spec);
}

TEST(TrainingSpecTest, AlibiAndItsSlopesAfterACap) {
  AttentionSpec spec;
  // Near enough that tanh is no straight line.
  spec.softcap = 0.75, spec.hasAlibi = spec.hasSink = true;
  expectRight(spec);
}

TEST(TrainingSpecTest, Documents) {
  AttentionSpec spec;
  spec.hasDocuments = true, spec.causal = Causal::BottomRight;
  expectRight(spec);
}

/// The cap is taken before the distance, which counts from the last key that the sequence has.
TEST(TrainingSpecTest, LengthsWithAll) {
  AttentionSpec spec;
  spec.hasLengths = spec.hasAlibi = spec.hasDocuments = true;
  spec.softcap = 0.75, spec.causal = Causal::BottomRight;
  expectRight(spec);
}

/// The definition cannot tell which weights are dropped. But the output is linear in the values, so
/// gradients have dropped what it dropped, and over many seeds nothing is lost.
TEST(TrainingSpecTest, DropoutOfGradientsIsThatOfTheOutput) {
  AttentionSpec spec;
  spec.dropout = 0.5, spec.causal = Causal::BottomRight;
  Call call(spec);
  ASSERT_NO_FATAL_FAILURE(call.run());
  double before = dot(call.output, call.dOutput);
  EXPECT_NEAR(before, dot(call.dValue, call.value), 1e-4);
  EXPECT_GT(std::abs(before - call.define()), 0.1) << "nothing was dropped";
  Floats first = call.output;
  ASSERT_NO_FATAL_FAILURE(call.run());
  EXPECT_EQ(call.output.data, first.data);
  call.seed = 43;
  ASSERT_NO_FATAL_FAILURE(call.run());
  EXPECT_NE(call.output.data, first.data);
  double mean = 0;
  constexpr int kSeeds = 100;
  for (call.seed = 0; call.seed < kSeeds; ++call.seed) {
    ASSERT_NO_FATAL_FAILURE(call.run());
    mean += dot(call.output, call.dOutput) / kSeeds;
  }
  EXPECT_NEAR(mean, call.define(), 3);
}

TEST(TrainingSpecTest, KernelsOfAGPU) {
  AttentionSpec spec;
  spec.type = DataType::BF16, spec.headDim = 64, spec.causal = Causal::BottomRight;
  spec.softcap = 30, spec.hasAlibi = spec.hasDocuments = true;
  CompileOptions cuda;
  cuda.device = DeviceKind::CUDA;
  cuda.way = "long";
  for (bool isGradient : {false, true}) {
    spec.isGradient = isGradient;
    Result<KernelImage> image = emit(getSource(spec), cuda);
    ASSERT_TRUE(bool(image)) << image.getStatus().str();
    EXPECT_NE(image->ptx.find("wgmma"), std::string::npos);
  }
}

/// Elements of 16 bits whose output, and whose gradients, are f32.
TEST(TrainingSpecTest, WideResults) {
  AttentionSpec spec;
  spec.type = DataType::F16, spec.headDim = 16, spec.returnsLse = true;
  auto getTypes = [&](bool isGradient) {
    spec.isGradient = isGradient;
    Result<CompiledFunction> function = compile(spec);
    EXPECT_TRUE(function) << function.getStatus().str();
    std::vector<DataType> types;
    for (const auto *values : {&function->getInfo().arguments, &function->getInfo().results})
      for (const ValueInfo &value : *values)
        types.push_back(value.type);
    return types;
  };
  using enum DataType;
  EXPECT_EQ(getTypes(false), (std::vector{F16, F16, F16, F16, F32}));
  EXPECT_EQ(getTypes(true), (std::vector{F16, F16, F16, F16, F32, F16, F16, F16, F16}));
  spec.outputType = F32;
  EXPECT_EQ(getTypes(false), (std::vector{F16, F16, F16, F32, F32}));
  EXPECT_EQ(getTypes(true), (std::vector{F16, F16, F16, F32, F32, F16, F16, F16, F16}));
  spec.hasWideGradients = true;
  EXPECT_EQ(getTypes(true), (std::vector{F16, F16, F16, F32, F32, F16, F32, F32, F32}));
  CompileOptions cuda;
  cuda.device = DeviceKind::CUDA;
  cuda.way = "long";
  spec.headDim = 64;
  for (const char *target : {"sm_90a", "sm_80", "sm_120a"}) {
    cuda.target = target;
    for (bool isGradient : {false, true}) {
      spec.isGradient = isGradient;
      Result<KernelImage> image = emit(getSource(spec), cuda);
      EXPECT_TRUE(bool(image)) << image.getStatus().str();
    }
  }
  spec.isGradient = false, spec.isRagged = true;
  EXPECT_TRUE(bool(emit(getSource(spec), cuda)));
}

TEST(TrainingSpecTest, WordsThatContradict) {
  auto getError = [](const std::function<void(AttentionSpec &)> &change) {
    AttentionSpec spec;
    spec.headDim = 16;
    change(spec);
    return compile(spec).getStatus().str();
  };
  constexpr const char *whole =
      "invalid argument: isGradient: expected keys and values in one piece, got pages or sequences";
  EXPECT_EQ(getError([](AttentionSpec &s) { s.isGradient = true, s.pageSize = 8; }), whole);
  EXPECT_EQ(getError([](AttentionSpec &s) { s.isGradient = s.isRagged = true; }), whole);
  EXPECT_EQ(getError([](AttentionSpec &s) { s.isGradient = true, s.type = DataType::F8E5M2; }),
            "invalid argument: isGradient: expected f16, bf16 or f32, got f8E5M2");
  EXPECT_EQ(getError([](AttentionSpec &s) { s.softcap = -1; }),
            "invalid argument: softcap: expected a number from 0 on, got -1.000000");
  EXPECT_EQ(getError([](AttentionSpec &s) { s.dropout = 1.5; }),
            "invalid argument: dropout: expected a probability from 0 to 1, got 1.500000");
  EXPECT_EQ(getError([](AttentionSpec &s) { s.isRagged = s.hasDocuments = true; }),
            "invalid argument: isRagged: expected no pages, lengths or documents beside sequences, "
            "got one of them (write the source with attn.ragged and attn.paged)");
}
