//===- CompileCUDACacheTest.cpp - compiled kernels that stay on the disk -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/CacheEntry.h"
#include "lib/Support/Stopwatch.h"
#include "test/Unit/CompileCUDAFixture.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <cstdlib>

using namespace attn;
using llvm::StringRef;

TEST_F(CompileCUDATest, TheDiskKeepsKernels) {
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  ASSERT_EQ(listEntries().size(), 1u);
  forgetFunctions();
  // The images of this process are kept in memory too; another place is another cache.
  std::string moved = std::string(folder) + "/moved";
  ASSERT_FALSE(llvm::sys::fs::rename(options.cacheDirectory, moved));
  options.cacheDirectory = moved;
  Stopwatch stopwatch;
  CompiledFunction second = compileSpec();
  double ms = stopwatch.elapsedMs();
  EXPECT_TRUE(second.getInfo().isFromDisk);
  EXPECT_EQ(second.getInfo().passesMs + second.getInfo().llvmMs, 0);
  EXPECT_EQ(second.getInfo().arguments[0].name, "query");
  EXPECT_TRUE(run(second).ok());
  std::printf("from disk in %.2f ms\n", ms);
  // Other code is another entry.
  options.blockN = 64;
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  EXPECT_EQ(listEntries().size(), 2u);
}

TEST_F(CompileCUDATest, DamagedEntriesAreCompiledAgain) {
  compileSpec();
  std::string path = listEntries().front();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  std::string whole = (*buffer)->getBuffer().str(), flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  int place = 0;
  for (StringRef bytes : {StringRef(flipped), StringRef(whole).take_front(100), StringRef()}) {
    forgetFunctions();
    options.cacheDirectory = std::string(folder) + "/damaged" + std::to_string(place++);
    ASSERT_FALSE(
        llvm::sys::fs::create_directory(options.cacheDirectory, true, llvm::sys::fs::owner_all));
    std::string copy = options.cacheDirectory + "/" + StringRef(path).rsplit('/').second.str();
    std::error_code error;
    llvm::raw_fd_ostream(copy, error) << bytes;
    CompiledFunction function = compileSpec();
    EXPECT_FALSE(function.getInfo().isFromDisk);
    ASSERT_EQ(function.getInfo().remarks.size(), 1u);
    EXPECT_TRUE(StringRef(function.getInfo().remarks[0])
                    .starts_with("expected a whole cache entry, got a damaged one"));
    EXPECT_TRUE(run(function).ok());
    auto repaired = llvm::MemoryBuffer::getFile(copy);
    ASSERT_TRUE(bool(repaired));
    EXPECT_EQ((*repaired)->getBuffer(), whole);
  }
}

// Whole, but not of this compiler: its plan has kernels and no rules.
TEST_F(CompileCUDATest, EntriesWithoutRules) {
  compileSpec();
  std::string path = listEntries().front();
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  CacheKey key;
  llvm::copy((*buffer)->getBuffer().substr(8, key.bytes.size()), key.bytes.begin());
  std::optional<KernelImage> image = readCacheEntry(key, (*buffer)->getBuffer());
  ASSERT_TRUE(image);
  llvm::Expected<FunctionPlan> plan = readPlan(image->plan);
  ASSERT_TRUE(bool(plan)) << toString(plan.takeError());
  plan->rules.reset();
  image->plan = writePlan(*plan);

  forgetFunctions();
  options.cacheDirectory = std::string(folder) + "/foreign";
  ASSERT_FALSE(
      llvm::sys::fs::create_directory(options.cacheDirectory, true, llvm::sys::fs::owner_all));
  std::error_code error;
  llvm::raw_fd_ostream(options.cacheDirectory + "/" + StringRef(path).rsplit('/').second.str(),
                       error)
      << writeCacheEntry(key, *image);
  EXPECT_EQ(getError().str(), "invalid kernel: expected a plan with the rules of calls, got none");
}

TEST_F(CompileCUDATest, TheDiskCanBeLeftAlone) {
  options.cache = false;
  compileSpec();
  EXPECT_TRUE(listEntries().empty());
  options.cache = true;
  setenv("ATTN_CACHE", "0", 1);
  forgetFunctions();
  compileSpec();
  EXPECT_TRUE(listEntries().empty());
  unsetenv("ATTN_CACHE");
  std::string named = std::string(folder) + "/named";
  setenv("ATTN_CACHE_DIR", named.c_str(), 1);
  options.cacheDirectory.clear();
  forgetFunctions();
  compileSpec();
  unsetenv("ATTN_CACHE_DIR");
  options.cacheDirectory = named;
  EXPECT_EQ(listEntries().size(), 1u);
}
