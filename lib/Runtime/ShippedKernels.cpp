//===- ShippedKernels.cpp - kernels that came with the library -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/ShippedKernels.h"
#include "lib/Runtime/EntryFile.h"
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace attn {

/// No kernel is larger.
static constexpr uint64_t maxBytes = uint64_t(64) << 20;

ShippedKernels::ShippedKernels(std::string folder, std::string library,
                               std::function<void(std::string_view)> remark)
    : folder(std::move(folder)), library(std::move(library)), remark(std::move(remark)) {}

void ShippedKernels::tell(const std::string &text) {
  std::lock_guard lock(mutex);
  if (told.insert(text).second && remark)
    remark(text);
}

/// Why somebody could have written `status` who could not have written the library; empty when
/// nobody could.
static std::string findStranger(const struct stat &status, const struct stat &library) {
  if (status.st_uid != library.st_uid && status.st_uid != 0)
    return "of the library's owner, user " + std::to_string(library.st_uid) + ", got one of user " +
           std::to_string(status.st_uid);
  // A group is a set of writers, so another group is other writers.
  bool hasGroup = status.st_mode & S_IWGRP,
       isItsGroup = (library.st_mode & S_IWGRP) && status.st_gid == library.st_gid;
  if ((hasGroup && !isItsGroup) || (status.st_mode & ~library.st_mode & S_IWOTH))
    return "that nobody may write to who may not write to the library";
  return "";
}

std::optional<KernelImage> ShippedKernels::lookup(const CacheKey &key) {
  if (folder.empty())
    return std::nullopt;
  OpenFile directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status, ofLibrary;
  if (directory < 0 || ::fstat(directory, &status) || ::stat(library.c_str(), &ofLibrary)) {
    if (errno != ENOENT)
      tell("expected to read the kernels beside the library in '" + folder +
           "', got: " + getLastError().message());
    return std::nullopt;
  }
  std::string reason = findStranger(status, ofLibrary), name = getEntryName(key);
  if (!reason.empty()) {
    tell("expected a folder " + reason + ": '" + folder + "'");
    return std::nullopt;
  }
  std::optional<std::string> bytes = readEntryFile(
      directory, name, maxBytes,
      [&](const struct stat &entry) { return findStranger(entry, ofLibrary); }, reason);
  std::optional<KernelImage> image = bytes ? readCacheEntry(key, *bytes) : std::nullopt;
  if (bytes && !image)
    reason = "that is whole, got a damaged one";
  if (!reason.empty())
    tell("expected an entry " + reason + ": '" + folder + "/" + name + "'");
  return image;
}

} // namespace attn
