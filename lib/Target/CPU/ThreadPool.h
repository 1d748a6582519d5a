//===- ThreadPool.h - the threads that run kernels --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TARGET_CPU_THREADPOOL_H
#define ATTN_TARGET_CPU_THREADPOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace attn {

/// The number of threads that share a loop, the calling one included. Takes effect with the next
/// loop; 0 means as many as HostInfo reports. Not to be called while a loop runs.
void setThreadCount(unsigned count);
unsigned getThreadCount();

/// Calls fn(0) … fn(count - 1), each once and in no order, and returns when all have returned.
/// Indices are drawn one by one from a counter, so that uneven work balances. A loop inside a loop
/// runs on its own thread.
void parallelFor(int64_t count, llvm::function_ref<void(int64_t)> fn);

} // namespace attn

/// What generated code calls.
extern "C" void attn_cpu_parallel_for(void (*body)(void *context, int64_t index), void *context,
                                      int64_t count);

#endif // ATTN_TARGET_CPU_THREADPOOL_H
