//===- CacheDirectory.cpp - kernels on disk ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/CacheDirectory.h"
#include "lib/Runtime/EntryFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;
using llvm::SmallString;
using llvm::StringRef;

namespace attn {

static constexpr StringRef temporarySuffix = ".tmp";
static constexpr std::chrono::hours temporaryLifetime(1);

/// Why others could have written what is open; empty when they could not.
static std::string findStranger(const struct stat &status) {
  if (status.st_uid != ::geteuid())
    return "of this user, got one of user " + std::to_string(status.st_uid);
  if (status.st_mode & (S_IWGRP | S_IWOTH))
    return "that no other user may write to";
  return "";
}

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
  return std::string(directory);
}

CacheDirectory::CacheDirectory(const CacheOptions &options) : options(options) {
  if (!options.onDisk)
    return;
  std::string reason;
  path = findDirectory(options, reason);
  if (path.empty())
    remark("kernels are not cached on disk: " + reason);
}

/// Why what `open` returned is no directory to use; empty also when there is nothing.
static std::string findProblem(int directory, const std::string &path) {
  struct stat status;
  if (directory < 0 || ::fstat(directory, &status)) {
    if (errno == ENOENT)
      return "";
    return errno == ENOTDIR
               ? "expected a directory, got a file '" + path + "'"
               : "expected a directory, got '" + path + "': " + getLastError().message();
  }
  std::string stranger = findStranger(status);
  return stranger.empty() ? "" : "expected a directory " + stranger + ": '" + path + "'";
}

int CacheDirectory::openDirectory() {
  int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::string problem = findProblem(directory, path);
  if (problem.empty())
    return directory;
  if (directory >= 0)
    ::close(directory);
  remark("kernels are not cached on disk: " + problem);
  return -1;
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
  path::append(entryPath, getEntryName(key));
  return std::string(entryPath);
}

std::optional<KernelImage> CacheDirectory::lookup(const CacheKey &key) {
  if (path.empty())
    return std::nullopt;
  OpenFile directory(openDirectory());
  if (directory < 0)
    return std::nullopt;
  std::string name = getEntryName(key), reason;
  std::optional<std::string> bytes =
      readEntryFile(directory, name, options.maxBytes, findStranger, reason);
  if (!reason.empty())
    remark("expected a cache entry " + reason + ": '" + getEntryPath(key) + "'");
  if (!bytes)
    return std::nullopt;
  // Marks the entry as used.
  (void)::utimensat(directory, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  std::optional<KernelImage> image = readCacheEntry(key, *bytes);
  if (!image) {
    // Between the read and the removal another process may have put a good entry in its place.
    // Then that one is lost: it costs a compilation, never a wrong answer.
    ::unlinkat(directory, name.c_str(), 0);
    remark("expected a whole cache entry, got a damaged one, now removed: '" + getEntryPath(key) +
           "'");
  }
  return image;
}

//===----------------------------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------------------------===//

std::optional<KernelImage> CacheDirectory::waitForTurn(const CacheKey &key,
                                                       std::optional<CacheLock> &turn) {
  using namespace std::chrono;
  if (path.empty())
    return std::nullopt;
  // The first processes of all meet before there is an entry. store() says so if it cannot be made.
  if (fs::create_directories(path, /*IgnoreExisting=*/true, fs::owner_all))
    return std::nullopt;
  OpenFile directory(openDirectory());
  if (directory < 0)
    return std::nullopt;
  turn.emplace(directory, key);
  auto end = steady_clock::now() + duration<double>(options.maxWaitSeconds);
  for (auto pause = milliseconds(1);; pause = std::min(2 * pause, milliseconds(16))) {
    CacheLock::State state = turn->tryLock();
    if (state == CacheLock::State::Unsupported)
      return std::nullopt;
    // Another process may have stored it before the lock was ours, or after a stopped one took it.
    std::optional<KernelImage> image = lookup(key);
    if (image || state == CacheLock::State::Held)
      return image;
    if (steady_clock::now() >= end)
      break;
    std::this_thread::sleep_for(pause);
  }
  remark(llvm::formatv("compiled although another process has been compiling the same for {0:f1} s",
                       options.maxWaitSeconds));
  return std::nullopt;
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

std::error_code CacheDirectory::publish(int directory, const std::string &name, StringRef bytes) {
  // Of this process and call alone: names that are taken belong to a process of the same number
  // that was killed, or on another machine.
  static std::atomic<unsigned> next = 0;
  std::string temporary;
  int descriptor = -1;
  for (int attempt = 0; descriptor < 0 && attempt < 100; ++attempt) {
    temporary = std::to_string(::getpid()) + "-" + std::to_string(next++) + temporarySuffix.str();
    descriptor = ::openat(directory, temporary.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (descriptor < 0 && errno != EEXIST)
      break;
  }
  if (descriptor < 0)
    return getLastError();
  // The mask of the process may have taken more away.
  std::error_code error =
      ::fchmod(descriptor, S_IRUSR | S_IWUSR) ? getLastError() : writeAll(descriptor, bytes);
  if (::close(descriptor) && !error)
    error = getLastError();
  if (!error && ::renameat(directory, temporary.c_str(), directory, name.c_str()))
    error = getLastError();
  if (error)
    ::unlinkat(directory, temporary.c_str(), 0);
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
  {
    OpenFile directory(openDirectory());
    if (directory < 0)
      return;
    if (std::error_code error = publish(directory, getEntryName(key), bytes))
      return stopWriting("write to", error);
  }

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
  OpenFile directory(openDirectory());
  if (directory < 0 || ::flock(directory, LOCK_EX | LOCK_NB))
    return;

  struct Entry {
    llvm::sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> files;
  uint64_t total = 0;
  auto now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; it != end && !error; it.increment(error)) {
    StringRef extension = path::extension(it->path());
    fs::file_status status;
    // Another process may have removed it meanwhile.
    if ((extension != entrySuffix && extension != temporarySuffix) ||
        fs::status(it->path(), status, /*follow=*/false) ||
        status.type() != fs::file_type::regular_file)
      continue;
    if (extension == entrySuffix) {
      files.push_back({status.getLastModificationTime(), status.getSize(), it->path()});
      total += status.getSize();
    } else if (now - status.getLastModificationTime() > temporaryLifetime) {
      ::unlink(it->path().c_str());
    }
  }

  if (total > options.maxBytes) {
    std::sort(files.begin(), files.end(),
              [](const Entry &a, const Entry &b) { return a.used < b.used; });
    // An eighth to spare, so that the next store need not evict again.
    for (const Entry &file : files) {
      if (total <= options.maxBytes - options.maxBytes / 8)
        break;
      if (!fs::remove(file.path))
        total -= file.bytes;
    }
  }
}

} // namespace attn
