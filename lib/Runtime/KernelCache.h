//===- KernelCache.h - compiled kernels, kept -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_KERNELCACHE_H
#define ATTN_LIB_RUNTIME_KERNELCACHE_H

#include "lib/Runtime/CacheDirectory.h"
#include "lib/Runtime/ShippedKernels.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <condition_variable>
#include <list>
#include <memory>
#include <unordered_map>

namespace attn {

/// Kernel images by key: in memory, then on disk, then among those that came with the library, then
/// by compiling. From any thread.
class KernelCache {
public:
  explicit KernelCache(const CacheOptions &options) : directory(options) {}
  /// Also looks for what came with `library` in a folder.
  KernelCache(const CacheOptions &options, const std::string &shippedFolder,
              const std::string &library)
      : directory(options), shipped(shippedFolder, library, options.remark) {}

  using Image = std::shared_ptr<const KernelImage>;
  using CompileFn = llvm::function_ref<Result<KernelImage>()>;

  /// The image of `key`. Threads that ask for the same key at the same time share one compilation,
  /// and its error if it fails; an error is not kept.
  ///
  /// So do processes that share a directory, for CacheOptions::maxWaitSeconds at most.
  Result<Image> getOrCompile(const CacheKey &key, CompileFn compile);

  /// Only looks; null when it is not there.
  Image lookup(const CacheKey &key);

  /// Replaces an image, for instance by one that has machine code now.
  void store(const CacheKey &key, KernelImage image);

  CacheDirectory &getDirectory() { return directory; }

private:
  struct Hash {
    size_t operator()(const CacheKey &key) const;
  };
  struct Kept {
    CacheKey key;
    Image image;
  };
  struct Compilation {
    std::optional<Result<Image>> result;
  };

  /// Compiles, unless another process does it first.
  Result<Image> compileInTurn(const CacheKey &key, CompileFn compile);

  /// The rest needs `mutex`.
  Image findInMemory(const CacheKey &key);
  void keepInMemory(const CacheKey &key, Image image);

  CacheDirectory directory;
  ShippedKernels shipped;
  std::mutex mutex;
  std::condition_variable compiled;
  /// The most recently used first, at most maxMemoryBytes of them.
  std::list<Kept> kept;
  std::unordered_map<CacheKey, std::list<Kept>::iterator, Hash> index;
  uint64_t keptBytes = 0;
  std::unordered_map<CacheKey, std::shared_ptr<Compilation>, Hash> compilations;

  static constexpr uint64_t maxMemoryBytes = 64 << 20;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_KERNELCACHE_H
