//===- CompileCPUTest.cpp - functions for the CPU between processes ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "lib/Compiler/Function.h"
#include "lib/Runtime/CacheEntry.h"
#include "lib/Support/Stopwatch.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace attn;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

namespace {
class CompileCPUTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(fs::createUniqueDirectory("attn-cpu-test", folder));
    unsetenv("ATTN_CACHE");
    unsetenv("ATTN_CACHE_DIR");
    options.cacheDirectory = std::string(folder) + "/cache";
    spec.headDim = 8;
    spec.causal = Causal::TopLeft;
  }
  void TearDown() override {
    forgetFunctions();
    fs::remove_directories(folder);
  }

  CompiledFunction compileSpec() {
    Result<CompiledFunction> function = compile(spec, options);
    EXPECT_TRUE(function) << function.getStatus().str();
    return *function;
  }

  /// The images of this process are kept in memory too; another place is another cache.
  void move(const std::string &name) {
    forgetFunctions();
    std::string moved = std::string(folder) + "/" + name;
    ASSERT_FALSE(fs::rename(options.cacheDirectory, moved));
    options.cacheDirectory = moved;
  }

  std::vector<std::string> listEntries() const {
    std::vector<std::string> entries;
    std::error_code error;
    for (fs::directory_iterator it(options.cacheDirectory, error), end; it != end && !error;
         it.increment(error))
      if (StringRef(it->path()).ends_with(".kernel"))
        entries.push_back(it->path());
    return entries;
  }

  static std::string read(const std::string &path) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }
  /// In place: its owner and mode stay.
  static void write(const std::string &path, StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    ASSERT_FALSE(error) << error.message();
  }

  /// The sum of what one call writes, which weighs every element by its place.
  static double run(const CompiledFunction &function) {
    constexpr int64_t size = 2 * 3 * 50 * 8;
    std::vector<float> query(size), key(size), value(size), output(size, NAN);
    for (int64_t i = 0; i < size; ++i) {
      query[i] = float(std::sin(i));
      key[i] = float(std::cos(2 * i));
      value[i] = float(std::sin(3 * i + 1));
    }
    const int64_t shape[] = {2, 3, 50, 8};
    auto view = [&](std::vector<float> &values) {
      return TensorView{values.data(), DataType::F32, 4, shape, nullptr};
    };
    Status status = function.run({view(query), view(key), view(value), view(output)});
    EXPECT_TRUE(status.ok()) << status.str();
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += output[i] * (1 + i % 7);
    return sum;
  }

  llvm::SmallString<128> folder;
  CompileOptions options;
  AttentionSpec spec;
};
} // namespace

TEST_F(CompileCPUTest, TheDiskKeepsFunctions) {
  CompiledFunction first = compileSpec();
  EXPECT_FALSE(first.getInfo().isFromDisk);
  EXPECT_GT(first.getInfo().passesMs, 0);
  EXPECT_GT(first.getInfo().llvmMs, 0);
  ASSERT_EQ(listEntries().size(), 1u);
  struct stat status;
  ASSERT_EQ(stat(listEntries()[0].c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  move("moved");
  Stopwatch stopwatch;
  CompiledFunction second = compileSpec();
  double ms = stopwatch.elapsedMs();
  const FunctionInfo &info = second.getInfo();
  EXPECT_TRUE(info.isFromDisk);
  EXPECT_EQ(info.passesMs + info.llvmMs, 0);
  EXPECT_GT(info.loadMs, 0);
  EXPECT_TRUE(info.remarks.empty());
  EXPECT_EQ(info.name, first.getInfo().name);
  ASSERT_EQ(info.arguments.size(), 3u);
  EXPECT_EQ(info.arguments[2].name, "value");
  EXPECT_EQ(info.arguments[2].letters, (std::vector<std::string>{"B", "Hkv", "N", "Dv"}));
  EXPECT_EQ(info.results[0].name, "output");
  EXPECT_EQ(llvm::bit_cast<uint64_t>(run(first)), llvm::bit_cast<uint64_t>(run(second)));
  std::printf("from disk in %.2f ms, of which %.2f to link\n", ms, info.loadMs);
}

TEST_F(CompileCPUTest, CallsAreCheckedAsBefore) {
  // The bias has any strides, the query has not.
  const char *source =
      "!t = tensor<?x?x?x8xf32>\n"
      "func.func @f(%q: !t, %k: !t, %v: !t, %bias: tensor<?x?xf32>) -> !t {\n"
      "  %o = attn.attention %q, %k, %v score(%s, %b, %h, %m, %n) {\n"
      "    %x = tensor.extract %bias[%m, %n] : tensor<?x?xf32>\n"
      "    %y = arith.addf %s, %x : f32\n    attn.yield %y : f32\n  } : !t, !t, !t -> !t\n"
      "  return %o : !t\n}\n";
  std::vector<float> values(64, 1), out(64), bias(128);
  for (size_t i = 0; i < bias.size(); ++i)
    bias[i] = float(i % 5);
  const int64_t shape[] = {1, 1, 8, 8}, square[] = {8, 8}, apart[] = {16, 2};
  const int64_t wide[] = {64, 64, 8, 2};
  auto view = [&](std::vector<float> &memory, const int64_t *strides = nullptr) {
    return TensorView{memory.data(), DataType::F32, 4, shape, strides};
  };
  for (bool isFromDisk : {false, true}) {
    Result<CompiledFunction> function = compile(source, options);
    ASSERT_TRUE(function) << function.getStatus().str();
    EXPECT_EQ(function->getInfo().isFromDisk, isFromDisk);
    TensorView strided{bias.data(), DataType::F32, 2, square, apart};
    Status status = function->run({view(values), view(values), view(values), strided, view(out)});
    EXPECT_TRUE(status.ok()) << status.str();
    status = function->run({view(values, wide), view(values), view(values), strided, view(out)});
    EXPECT_EQ(status.code, StatusCode::InvalidArgument);
    status = function->run({view(values), view(values), view(values), view(values), view(out)});
    EXPECT_EQ(status.code, StatusCode::InvalidArgument);
    move("moved");
  }
}

TEST_F(CompileCPUTest, WhatChangesCodeIsAnotherEntry) {
  compileSpec();
  options.blockN = 16;
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  options.splits = 2;
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  options.cpu = "x86-64-v2";
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  spec.causal = Causal::No;
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  EXPECT_EQ(listEntries().size(), 5u);
}

TEST_F(CompileCPUTest, ThreadsShareAnEntry) {
  double wanted = run(compileSpec());
  options.threads = 1;
  CompiledFunction alone = compileSpec();
  EXPECT_TRUE(alone.getInfo().isFromDisk);
  EXPECT_EQ(run(alone), wanted);
  EXPECT_EQ(listEntries().size(), 1u);
}

TEST_F(CompileCPUTest, ErrorsAreNotKept) {
  spec.headDim = -3;
  EXPECT_FALSE(compile(spec, options));
  EXPECT_TRUE(listEntries().empty());
}

TEST_F(CompileCPUTest, ExplainCompiles) {
  Result<std::string> first = explain(getSource(spec), options);
  ASSERT_TRUE(first) << first.getStatus().str();
  EXPECT_TRUE(listEntries().empty());
  compileSpec();
  Result<std::string> second = explain(getSource(spec), options);
  ASSERT_TRUE(second) << second.getStatus().str();
  EXPECT_NE(second->find("mask-tiles"), std::string::npos) << *second;
  EXPECT_EQ(second->find("compile     0.0 ms"), std::string::npos) << *second;
}

TEST_F(CompileCPUTest, TheDiskCanBeLeftAlone) {
  options.cache = false;
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  forgetFunctions();
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
  EXPECT_TRUE(listEntries().empty());
  options.cache = true;
  setenv("ATTN_CACHE", "0", 1);
  forgetFunctions();
  EXPECT_FALSE(compileSpec().getInfo().isFromDisk);
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
// Attacks
//===----------------------------------------------------------------------------------------===//

TEST_F(CompileCPUTest, EveryFlippedBitIsSeen) {
  compileSpec();
  std::string whole = read(listEntries()[0]);
  CacheKey key;
  llvm::copy(StringRef(whole).substr(8, key.bytes.size()), key.bytes.begin());
  std::optional<KernelImage> image = readCacheEntry(key, whole);
  ASSERT_TRUE(image);
  EXPECT_TRUE(image->ptx.empty());
  EXPECT_TRUE(StringRef(image->machineCode)
                  .starts_with("\x7f"
                               "ELF"));
  // The ends all, the middle at a prime's distance.
  for (size_t i = 0; i < whole.size(); i += i < 300 || i + 300 > whole.size() ? 1 : 211) {
    std::string flipped = whole;
    flipped[i] ^= 1 << i % 8;
    ASSERT_FALSE(readCacheEntry(key, flipped)) << i;
    ASSERT_FALSE(readCacheEntry(key, StringRef(whole).take_front(i))) << i;
  }
}

TEST_F(CompileCPUTest, DamagedEntriesAreCompiledAgain) {
  double wanted = run(compileSpec());
  std::string name = StringRef(listEntries()[0]).rsplit('/').second.str();
  std::string whole = read(listEntries()[0]), flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  int place = 0;
  for (StringRef bytes : {StringRef(flipped), StringRef(whole).drop_back(), StringRef()}) {
    move("damaged" + std::to_string(place++));
    std::string entry = options.cacheDirectory + "/" + name;
    write(entry, bytes);
    CompiledFunction function = compileSpec();
    EXPECT_FALSE(function.getInfo().isFromDisk);
    ASSERT_EQ(function.getInfo().remarks.size(), 1u);
    EXPECT_EQ(function.getInfo().remarks[0],
              "expected a whole cache entry, got a damaged one, now removed: '" + entry + "'");
    EXPECT_EQ(run(function), wanted);
    EXPECT_EQ(read(entry), whole);
  }
}

// An entry under another name would run code of another processor or program.
TEST_F(CompileCPUTest, EntriesUnderOtherNamesAreNotLoaded) {
  options.cpu = "x86-64-v2";
  compileSpec();
  std::string other = listEntries()[0], foreign = read(other);
  options.cpu = "";
  double wanted = run(compileSpec());
  ASSERT_EQ(listEntries().size(), 2u);
  for (const std::string &entry : listEntries())
    write(entry, foreign);
  move("renamed");
  CompiledFunction function = compileSpec();
  EXPECT_FALSE(function.getInfo().isFromDisk);
  ASSERT_EQ(function.getInfo().remarks.size(), 1u);
  EXPECT_TRUE(StringRef(function.getInfo().remarks[0])
                  .starts_with("expected a whole cache entry, got a damaged one"));
  EXPECT_EQ(run(function), wanted);
  options.cpu = "x86-64-v2";
  EXPECT_TRUE(compileSpec().getInfo().isFromDisk);
}

TEST_F(CompileCPUTest, EntriesThatOthersCouldWriteAreNotLoaded) {
  double wanted = run(compileSpec());
  auto expectRefused = [&](const std::string &place, const std::string &reason) {
    move(place);
    CompiledFunction function = compileSpec();
    EXPECT_FALSE(function.getInfo().isFromDisk) << place;
    ASSERT_GE(function.getInfo().remarks.size(), 1u) << place;
    EXPECT_NE(function.getInfo().remarks[0].find(reason), std::string::npos)
        << function.getInfo().remarks[0];
    EXPECT_EQ(run(function), wanted);
  };
  ASSERT_EQ(chmod(listEntries()[0].c_str(), 0660), 0);
  expectRefused("group", "expected a cache entry that no other user may write to");
  ASSERT_EQ(chmod(options.cacheDirectory.c_str(), 0777), 0);
  expectRefused("all", "expected a directory that no other user may write to");
  ASSERT_EQ(chmod(options.cacheDirectory.c_str(), 0700), 0);
  std::string entry = listEntries()[0], aside = std::string(folder) + "/aside";
  ASSERT_FALSE(fs::rename(entry, aside));
  ASSERT_EQ(symlink(aside.c_str(), entry.c_str()), 0);
  expectRefused("link", "expected a cache entry a regular file, got a link");
  if (geteuid() != 0)
    return;
  ASSERT_EQ(chown(listEntries()[0].c_str(), 65534, 65534), 0);
  expectRefused("stranger", "expected a cache entry of this user, got one of user 65534");
  ASSERT_EQ(chown(options.cacheDirectory.c_str(), 65534, 65534), 0);
  expectRefused("folder", "expected a directory of this user, got one of user 65534");
}

// Whole, but not of this compiler.
TEST_F(CompileCPUTest, EntriesOfNoCode) {
  compileSpec();
  std::string whole = read(listEntries()[0]);
  CacheKey key;
  llvm::copy(StringRef(whole).substr(8, key.bytes.size()), key.bytes.begin());
  KernelImage image = *readCacheEntry(key, whole);
  auto getError = [&](const std::string &place, const std::string &plan, const std::string &code) {
    move(place);
    write(listEntries()[0], writeCacheEntry(key, {"", plan, code}));
    Result<CompiledFunction> function = compile(spec, options);
    return function ? "" : function.getStatus().str();
  };
  EXPECT_EQ(getError("rules", R"({"version": 6, "kernels": []})", image.machineCode),
            "invalid kernel: expected a plan with the rules of calls, got none");
  EXPECT_NE(getError("plan", "{", image.machineCode), "");
  EXPECT_NE(getError("text", image.plan, "no object file"), "");
  EXPECT_NE(getError("none", image.plan, ""), "");
  EXPECT_NE(getError("part", image.plan, image.machineCode.substr(0, 1000)), "");
}

//===----------------------------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------------------------===//

TEST_F(CompileCPUTest, ProcessesCompileOnce) {
  // Children of a process that has compiled nothing yet; each tells what it did.
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    pid_t child = fork();
    if (child == 0) {
      Result<CompiledFunction> function = compile(spec, options);
      _exit(!function || !std::isfinite(run(*function)) ? 2 : function->getInfo().isFromDisk);
    }
    children.push_back(child);
  }
  int fromDisk = 0;
  for (pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_LT(WEXITSTATUS(status), 2);
    fromDisk += WEXITSTATUS(status);
  }
  EXPECT_EQ(fromDisk, 3);
}
