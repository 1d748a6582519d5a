//===- CacheEntry.h - one kernel as a file ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CACHEENTRY_H
#define ATTN_LIB_RUNTIME_CACHEENTRY_H

#include "attn/Runtime.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <optional>

namespace attn {

/// Names a compilation: equal keys, equal code.
struct CacheKey {
  std::array<uint8_t, 32> bytes = {};

  bool operator==(const CacheKey &) const = default;
  /// 64 lower-case hexadecimal digits.
  std::string str() const;
};

/// Everything that changes the code of a kernel.
struct CacheKeyParts {
  /// The IR that was given to the compiler, as text.
  llvm::StringRef source;
  /// Of attn and of LLVM.
  llvm::StringRef compilerVersion;
  /// Every option that has a say, in a fixed order.
  llvm::StringRef options;
  /// "sm_90a".
  llvm::StringRef target;
  /// DeviceInfo::driverVersion; 0 when the entry holds nothing that a driver made.
  int driverVersion = 0;
};
CacheKey computeCacheKey(const CacheKeyParts &parts);

/// The bytes of an entry; integers are little-endian:
///
///   8       "attn-k1\n"
///   32      the key
///   8, 8, 8 the lengths of the PTX, the plan and the machine code
///           these three, one after another
///   32      BLAKE3 of everything before
std::string writeCacheEntry(const CacheKey &key, const KernelImage &image);

/// Nothing unless the bytes are a whole entry of this key.
std::optional<KernelImage> readCacheEntry(const CacheKey &key, llvm::StringRef bytes);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_CACHEENTRY_H
