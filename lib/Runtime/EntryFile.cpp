//===- EntryFile.cpp - entries of kernels as files of a directory ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/EntryFile.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace attn {

OpenFile::~OpenFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

std::error_code getLastError() { return {errno, std::generic_category()}; }

std::string getEntryName(const CacheKey &key) { return key.str() + entrySuffix.str(); }

std::optional<std::string>
readEntryFile(int directory, const std::string &name, uint64_t maxBytes,
              llvm::function_ref<std::string(const struct stat &)> findStranger,
              std::string &reason) {
  // Without O_NONBLOCK, opening a pipe waits for who writes to it.
  OpenFile file(::openat(directory, name.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat status;
  if (file < 0 || ::fstat(file, &status)) {
    if (errno != ENOENT)
      reason = errno == ELOOP ? "a regular file, got a link"
                              : "to read, got: " + getLastError().message();
    return std::nullopt;
  }
  if (!S_ISREG(status.st_mode)) {
    reason = "a regular file, got another kind";
    return std::nullopt;
  }
  reason = findStranger(status);
  if (reason.empty() && uint64_t(status.st_size) > maxBytes)
    reason =
        "of at most " + std::to_string(maxBytes) + " bytes, got " + std::to_string(status.st_size);
  if (!reason.empty())
    return std::nullopt;
  std::string bytes(status.st_size, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    ssize_t count = ::read(file, bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      reason = "to read, got: " + getLastError().message();
    if (count <= 0)
      break;
    size += count;
  }
  bytes.resize(size);
  return reason.empty() ? std::optional(std::move(bytes)) : std::nullopt;
}

} // namespace attn
