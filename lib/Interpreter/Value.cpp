//===- Value.cpp - what the interpreter computes with -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Value.h"
#include "lib/Support/Memory.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace llvm;

namespace attn {

Expected<TensorRef> DenseTensor::create(ArrayRef<int64_t> shape, bool isFloat, bool hasData) {
  Expected<int64_t> bytes = countBytes(ElementKind::F64, shape);
  if (!bytes)
    return bytes.takeError();
  // Asking the system costs more than a small allocation.
  constexpr int64_t small = int64_t(1) << 24;
  if (hasData && *bytes > small)
    if (Error error = checkAvailableMemory(*bytes, "a tensor of " + formatShape(shape)))
      return std::move(error);
  auto tensor = std::make_shared<DenseTensor>();
  tensor->shape.assign(shape.begin(), shape.end());
  tensor->numElements = *bytes / int64_t(sizeof(Lane));
  tensor->isFloating = isFloat;
  tensor->isFilled = hasData;
  Lane initial = {.i = 0};
  if (isFloat)
    initial.f = std::numeric_limits<double>::quiet_NaN();
  if (hasData)
    tensor->elements.assign(tensor->numElements, initial);
  return tensor;
}

Expected<TensorRef> DenseTensor::fromArray(const Array &array) {
  Expected<TensorRef> tensor = create(array.getShape(), attn::isFloat(array.getKind()));
  if (!tensor || (*tensor)->numElements == 0)
    return tensor;
  Lane *lanes = (*tensor)->data();
  if ((*tensor)->isFloating) {
    std::vector<double> numbers(array.size());
    array.read(0, numbers);
    for (auto [lane, number] : zip_equal((*tensor)->elements, numbers))
      lane.f = number;
    return tensor;
  }
  // Not by way of doubles: they cannot hold every i64.
  array.forEachRun(0, array.size(), [&](char *from, int64_t stride, int64_t length, int64_t at) {
    for (int64_t i = 0; i < length; ++i)
      switch (array.getKind()) {
      case ElementKind::I1:
        lanes[at + i].i = reinterpret_cast<int8_t *>(from)[i * stride] ? -1 : 0;
        break;
      case ElementKind::I8:
        lanes[at + i].i = reinterpret_cast<int8_t *>(from)[i * stride];
        break;
      case ElementKind::I32:
        lanes[at + i].i = reinterpret_cast<int32_t *>(from)[i * stride];
        break;
      default:
        lanes[at + i].i = reinterpret_cast<int64_t *>(from)[i * stride];
      }
  });
  return tensor;
}

Expected<Array> DenseTensor::toArray(ElementKind kind) const {
  if (!isFilled)
    return createStringError("expected a tensor with data, got a shape only");
  Expected<Array> array = Array::allocate(kind, shape);
  if (!array || numElements == 0)
    return array;
  std::vector<double> numbers(numElements);
  for (auto [number, lane] : zip_equal(numbers, elements))
    number = isFloating ? lane.f : kind == ElementKind::I1 ? lane.i != 0 : double(lane.i);
  array->write(0, numbers);
  return array;
}

Error Slice::check(ArrayRef<int64_t> shape) const {
  if (offsets.size() != shape.size())
    return createStringError("expected a slice of rank " + Twine(shape.size()) + ", got rank " +
                             Twine(offsets.size()));
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    __int128 first = offsets[dim], last = first + __int128(sizes[dim] - 1) * strides[dim];
    if (sizes[dim] < 0)
      return createStringError("expected sizes of 0 or more, got " + Twine(sizes[dim]) +
                               " in dimension " + Twine(dim));
    // An empty slice reads nothing, wherever it is.
    if (sizes[dim] > 0 && (std::min(first, last) < 0 || std::max(first, last) >= shape[dim]))
      return createStringError("expected a slice within dimension " + Twine(dim) + " of extent " +
                               Twine(shape[dim]) + ", got offset " + Twine(offsets[dim]) +
                               ", size " + Twine(sizes[dim]) + ", stride " + Twine(strides[dim]));
  }
  return Error::success();
}

int64_t Slice::size() const {
  int64_t product = 1;
  for (int64_t extent : sizes)
    product *= extent;
  return product;
}

void Slice::forEachRun(ArrayRef<int64_t> shape,
                       function_ref<void(int64_t, int64_t, int64_t)> fn) const {
  if (is_contained(sizes, 0))
    return;
  size_t rank = shape.size();
  if (rank == 0)
    return fn(0, 1, 1);
  SmallVector<int64_t, 4> index(rank, 0);
  while (true) {
    int64_t position = 0;
    for (size_t dim = 0; dim < rank; ++dim)
      position = position * shape[dim] + offsets[dim] + index[dim] * strides[dim];
    fn(position, strides[rank - 1], sizes[rank - 1]);
    size_t dim = rank - 1;
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return;
  }
}

} // namespace attn
