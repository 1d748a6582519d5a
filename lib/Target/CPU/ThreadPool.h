//===- ThreadPool.h - the threads that run kernels --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_THREADPOOL_H
#define ATTN_LIB_TARGET_CPU_THREADPOOL_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>

namespace attn {

/// The most threads that share a loop, the calling one included. Takes effect with the next loop; 0
/// means as many as HostInfo reports. From any thread.
void setThreadCount(unsigned count);
unsigned getThreadCount();

/// Calls fn(0) … fn(count - 1), each once and in no order, and returns when all have returned.
/// Indices are drawn one by one from a counter, so that uneven work balances. A loop inside a loop
/// runs on its own thread. Where the system has no threads to give, the caller does all of it; so
/// does it go on in the child of a fork, which makes threads of its own.
void parallelFor(int64_t count, llvm::function_ref<void(int64_t)> fn);

} // namespace attn

/// The function that generated code calls.
extern "C" void attn_cpu_parallel_for(void (*body)(void *context, int64_t index), void *context,
                                      int64_t count);
extern "C" int64_t attn_cpu_threads();

#endif // ATTN_LIB_TARGET_CPU_THREADPOOL_H
