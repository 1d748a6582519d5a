//===- CacheOps.cpp - rows on their way into caches -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// attn.append and attn.rotary, in f64. Numbers do not round here.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "lib/Interpreter/Evaluator.h"
#include <algorithm>

using namespace llvm;
using namespace mlir;

namespace attn {

/// Where a row goes, or nothing.
static std::optional<int64_t> findRow(const DenseTensor *slots, int64_t row, int64_t count) {
  if (!slots)
    return row;
  int64_t slot = slots->data()[row].i;
  return slot >= 0 && slot < count ? std::optional(slot) : std::nullopt;
}

namespace {
/// s28: the tables of a rotation, and which columns are a pair.
struct Rotation {
  const DenseTensor *positions, *cos, *sin;
  bool isInterleaved;

  /// Turns the columns of a head of row `row`.
  template <typename Number> void turn(int64_t row, Number *columns) const {
    int64_t lines = cos->getShape()[0], pairs = cos->getShape()[1];
    int64_t line = std::clamp<int64_t>(positions->data()[row].i, 0, lines - 1) * pairs;
    for (int64_t i = 0; i < pairs; ++i) {
      double &first = columns[isInterleaved ? 2 * i : i].f,
             &second = columns[isInterleaved ? 2 * i + 1 : i + pairs].f;
      double c = cos->data()[line + i].f, s = sin->data()[line + i].f, x = first, y = second;
      first = x * c - y * s;
      second = y * c + x * s;
    }
  }
};
} // namespace

Error Evaluator::moveRows(mlir::Operation *op, Frame &frame) {
  MovedRows rows = *MovedRows::find(op);
  auto find = [&](mlir::Value value) { return value ? &*getTensor(value, frame) : nullptr; };
  const DenseTensor &source = *find(rows.source), &dest = *find(rows.dest),
                    *slots = find(rows.slots);
  Rotation rotation{find(rows.positions), find(rows.cos), find(rows.sin), rows.isInterleaved};
  bool hasData = dest.hasData();
  for (const DenseTensor *read : {&source, slots, rotation.positions, rotation.cos, rotation.sin})
    hasData &= !read || read->hasData();
  ArrayRef<int64_t> shape = dest.getShape();
  Expected<TensorRef> result =
      allocate(op, cast<RankedTensorType>(op->getResult(0).getType()), shape, hasData);
  if (!result)
    return result.takeError();
  if (!hasData)
    return set(op, op->getResult(0), *result, frame);
  std::copy_n(dest.data(), dest.size(), (*result)->data());
  int64_t heads = source.getShape()[1], columns = source.getShape()[2];
  int64_t places = slots ? shape[0] * shape[1] : shape[0];
  for (int64_t row = 0; row < source.getShape()[0]; ++row) {
    std::optional<int64_t> place = findRow(slots, row, places);
    for (int64_t head = 0; place && head < heads; ++head) {
      auto *to = (*result)->data() + (*place * heads + head) * columns;
      std::copy_n(source.data() + (row * heads + head) * columns, columns, to);
      if (rotation.cos)
        rotation.turn(row, to);
    }
  }
  return set(op, op->getResult(0), *result, frame);
}

} // namespace attn
