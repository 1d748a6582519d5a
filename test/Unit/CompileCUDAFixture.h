//===- CompileCUDAFixture.h - compilations for the fake driver -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_COMPILECUDAFIXTURE_H
#define ATTN_TEST_UNIT_COMPILECUDAFIXTURE_H

#include "attn/Compiler.h"
#include "lib/Compiler/Function.h"
#include "test/Unit/Runtime/Fixture.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

namespace attn {

/// Each test compiles into a folder of its own.
class CompileCUDATest : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-cuda-test", folder));
    options.device = DeviceKind::CUDA;
    options.cacheDirectory = std::string(folder) + "/cache";
    // One kernel, whatever the lengths.
    options.way = "long";
    spec.type = DataType::BF16;
    spec.headDim = 64;
  }
  void TearDown() override {
    forgetFunctions();
    FakeCudaTest::TearDown();
    llvm::sys::fs::remove_directories(folder);
  }

  CompiledFunction compileSpec() {
    Result<CompiledFunction> function = compile(spec, options);
    EXPECT_TRUE(function) << function.getStatus().str();
    return *function;
  }
  Status getError() { return compile(spec, options).getStatus(); }

  std::vector<std::string> listEntries() const {
    std::vector<std::string> entries;
    std::error_code error;
    for (llvm::sys::fs::directory_iterator it(options.cacheDirectory, error), end;
         it != end && !error; it.increment(error))
      if (llvm::StringRef(it->path()).ends_with(".kernel"))
        entries.push_back(it->path());
    return entries;
  }

  Status run(const CompiledFunction &function) {
    return function.run({query, key, value, output}, stream);
  }
  void expectInvalid(const Status &status, const std::string &message,
                     const std::string &hint = "") {
    EXPECT_EQ(status.code, StatusCode::InvalidArgument) << status.str();
    EXPECT_EQ(status.message, message);
    if (!hint.empty())
      EXPECT_EQ(status.hint, hint);
    EXPECT_TRUE(fake->launches.empty());
  }

  llvm::SmallString<128> folder;
  CompileOptions options;
  AttentionSpec spec;
  void *stream = reinterpret_cast<void *>(0x77);
  FakeTensor query{0x100000, {2, 8, 1000, 64}}, key{0x200000, {2, 4, 500, 64}};
  FakeTensor value{0x300000, {2, 4, 500, 64}}, output{0x40000000, {2, 8, 1000, 64}};
};

} // namespace attn

#endif // ATTN_TEST_UNIT_COMPILECUDAFIXTURE_H
