//===- Stack.h - where a child died -----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_STACK_H
#define ATTN_TEST_FUZZ_STACK_H

#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <vector>

namespace attn::fuzz {

struct Frame {
  std::string function, place;
  /// In this program and not in LLVM's libraries; everything is where those are linked in.
  bool isOurs = false;
};

/// The frames of a child, which lie where they lie in its parent, innermost first, down to the
/// fuzzer's own. Those of signals, assertions and sanitizers are left out.
std::vector<Frame> symbolize(llvm::ArrayRef<void *> addresses);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_STACK_H
