//===- CompileCUDACacheTest.cpp - compiled kernels that stay on the disk -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Ship.h"
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

//===----------------------------------------------------------------------------------------===//
// Kernels that come with the library
//===----------------------------------------------------------------------------------------===//

namespace {
/// An assembler in $PATH whose machine code is one word, for as long as it lives.
class FakePtxas {
public:
  FakePtxas(const std::string &folder, const std::string &body) : old(std::getenv("PATH")) {
    std::string path = folder + "/ptxas";
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << "#!/bin/sh\n" << body << "\n";
    EXPECT_FALSE(error);
    EXPECT_FALSE(llvm::sys::fs::setPermissions(path, llvm::sys::fs::owner_all));
    setenv("PATH", (folder + ":" + old).c_str(), 1);
  }
  ~FakePtxas() { setenv("PATH", old.c_str(), 1); }

private:
  std::string old;
};
} // namespace

/// "-v -arch=sm_90a -o OUTPUT INPUT": keeps how it was called, and assembles text of PTX alone.
static constexpr const char *assembles = R"(echo "$@" >> "$0.log"
grep -q "^.target sm_90a" "$5" && printf ELF > "$4")";

TEST_F(CompileCUDATest, ShippedKernelsAreThoseOfCalls) {
  FakePtxas ptxas(std::string(folder), assembles);
  options.way = "auto";
  options.lazy = true;
  std::string shipped = std::string(folder) + "/shipped";
  Result<unsigned> count =
      shipKernels(getSource(spec), options, shipped, [](StringRef way) { return way == "short"; });
  ASSERT_TRUE(count) << count.getStatus().str();
  // The plan, the way of short sequences and the last way.
  EXPECT_EQ(*count, 3u);

  // What lies there serves calls, which compile and assemble nothing.
  options.cacheDirectory = shipped;
  CompiledFunction function = compileSpec();
  EXPECT_TRUE(function.getInfo().isFromDisk);
  query.shape[1] = output.shape[1] = key.shape[1];
  for (int64_t rows : {int64_t(1024), int64_t(16384)}) {
    for (FakeTensor *tensor : {&query, &key, &value, &output})
      tensor->shape[2] = rows;
    EXPECT_TRUE(run(function).ok());
  }
  EXPECT_TRUE(fake->assemblerThreads.empty());
  EXPECT_EQ(fake->modules, 2);
  EXPECT_EQ(listEntries().size(), 3u);
  // Another way was not shipped.
  for (FakeTensor *tensor : {&query, &output})
    tensor->shape[2] = 1;
  EXPECT_TRUE(run(function).ok());
  EXPECT_EQ(fake->assemblerThreads.size(), 1u);
  EXPECT_EQ(listEntries().size(), 4u);
}

TEST_F(CompileCUDATest, ShippingSaysWhatFails) {
  std::string shipped = std::string(folder) + "/shipped";
  auto ship = [&] {
    Result<unsigned> count =
        shipKernels(getSource(spec), options, shipped, [](StringRef) { return false; });
    return count ? "" : count.getStatus().str();
  };
  {
    FakePtxas ptxas(std::string(folder), "echo 'ptxas error   : no such register' >&2; exit 255");
    EXPECT_EQ(ship(), "invalid kernel: expected PTX that ptxas assembles, got: ptxas error   : "
                      "no such register");
  }
  FakePtxas ptxas(std::string(folder), assembles);
  std::error_code error;
  llvm::raw_fd_ostream(shipped, error) << "a file";
  EXPECT_EQ(ship().substr(0, 35), "invalid argument: ship: kernels are");
}
