//===- RaggedExecution.cpp - sequences against each by itself ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Compare.h"
#include "lib/Support/Random.h"
#include "test/Execution/Execution.h"
#include "gtest/gtest.h"
#include <cmath>

namespace attn::test {
namespace {

/// One call: its inputs, and what the device and the reference make of them.
class RaggedRun {
public:
  RaggedRun(const Variant &variant, const Problem &p, const Sequences &s, uint64_t seed)
      : variant(variant), p(p), s(s) {
    ElementKind kind = getElementKind(p.type);
    for (auto [rows, heads, columns] : {std::tuple(s.rows, s.heads, p.d),
                                        {s.keys, s.keyHeads, p.d},
                                        {s.keys, s.keyHeads, p.dv}}) {
      inputs.emplace_back().array = allocate(kind, {rows, heads, columns});
      fillNormal(inputs.back().array, ++seed);
    }
    addOffsets(s, p, inputs);
    for (auto [input, ofKeys] : {std::pair(0, false), {1, true}, {2, true}})
      poisonOthers(inputs[input].array, findPlaced(s, ofKeys, /*withPoisoned=*/false));
    Extents whole = {s.mostRows, s.mostKeys, s.countBatches(), s.heads, s.keyHeads};
    captured = makeCaptured(variant, dense(), whole, ++seed);
    addCaptured(variant, captured, inputs);
  }

  Problem dense() const {
    Problem problem = p;
    problem.isRagged = false;
    return problem;
  }

  std::vector<Array> allocatePlaced(ElementKind kind, ElementKind lse) const {
    std::vector<Array> results;
    results.push_back(allocate(kind, {s.rows, s.heads, p.dv}));
    if (p.withLse)
      results.push_back(allocate(lse, {s.rows, s.heads}));
    for (Array &result : results)
      result.poison();
    return results;
  }

  void expectOthersUntouched(std::vector<Array> &results) const {
    std::vector<Array> before = allocatePlaced(results[0].getKind(), ElementKind::F32);
    if (p.clears)
      before[0].fill(0);
    std::vector<bool> isPlaced = findPlaced(s, /*ofKeys=*/false, /*withPoisoned=*/true);
    for (auto [result, held] : llvm::zip_equal(results, before))
      expectUntouched(result, held, isPlaced);
  }

  /// The rows of sequences, each computed by itself.
  std::vector<Array> computeEach(CompiledKernel &reference) {
    std::vector<Array> results = allocatePlaced(ElementKind::F64, ElementKind::F64);
    for (int64_t b = 0; b < s.countBatches(); ++b) {
      Place query = findPlace(s, b, /*ofKeys=*/false), key = findPlace(s, b, /*ofKeys=*/true);
      if (query.count == 0 || b == s.poisoned)
        continue;
      Extents e = {query.count, key.count, 1, s.heads, s.keyHeads};
      std::vector<Input> alone = makeInputs(variant, dense(), e, 0);
      for (auto [i, place] : {std::pair(0, query), {1, key}, {2, key}})
        gather(inputs[i].array, place, alone[i].array);
      takeCaptured(variant, captured, b, alone);
      std::vector<Array> of = callReference(reference, alone, dense(), e);
      for (auto [result, from] : llvm::zip_equal(results, of))
        scatter(from, query, result);
    }
    return results;
  }

  std::vector<Input> inputs;

private:
  const Variant &variant;
  const Problem &p;
  const Sequences &s;
  /// What the variant captures, for all sequences.
  std::vector<Input> captured;
};

} // namespace

void Execution::checkRagged(const Variant &variant, const Problem &p,
                            const std::vector<Sequences> &sequences) {
  SCOPED_TRACE(variant.name + " " + p.type + " D=" + std::to_string(p.d) +
               " block=" + std::to_string(p.blockM) + "x" + std::to_string(p.blockN));
  Problem dense = p;
  dense.isRagged = false;
  Kernels kernels = compile(variant, p);
  std::unique_ptr<CompiledKernel> alone = sources.define(makeSource(variant, dense));
  if (!kernels.device || !alone)
    return;
  for (auto [number, s] : llvm::enumerate(sequences)) {
    uint64_t inputSeed = seed + 1000 * uint64_t(++numRuns);
    SCOPED_TRACE("sequences " + std::to_string(number) + " seed=" + std::to_string(inputSeed));
    RaggedRun run(variant, p, s, inputSeed);
    std::vector<Array> results =
        run.allocatePlaced(getElementKind(p.getResultType()), ElementKind::F32);
    if (llvm::Error error = kernels.device->run(run.inputs, results, p.memory, inputSeed)) {
      ADD_FAILURE() << llvm::toString(std::move(error)) << "\n" << makeSource(variant, p);
      return;
    }
    run.expectOthersUntouched(results);
    if (s.isBroken)
      continue;
    std::vector<Array> expected = run.computeEach(*alone),
                       defined = run.allocatePlaced(ElementKind::F64, ElementKind::F64);
    call(*kernels.reference, run.inputs, defined);
    std::vector<bool> isPlaced = findPlaced(s, /*ofKeys=*/false, /*withPoisoned=*/false);
    for (size_t i = 0; i < results.size(); ++i) {
      Array exact = keepPlaced(expected[i], isPlaced), whole = keepPlaced(defined[i], isPlaced),
            mine = keepPlaced(results[i], isPlaced);
      Extents e = {s.mostRows, s.mostKeys};
      double bound = i ? kF32Bound
                       : getBound(p, !variant.text.empty(), e) /
                             std::sqrt(std::max(1 - getShareOfZeros(exact), 1e-6));
      if (llvm::any_of(variant.captures, [](auto &c) { return c.kind == Capture::Slopes; }))
        bound += 0x1p-22 * double(std::max(e.m, e.n));
      Comparison ofDefinition = llvm::cantFail(compare(whole, exact)),
                 c = llvm::cantFail(compare(mine, exact));
      EXPECT_TRUE(ofDefinition.numNaN == 0 && ofDefinition.isWithin(1e-9))
          << "result " << i << " of the definition: max relative " << ofDefinition.maxRelative
          << ", " << ofDefinition.numNaN << " NaN\n"
          << makeSource(variant, p);
      EXPECT_TRUE(c.numUnwritten == 0 && c.numNaN == 0 && c.isWithin(bound))
          << "result " << i << ": max relative " << c.maxRelative << " at " << c.worst << ", bound "
          << bound << ", " << c.numNaN << " NaN, " << c.numUnwritten << " unwritten\n"
          << makeSource(variant, p);
      numMismatches += !c.isWithin(bound);
    }
  }
}

} // namespace attn::test
