//===- Invoke.cpp - calls of compiled functions -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Invoke.h"

using namespace llvm;

namespace attn {

void KernelArguments::addMemRef(const Array &array) {
  addMemRef(array.data(), array.getShape(), array.getStrides());
}

void KernelArguments::addMemRef(const void *data, ArrayRef<int64_t> shape,
                                ArrayRef<int64_t> strides) {
  addScalar(data);
  addScalar(data);
  addScalar<int64_t>(0);
  for (int64_t extent : shape)
    addScalar(extent);
  for (int64_t stride : strides)
    addScalar(stride);
}

void KernelArguments::addScalar(ElementKind kind, double value) {
  // An array of one element has the same bytes, whatever the type.
  Expected<Array> element = Array::allocate(kind, {});
  uint64_t slot = 0;
  if (!element) {
    consumeError(element.takeError());
  } else {
    element->set(0, value);
    std::memcpy(&slot, element->data(), getByteSize(kind));
  }
  slots.push_back(slot);
}

void KernelArguments::call(Jit::PackedFn function) {
  SmallVector<void *, 64> pointers;
  for (uint64_t &slot : slots)
    pointers.push_back(&slot);
  function(pointers.data());
}

} // namespace attn
