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
#include <algorithm>
#include <cmath>
#include <cstring>

namespace attn::test {
namespace {

/// s20.
struct Place {
  int64_t begin, count;
};

Place findPlace(const std::vector<int64_t> &offsets, size_t batch, int64_t total, int64_t most) {
  int64_t begin = std::clamp<int64_t>(offsets[batch], 0, total),
          end = std::clamp<int64_t>(offsets[batch + 1], begin, total);
  return {begin, std::min(end - begin, most)};
}

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
    for (const std::vector<int64_t> *offsets : {&s.queryOffsets, &s.keyOffsets}) {
      Array &array = inputs.emplace_back().array;
      array = allocate(p.wideTable ? ElementKind::I64 : ElementKind::I32, {getSize(*offsets)});
      for (auto [i, offset] : llvm::enumerate(*offsets))
        array.set(i, double(offset));
    }
    for (int64_t most : {s.mostRows, s.mostKeys})
      inputs.emplace_back().array = allocate(ElementKind::I8, {most});
    poisonRows();
    Extents whole = {s.mostRows, s.mostKeys, countBatches(), s.heads, s.keyHeads};
    captured = makeInputs(variant, dense(), whole, ++seed);
    captured.erase(captured.begin(), captured.begin() + 3);
    for (size_t i = 0; i < variant.captures.size(); ++i)
      if (variant.captures[i].kind != Capture::Offsets)
        inputs.push_back(copy(captured[i]));
  }

  Problem dense() const {
    Problem problem = p;
    problem.isRagged = false;
    return problem;
  }

  int64_t countBatches() const { return getSize(s.queryOffsets) - 1; }

  std::vector<Array> allocatePlaced(ElementKind kind, ElementKind lse) const {
    std::vector<Array> results;
    results.push_back(allocate(kind, {s.rows, s.heads, p.dv}));
    if (p.withLse)
      results.push_back(allocate(lse, {s.rows, s.heads}));
    for (Array &result : results)
      result.poison();
    return results;
  }

  /// Rows of no sequence that is not poisoned keep what they hold.
  void expectUntouched(std::vector<Array> &results) const {
    std::vector<Array> before = allocatePlaced(results[0].getKind(), ElementKind::F32);
    std::vector<bool> isPlaced = findPlaced(/*withPoisoned=*/true);
    for (auto [result, held] : llvm::zip_equal(results, before)) {
      size_t bytes = s.rows ? result.getByteCount() / s.rows : 0;
      for (int64_t row = 0; row < s.rows; ++row)
        if (!isPlaced[row])
          EXPECT_EQ(std::memcmp(static_cast<char *>(result.data()) + row * bytes,
                                static_cast<char *>(held.data()) + row * bytes, bytes),
                    0)
              << "row " << row << " of no sequence was written";
    }
  }

  /// The rows of sequences, each computed by itself.
  std::vector<Array> computeEach(CompiledKernel &reference) {
    std::vector<Array> results = allocatePlaced(ElementKind::F64, ElementKind::F64);
    for (int64_t b = 0; b < countBatches(); ++b) {
      Place query = findPlace(s.queryOffsets, b, s.rows, s.mostRows),
            key = findPlace(s.keyOffsets, b, s.keys, s.mostKeys);
      if (query.count == 0 || b == s.poisoned)
        continue;
      Extents e = {query.count, key.count, 1, s.heads, s.keyHeads};
      std::vector<Input> alone = makeInputs(variant, dense(), e, 0);
      for (auto [i, place] : {std::pair(0, query), {1, key}, {2, key}})
        gather(inputs[i].array, place, alone[i].array);
      for (size_t i = 0; i < variant.captures.size(); ++i)
        if (variant.captures[i].kind == Capture::Lengths)
          alone[3 + i].array.set(0, captured[i].array.get(b));
        else if (variant.captures[i].kind != Capture::Offsets)
          alone[3 + i] = copy(captured[i]);
      std::vector<Array> of = callReference(reference, alone, dense(), e);
      for (auto [result, from] : llvm::zip_equal(results, of))
        scatter(from, query, result);
    }
    return results;
  }

  /// The rows of all sequences but the poisoned one.
  Array keepPlaced(Array &result) const {
    std::vector<bool> isPlaced = findPlaced(/*withPoisoned=*/false);
    int64_t width = s.rows ? result.size() / s.rows : 0, count = 0;
    Array kept = allocate(result.getKind(), {llvm::count(isPlaced, true), width});
    for (int64_t row = 0; row < s.rows; ++row)
      for (int64_t i = 0; i < width && isPlaced[row]; ++i)
        kept.set(count++, result.get(row * width + i));
    return kept;
  }

  std::vector<Input> inputs;

private:
  static int64_t getSize(const std::vector<int64_t> &offsets) { return int64_t(offsets.size()); }

  static Input copy(Input &from) {
    Input to;
    to.isScalar = from.isScalar;
    to.scalar = from.scalar;
    if (from.isScalar)
      return to;
    to.array = allocate(from.array.getKind(), from.array.getShape());
    for (int64_t i = 0; i < from.array.size(); ++i)
      to.array.set(i, from.array.get(i));
    return to;
  }

  std::vector<bool> findPlaced(bool withPoisoned) const {
    std::vector<bool> isPlaced(s.rows);
    for (int64_t b = 0; b < countBatches(); ++b) {
      Place place = findPlace(s.queryOffsets, b, s.rows, s.mostRows);
      for (int64_t row = place.begin; row < place.begin + place.count; ++row)
        if (withPoisoned || b != s.poisoned)
          isPlaced[row] = true;
    }
    return isPlaced;
  }

  /// NaN in rows of no sequence, and in the keys and values of the poisoned one.
  void poisonRows() {
    for (int i = 0; i < 3; ++i) {
      const std::vector<int64_t> &offsets = i ? s.keyOffsets : s.queryOffsets;
      int64_t total = i ? s.keys : s.rows, most = i ? s.mostKeys : s.mostRows;
      std::vector<bool> isRead(total);
      for (int64_t b = 0; b < countBatches(); ++b) {
        Place place = findPlace(offsets, b, total, most);
        for (int64_t row = place.begin; row < place.begin + place.count; ++row)
          isRead[row] = isRead[row] || b != s.poisoned;
      }
      Array &array = inputs[i].array;
      int64_t width = total ? array.size() / total : 0;
      for (int64_t at = 0; at < array.size(); ++at)
        if (!isRead[at / width])
          array.set(at, std::nan(""));
    }
  }

  /// (rows, H, D) to (1, H, count, D), and back.
  static void gather(Array &rows, Place place, Array &to) {
    int64_t heads = rows.getShape()[1], columns = rows.getShape()[2];
    for (int64_t at = 0; at < to.size(); ++at) {
      int64_t d = at % columns, m = at / columns % place.count, h = at / columns / place.count;
      to.set(at, rows.get(((place.begin + m) * heads + h) * columns + d));
    }
  }
  static void scatter(Array &from, Place place, Array &rows) {
    int64_t heads = rows.getShape()[1],
            columns = rows.getShape().size() > 2 ? rows.getShape()[2] : 1;
    for (int64_t at = 0; at < from.size(); ++at) {
      int64_t d = at % columns, m = at / columns % place.count, h = at / columns / place.count;
      rows.set(((place.begin + m) * heads + h) * columns + d, from.get(at));
    }
  }

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
    std::vector<Array> results = run.allocatePlaced(getElementKind(p.type), ElementKind::F32);
    if (llvm::Error error = kernels.device->run(run.inputs, results, p.memory, inputSeed)) {
      ADD_FAILURE() << llvm::toString(std::move(error)) << "\n" << makeSource(variant, p);
      return;
    }
    run.expectUntouched(results);
    if (s.isBroken)
      continue;
    std::vector<Array> expected = run.computeEach(*alone),
                       defined = run.allocatePlaced(ElementKind::F64, ElementKind::F64);
    call(*kernels.reference, run.inputs, defined);
    for (size_t i = 0; i < results.size(); ++i) {
      Array exact = run.keepPlaced(expected[i]), whole = run.keepPlaced(defined[i]),
            mine = run.keepPlaced(results[i]);
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
