//===- Invoke.h - calls of compiled functions -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TARGET_CPU_INVOKE_H
#define ATTN_TARGET_CPU_INVOKE_H

#include "lib/Support/Array.h"
#include "lib/Target/CPU/Jit.h"
#include "llvm/ADT/bit.h"
#include <cstring>
#include <type_traits>

namespace attn {

/// The lowered arguments of one call, in the order of the function's arguments.
///
/// A ranked memref lowers to 3 + 2 * rank arguments: allocated pointer, aligned pointer, offset,
/// sizes, strides (in elements). Every lowered argument fits a slot of eight bytes. The arrays must
/// outlive the calls; their contents may change between calls.
class KernelArguments {
public:
  void addMemRef(const Array &array);
  /// Strides in elements.
  void addMemRef(const void *data, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> strides);

  template <typename T> void addScalar(T value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    uint64_t slot = 0;
    std::memcpy(&slot, &value, sizeof(T));
    slots.push_back(slot);
  }

  /// A scalar of the given type: an integer, an index (I64) or a floating-point number.
  void addScalar(ElementKind kind, double value);

  size_t size() const { return slots.size(); }

  /// Calls a packed function without result.
  void call(Jit::PackedFn function);

private:
  llvm::SmallVector<uint64_t, 64> slots;
};

} // namespace attn

#endif // ATTN_TARGET_CPU_INVOKE_H
