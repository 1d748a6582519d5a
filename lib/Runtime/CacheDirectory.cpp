//===- CacheDirectory.cpp - kernels on disk ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/CacheDirectory.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::SmallString;
using llvm::StringRef;

namespace attn {

static constexpr StringRef entrySuffix = ".kernel", temporarySuffix = ".tmp";
static constexpr std::chrono::hours temporaryLifetime(1);

static std::error_code getLastError() { return {errno, std::generic_category()}; }

/// Empty and a reason, or where the options want the cache.
static std::string findDirectory(const CacheOptions &options, std::string &reason) {
  SmallString<128> directory(options.directory);
  if (directory.empty()) {
    if (!path::cache_directory(directory)) {
      reason = "expected HOME or XDG_CACHE_HOME to be set";
      return "";
    }
    path::append(directory, "attn");
  }
  if (!path::is_absolute(directory)) {
    reason = "expected an absolute path, got '" + std::string(directory) + "'";
    return "";
  }
  fs::file_status status;
  if (fs::status(directory, status))
    return std::string(directory);
  if (status.type() != fs::file_type::directory_file)
    reason = "expected a directory, got a file '" + std::string(directory) + "'";
  else if (status.permissions() & fs::others_write)
    reason = "expected a directory that not every user may write to, got '" +
             std::string(directory) + "'";
  return reason.empty() ? std::string(directory) : "";
}

CacheDirectory::CacheDirectory(const CacheOptions &options) : options(options) {
  if (!options.onDisk)
    return;
  std::string reason;
  path = findDirectory(options, reason);
  if (path.empty())
    remark("kernels are not cached on disk: " + reason);
}

void CacheDirectory::remark(const std::string &text) {
  std::lock_guard lock(mutex);
  if (remarks.insert(text).second && options.remark)
    options.remark(text);
}

void CacheDirectory::stopWriting(const std::string &what, std::error_code error) {
  {
    std::lock_guard lock(mutex);
    canWrite = false;
  }
  remark("kernels are no longer cached on disk: failed to " + what + " '" + path +
         "': " + error.message());
}

std::string CacheDirectory::getEntryPath(const CacheKey &key) const {
  SmallString<128> entryPath(path);
  path::append(entryPath, key.str() + entrySuffix);
  return std::string(entryPath);
}

std::optional<KernelImage> CacheDirectory::lookup(const CacheKey &key) {
  if (path.empty())
    return std::nullopt;
  std::string entryPath = getEntryPath(key);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::MemoryBuffer::getFile(entryPath, /*IsText=*/false, /*RequiresNullTerminator=*/false,
                                  /*IsVolatile=*/true);
  if (std::error_code error = buffer.getError()) {
    if (error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory)
      remark("expected a readable cache entry, got '" + entryPath + "': " + error.message());
    return std::nullopt;
  }
  std::optional<KernelImage> image = readCacheEntry(key, (*buffer)->getBuffer());
  if (!image) {
    // Between the read and the removal another process may have put a good entry in its place.
    // Then that one is lost: it costs a compilation, never a wrong answer.
    fs::remove(entryPath);
    remark("expected a whole cache entry, got a damaged one, now removed: '" + entryPath + "'");
    return std::nullopt;
  }
  // Needs no ownership, only the right to write; where that is missing nothing is evicted either.
  (void)::utimensat(AT_FDCWD, entryPath.c_str(), nullptr, 0);
  return image;
}

//===----------------------------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------------------------===//

static std::error_code writeAll(int file, StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return getLastError();
    bytes = bytes.drop_front(count);
  }
  // The rename must not reach the disk before the contents.
  return ::fsync(file) ? getLastError() : std::error_code();
}

std::error_code CacheDirectory::publish(const std::string &entryPath, StringRef bytes) {
  SmallString<128> model(path), temporary;
  path::append(model, "%%%%%%%%%%%%%%%%" + temporarySuffix);
  int file = -1;
  if (std::error_code error = fs::createUniqueFile(model, file, temporary))
    return error;
  std::error_code error = writeAll(file, bytes);
  if (::close(file) && !error)
    error = getLastError();
  if (!error)
    error = fs::rename(temporary, entryPath);
  if (error)
    fs::remove(temporary);
  return error;
}

void CacheDirectory::store(const CacheKey &key, const KernelImage &image) {
  if (path.empty())
    return;
  {
    std::lock_guard lock(mutex);
    if (!canWrite)
      return;
  }
  std::string bytes = writeCacheEntry(key, image);
  if (bytes.size() > options.maxBytes) {
    remark("expected a kernel of at most " + std::to_string(options.maxBytes) +
           " bytes for the cache, got " + std::to_string(bytes.size()));
    return;
  }
  // Also when it was there before: a user may remove the directory of a running process.
  if (std::error_code error = fs::create_directories(path, /*IgnoreExisting=*/true, fs::owner_all))
    return stopWriting("create", error);
  if (std::error_code error = publish(getEntryPath(key), bytes))
    return stopWriting("write to", error);

  bool isTimeToEvict = false;
  {
    std::lock_guard lock(mutex);
    bytesSinceEviction += std::min<uint64_t>(bytes.size(), UINT64_MAX - bytesSinceEviction);
    isTimeToEvict = bytesSinceEviction > options.maxBytes / 16;
    if (isTimeToEvict)
      bytesSinceEviction = 0;
  }
  if (isTimeToEvict)
    evict();
}

//===----------------------------------------------------------------------------------------===//
// Eviction
//===----------------------------------------------------------------------------------------===//

void CacheDirectory::evict() {
  if (path.empty())
    return;
  // One process at a time; the others may skip it. The kernel drops the lock of a killed process.
  int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0)
    return;
  if (::flock(directory, LOCK_EX | LOCK_NB)) {
    ::close(directory);
    return;
  }

  struct File {
    llvm::sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  auto now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error)) {
    StringRef extension = path::extension(it->path());
    fs::file_status status;
    // Another process may have removed it meanwhile.
    if ((extension != entrySuffix && extension != temporarySuffix) ||
        fs::status(it->path(), status))
      continue;
    if (extension == entrySuffix) {
      files.push_back({status.getLastModificationTime(), status.getSize(), it->path()});
      total += status.getSize();
    } else if (now - status.getLastModificationTime() > temporaryLifetime) {
      fs::remove(it->path());
    }
  }

  if (total > options.maxBytes) {
    std::sort(files.begin(), files.end(),
              [](const File &a, const File &b) { return a.used < b.used; });
    // An eighth to spare, so that the next store need not evict again.
    for (const File &file : files) {
      if (total <= options.maxBytes - options.maxBytes / 8)
        break;
      if (!fs::remove(file.path))
        total -= file.bytes;
    }
  }
  ::close(directory);
}

} // namespace attn
