//===- CacheLock.h - one process at a time for a key ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// All keys of a directory share one empty file, of which each key locks a byte of its own. So no
// file is ever removed while somebody waits for it, and a killed process leaves no file. The lock
// is that of an open file description: the system drops it when its process dies, whatever killed
// that, and threads of one process exclude each other too.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CACHELOCK_H
#define ATTN_LIB_RUNTIME_CACHELOCK_H

#include "lib/Runtime/CacheEntry.h"

namespace attn {

class CacheLock {
public:
  enum class State {
    Held,
    /// Another process or thread has it.
    Busy,
    /// There are no locks here: the directory cannot be written to, or its file system has none.
    Unsupported
  };

  /// `directory` is open and trusted.
  CacheLock(int directory, const CacheKey &key);
  ~CacheLock();
  CacheLock(const CacheLock &) = delete;
  CacheLock &operator=(const CacheLock &) = delete;

  /// Does not wait.
  State tryLock();

private:
  int file;
  int64_t place;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_CACHELOCK_H
