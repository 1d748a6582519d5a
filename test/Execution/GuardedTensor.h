//===- GuardedTensor.h - tensors as the execution tests lay them out --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Tensors stand between guards, and with Memory::Random between gaps: NaN in what is read, a
// pattern in what is written, which must survive. So a kernel that reads or writes where it must
// not is found out.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_GUARDEDTENSOR_H
#define ATTN_TEST_EXECUTION_GUARDEDTENSOR_H

#include "test/Execution/Problem.h"

namespace attn::test {

/// A copy of an array, in the layout that a kernel sees.
class GuardedTensor {
public:
  static constexpr int64_t kGuardBytes = 1024;

  /// With Memory::Random, `seed` decides the strides.
  GuardedTensor(Array &array, bool isOutput, Memory memory, uint64_t seed);

  /// Calls `fn` with the bytes from the first element to each stretch without gaps, and its length.
  void forEachRow(llvm::function_ref<void(int64_t, int64_t)> fn);

  /// Fills the array from `bytes`, and looks at what should not have been touched.
  llvm::Error copyBack();

  Array &array;
  llvm::SmallVector<int64_t, 4> shape, strides;
  /// The first element is behind kGuardBytes.
  std::vector<uint8_t> bytes;

private:
  void drawStrides(uint64_t seed);
  void forEachElement(llvm::function_ref<void(char *, char *, int64_t)> fn);

  uint8_t guard;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_GUARDEDTENSOR_H
