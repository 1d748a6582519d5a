//===- Sequences.cpp - sequences of any lengths, one after the other -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Sequences.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace attn::test {

Place findPlace(const Sequences &s, int64_t batch, bool ofKeys) {
  const std::vector<int64_t> &offsets = ofKeys ? s.keyOffsets : s.queryOffsets;
  int64_t total = ofKeys ? s.keys : s.rows, most = ofKeys ? s.mostKeys : s.mostRows;
  int64_t begin = std::clamp<int64_t>(offsets[batch], 0, total),
          end = std::clamp<int64_t>(offsets[batch + 1], begin, total);
  return {begin, std::min(end - begin, most)};
}

std::vector<bool> findPlaced(const Sequences &s, bool ofKeys, bool withPoisoned) {
  std::vector<bool> isPlaced(ofKeys ? s.keys : s.rows);
  for (int64_t b = 0; b < s.countBatches(); ++b) {
    Place place = findPlace(s, b, ofKeys);
    for (int64_t row = place.begin; row < place.begin + place.count; ++row)
      if (withPoisoned || b != s.poisoned)
        isPlaced[row] = true;
  }
  return isPlaced;
}

void addOffsets(const Sequences &s, const Problem &p, std::vector<Input> &inputs) {
  for (const std::vector<int64_t> *offsets : {&s.queryOffsets, &s.keyOffsets}) {
    Array &array = inputs.emplace_back().array;
    array = allocate(p.wideTable ? ElementKind::I64 : ElementKind::I32, {int64_t(offsets->size())});
    for (auto [i, offset] : llvm::enumerate(*offsets))
      array.set(i, double(offset));
  }
  for (int64_t most : {s.mostRows, s.mostKeys})
    inputs.emplace_back().array = allocate(ElementKind::I8, {most});
}

/// The element of all rows that is element `at` of one sequence's (1, H, count, D).
static int64_t findElement(Array &rows, Place place, int64_t at) {
  int64_t heads = rows.getShape()[1], columns = rows.getShape().size() > 2 ? rows.getShape()[2] : 1;
  int64_t d = at % columns, m = at / columns % place.count, h = at / columns / place.count;
  return ((place.begin + m) * heads + h) * columns + d;
}

void gather(Array &rows, Place place, Array &to) {
  for (int64_t at = 0; at < to.size(); ++at)
    to.set(at, rows.get(findElement(rows, place, at)));
}

void scatter(Array &from, Place place, Array &rows) {
  for (int64_t at = 0; at < from.size(); ++at)
    rows.set(findElement(rows, place, at), from.get(at));
}

static int64_t getWidth(Array &rows) {
  int64_t count = rows.getShape().front();
  return count ? rows.size() / count : 0;
}

void poisonOthers(Array &rows, const std::vector<bool> &isPlaced) {
  for (int64_t at = 0, width = getWidth(rows); at < rows.size(); ++at)
    if (!isPlaced[at / width])
      rows.set(at, std::nan(""));
}

Array keepPlaced(Array &rows, const std::vector<bool> &isPlaced) {
  int64_t width = getWidth(rows), count = 0;
  Array kept = allocate(rows.getKind(), {llvm::count(isPlaced, true), width});
  for (int64_t at = 0; at < rows.size(); ++at)
    if (isPlaced[at / width])
      kept.set(count++, rows.get(at));
  return kept;
}

void expectUntouched(Array &rows, Array &before, const std::vector<bool> &isPlaced) {
  size_t bytes = isPlaced.empty() ? 0 : rows.getByteCount() / isPlaced.size();
  for (auto [row, isIn] : llvm::enumerate(isPlaced))
    if (!isIn)
      EXPECT_EQ(std::memcmp(static_cast<char *>(rows.data()) + row * bytes,
                            static_cast<char *>(before.data()) + row * bytes, bytes),
                0)
          << "row " << row << " of no sequence was written";
}

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

std::vector<Input> makeCaptured(const Variant &variant, const Problem &dense, const Extents &whole,
                                uint64_t seed) {
  std::vector<Input> captured = makeInputs(variant, dense, whole, seed);
  captured.erase(captured.begin(), captured.begin() + 3);
  return captured;
}

void addCaptured(const Variant &variant, std::vector<Input> &captured, std::vector<Input> &inputs) {
  for (auto [capture, input] : llvm::zip_equal(variant.captures, captured))
    if (capture.kind != Capture::Offsets)
      inputs.push_back(copy(input));
}

void takeCaptured(const Variant &variant, std::vector<Input> &captured, int64_t batch,
                  std::vector<Input> &alone) {
  for (size_t i = 0; i < variant.captures.size(); ++i)
    if (variant.captures[i].kind == Capture::Lengths)
      alone[3 + i].array.set(0, captured[i].array.get(batch));
    else if (variant.captures[i].kind != Capture::Offsets)
      alone[3 + i] = copy(captured[i]);
}

} // namespace attn::test
