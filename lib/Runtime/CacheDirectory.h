//===- CacheDirectory.h - kernels on disk -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Processes share the directory and may be killed at any point. These rules make it safe:
//
//   * An entry is written to a file of its own, flushed, and renamed to <key>.kernel. A rename is
//     atomic: a reader finds no entry, or a whole one, or a whole newer one of the same contents.
//   * An entry ends in a checksum, so what a disk or a person damaged is found, removed and
//     compiled again.
//   * Entries are read, not mapped: a file cut short under a mapping would be a SIGBUS.
//   * A checksum finds damage, not malice, and an entry is code that will run. The directory and
//     the entry have to be this user's, and nobody else may write to them; that is looked at each
//     time, on what has been opened. Nothing but a regular file is read.
//   * Temporary files of a killed process are removed an hour later.
//
// Nothing of this needs a lock. Locks (lib/Runtime/CacheLock.h) only save work: processes that want
// the same entry at once, as the ranks of a job do, compile it once.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CACHEDIRECTORY_H
#define ATTN_LIB_RUNTIME_CACHEDIRECTORY_H

#include "lib/Runtime/CacheEntry.h"
#include "lib/Runtime/CacheLock.h"
#include <mutex>
#include <set>
#include <system_error>

namespace attn {

/// The entries on disk. From any thread. No operation fails: it degrades to a miss, and says why
/// once.
class CacheDirectory {
public:
  explicit CacheDirectory(const CacheOptions &options);

  /// Marks the entry as used.
  std::optional<KernelImage> lookup(const CacheKey &key);
  void store(const CacheKey &key, const KernelImage &image);

  /// Waits until it is the caller's turn to compile `key`, which it is as long as `turn` lives, or
  /// until another process has left the entry, which is returned then. Waits no longer than the
  /// options say, and not at all where there are no locks.
  std::optional<KernelImage> waitForTurn(const CacheKey &key, std::optional<CacheLock> &turn);

  /// Removes the least recently used entries until the limit holds with a little to spare, and
  /// what killed processes left. store() calls it now and then.
  void evict();

  /// Empty when there is none.
  const std::string &getPath() const { return path; }
  std::string getEntryPath(const CacheKey &key) const;

private:
  /// Opened, or -1 when it is not there or not to be trusted.
  int openDirectory();
  std::error_code publish(int directory, const std::string &name, llvm::StringRef bytes);
  void remark(const std::string &text);
  void stopWriting(const std::string &what, std::error_code error);

  CacheOptions options;
  std::string path;
  std::mutex mutex;
  /// Below: guarded by `mutex`.
  std::set<std::string> remarks;
  bool canWrite = true;
  /// Written since the last eviction. Starts high, so that the first store evicts: many short
  /// processes fill a disk as well as one long one.
  uint64_t bytesSinceEviction = UINT64_MAX;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_CACHEDIRECTORY_H
