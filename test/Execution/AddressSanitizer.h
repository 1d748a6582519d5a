//===- AddressSanitizer.h - its runtime, where the process has it -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Kernels of a CPU are compiled here, so they can have AddressSanitizer's checks in a program that
// has none itself: its runtime, loaded by LD_PRELOAD, is enough. A build with it has the runtime
// too.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_ADDRESSSANITIZER_H
#define ATTN_TEST_EXECUTION_ADDRESSSANITIZER_H

#include <cstddef>
#include <dlfcn.h>

namespace attn::test {

inline bool hasAddressSanitizer() { return dlsym(RTLD_DEFAULT, "__asan_init") != nullptr; }

/// Whether kernels may touch these bytes.
inline void setPoisoned(const void *begin, size_t size, bool isPoisoned) {
  using Set = void (*)(const volatile void *, size_t);
  static const auto poison = (Set)dlsym(RTLD_DEFAULT, "__asan_poison_memory_region"),
                    clear = (Set)dlsym(RTLD_DEFAULT, "__asan_unpoison_memory_region");
  if (poison && clear)
    (isPoisoned ? poison : clear)(begin, size);
}

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_ADDRESSSANITIZER_H
