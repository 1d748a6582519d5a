//===- ViewOps.cpp - views as tensors of their own --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Undefined elements (s19) stay the NaN that tensors start with, so that each leak shows.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Evaluator.h"
#include <algorithm>

using namespace llvm;
using namespace mlir;

namespace attn {

/// s18.
Error Evaluator::paged(PagedOp op, Frame &frame) {
  const DenseTensor &pool = *getTensor(op.getPool(), frame),
                    &table = *getTensor(op.getTable(), frame);
  ArrayRef<int64_t> pages = pool.getShape();
  int64_t size = pages[1], heads = pages[2], columns = pages[3], count = table.getShape()[1];
  Expected<TensorRef> view =
      allocate(op, op.getType(), {table.getShape()[0], heads, count * size, columns},
               pool.hasData() && table.hasData());
  if (!view)
    return view.takeError();
  for (int64_t entry = 0; entry < table.size() && (*view)->hasData(); ++entry) {
    int64_t page = table.data()[entry].i, batch = entry / count, first = entry % count * size;
    if (page < 0 || page >= pages[0])
      continue;
    for (int64_t row = 0; row < size; ++row)
      for (int64_t head = 0; head < heads; ++head)
        std::copy_n(pool.data() + ((page * size + row) * heads + head) * columns, columns,
                    (*view)->data() +
                        ((batch * heads + head) * count * size + first + row) * columns);
  }
  return set(op, op.getResult(), *view, frame);
}

namespace {
struct Sequence {
  int64_t begin, rows;
};
} // namespace

/// s20, of `total` rows, of which a view has at most `most`.
static Sequence getSequence(const DenseTensor &offsets, int64_t batch, int64_t total,
                            int64_t most) {
  int64_t begin = std::clamp<int64_t>(offsets.data()[batch].i, 0, total),
          end = std::clamp<int64_t>(offsets.data()[batch + 1].i, begin, total);
  return {begin, std::min(end - begin, most)};
}

int64_t Evaluator::countAvailable(ScoredOpInterface op, int64_t batch, int64_t row, int64_t keys,
                                  Frame &frame) {
  auto count = [&](mlir::Value tensor, int64_t most) {
    auto scaled = tensor.getDefiningOp<ScaledOp>();
    auto view = (scaled ? scaled.getSource() : tensor).getDefiningOp<RaggedOp>();
    if (!view)
      return most;
    int64_t total = getTensor(view.getRows(), frame)->getShape()[0];
    return getSequence(*getTensor(view.getOffsets(), frame), batch, total, most).rows;
  };
  return row < count(op.getQuery(), row + 1) ? count(op.getKey(), keys) : 0;
}

/// s20.
Error Evaluator::ragged(RaggedOp op, Frame &frame) {
  const DenseTensor &rows = *getTensor(op.getRows(), frame),
                    &offsets = *getTensor(op.getOffsets(), frame);
  Expected<int64_t> most = getIndex(op, op.getUpTo(), frame);
  if (!most)
    return most.takeError();
  ArrayRef<int64_t> shape = rows.getShape();
  int64_t heads = shape[1], columns = shape.size() == 3 ? shape[2] : 1,
          batches = offsets.getShape()[0] - 1;
  std::vector<int64_t> sizes = {batches, heads, *most};
  sizes.insert(sizes.end(), shape.begin() + 2, shape.end());
  Expected<TensorRef> view = allocate(op, op.getType(), sizes, rows.hasData() && offsets.hasData());
  if (!view)
    return view.takeError();
  for (int64_t batch = 0; batch < batches && (*view)->hasData(); ++batch) {
    Sequence sequence = getSequence(offsets, batch, shape[0], *most);
    for (int64_t row = 0; row < sequence.rows; ++row)
      for (int64_t head = 0; head < heads; ++head)
        std::copy_n(rows.data() + ((sequence.begin + row) * heads + head) * columns, columns,
                    (*view)->data() + ((batch * heads + head) * *most + row) * columns);
  }
  return set(op, op.getResult(), *view, frame);
}

/// s21.
Error Evaluator::place(PlaceOp op, Frame &frame) {
  const DenseTensor &source = *getTensor(op.getSource(), frame),
                    &offsets = *getTensor(op.getOffsets(), frame),
                    &dest = *getTensor(op.getDest(), frame);
  ArrayRef<int64_t> shape = dest.getShape();
  int64_t heads = shape[1], most = source.getShape()[2], batches = source.getShape()[0],
          columns = shape.size() == 3 ? shape[2] : 1;
  bool hasData = source.hasData() && offsets.hasData() && dest.hasData();
  Expected<TensorRef> result = allocate(op, op.getType(), shape, hasData);
  if (!result)
    return result.takeError();
  if (hasData)
    std::copy_n(dest.data(), dest.size(), (*result)->data());
  for (int64_t batch = 0; batch < batches && hasData; ++batch) {
    Sequence sequence = getSequence(offsets, batch, shape[0], most);
    for (int64_t row = 0; row < sequence.rows; ++row)
      for (int64_t head = 0; head < heads; ++head)
        std::copy_n(source.data() + ((batch * heads + head) * most + row) * columns, columns,
                    (*result)->data() + ((sequence.begin + row) * heads + head) * columns);
  }
  return set(op, op.getResult(), *result, frame);
}

/// s26. Numbers do not round here.
Error Evaluator::scaled(ScaledOp op, Frame &frame) {
  const DenseTensor &source = *getTensor(op.getSource(), frame),
                    &scale = *getTensor(op.getScale(), frame);
  ArrayRef<int64_t> shape = source.getShape(), scales = scale.getShape();
  bool hasData = source.hasData() && scale.hasData();
  Expected<TensorRef> view = allocate(op, op.getType(), shape, hasData);
  if (!view)
    return view.takeError();
  int64_t heads = shape[1], rows = shape[2], columns = shape[3];
  auto getScale = [&](int64_t batch, int64_t head, int64_t row) {
    if (scales.empty())
      return scale.data()[0].f;
    int64_t at = std::min(batch, scales[0] - 1) * scales[1] + head / (heads / scales[1]);
    return scale.data()[scales.size() < 3 ? at : at * scales[2] + row / *op.getBlock()].f;
  };
  for (int64_t i = 0; i < source.size() && hasData; ++i) {
    int64_t row = i / columns;
    (*view)->data()[i].f =
        source.data()[i].f * getScale(row / rows / heads, row / rows % heads, row % rows);
  }
  return set(op, op.getResult(), *view, frame);
}

Error Evaluator::executeView(mlir::Operation *op, Frame &frame) {
  if (auto pagedOp = dyn_cast<PagedOp>(op))
    return paged(pagedOp, frame);
  if (auto raggedOp = dyn_cast<RaggedOp>(op))
    return ragged(raggedOp, frame);
  if (auto scaledOp = dyn_cast<ScaledOp>(op))
    return scaled(scaledOp, frame);
  return place(cast<PlaceOp>(op), frame);
}

} // namespace attn
