//===- ForkGate.h - work that no fork may cut in two ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_FORKGATE_H
#define ATTN_LIB_SUPPORT_FORKGATE_H

namespace attn {

/// While one exists, a fork by another thread waits. The child of a fork has one thread and the
/// memory of all: a mutex that another thread held, ours or one deep in LLVM, stays locked for
/// ever, and the child's first compilation would wait for it. A scope inside a scope is no second
/// one, and the thread itself may fork.
class ForkGate {
public:
  ForkGate();
  ~ForkGate();
  ForkGate(const ForkGate &) = delete;
  ForkGate &operator=(const ForkGate &) = delete;
};

} // namespace attn

#endif // ATTN_LIB_SUPPORT_FORKGATE_H
