//===- CacheFixture.h - a folder of its own for each test of the cache ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_CACHEFIXTURE_H
#define ATTN_TEST_UNIT_CACHEFIXTURE_H

#include "lib/Runtime/KernelCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <fcntl.h>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace attn {

class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-cache", root));
    options.directory = std::string(root) + "/kernels";
    options.remark = [this](std::string_view text) { remarks.emplace_back(text); };
  }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }

  static CacheKey makeKey(int number) {
    return computeCacheKey({"source " + std::to_string(number), "1.0", "", "sm_90a", 12040});
  }

  /// A different image for each number, of some kilobytes.
  static KernelImage makeImage(int number) {
    std::string line = "line " + std::to_string(number) + "\n", ptx;
    for (int i = 0; i < 500 + 100 * number; ++i)
      ptx += line;
    return {ptx, "{\"plan\": " + line + "}", std::string(number, '\0')};
  }

  std::vector<std::string> listFiles(llvm::StringRef suffix) {
    std::vector<std::string> files;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(options.directory, error), end; it != end && !error;
         it.increment(error))
      if (llvm::StringRef(it->path()).ends_with(suffix))
        files.push_back(it->path());
    return files;
  }

  static std::string read(const std::string &path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  static void write(const std::string &path, llvm::StringRef bytes) {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << bytes;
    ASSERT_FALSE(code) << code.message();
  }
  static void setAge(const std::string &path, int seconds) {
    timespec times[2];
    times[0].tv_sec = times[1].tv_sec = time(nullptr) - seconds;
    times[0].tv_nsec = times[1].tv_nsec = 0;
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  /// Runs in a child process; the result is its exit code.
  static int runChild(const std::function<int()> &body) {
    pid_t child = fork();
    if (child == 0)
      _exit(body());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  llvm::SmallString<128> root;
  CacheOptions options;
  std::vector<std::string> remarks;
};

} // namespace attn

#endif // ATTN_TEST_UNIT_CACHEFIXTURE_H
