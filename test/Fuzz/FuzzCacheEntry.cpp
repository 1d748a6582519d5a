//===- FuzzCacheEntry.cpp - any bytes as an entry of the kernel cache -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Runtime.h"
#include "lib/Runtime/CacheEntry.h"
#include "llvm/Support/BLAKE3.h"
#include <cstdlib>
#include <cstring>

using namespace attn;

/// The entry that these bytes are, behind a head and before a hash that are right: what chance
/// alone would not find.
static std::string complete(const CacheKey &key, llvm::StringRef bytes) {
  std::string entry = "attn-k1\n";
  entry.append(key.bytes.begin(), key.bytes.end());
  entry += bytes;
  llvm::BLAKE3 hasher;
  hasher.update(entry);
  auto hash = hasher.final<32>();
  entry.append(hash.begin(), hash.end());
  return entry;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  CacheKey key;
  for (size_t i = 0; i < key.bytes.size() && i < size; ++i)
    key.bytes[i] = data[i];
  (void)readCacheEntry(key, bytes);
  std::string entry = complete(key, bytes);
  if (auto image = readCacheEntry(key, entry))
    if (writeCacheEntry(key, *image) != entry)
      abort();
  // One changed bit is noticed. A function for the CPU has machine code in the place of PTX.
  KernelImage image;
  (size % 2 ? image.machineCode : image.ptx) = bytes.str();
  image.plan = bytes.take_front(size / 2).str();
  std::string whole = writeCacheEntry(key, image);
  auto read = readCacheEntry(key, whole);
  if (!read || *read != image)
    abort();
  whole[size % whole.size()] ^= 1 << (size % 8);
  if (readCacheEntry(key, whole))
    abort();
  return 0;
}
