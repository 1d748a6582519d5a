//===- KernelCache.cpp - compiled kernels, kept -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/KernelCache.h"
#include <cstring>

namespace attn {

size_t KernelCache::Hash::operator()(const CacheKey &key) const {
  // A cryptographic hash: any part of it is one too.
  size_t hash;
  std::memcpy(&hash, key.bytes.data(), sizeof(hash));
  return hash;
}

static uint64_t countBytes(const KernelImage &image) {
  return image.ptx.size() + image.plan.size() + image.machineCode.size();
}

KernelCache::Image KernelCache::findInMemory(const CacheKey &key) {
  auto found = index.find(key);
  if (found == index.end())
    return nullptr;
  kept.splice(kept.begin(), kept, found->second);
  return found->second->image;
}

void KernelCache::keepInMemory(const CacheKey &key, Image image) {
  if (auto found = index.find(key); found != index.end()) {
    keptBytes -= countBytes(*found->second->image);
    kept.erase(found->second);
    index.erase(found);
  }
  keptBytes += countBytes(*image);
  kept.push_front({key, std::move(image)});
  index[key] = kept.begin();
  // The newest stays, however large.
  while (keptBytes > maxMemoryBytes && kept.size() > 1) {
    keptBytes -= countBytes(*kept.back().image);
    index.erase(kept.back().key);
    kept.pop_back();
  }
}

KernelCache::Image KernelCache::lookup(const CacheKey &key) {
  {
    std::lock_guard lock(mutex);
    if (Image image = findInMemory(key))
      return image;
  }
  // The disk comes first: what a user compiled there replaces what was shipped.
  std::optional<KernelImage> found = directory.lookup(key);
  if (!found)
    found = shipped.lookup(key);
  if (!found)
    return nullptr;
  auto image = std::make_shared<const KernelImage>(std::move(*found));
  std::lock_guard lock(mutex);
  keepInMemory(key, image);
  return image;
}

void KernelCache::store(const CacheKey &key, KernelImage image) {
  auto shared = std::make_shared<const KernelImage>(std::move(image));
  {
    std::lock_guard lock(mutex);
    keepInMemory(key, shared);
  }
  directory.store(key, *shared);
}

Result<KernelCache::Image> KernelCache::compileInTurn(const CacheKey &key, CompileFn compile) {
  std::optional<CacheLock> turn;
  if (std::optional<KernelImage> image = directory.waitForTurn(key, turn))
    return std::make_shared<const KernelImage>(std::move(*image));
  Result<KernelImage> fresh = compile();
  if (!fresh)
    return fresh.takeStatus();
  auto image = std::make_shared<const KernelImage>(std::move(*fresh));
  directory.store(key, *image);
  return image;
}

Result<KernelCache::Image> KernelCache::getOrCompile(const CacheKey &key, CompileFn compile) {
  std::shared_ptr<Compilation> compilation;
  {
    std::unique_lock lock(mutex);
    if (Image image = findInMemory(key))
      return image;
    std::shared_ptr<Compilation> &pending = compilations[key];
    if (pending) {
      std::shared_ptr<Compilation> theirs = pending;
      compiled.wait(lock, [&] { return theirs->result.has_value(); });
      return *theirs->result;
    }
    pending = compilation = std::make_shared<Compilation>();
  }

  Image found = lookup(key);
  Result<Image> result = found ? Result<Image>(found) : compileInTurn(key, compile);
  {
    std::lock_guard lock(mutex);
    if (result)
      keepInMemory(key, *result);
    compilation->result = result;
    compilations.erase(key);
  }
  compiled.notify_all();
  return result;
}

} // namespace attn
