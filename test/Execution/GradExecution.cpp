//===- GradExecution.cpp - gradients against the f64 reference ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GradExecution.h"
#include "lib/Support/Compare.h"
#include "test/Execution/GradProblem.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

namespace attn::test {

/// What the terms of a captured tensor's or a sink's gradient are near: of slopes distances, whose
/// root mean square over a square is a 2.4th of the longest.
static double getTermScale(const Variant &variant, size_t i, const Extents &e) {
  std::vector<Capture> trained = getTrained(variant);
  size_t first = 3 + hasSink(variant);
  bool isSlope = i >= first && trained[i - first].kind == Capture::Slopes;
  return isSlope ? std::max(1.0, double(std::max(e.m, e.n)) / 2.4) : 1;
}

GradExecution::Kernels GradExecution::compile(const Variant &variant, const Problem &problem) {
  std::string source = makeGradSource(variant, problem);
  SCOPED_TRACE(source);
  module = sources.parse(source);
  EXPECT_TRUE(module);
  if (!module)
    return {};
  ++numCompiles;
  llvm::Expected<std::unique_ptr<TestKernel>> kernel =
      getOptions().device->compile(*module, problem);
  if (!kernel)
    ADD_FAILURE() << llvm::toString(kernel.takeError());
  if (!kernel || !*kernel)
    return {};
  // Of any extents, so that the reference knows no tile.
  Problem forward = problem;
  forward.extents = std::nullopt;
  forward.isRagged = false;
  Variant exact = variant;
  if (variant.large)
    exact.text = variant.large->reference;
  Problem backward = forward;
  forward.withLse = true;
  Kernels kernels = {std::move(*kernel), sources.define(makeSource(exact, forward)),
                     sources.define(makeGradSource(exact, backward))};
  EXPECT_TRUE(kernels.attention && kernels.gradients);
  return kernels.attention && kernels.gradients ? std::move(kernels) : Kernels();
}

void GradExecution::check(const Variant &variant, const Problem &problem,
                          const std::vector<Extents> &extents) {
  Kernels kernels = compile(variant, problem);
  SCOPED_TRACE(makeGradSource(variant, problem));
  if (kernels.device)
    for (const Extents &e : extents)
      run(variant, problem, e, kernels);
}

/// What is no number in keys and values that no row keeps: those whose values have no gradient.
/// Returns whether there are such.
static bool spoilDroppedKeys(std::vector<Input> &inputs, Array &valueGradients) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double garbage[] = {std::nan(""), infinity, -infinity};
  int64_t columns = valueGradients.getShape().back(), numSpoilt = 0;
  for (int64_t key = 0; key < valueGradients.size() / columns; ++key) {
    auto isZero = [&](int64_t i) { return valueGradients.get(key * columns + i) == 0; };
    if (!llvm::all_of(llvm::seq(columns), isZero))
      continue;
    ++numSpoilt;
    for (Array *array : {&inputs[1].array, &inputs[2].array})
      for (int64_t i = 0, count = array->getShape().back(); i < count; ++i)
        array->set(key * count + i, garbage[(key + i) % 3]);
  }
  return numSpoilt > 0;
}

void GradExecution::run(const Variant &variant, const Problem &p, const Extents &e,
                        const Kernels &kernels) {
  seed += 1000;
  SCOPED_TRACE(llvm::formatv("{0} B={1} H={2} Hkv={3} M={4} N={5} seed={6}", variant.name, e.batch,
                             e.heads, e.keyHeads, e.m, e.n, seed)
                   .str());
  std::vector<Input> inputs = makeGradInputs(variant, p, e, seed);
  addAttention(*kernels.attention, inputs, p, e, hasLow(variant, p));
  ++numRuns;
  std::vector<Array> expected = allocateGradients(ElementKind::F64, ElementKind::F64, variant,
                                                  inputs, p, e, Memory::RowMajor);
  call(*kernels.gradients, inputs, expected);
  ElementKind kind = getElementKind(p.getResultType());
  std::vector<Array> results =
      allocateGradients(kind, ElementKind::F32, variant, inputs, p, e, p.memory);
  // Captured tensors' gradients are the last.
  kernels.device->isAddedTo = [numOthers = results.size() - getTrained(variant).size()](size_t i) {
    return i >= numOthers || (i == 0 && getOptions().fused);
  };
  kernels.device->takeWay(0);
  if (llvm::Error error = kernels.device->run(inputs, results, p.memory, seed)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return;
  }
  std::vector<std::string> names = {"d_query", "d_key", "d_value"};
  if (hasSink(variant))
    names.push_back("d_sink");
  for (const Capture &capture : getTrained(variant))
    names.push_back(std::string("d_") + (capture.name + 1));
  auto expectClose = [&](Array &result, size_t i) {
    // Of sinks and captured tensors: sums over rows too, whose terms may cancel.
    bool isSum = i >= 3;
    int64_t numTerms = i == 0 ? e.n : e.m * (e.heads / e.keyHeads);
    double least = isSum ? getTermScale(variant, i, e) : getLeastGradient(p, numTerms);
    if (variant.large && i < 2)
      least *= getLargeScale(variant, inputs, i);
    // Whatever the output was rounded to.
    bool isCaptured = i >= results.size() - getTrained(variant).size();
    EXPECT_LE(getError(result, expected[i], least),
              (isSum ? 4 : 1) * getGradBound(variant, isCaptured ? "f32" : p.type, e))
        << names[i];
  };
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(llvm::cantFail(compare(results[i], expected[i])).numUnwritten, 0) << names[i];
    expectClose(results[i], i);
  }
  auto expectSame = [&](unsigned way, const std::string &what) {
    kernels.device->takeWay(way);
    std::vector<Array> again =
        allocateGradients(kind, ElementKind::F32, variant, inputs, p, e, p.memory);
    if (llvm::Error error = kernels.device->run(inputs, again, p.memory, seed)) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      return;
    }
    for (auto [i, result, other] : llvm::enumerate(results, again)) {
      if (kernels.device->isAddedTo(i) && kernels.device->addsInAnyOrder()) {
        expectClose(other, i);
        continue;
      }
      EXPECT_EQ(std::memcmp(result.data(), other.data(), result.getByteCount()), 0)
          << names[i] << " depends on " << what << ": "
          << llvm::cantFail(compare(other, result)).numNaN << " NaN";
    }
  };
  unsigned numWays = kernels.device->getNumWays();
  for (unsigned way = 1; way < numWays; ++way)
    expectSame(way, "the way that a kernel takes");
  // A factor of 0 takes the gradient from a value, but not its key from a row. So does a score far
  // below the row's largest.
  if (!variant.hasFactors() && !variant.large && spoilDroppedKeys(inputs, expected[2]))
    for (unsigned way = 0; way < numWays; ++way)
      expectSame(way, "keys that no row keeps");
}

} // namespace attn::test
