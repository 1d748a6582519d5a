//===- Invoke.h - calls of compiled functions -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_INVOKE_H
#define ATTN_LIB_TARGET_CPU_INVOKE_H

#include "lib/Support/Array.h"
#include "lib/Target/CPU/Jit.h"
#include "llvm/ADT/bit.h"
#include <cstring>
#include <type_traits>

namespace attn {

/// Adds a ranked memref, 3 + 2 * rank arguments: allocated pointer, aligned pointer, offset, sizes,
/// strides (in elements). Every lowered argument fits a slot of eight bytes.
void addDescriptor(llvm::SmallVectorImpl<uint64_t> &slots, const void *data,
                   llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

/// Calls a packed function without result.
void callPacked(Jit::PackedFn function, llvm::MutableArrayRef<uint64_t> slots);

/// The lowered arguments of one call, in the order of the function's arguments. The arrays must
/// outlive the calls; their contents may change between calls.
class KernelArguments {
public:
  void addMemRef(const Array &array) {
    addMemRef(array.data(), array.getShape(), array.getStrides());
  }
  void addMemRef(const void *data, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides) {
    addDescriptor(slots, data, shape, strides);
  }

  template <typename T> void addScalar(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    uint64_t slot = 0;
    std::memcpy(&slot, &value, sizeof(T));
    slots.push_back(slot);
  }

  /// A scalar of the given type: an integer, an index (I64) or a floating-point number.
  void addScalar(ElementKind kind, double value);

  size_t size() const { return slots.size(); }

  void call(Jit::PackedFn function) { callPacked(function, slots); }

private:
  llvm::SmallVector<uint64_t, 64> slots;
};

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_INVOKE_H
