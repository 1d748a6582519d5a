//===- CompileWaysTest.cpp - the kernels between which calls choose ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "lib/Compiler/Function.h"
#include "test/Unit/Runtime/Fixture.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include <thread>

using namespace attn;
using llvm::StringRef;

namespace {
/// What decides between ways.
struct Call {
  int64_t batch, heads, keyHeads, rows, keys;
};

class CompileWaysTest : public FakeCudaTest {
protected:
  void SetUp() override {
    FakeCudaTest::SetUp();
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-ways-test", folder));
    options.device = DeviceKind::CUDA;
    options.cacheDirectory = std::string(folder) + "/cache";
    options.lazy = true;
    spec.type = DataType::BF16;
    spec.headDim = 128;
  }
  void TearDown() override {
    setLog(nullptr);
    forgetFunctions();
    FakeCudaTest::TearDown();
    llvm::sys::fs::remove_directories(folder);
  }

  CompiledFunction compileSpec() {
    Result<CompiledFunction> function = compile(spec, options);
    EXPECT_TRUE(function) << function.getStatus().str();
    return *function;
  }

  /// Query, key, value and output of a call.
  struct Tensors {
    Tensors(const Call &call, int64_t columns)
        : query(1L << 40, {call.batch, call.heads, call.rows, columns}),
          key(2L << 40, {call.batch, call.keyHeads, call.keys, columns}),
          value(3L << 40, key.shape), output(4L << 40, query.shape),
          arguments({query, key, value, output}) {}
    Tensors(const Tensors &) = delete;
    FakeTensor query, key, value, output;
    std::vector<LaunchArgument> arguments;
  };

  Status run(const CompiledFunction &function, const Call &call) {
    return function.run(Tensors(call, spec.headDim).arguments, stream);
  }
  std::string chooseWay(const CompiledFunction &function, const Call &call) {
    Result<std::string> way = function.chooseWay(Tensors(call, spec.headDim).arguments);
    EXPECT_TRUE(way) << way.getStatus().str();
    return way ? *way : "error";
  }
  static size_t countReady(const CompiledFunction &function) {
    return llvm::count_if(function.getWays(), [](const WayInfo &way) { return way.isReady; });
  }

  llvm::SmallString<128> folder;
  CompileOptions options;
  AttentionSpec spec;
  void *stream = reinterpret_cast<void *>(0x77);
  /// A step of decoding, captions, and a prompt.
  Call decode{1, 32, 8, 1, 8192}, caption{2, 16, 16, 4096, 77}, prompt{1, 32, 8, 4096, 4096};
};
} // namespace

//===----------------------------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------------------------===//

/// Slots for the heads of a group, whose rows fit one tile; 0: they do not.
static int64_t countSlots(const Call &call) {
  int64_t group = call.heads / call.keyHeads;
  if (call.rows > 32 || (group == 1 && call.keys < 1024))
    return 0;
  int64_t slots = std::max<int64_t>(2, int64_t(llvm::PowerOf2Ceil(group)));
  return call.rows * slots <= 64 ? slots : 0;
}

/// The way of a call at D = 64, as the list of ways is documented.
static std::string expectWay(const Call &call, bool isMasked, bool isFast) {
  if (call.rows == 0)
    return call.keys <= 1024 ? "short" : "";
  if (int64_t slots = countSlots(call))
    return "packed" + std::to_string(slots);
  if (!isMasked && call.rows <= 128 && call.keys > 2048)
    return "few";
  bool areFew = (call.keys >= 1 && call.keys <= 80) || (call.keys >= 129 && call.keys <= 160);
  if (!isMasked && call.rows >= 257 && areFew && isFast)
    return "narrow";
  bool isShort = call.keys <= 1024 && (!isMasked || call.rows <= 1024);
  return isShort ? "short" : "";
}

// Over the whole domain, on both cards, with and without a mask: 14,364 calls.
TEST_F(CompileWaysTest, EveryCallTakesTheWayOfTheRule) {
  spec.headDim = 64;
  for (bool isMasked : {false, true})
    for (bool isFast : {false, true}) {
      spec.causal = isMasked ? Causal::BottomRight : Causal::No;
      fake->memoryBus = isFast ? 6144 : 4096;
      forgetFunctions();
      CompiledFunction function = compileSpec();
      for (auto [heads, keyHeads] :
           {std::pair(8, 8), {8, 4}, {8, 2}, {8, 1}, {12, 4}, {40, 8}, {64, 1}, {128, 1}, {96, 6}})
        for (int64_t rows : {0,  1,  2,   3,   4,   8,   15,  16,   17,   31,  32,
                             33, 64, 127, 128, 129, 256, 257, 1024, 1025, 4096})
          for (int64_t keys : {0, 1, 79, 80, 81, 128, 129, 160, 161, 1023, 1024, 1025, 2047, 2048,
                               2049, 8192, 131072, 1 << 20, 1 << 22}) {
            Call call{2, heads, keyHeads, rows, keys};
            std::string chosen = chooseWay(function, call);
            StringRef way = chosen;
            way.consume_back("-whole");
            ASSERT_EQ(way.str(), expectWay(call, isMasked, isFast))
                << heads << " heads of " << keyHeads << ", " << rows << " x " << keys
                << (isMasked ? ", masked" : "") << (isFast ? ", fast" : "");
          }
      EXPECT_EQ(countReady(function), 0u);
    }
}

// Blocks that fill the device by themselves read whole keys.
TEST_F(CompileWaysTest, PartsChooseBetweenPackedRows) {
  CompiledFunction function = compileSpec();
  EXPECT_EQ(chooseWay(function, decode), "packed4");
  EXPECT_EQ(chooseWay(function, {15, 32, 8, 1, 8192}), "packed4");
  EXPECT_EQ(chooseWay(function, {16, 32, 8, 1, 8192}), "packed4-whole");
  EXPECT_EQ(chooseWay(function, {1, 32, 8, 1, 320}), "packed4-whole");
}

// Scores and lengths pack too; dropout's factors, and sizes that somebody gives, do not.
TEST_F(CompileWaysTest, WhatHasOneWay) {
  auto countWays = [&](const CompileOptions &options) {
    Result<CompiledFunction> function = compile(spec, options);
    EXPECT_TRUE(function) << function.getStatus().str();
    return function ? function->getWays().size() : 0;
  };
  size_t all = countWays(options);
  EXPECT_GT(all, 12u);
  CompileOptions given = options;
  given.blockN = 64;
  EXPECT_EQ(countWays(given), 1u);
  given = options;
  given.splits = 3;
  EXPECT_EQ(countWays(given), 1u);
  given = options;
  given.way = "long";
  EXPECT_EQ(countWays(given), 1u);
  given.pack = 8;
  EXPECT_EQ(countWays(given), 3u);
  spec.causal = Causal::TopLeft;
  EXPECT_GT(countWays(options), 12u);
  EXPECT_LT(countWays(options), all);
}

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

TEST_F(CompileWaysTest, CallsCompileWhatTheyTake) {
  std::vector<std::string> lines;
  setLog([&](std::string_view line) { lines.emplace_back(line); });
  CompiledFunction function = compileSpec();
  EXPECT_EQ(fake->modules, 0);
  ASSERT_TRUE(run(function, decode).ok());
  EXPECT_EQ(fake->modules, 1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(
      StringRef(lines[0]).starts_with("attention: a call takes the way 'packed4', compiled in "))
      << lines[0];
  ASSERT_TRUE(run(function, {2, 32, 8, 2, 16384}).ok());
  EXPECT_EQ(lines.size(), 1u);
  ASSERT_TRUE(run(function, prompt).ok());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(StringRef(lines[1]).starts_with("attention: a call takes the way of most calls"));
  EXPECT_EQ(countReady(function), 2u);
  // Rows of eight heads and four slots each in a block of a key head; then a grid of tiles.
  EXPECT_EQ(fake->launches.front().config.gridY, 8u);
  EXPECT_EQ(fake->launches.back().config.blockX, 384u);

  // The next process finds them on disk.
  forgetFunctions();
  CompiledFunction again = compileSpec();
  ASSERT_TRUE(run(again, decode).ok());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_NE(lines[2].find("loaded from disk"), std::string::npos) << lines[2];
}

// Without `lazy` the way of most calls is there at once.
TEST_F(CompileWaysTest, MostCallsComeFirst) {
  options.lazy = false;
  CompiledFunction function = compileSpec();
  EXPECT_EQ(countReady(function), 1u);
  EXPECT_TRUE(function.getWays().back().isReady);
  EXPECT_EQ(function.getInfo().kernels.size(), 1u);
  EXPECT_GT(function.getInfo().passesMs, 0);
}

TEST_F(CompileWaysTest, PrepareCompilesForShapes) {
  CompiledFunction function = compileSpec();
  Tensors tensors(decode, 128);
  for (FakeTensor *tensor : {&tensors.query, &tensors.key, &tensors.value, &tensors.output})
    tensor->address = 0;
  auto prepare = [&] {
    return function.prepare({tensors.query, tensors.key, tensors.value, tensors.output});
  };
  Status status = prepare();
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(countReady(function), 1u);
  EXPECT_TRUE(fake->launches.empty());
  tensors.key.shape.pop_back();
  EXPECT_EQ(prepare().message, "key: expected 4 dimensions, got 3");
  EXPECT_EQ(function.prepare({tensors.query}).message,
            "call: expected 3 arguments and 1 results, got 1 values");
  ASSERT_TRUE(function.prepare().ok());
  EXPECT_EQ(countReady(function), function.getWays().size());
}

// Each way, before and after prepare().
TEST_F(CompileWaysTest, CapturesTakeWhatIsReady) {
  CompiledFunction function = compileSpec();
  Call calls[] = {
      decode, {64, 32, 8, 1, 8192}, {1, 32, 32, 1, 4096}, {1, 32, 8, 100, 8192}, caption, prompt};
  size_t ready = 0;
  for (const Call &call : calls) {
    fake->capture = cuda::CaptureActive;
    Status status = run(function, call);
    EXPECT_EQ(status.code, StatusCode::CaptureInProgress);
    EXPECT_NE(status.message.find("to be ready before the stream is captured"), std::string::npos)
        << status.str();
    EXPECT_NE(status.hint.find("prepare()"), std::string::npos);
    EXPECT_EQ(countReady(function), ready);
    fake->capture = cuda::CaptureNone;
    ASSERT_TRUE(function.prepare(Tensors(call, 128).arguments).ok());
    EXPECT_EQ(countReady(function), ++ready);
    fake->capture = cuda::CaptureActive;
    fake->calls.clear();
    ASSERT_TRUE(run(function, call).ok());
    EXPECT_FALSE(llvm::is_contained(fake->calls, "ModuleLoadDataEx"));
  }
}

// One thread compiles, the others wait.
TEST_F(CompileWaysTest, ThreadsShareAWay) {
  CompiledFunction function = compileSpec();
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int j = 0; j < 4; ++j)
        failures += !run(function, (i + j) % 2 ? decode : prompt).ok();
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(fake->modules, 2);
  EXPECT_EQ(countReady(function), 2u);
}

// What does not assemble is an error of the call that needs it, each time, and of no other.
TEST_F(CompileWaysTest, AWayThatFailsLeavesOthers) {
  CompiledFunction function = compileSpec();
  ASSERT_TRUE(run(function, prompt).ok());
  fail("ModuleLoadDataEx", cuda::InvalidPtx);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(run(function, decode).code, StatusCode::InvalidKernel);
  EXPECT_TRUE(run(function, prompt).ok());
  fake->failure = cuda::Success;
  EXPECT_TRUE(run(function, decode).ok());
}

TEST_F(CompileWaysTest, WorkspaceIsOfTheWay) {
  CompiledFunction function = compileSpec();
  Tensors tensors(decode, 128), more(prompt, 128);
  Result<size_t> bytes = function.getWorkspaceBytes(tensors.arguments);
  ASSERT_TRUE(bytes) << bytes.getStatus().str();
  EXPECT_GT(*bytes, 0u);
  Result<size_t> none = function.getWorkspaceBytes(more.arguments);
  EXPECT_TRUE(none && *none == 0);
  Status status =
      function.run(tensors.arguments, stream, {reinterpret_cast<void *>(0x7f000000), *bytes});
  ASSERT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(fake->scratchBytes, 0u);
  status =
      function.run(tensors.arguments, stream, {reinterpret_cast<void *>(0x7f000000), *bytes - 1});
  EXPECT_EQ(status.code, StatusCode::InvalidArgument) << status.str();
}

/// Layers of a model share what follows from lengths.
TEST_F(CompileWaysTest, PlannedCallsLeaveOutWhatIsThere) {
  spec.hasLengths = true;
  options.balance = true;
  CompiledFunction function = compileSpec();
  Tensors tensors(decode, 128);
  FakeTensor lengths(5L << 40, {decode.batch}, {}, DataType::I32);
  tensors.arguments.insert(tensors.arguments.begin() + 3, lengths);
  Result<size_t> bytes = function.getWorkspaceBytes(tensors.arguments);
  ASSERT_TRUE(bytes) << bytes.getStatus().str();
  Workspace workspace = {reinterpret_cast<void *>(0x7f000000), *bytes};
  auto countLaunches = [&] {
    fake->launches.clear();
    Status status = function.run(tensors.arguments, stream, workspace);
    EXPECT_TRUE(status.ok()) << status.str();
    return fake->launches.size();
  };
  // Three grids count and deal, then come the attention and the merge.
  EXPECT_EQ(countLaunches(), 5u);
  workspace.isPlanned = true;
  EXPECT_EQ(countLaunches(), 2u);
  Status status = function.run(tensors.arguments, stream, {nullptr, 0, /*isPlanned=*/true});
  EXPECT_EQ(status.message, "expected a workspace that a call has planned, got none");
  // A way without planning kernels is what it was.
  spec.hasLengths = false;
  CompiledFunction plain = compileSpec();
  Tensors others(decode, 128);
  fake->launches.clear();
  EXPECT_TRUE(plain.run(others.arguments, stream, workspace).ok());
  EXPECT_EQ(fake->launches.size(), 2u);
}

TEST_F(CompileWaysTest, ExplainSaysWhichCallsTakeWhat) {
  Result<std::string> text = explain(getSource(spec), options, "problem");
  ASSERT_TRUE(text) << text.getStatus().str();
  for (const char *part :
       {"// calls       packed4 where dimension 2 of argument 0 is 1 to 16 and dimension 1 of "
        "argument 0 by dimension 1 of argument 1 is 3 to 4\n",
        "// calls       narrow where dimension 2 of argument 1 is 1 to 80 and ",
        "the rate of memory in GB/s is at least 4000; or dimension 2 of argument 1 is 129 to 160",
        "// calls       most otherwise\n", "rule cuda-d128-few chose", "for the way few"})
    EXPECT_NE(text->find(part), std::string::npos) << part << '\n' << *text;
  text = explain(getSource(spec), options, "ptx", "packed4");
  ASSERT_TRUE(text) << text.getStatus().str();
  EXPECT_NE(text->find(".visible .entry attention_packed4_split("), std::string::npos) << *text;
  EXPECT_EQ(text->find(".visible .entry attention("), std::string::npos);
  EXPECT_EQ(explain(getSource(spec), options, "ptx", "packed3").getStatus().message.substr(0, 38),
            "way: expected packed2-whole, packed2, ");
}

// An image for elsewhere has all ways.
TEST_F(CompileWaysTest, ImagesHaveAllWays) {
  options.pack = 4;
  Result<KernelImage> image = emit(getSource(spec), options);
  ASSERT_TRUE(image) << image.getStatus().str();
  Result<Kernel> kernel = Kernel::load(*image);
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  for (const WayInfo &way : kernel->getWays())
    EXPECT_TRUE(way.isReady) << way.name;
  Result<std::string> way = kernel->chooseWay(Tensors(decode, 128).arguments);
  ASSERT_TRUE(way) << way.getStatus().str();
  EXPECT_EQ(*way, "packed");
}

// A sink is one number for each row of a packed head.
TEST_F(CompileWaysTest, SinksArePacked) {
  spec.hasSink = true;
  CompiledFunction function = compileSpec();
  Tensors tensors(decode, 128);
  FakeTensor sink(5L << 40, {32}, {}, DataType::F32);
  Result<std::string> way =
      function.chooseWay({tensors.query, tensors.key, tensors.value, sink, tensors.output});
  ASSERT_TRUE(way) << way.getStatus().str();
  EXPECT_EQ(*way, "packed4");
  Status status =
      function.run({tensors.query, tensors.key, tensors.value, sink, tensors.output}, stream);
  EXPECT_TRUE(status.ok()) << status.str();
}
