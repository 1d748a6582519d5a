//===- CacheEntry.cpp - one kernel as a file --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/CacheEntry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/Endian.h"

using llvm::StringRef;

namespace attn {

/// Changes with the layout below it.
static constexpr StringRef magic = "attn-k1\n";
static constexpr size_t hashBytes = 32;
static constexpr size_t headerBytes = 8 + hashBytes + 3 * sizeof(uint64_t);

static StringRef toStringRef(const std::array<uint8_t, 32> &bytes) {
  return StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

static std::array<uint8_t, hashBytes> computeHash(StringRef bytes) {
  return llvm::BLAKE3::hash<hashBytes>(llvm::arrayRefFromStringRef(bytes));
}

static void appendInteger(std::string &to, uint64_t value) {
  char bytes[sizeof(value)];
  llvm::support::endian::write64le(bytes, value);
  to.append(bytes, sizeof(bytes));
}

std::string CacheKey::str() const { return llvm::toHex(bytes, /*LowerCase=*/true); }

CacheKey computeCacheKey(const CacheKeyParts &parts) {
  // Lengths before the texts: moving a character from one part to the next is another key.
  std::string text = magic.str();
  for (StringRef part : {parts.source, parts.compilerVersion, parts.options, parts.target}) {
    appendInteger(text, part.size());
    text += part;
  }
  appendInteger(text, parts.driverVersion);
  return {computeHash(text)};
}

std::string writeCacheEntry(const CacheKey &key, const KernelImage &image) {
  std::string bytes = magic.str();
  bytes += toStringRef(key.bytes);
  for (const std::string *part : {&image.ptx, &image.plan, &image.machineCode})
    appendInteger(bytes, part->size());
  bytes += image.ptx;
  bytes += image.plan;
  bytes += image.machineCode;
  bytes += toStringRef(computeHash(bytes));
  return bytes;
}

std::optional<KernelImage> readCacheEntry(const CacheKey &key, StringRef bytes) {
  if (bytes.size() < headerBytes + hashBytes)
    return std::nullopt;
  StringRef contents = bytes.drop_back(hashBytes);
  if (!contents.starts_with(magic) || contents.substr(8, hashBytes) != toStringRef(key.bytes) ||
      bytes.take_back(hashBytes) != toStringRef(computeHash(contents)))
    return std::nullopt;

  KernelImage image;
  StringRef rest = contents.drop_front(headerBytes);
  const char *length = contents.data() + 8 + hashBytes;
  for (std::string *part : {&image.ptx, &image.plan, &image.machineCode}) {
    uint64_t size = llvm::support::endian::read64le(length);
    if (size > rest.size())
      return std::nullopt;
    *part = rest.take_front(size).str();
    rest = rest.drop_front(size);
    length += sizeof(size);
  }
  if (!rest.empty())
    return std::nullopt;
  return image;
}

} // namespace attn
