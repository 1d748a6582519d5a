//===- Invoke.cpp - calls of compiled functions -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Invoke.h"

using namespace llvm;

namespace attn {

void addDescriptor(SmallVectorImpl<uint64_t> &slots, const void *data, ArrayRef<int64_t> shape,
                   ArrayRef<int64_t> strides) {
  uint64_t address = reinterpret_cast<uintptr_t>(data);
  slots.append({address, address, 0});
  slots.append(shape.begin(), shape.end());
  slots.append(strides.begin(), strides.end());
}

void callPacked(Jit::PackedFn function, MutableArrayRef<uint64_t> slots) {
  SmallVector<void *, 64> pointers;
  for (uint64_t &slot : slots)
    pointers.push_back(&slot);
  function(pointers.data());
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

} // namespace attn
