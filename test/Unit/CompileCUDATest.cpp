//===- CompileCUDATest.cpp - include/attn/Compiler.h for the device cuda ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Stopwatch.h"
#include "test/Unit/CompileCUDAFixture.h"
#include <cstdio>
#include <cstdlib>

using namespace attn;
using llvm::StringRef;

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

TEST_F(CompileCUDATest, Runs) {
  CompiledFunction function = compileSpec();
  const FunctionInfo &info = function.getInfo();
  EXPECT_EQ(info.device, DeviceKind::CUDA);
  EXPECT_EQ(info.ordinal, 0);
  EXPECT_GT(info.passesMs, 0);
  EXPECT_GT(info.llvmMs, 0);
  ASSERT_EQ(info.kernels.size(), 1u);
  EXPECT_EQ(info.kernels[0].registers, 168);
  EXPECT_EQ(info.arguments[1].letters, (std::vector<std::string>{"B", "Hkv", "N", "D"}));
  EXPECT_EQ(info.results[0].name, "output");

  fake->calls.clear();
  Status status = run(function);
  ASSERT_TRUE(status.ok()) << status.str();
  ASSERT_EQ(fake->launches.size(), 1u);
  EXPECT_EQ(fake->launches[0].config.stream, static_cast<cuda::Stream>(stream));
  EXPECT_GE(fake->launches[0].config.gridX, 1000u / 256);
  EXPECT_EQ(fake->launches[0].config.gridY, 8u);
  EXPECT_EQ(fake->launches[0].config.gridZ, 2u);
  // Nothing that allocates, waits or reads back.
  for (const std::string &call : fake->calls)
    EXPECT_TRUE(call == "CtxPushCurrent" || call == "CtxPopCurrent" || call == "LaunchKernelEx" ||
                call == "TensorMapEncodeTiled" || call == "PointerGetAttributes")
        << call;
  // An address is asked about once.
  fake->calls.clear();
  ASSERT_TRUE(run(function).ok());
  EXPECT_EQ(fake->calls,
            (std::vector<std::string>{"CtxPushCurrent", "LaunchKernelEx", "CtxPopCurrent"}));
}

TEST_F(CompileCUDATest, LengthsChooseTheKernel) {
  options.way = "lengths";
  CompiledFunction function = compileSpec();
  ASSERT_TRUE(function.prepare().ok());
  ASSERT_TRUE(run(function).ok());
  // Few keys: blocks that stay, one for each multiprocessor. More: a grid of tiles.
  ASSERT_EQ(fake->launches.size(), 1u);
  EXPECT_EQ(fake->launches[0].config.gridY * fake->launches[0].config.gridZ, 1u);
  key.shape[2] = value.shape[2] = 2049;
  ASSERT_TRUE(run(function).ok());
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[1].config.gridY, 8u);
  EXPECT_EQ(fake->launches[1].config.gridZ, 2u);

  for (const char *way : {"short", "few", "narrow"}) {
    options.way = way;
    EXPECT_EQ(compileSpec().getInfo().kernels.size(), 1u) << way;
  }
}

// Blocks that stay leave what they are told to, and no blocks follow them there.
TEST_F(CompileCUDATest, LeavesMultiprocessors) {
  options.way = "short";
  for (Causal causal : {Causal::No, Causal::BottomRight}) {
    spec.causal = causal;
    for (int64_t reserve : {0, 8, 1000}) {
      options.reserve = reserve;
      fake->launches.clear();
      ASSERT_TRUE(run(compileSpec()).ok());
      ASSERT_EQ(fake->launches.size(), 1u);
      unsigned blocks = fake->launches[0].config.gridX;
      if (reserve == 0)
        EXPECT_EQ(blocks % 132, 0u) << blocks;
      else
        EXPECT_EQ(blocks, reserve == 8 ? 124u : 1u);
    }
  }
  options.reserve = 8;
  Result<std::string> text = explain(getSource(spec), options, "ptx", "");
  ASSERT_TRUE(text) << text.getStatus().str();
  EXPECT_NE(text->find("// reserve     8 multiprocessors that blocks of attention leave"),
            std::string::npos);
  // A grid of tiles is what it was.
  options.stay = "off";
  fake->launches.clear();
  ASSERT_TRUE(run(compileSpec()).ok());
  EXPECT_EQ(fake->launches[0].config.gridY * fake->launches[0].config.gridZ, 16u);
  fake->launches.clear();
  options.reserve = -1;
  expectInvalid(getError(), "reserve: expected a number from 0 to 2^20, got -1");
}

// At D = 96 few rows are as good as few keys: tiles of 192 rows would leave a third of them empty.
TEST_F(CompileCUDATest, FewRowsAreShortToo) {
  options.way = "lengths";
  spec.headDim = 96;
  query.shape[3] = key.shape[3] = value.shape[3] = output.shape[3] = 96;
  query.strides = key.strides = value.strides = output.strides = {};
  CompiledFunction function = compileSpec();
  for (int64_t rows : {0, 1, 127, 128, 129, 192, 1024, 1025, 16384})
    for (int64_t keys : {0, 1, 127, 128, 129, 2047, 2048, 2049, 16384}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << keys << " keys");
      query.shape[2] = output.shape[2] = rows;
      key.shape[2] = value.shape[2] = keys;
      fake->launches.clear();
      ASSERT_TRUE(run(function).ok());
      ASSERT_EQ(fake->launches.size(), 1u);
      const auto &config = fake->launches[0].config;
      bool isLong = rows > 128 && keys > 2048;
      // Three consumers beside a producer, in a grid of tiles; or two, which stay.
      EXPECT_EQ(config.blockX, isLong ? 512u : 384u);
      EXPECT_EQ(config.gridY * config.gridZ, isLong ? 16u : 1u);
      if (isLong)
        EXPECT_EQ(config.gridX, unsigned(rows + 191) / 192);
    }
}

TEST_F(CompileCUDATest, SplitsKeys) {
  options.splits = 3;
  CompiledFunction function = compileSpec();
  ASSERT_EQ(function.getInfo().kernels.size(), 2u);
  EXPECT_EQ(function.getInfo().kernels[0].name, "attention_split");
  EXPECT_EQ(function.getInfo().kernels[1].name, "attention_merge");
  fake->capture = cuda::CaptureActive;
  Status status = run(function);
  ASSERT_TRUE(status.ok()) << status.str();
  ASSERT_EQ(fake->launches.size(), 2u);
  // 1000 rows in tiles of 128 for each part, then in blocks of 8.
  EXPECT_EQ(fake->launches[0].config.gridX, 3u * 8);
  EXPECT_EQ(fake->launches[1].config.gridX, 1000u / 8);
  EXPECT_EQ(fake->launches[1].config.gridZ, 2u);
  // Sums and log-sum-exps of every part, in f32.
  EXPECT_EQ(fake->scratchBytes, 3 * 2 * 8 * 1000 * (64 + 1) * sizeof(float));
  EXPECT_EQ(fake->scratchStream, static_cast<cuda::Stream>(stream));

  Result<std::string> text = explain(getSource(spec), options, "ptx");
  ASSERT_TRUE(text) << text.getStatus().str();
  for (const char *part :
       {"// split-kv    keys are split over 3 blocks", "// kernel      attention_split for sm_90a",
        "// scratch     2 tensors that attention_split leaves", "attention_merge for sm_90a"})
    EXPECT_NE(text->find(part), std::string::npos) << part;
}

TEST_F(CompileCUDATest, MoreBatchesThanAGridHas) {
  for (int64_t splits : {1, 2}) {
    options.splits = splits;
    fake->launches.clear();
    CompiledFunction function = compileSpec();
    size_t kernels = function.getInfo().kernels.size();
    FakeTensor query(0x100000, {70000, 1, 8, 64}), output(0x40000000, {70000, 1, 8, 64});
    // Every batch reads the same keys.
    FakeTensor key(0x200000, {70000, 1, 9, 64}, {0, 576, 64, 1}), value = key;
    Status status = function.run({query, key, value, output}, stream);
    ASSERT_TRUE(status.ok()) << status.str();
    ASSERT_EQ(fake->launches.size(), 2 * kernels);
    EXPECT_EQ(fake->launches[0].config.gridZ, 65535u);
    EXPECT_EQ(fake->launches[kernels].config.gridZ, 4465u);
    auto hasAddress = [&](uintptr_t address) {
      return llvm::any_of(fake->encodings, [&](auto &map) {
        return map.address == reinterpret_cast<void *>(address);
      });
    };
    EXPECT_TRUE(hasAddress(0x100000 + uintptr_t(65535) * 8 * 64 * 2));
    EXPECT_FALSE(hasAddress(0x200000 + uintptr_t(65535) * 9 * 64 * 2));
  }
}

/// The number of launches of 70000 batches whose mask is `mask`, reading %ids: tensor<?x?xi32>; the
/// message of the error is in `message`. %size is of that dimension of the query.
static size_t countLaunches(FakeCuda &fake, const CompileOptions &options, const std::string &mask,
                            std::string &message, const std::string &size = "c2") {
  Result<CompiledFunction> function =
      compile("!t = tensor<?x?x?x64xbf16>\n"
              "func.func @f(%q: !t, %k: !t, %ids: tensor<?x?xi32>) -> !t {\n"
              "  %zero = arith.constant 0 : i32\n"
              "  %c0 = arith.constant 0 : index\n"
              "  %c2 = arith.constant 2 : index\n"
              "  %size = tensor.dim %q, %" +
                  size +
                  " : !t\n"
                  "  %o = attn.attention %q, %k, %k mask(%b, %h, %m, %n) {\n" +
                  mask + "    attn.yield %keep : i1\n  } : !t, !t, !t -> !t\n  return %o : !t\n}\n",
              options);
  EXPECT_TRUE(function) << function.getStatus().str();
  FakeTensor query(0x100000, {70000, 1, 8, 64}), output(0x40000000, {70000, 1, 8, 64});
  FakeTensor ids(0x600000, {70000, 9}, {}, DataType::I32);
  fake.launches.clear();
  message = function ? function->run({query, query, ids, output}).message : "";
  return fake.launches.size();
}

TEST_F(CompileCUDATest, BatchesThatRegionsKnow) {
  std::string message;
  EXPECT_EQ(countLaunches(*fake, options,
                          "    %x = tensor.extract %ids[%b, %n] : tensor<?x?xi32>\n"
                          "    %keep = arith.cmpi sgt, %x, %zero : i32\n",
                          message),
            6u);
  EXPECT_EQ(message, "");
  // Two parts of three kernels each: tiles, lists, attention. A slice would have other numbers, or
  // another batch's ids.
  for (auto [kernel, mask] :
       {std::pair{"f", "    %keep = arith.cmpi slt, %b, %n : index\n"},
        std::pair{"f_status", "    %x = tensor.extract %ids[%b, %n] : tensor<?x?xi32>\n"
                              "    %y = tensor.extract %ids[%c0, %n] : tensor<?x?xi32>\n"
                              "    %keep = arith.cmpi sgt, %x, %y : i32\n"}}) {
    EXPECT_EQ(countLaunches(*fake, options, mask, message), 0u);
    EXPECT_EQ(message, "expected at most 65535 blocks along z in kernel '" + std::string(kernel) +
                           "', got 70000");
  }
}

/// Other sizes are those of all batches; their number is not.
TEST_F(CompileCUDATest, SizesThatRegionsKnow) {
  std::string message, mask = "    %keep = arith.cmpi slt, %n, %size : index\n";
  EXPECT_EQ(countLaunches(*fake, options, mask, message), 2u);
  EXPECT_EQ(message, "");
  EXPECT_EQ(countLaunches(*fake, options, mask, message, "c0"), 0u);
  EXPECT_EQ(message, "expected at most 65535 blocks along z in kernel 'f', got 70000");
}

/// An offset more than there are sequences: launches do not take them in turn, as they do batches.
TEST_F(CompileCUDATest, SequencesOfAnyLengths) {
  spec.isRagged = true;
  spec.causal = Causal::BottomRight;
  CompiledFunction function = compileSpec();
  auto call = [&](int64_t count) {
    FakeTensor rows(0x100000, {count, 1, 64}), keys(0x200000, {count, 1, 64}),
        values(0x300000, {count, 1, 64}), result(0x40000000, {count, 1, 64});
    FakeTensor offsets(0x400000, {count + 1}, {}, DataType::I32),
        most(0x100000, {100}, {}, DataType::I8);
    return function.run({rows, keys, values, offsets, offsets, most, most, result}, stream);
  };
  Status status = call(40);
  ASSERT_TRUE(status.ok()) << status.str();
  ASSERT_EQ(fake->launches.size(), 1u);
  EXPECT_EQ(fake->launches[0].config.gridZ, 40u);
  status = call(70000);
  EXPECT_EQ(status.message,
            "expected at most 65535 blocks along z in kernel 'attention', got 70000");
  EXPECT_EQ(fake->launches.size(), 1u);
}

/// Rows of the table and lengths go with their sequences; the pools are everybody's.
TEST_F(CompileCUDATest, MoreSequencesOfPagesThanAGridHas) {
  spec.pageSize = 16;
  spec.hasLengths = true;
  spec.causal = Causal::BottomRight;
  CompiledFunction function = compileSpec();
  constexpr int64_t count = 70000;
  FakeTensor rows(0x100000, {count, 1, 1, 64}), result(0x40000000, {count, 1, 1, 64});
  FakeTensor keys(0x200000, {4, 16, 1, 64}), values(0x300000, {4, 16, 1, 64});
  FakeTensor table(0x400000, {count, 3}, {}, DataType::I32);
  FakeTensor lengths(0x800000, {count}, {}, DataType::I32);
  auto plan = readPlan(emit(getSource(spec), options)->plan);
  ASSERT_TRUE(bool(plan)) << toString(plan.takeError());
  recordParameters(plan->kernels.front());
  Status status = function.run({rows, keys, values, table, lengths, result}, stream);
  ASSERT_TRUE(status.ok()) << status.str();
  ASSERT_EQ(fake->launches.size(), 2u);
  EXPECT_EQ(fake->launches[1].config.gridZ, count - 65535u);
  auto getAddress = [&](unsigned argument) {
    return findAddress(plan->kernels.front(), fake->launches[1], argument);
  };
  EXPECT_EQ(getAddress(0), rows.address + 65535u * 64 * 2);
  EXPECT_EQ(getAddress(1), keys.address);
  EXPECT_EQ(getAddress(2), values.address);
  EXPECT_EQ(getAddress(3), table.address + 65535u * 3 * 4);
  EXPECT_EQ(getAddress(4), lengths.address + 65535u * 4);
  EXPECT_EQ(getAddress(5), result.address + 65535u * 64 * 2);
}

TEST_F(CompileCUDATest, CapturesOfAnyStridesAreMarked) {
  for (bool isMarked : {false, true}) {
    Result<CompiledFunction> function = compile(
        std::string("!t = tensor<?x?x?x64xbf16>\n"
                    "func.func @f(%q: !t, %bias: tensor<?x?xf32>") +
            (isMarked ? " {attn.strided}" : "") +
            ") -> !t {\n  %o = attn.attention %q, %q, %q score(%s, %b, %h, %m, %n) {\n"
            "    %x = tensor.extract %bias[%m, %n] : tensor<?x?xf32>\n"
            "    %y = arith.addf %s, %x : f32\n    attn.yield %y : f32\n  } : !t, !t, !t -> !t\n"
            "  return %o : !t\n}\n",
        options);
    ASSERT_TRUE(function) << function.getStatus().str();
    FakeTensor bias(0x600000, {1000, 1000}, {-1, 0}, DataType::F32);
    Status status = function->run({query, bias, output}, stream);
    EXPECT_EQ(status.message,
              isMarked ? "" : "bias: expected a contiguous last dimension, got a stride of 0");
    // Like any captured tensor it need not be contiguous elsewhere.
    if (isMarked)
      EXPECT_EQ(fake->launches.size(), 1u);
  }
  // What the tensor cores read is read in rows.
  Result<CompiledFunction> function =
      compile("!t = tensor<?x?x?x64xbf16>\n"
              "func.func @f(%q: !t {attn.strided}) -> !t {\n"
              "  %o = attn.attention %q, %q, %q : !t, !t, !t -> !t\n  return %o : !t\n}\n",
              options);
  EXPECT_EQ(function.getStatus().code, StatusCode::InvalidKernel);
  EXPECT_NE(function.getStatus().message.find("contiguous last dimension"), std::string::npos)
      << function.getStatus().message;
}

TEST_F(CompileCUDATest, GradientsOfCapturedTensors) {
  Result<CompiledFunction> function =
      compile("!t = tensor<?x?x?x64xbf16>\n!r = tensor<?x?x?xf32>\n!x = tensor<?x?xf32>\n"
              "func.func @f(%q: !t, %k: !t, %v: !t, %o: !t, %lse: !r, %do: !t, %bias: !x) -> !x {\n"
              "  %g = attn.attention_grad %q, %k, %v, %o, %lse, %do wrt(%bias : !x)\n"
              "      score(%s, %b, %h, %m, %n) {\n"
              "    %x = tensor.extract %bias[%h, %n] : !x\n    %y = arith.addf %s, %x : f32\n"
              "    attn.yield %y : f32\n  } : !t, !t, !t, !t, !r, !t -> d_wrt(!x)\n"
              "  return %g : !x\n}\n",
              options);
  ASSERT_TRUE(function) << function.getStatus().str();
  FakeTensor rows(0x500000, {2, 8, 1000}, {}, DataType::F32);
  FakeTensor q(0x100000, {2, 8, 1000, 64}), k(0x200000, {2, 2, 300, 64});
  FakeTensor bias(0x600000, {8, 300}, {}, DataType::F32);
  FakeTensor gradient(0x700000, {8, 300}, {}, DataType::F32);
  Status status = function->run({q, k, k, q, rows, q, bias, gradient}, stream);
  ASSERT_TRUE(status.ok()) << status.str();
  // Numbers of rows, their exact delta, zeros, and the sum, to which all tiles of rows of all heads
  // add.
  ASSERT_EQ(fake->launches.size(), 4u);
  for (unsigned ofRows : {1, 3}) {
    EXPECT_EQ(fake->launches[ofRows].config.gridX, 8u);
    EXPECT_EQ(fake->launches[ofRows].config.gridY, 8u);
    EXPECT_EQ(fake->launches[ofRows].config.gridZ, 2u);
  }
  EXPECT_EQ(fake->launches[2].config.gridX, 1u * 5);
}

TEST_F(CompileCUDATest, NumbersAreScalars) {
  spec.hasScale = spec.returnsLse = true;
  CompiledFunction function = compileSpec();
  FakeTensor lse{0x500000, {2, 8, 1000}, {}, DataType::F32};
  float factor = 0.5;
  TensorView host{&factor, DataType::F32, 0, nullptr, nullptr};
  for (LaunchArgument scale : {LaunchArgument(0.5), LaunchArgument(1), LaunchArgument(host)}) {
    Status status = function.run({query, key, value, scale, output, lse}, stream);
    EXPECT_TRUE(status.ok()) << status.str();
  }
  EXPECT_EQ(fake->launches.size(), 3u);
  EXPECT_EQ(function.run({query, key, value, key, output, lse}).message,
            "scale: expected a number or a tensor of rank 0 with an element of f32, got rank 4 of "
            "bf16");
}

TEST_F(CompileCUDATest, WhereThereIsNoGPU) {
  overrideDriverLibrary("libnothing-of-the-name.so.1");
  Status status = getError();
  EXPECT_EQ(status.code, StatusCode::NoDriver);
  EXPECT_TRUE(StringRef(status.message)
                  .starts_with("expected a CUDA driver, got: libnothing-of-the-name.so.1"))
      << status.message;
  EXPECT_TRUE(StringRef(status.hint).contains("compile for the cpu device")) << status.hint;

  overrideDriverLibrary(ATTN_FAKE_CUDA);
  fake->deviceCount = 0;
  EXPECT_EQ(getError().code, StatusCode::NoDevice);
  overrideDriverLibrary(ATTN_FAKE_CUDA);
  fake->deviceCount = 1;
  options.ordinal = 3;
  EXPECT_EQ(getError().str(), "no device: expected a device from 0 to 0, got 3 (choose one of "
                              "these, or change CUDA_VISIBLE_DEVICES)");
  options.ordinal = -1;
  fake->major = 7;
  status = getError();
  EXPECT_EQ(status.code, StatusCode::UnsupportedDevice);
  EXPECT_EQ(status.message, "expected a device of compute capability 9.0 (the kernel uses wgmma), "
                            "got 7.0 (Fake GPU)");
  // Found before anything was compiled, so nothing is on disk.
  EXPECT_TRUE(listEntries().empty());
}

TEST_F(CompileCUDATest, TargetsAreMachines) {
  options.target = "sm_90a";
  Result<KernelImage> image = emit(getSource(spec), options);
  ASSERT_TRUE(image) << image.getStatus().str();
  EXPECT_TRUE(StringRef(image->ptx).contains(".target sm_90a"));
  options.target = "sm_20";
  EXPECT_EQ(
      emit(getSource(spec), options).getStatus().message,
      "target: expected sm_90a, sm_103a, sm_100a, sm_120a, sm_89, sm_86 or sm_80, got 'sm_20'");
  expectInvalid(
      getError(),
      "target: expected sm_90a, sm_103a, sm_100a, sm_120a, sm_89, sm_86 or sm_80, got 'sm_20'");
}

TEST_F(CompileCUDATest, CompilesWithoutADriver) {
  overrideDriverLibrary("libnothing-of-the-name.so.1");
  Result<KernelImage> image = emit(getSource(spec), options);
  ASSERT_TRUE(image) << image.getStatus().str();
  EXPECT_TRUE(StringRef(image->ptx).contains(".target sm_90a"));
  llvm::Expected<FunctionPlan> plan = readPlan(image->plan);
  ASSERT_TRUE(bool(plan)) << toString(plan.takeError());
  ASSERT_TRUE(plan->rules);
  EXPECT_EQ(plan->rules->values.size(), 4u);
  EXPECT_EQ(plan->rules->values[3].alignment, 16);
  EXPECT_EQ(writePlan(*plan), image->plan);

  spec.causal = Causal::BottomRight;
  Result<std::string> text = explain(getSource(spec), options, "tile");
  ASSERT_TRUE(text) << text.getStatus().str();
  for (const char *part : {"// schedule    rule cuda-", "// mask-tiles  keeps",
                           "// floors      a tile", "// kernel      attention for sm_90a", " wgmma",
                           "// assembled   ", "// compile     ", "tile.mma"})
    EXPECT_NE(text->find(part), std::string::npos) << part;
  text = explain(getSource(spec), options, "ptx");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find(".visible .entry attention("), std::string::npos);
  EXPECT_EQ(text->find("// calls"), std::string::npos);
  EXPECT_EQ(
      explain("", options, "attic").getStatus().message,
      "until: expected problem, grid, online, tile, placed, async, thread or ptx, got 'attic'");
}

TEST_F(CompileCUDATest, ExplainsWhichCallsAKernelIsFor) {
  options.way = "lengths";
  spec.causal = Causal::BottomRight;
  auto expect = [&](const char *part) {
    Result<std::string> text = explain(getSource(spec), options, "problem");
    ASSERT_TRUE(text) << text.getStatus().str();
    EXPECT_NE(text->find(part), std::string::npos) << part << '\n' << *text;
  };
  expect("// calls       short where dimension 2 of argument 0 is 0 to 1024 and dimension 2 "
         "of argument 1 is 0 to 1024\n");
  expect("// calls       most otherwise\n");
  spec.causal = Causal::No;
  spec.headDim = 96;
  expect("// calls       short where dimension 2 of argument 0 is 0 to 128; or dimension 2 of "
         "argument "
         "1 is 0 to 2048\n");
}

TEST_F(CompileCUDATest, UnsupportedTypes) {
  Result<CompiledFunction> function =
      compile("func.func @f(%q: tensor<1x1x?x64xf16>, %t: f64) -> tensor<1x1x?x64xf16> {\n"
              "  %o = attn.attention %q, %q, %q : tensor<1x1x?x64xf16>, tensor<1x1x?x64xf16>, "
              "tensor<1x1x?x64xf16> -> tensor<1x1x?x64xf16>\n"
              "  return %o : tensor<1x1x?x64xf16>\n}",
              options);
  EXPECT_EQ(function.getStatus().message,
            "source: expected scalars of index, i32, i64 or f32 on the device cuda, got f64 in t");
  EXPECT_EQ(compile("func.func @f(", options).getStatus().code, StatusCode::InvalidKernel);
  options.splits = 0;
  EXPECT_EQ(getError().message, "splits: expected a number from 1 to 2^20, got 0");
  options.splits = 1;
  options.way = "medium";
  EXPECT_EQ(getError().message,
            "way: expected auto, lengths, short, long, few, narrow or groups, got 'medium'");
}

TEST_F(CompileCUDATest, LoadingFails) {
  fake->sharedPerBlock = 50000;
  EXPECT_EQ(getError().code, StatusCode::ResourceLimit);
  fake->sharedPerBlock = 232448;
  fake->maxThreads = 128;
  EXPECT_EQ(getError().code, StatusCode::ResourceLimit);
  fake->maxThreads = 1024;
  fail("ModuleLoadDataEx", cuda::OutOfMemory);
  EXPECT_EQ(getError().code, StatusCode::OutOfMemory);
  fail("ModuleLoadDataEx", cuda::CaptureUnsupported);
  Status status = getError();
  EXPECT_EQ(status.code, StatusCode::CaptureInProgress);
  EXPECT_EQ(status.hint, "load and time kernels before the capture begins");
  fail("ModuleLoadDataEx", cuda::InvalidPtx);
  EXPECT_EQ(getError().code, StatusCode::InvalidKernel);
  // A failure is not kept.
  fail("", cuda::Success);
  EXPECT_TRUE(compile(spec, options));
}

//===----------------------------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------------------------===//

TEST_F(CompileCUDATest, BadArguments) {
  CompiledFunction function = compileSpec();
  auto spoil = [&](FakeTensor &tensor, FakeTensor spoilt) {
    std::swap(tensor, spoilt);
    Status status = run(function);
    std::swap(tensor, spoilt);
    return status;
  };
  expectInvalid(function.run({query, key}, stream),
                "call: expected 3 arguments and 1 results, got 2 values",
                "pass query, key, value, output");
  expectInvalid(function.run({query, key, 3, output}), "value: expected a tensor, got a number");
  expectInvalid(spoil(key, {0x200000, {2, 4, 500, 64}, {}, DataType::F16}),
                "key: expected elements of bf16, got f16");
  expectInvalid(spoil(key, {0x200000, {4, 500, 64}}), "key: expected 4 dimensions, got 3");
  expectInvalid(spoil(key, {0x200000, {1, 4, 500, 64}}),
                "key: expected B=2 as in query in dimension 0, got shape (1, 4, 500, 64)");
  expectInvalid(spoil(value, {0x300000, {2, 4, 400, 64}}),
                "value: expected N=500 as in key in dimension 2, got shape (2, 4, 400, 64)");
  expectInvalid(spoil(query, {0, {2, 8, 1000, 64}}),
                "query: expected an address of data, got a null address");
  expectInvalid(spoil(query, {0x100002, {2, 8, 1000, 64}}),
                "query: expected data aligned to 16 bytes, got an address that is not",
                "copy the tensor");
  expectInvalid(spoil(output, {0x40000008, {2, 8, 1000, 64}}),
                "output: expected data aligned to 16 bytes, got an address that is not");
  expectInvalid(spoil(query, {0x100000, {2, 8, 1000, 64}, {8 * 66000, 66000, 66, 1}}),
                "query: expected strides of a multiple of 8 elements (16 bytes), got 66 in "
                "dimension 2",
                "pad the rows so that the stride is 72");
  expectInvalid(spoil(query, {0x100000, {2, 8, 1000, 64}, {512000, 64000, 64, 2}}),
                "query: expected a contiguous last dimension, got a stride of 2");
  expectInvalid(spoil(output, {0x40000000, {2, 8, 1000, 64}, {0, 64000, 64, 1}}),
                "output: expected elements of their own, got a stride of 0 in dimension 0");
  expectInvalid(spoil(key, {0x200000, {2, 4, 500, 64}, {128000, 32000, -64, 1}}),
                "key: expected strides from 0 to 2^40 bytes, got -64 elements in dimension 2");
}

TEST_F(CompileCUDATest, WrongMemory) {
  CompiledFunction function = compileSpec();
  fake->hostAddress = 0x200000;
  expectInvalid(
      run(function),
      "key: expected key in memory of device 0, got the address 0x200000, which the driver "
      "does not know",
      "copy the tensor to the device");
  fake->hostAddress = 0;
  fake->otherDeviceAddress = 0x40000000;
  expectInvalid(run(function),
                "output: expected output in memory of device 0, got memory of device 1",
                "copy the tensor, or compile for that device");
  fake->otherDeviceAddress = 0;
  EXPECT_TRUE(run(function).ok());
  fail("LaunchKernelEx", cuda::LaunchOutOfResources);
  EXPECT_EQ(run(function).code, StatusCode::ResourceLimit);
}

TEST_F(CompileCUDATest, EmptyTensors) {
  CompiledFunction function = compileSpec();
  query.shape[2] = output.shape[2] = 0;
  EXPECT_TRUE(run(function).ok());
  EXPECT_TRUE(fake->launches.empty());
  query.shape[2] = output.shape[2] = 10;
  key.shape[2] = value.shape[2] = 0;
  key.address = value.address = 0;
  EXPECT_TRUE(run(function).ok());
  EXPECT_EQ(fake->launches.size(), 1u);
}

TEST_F(CompileCUDATest, HostCosts) {
  CompiledFunction function = compileSpec();
  fake->records = false;
  constexpr int count = 20000;
  Stopwatch stopwatch;
  for (int i = 0; i < count; ++i)
    if (!run(function).ok())
      FAIL();
  double runUs = stopwatch.lapMs() * 1000 / count;
  for (int i = 0; i < count; ++i)
    if (!compile(spec, options))
      FAIL();
  double findUs = stopwatch.lapMs() * 1000 / count;
  std::printf("run %.2f us beside the driver, find again %.2f us\n", runUs, findUs);
  // A few times the expected numbers: machines are busy.
  EXPECT_LT(runUs, 20);
  EXPECT_LT(findUs, 100);
}
