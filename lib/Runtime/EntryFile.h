//===- EntryFile.h - entries of kernels as files of a directory ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_ENTRYFILE_H
#define ATTN_LIB_RUNTIME_ENTRYFILE_H

#include "lib/Runtime/CacheEntry.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <system_error>

struct stat;

namespace attn {

/// An open file, closed at the end.
class OpenFile {
public:
  explicit OpenFile(int descriptor) : descriptor(descriptor) {}
  ~OpenFile();
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;

  operator int() const { return descriptor; }

private:
  int descriptor;
};

/// Of the last call of the system.
std::error_code getLastError();

inline constexpr llvm::StringRef entrySuffix = ".kernel";
/// "<64 digits>.kernel".
std::string getEntryName(const CacheKey &key);

/// The bytes of a file of an open directory. Nothing, and an empty reason when there is no such
/// file. `findStranger` says of what is open why it is not to be trusted; an entry is code.
std::optional<std::string>
readEntryFile(int directory, const std::string &name, uint64_t maxBytes,
              llvm::function_ref<std::string(const struct stat &)> findStranger,
              std::string &reason);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_ENTRYFILE_H
