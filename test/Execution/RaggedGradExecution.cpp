//===- RaggedGradExecution.cpp - gradients of sequences, each by itself --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Compare.h"
#include "test/Execution/GradExecution.h"
#include "test/Execution/GradProblem.h"
#include "gtest/gtest.h"

namespace attn::test {
namespace {

/// One call: its inputs, and the gradients of each sequence by itself.
class RaggedGradRun {
public:
  RaggedGradRun(const Variant &variant, const Problem &p, const Sequences &s, uint64_t seed)
      : variant(variant), p(p), s(s), seed(seed) {
    dense.isRagged = false;
    Extents whole = {s.mostRows, s.mostKeys, s.countBatches(), s.heads, s.keyHeads};
    captured = makeCaptured(variant, dense, whole, seed);
  }

  /// d_query, d_key and d_value of all rows, poisoned.
  std::vector<Array> allocateRows(ElementKind kind) const {
    std::vector<Array> results;
    results.push_back(allocate(kind, {s.rows, s.heads, p.d}));
    results.push_back(allocate(kind, {s.keys, s.keyHeads, p.d}));
    results.push_back(allocate(kind, {s.keys, s.keyHeads, p.dv}));
    for (Array &result : results)
      result.poison();
    return results;
  }

  /// Draws each sequence, and computes its gradients. Rows of no sequence, and all that the
  /// poisoned one has, are NaN.
  std::vector<Array> compute(CompiledKernel &attention, CompiledKernel &gradients) {
    std::vector<Array> expected = allocateRows(ElementKind::F64);
    size_t numCaptured = variant.captures.size();
    bool withLow = hasLow(variant, p);
    ElementKind kind = getElementKind(p.type);
    matrices = allocateRows(kind);
    for (ElementKind each : {kind, getElementKind(p.getResultType())})
      matrices.push_back(allocate(each, {s.rows, s.heads, p.dv}));
    for (int i = 0; i < 2 + withLow; ++i)
      numbers.push_back(allocate(ElementKind::F32, {s.rows, s.heads}));
    for (int64_t b = 0; b < s.countBatches(); ++b) {
      Place query = findPlace(s, b, /*ofKeys=*/false), key = findPlace(s, b, /*ofKeys=*/true);
      if ((query.count == 0 && key.count == 0) || b == s.poisoned)
        continue;
      Extents e = {query.count, key.count, 1, s.heads, s.keyHeads};
      std::vector<Input> alone = makeGradInputs(variant, dense, e, seed + 10 * uint64_t(b));
      takeCaptured(variant, captured, b, alone);
      addAttention(attention, alone, dense, e, withLow);
      // Query, key, value, captures, d_output, d_lse, output, lse and perhaps lse_low.
      scatter(alone[0].array, query, matrices[0]);
      for (size_t i : {1, 2})
        scatter(alone[i].array, key, matrices[i]);
      for (size_t i : {0, 1})
        scatter(alone[3 + numCaptured + 2 * i].array, query, matrices[3 + i]);
      for (size_t i = 0; i < numbers.size(); ++i)
        scatter(alone[3 + numCaptured + (i == 2 ? 4 : 1 + 2 * i)].array, query, numbers[i]);
      std::vector<Array> of = allocateGradients(ElementKind::F64, ElementKind::F64, variant, alone,
                                                dense, e, Memory::RowMajor);
      call(gradients, alone, of);
      for (size_t i : {0, 1, 2})
        scatter(of[i], i ? key : query, expected[i]);
    }
    std::vector<bool> rows = findPlaced(s, /*ofKeys=*/false, /*withPoisoned=*/false),
                      keys = findPlaced(s, /*ofKeys=*/true, /*withPoisoned=*/false);
    for (auto [i, matrix] : llvm::enumerate(matrices))
      poisonOthers(matrix, i == 1 || i == 2 ? keys : rows);
    for (Array &number : numbers)
      poisonOthers(number, rows);
    return expected;
  }

  /// In the order of the function's arguments.
  std::vector<Input> takeInputs() {
    std::vector<Input> inputs;
    auto add = [&](Array &array) { inputs.emplace_back().array = std::move(array); };
    for (size_t i : {0, 1, 2})
      add(matrices[i]);
    addOffsets(s, p, inputs);
    addCaptured(variant, captured, inputs);
    for (size_t i : {0, 1}) {
      add(matrices[3 + i]);
      add(numbers[i]);
    }
    if (numbers.size() > 2)
      add(numbers[2]);
    return inputs;
  }

private:
  const Variant &variant;
  const Problem &p;
  Problem dense = p;
  const Sequences &s;
  uint64_t seed;
  /// What the variant captures, for all sequences.
  std::vector<Input> captured;
  /// Query, key, value, d_output and output; d_lse, lse and perhaps lse_low.
  std::vector<Array> matrices, numbers;
};

} // namespace

void GradExecution::checkRagged(const Variant &variant, const Problem &problem,
                                const std::vector<Sequences> &sequences) {
  Kernels kernels = compile(variant, problem);
  if (!kernels.device)
    return;
  std::string source = makeGradSource(variant, problem);
  SCOPED_TRACE(source);
  auto definition = sources.define(source);
  ASSERT_TRUE(definition);
  const char *const names[] = {"d_query", "d_key", "d_value"};
  for (auto [number, s] : llvm::enumerate(sequences)) {
    seed += 1000;
    ++numRuns;
    SCOPED_TRACE(variant.name + " sequences " + std::to_string(number) +
                 " seed=" + std::to_string(seed));
    RaggedGradRun run(variant, problem, s, seed);
    std::vector<Array> expected = run.compute(*kernels.attention, *kernels.gradients),
                       defined = run.allocateRows(ElementKind::F64),
                       results = run.allocateRows(getElementKind(problem.getResultType())),
                       before = run.allocateRows(getElementKind(problem.getResultType()));
    for (Array &held : before)
      if (problem.clears)
        held.fill(0);
    std::vector<Input> inputs = run.takeInputs();
    if (llvm::Error error = kernels.device->run(inputs, results, problem.memory, seed)) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      return;
    }
    if (!s.isBroken)
      call(*definition, inputs, defined);
    for (size_t i = 0; i < results.size(); ++i) {
      expectUntouched(results[i], before[i], findPlaced(s, /*ofKeys=*/i > 0, true));
      if (s.isBroken)
        continue;
      std::vector<bool> isPlaced = findPlaced(s, /*ofKeys=*/i > 0, /*withPoisoned=*/false);
      Array exact = keepPlaced(expected[i], isPlaced), whole = keepPlaced(defined[i], isPlaced),
            mine = keepPlaced(results[i], isPlaced);
      EXPECT_EQ(llvm::cantFail(compare(mine, exact)).numUnwritten, 0) << names[i];
      double least = getLeastGradient(problem, i == 0 ? s.mostKeys : s.mostRows);
      EXPECT_LE(getError(whole, exact, least), 1e-9) << names[i] << " of the definition";
      EXPECT_LE(getError(mine, exact, least),
                getGradBound(variant, problem.type, {s.mostRows, s.mostKeys}))
          << names[i];
    }
  }
}

} // namespace attn::test
