//===- DeviceTest.cpp - the runtime on a GPU --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Skipped where there is no GPU of compute capability 9.0. Everything else about the runtime is
// tested on the fake driver; this shows that the real one agrees.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/Timing.h"
#include "lib/Support/Stopwatch.h"
#include "gtest/gtest.h"
#include <cstdio>
#include <dlfcn.h>

using namespace attn;

/// Each block copies 64 rows of 64 elements of two bytes through a tensor map with a swizzle of 128
/// bytes into shared memory, and out of it, unswizzled, through a pointer.
static constexpr const char *copyTile = R"ptx(
.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry copy_tile(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 rows,
                          .param .u64 stride)
{
  .reg .pred %p<4>;
  .reg .b32 %r<24>;
  .reg .b64 %d<10>;
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ctaid.y;
  mov.u32 %r3, %ctaid.z;
  shl.b32 %r4, %r1, 6;
  mov.u32 %r5, tile;
  add.u32 %r6, %r5, 65536;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra READY;
  mbarrier.init.shared::cta.b64 [%r6], 1;
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  @%p0 bra WAIT;
  mov.b64 %d0, map;
  cvta.param.u64 %d1, %d0;
  mov.u32 %r7, 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r6], 8192;
  cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r5], [%d1, {%r7, %r4, %r2, %r3}], [%r6];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r6], 0;
  @!%p1 bra WAIT;
  add.u32 %r8, %r4, %r0;
  ld.param.u32 %r9, [rows];
  setp.ge.u32 %p2, %r8, %r9;
  @%p2 bra DONE;
  mov.u32 %r10, %nctaid.y;
  mad.lo.u32 %r11, %r3, %r10, %r2;
  ld.param.u64 %d2, [out];
  ld.param.u64 %d3, [stride];
  cvt.u64.u32 %d4, %r11;
  mul.lo.u64 %d4, %d4, %d3;
  shl.b64 %d4, %d4, 1;
  add.u64 %d2, %d2, %d4;
  mul.wide.u32 %d5, %r8, 128;
  add.u64 %d2, %d2, %d5;
  cvta.to.global.u64 %d2, %d2;
  and.b32 %r12, %r0, 7;
  shl.b32 %r13, %r0, 7;
  add.u32 %r13, %r13, %r5;
  mov.u32 %r14, 0;
LOOP:
  xor.b32 %r15, %r14, %r12;
  shl.b32 %r15, %r15, 4;
  add.u32 %r15, %r15, %r13;
  ld.shared.v4.b32 {%r16, %r17, %r18, %r19}, [%r15];
  st.global.v4.b32 [%d2], {%r16, %r17, %r18, %r19};
  add.u64 %d2, %d2, 16;
  add.u32 %r14, %r14, 1;
  setp.lt.u32 %p3, %r14, 8;
  @%p3 bra LOOP;
DONE:
  ret;
}
)ptx";

namespace {
class DeviceTest : public testing::Test {
protected:
  void SetUp() override {
    Result<DeviceContext> opened = DeviceContext::open(-1);
    if (!opened)
      GTEST_SKIP() << opened.getStatus().str();
    if (opened->getInfo().major != 9)
      GTEST_SKIP() << "expected compute capability 9.0, got " << opened->getInfo().name;
    context.emplace(std::move(*opened));
    for (size_t i = 0; i < input.size(); ++i)
      input[i] = static_cast<uint16_t>(i * 7919 + 1);
  }

  /// Argument 0 is copied into argument 1, both 2 x 3 x rows x 64.
  static KernelImage makeImage() {
    KernelPlan plan;
    plan.name = "copy_tile";
    plan.target = "sm_90a";
    plan.parameters.resize(4);
    plan.parameters[0].kind = KernelParameter::Kind::TensorMap;
    plan.parameters[0].map = {"bf16", {3, 2, 1, 0}, {64, 64, 1, 1}, 128};
    plan.parameters[1].argument = 1;
    plan.parameters[2] = {KernelParameter::Kind::Size, 1, 2, "i32", {}};
    plan.parameters[3] = {KernelParameter::Kind::Stride, 1, 1, "i64", {}};
    plan.grid = {{{{1, 2, 64}}, {{1, 1, 1}}, {{1, 0, 1}}}};
    plan.block = {64, 1, 1};
    plan.dynamicSharedBytes = 65536 + 64;
    std::string ptx = copyTile;
    return {ptx.substr(1), writePlan({{plan}, {}}), ""};
  }

  static Kernel load() {
    Result<Kernel> kernel = Kernel::load(makeImage());
    EXPECT_TRUE(kernel) << kernel.getStatus().str();
    return std::move(*kernel);
  }

  DeviceBuffer makeBuffer(const std::vector<uint16_t> &contents) {
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*context, contents.size() * 2);
    EXPECT_TRUE(buffer) << buffer.getStatus().str();
    Status status = buffer->upload(contents.data());
    EXPECT_TRUE(status.ok()) << status.str();
    return std::move(*buffer);
  }

  static TensorView view(const DeviceBuffer &buffer, const std::vector<int64_t> &shape,
                         const std::vector<int64_t> &strides = {}) {
    return {buffer.data(), DataType::BF16, 4, shape.data(),
            strides.empty() ? nullptr : strides.data()};
  }

  /// Copies a view of `input` of this shape, and compares every element.
  void checkCopy(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides) {
    Kernel kernel = load();
    DeviceBuffer from = makeBuffer(input);
    std::vector<uint16_t> output(shape[0] * shape[1] * shape[2] * shape[3], 0xdead);
    DeviceBuffer to = makeBuffer(output);
    Status status = kernel.launch({view(from, shape, strides), view(to, shape)}, nullptr);
    ASSERT_TRUE(status.ok()) << status.str();
    status = to.download(output.data());
    ASSERT_TRUE(status.ok()) << status.str();
    size_t position = 0, wrong = 0;
    for (int64_t b = 0; b < shape[0]; ++b)
      for (int64_t h = 0; h < shape[1]; ++h)
        for (int64_t m = 0; m < shape[2]; ++m)
          for (int64_t d = 0; d < shape[3]; ++d)
            wrong += output[position++] !=
                     input[b * strides[0] + h * strides[1] + m * strides[2] + d * strides[3]];
    EXPECT_EQ(wrong, 0u);
  }

  std::optional<DeviceContext> context;
  std::vector<uint16_t> input = std::vector<uint16_t>(2 * 3 * 200 * 64);
};
} // namespace

TEST_F(DeviceTest, CopiesRowMajor) { checkCopy({2, 3, 100, 64}, {3 * 100 * 64, 6400, 64, 1}); }

TEST_F(DeviceTest, CopiesHeadsInsideRows) { checkCopy({2, 3, 200, 64}, {200 * 192, 64, 192, 1}); }

TEST_F(DeviceTest, CopiesPaddedRows) { checkCopy({2, 3, 100, 64}, {3 * 8000, 8000, 80, 1}); }

TEST_F(DeviceTest, CopiesBroadcastHeads) { checkCopy({2, 3, 100, 64}, {6400, 0, 64, 1}); }

TEST_F(DeviceTest, CopiesSingletons) { checkCopy({1, 1, 1, 64}, {5, 3, 1, 1}); }

TEST_F(DeviceTest, KernelInfo) {
  KernelImage image = makeImage();
  // Not in the driver's cache, so that it has something to say.
  image.ptx += "// " + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
  Stopwatch watch;
  Result<Kernel> kernel = Kernel::load(image);
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  const KernelInfo info = kernel->getKernels()[0];
  std::printf("loaded in %.1f ms onto %s: %d registers, %lld local, %lld + %lld shared, spills "
              "%lld and %lld\n",
              watch.elapsedMs(), kernel->getDevice().name.c_str(), info.registers,
              (long long)info.localBytes, (long long)info.staticSharedBytes,
              (long long)info.dynamicSharedBytes, (long long)info.spillStoreBytes,
              (long long)info.spillLoadBytes);
  EXPECT_GT(info.registers, 8);
  EXPECT_EQ(info.localBytes, 0);
  EXPECT_EQ(info.spillStoreBytes, 0);
  EXPECT_EQ(info.spillLoadBytes, 0);
}

TEST_F(DeviceTest, LoadErrors) {
  KernelImage image = makeImage();
  image.ptx.insert(image.ptx.find("  ret;"), "  frobnicate.u32 %r1;\n");
  Status status = Kernel::load(image).takeStatus();
  EXPECT_EQ(status.code, StatusCode::InvalidKernel) << status.str();
  std::printf("%s\n", status.str().c_str());
  EXPECT_NE(status.message.find("frobnicate"), std::string::npos) << status.str();

  image = makeImage();
  image.ptx.replace(image.ptx.find("8.0"), 3, "9.9");
  status = Kernel::load(image).takeStatus();
  EXPECT_EQ(status.code, StatusCode::DriverTooOld) << status.str();
  std::printf("%s\n", status.str().c_str());

  image = makeImage();
  image.plan.replace(image.plan.find("65600"), 5, "655360");
  status = Kernel::load(image).takeStatus();
  EXPECT_EQ(status.code, StatusCode::ResourceLimit) << status.str();
  std::printf("%s\n", status.str().c_str());

  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*context, size_t(1) << 45);
  EXPECT_EQ(buffer.getStatus().code, StatusCode::OutOfMemory);
}

TEST_F(DeviceTest, EmptyTensors) {
  Kernel kernel = load();
  DeviceBuffer to = makeBuffer(input);
  std::vector<int64_t> some = {2, 3, 100, 64}, none = {2, 3, 0, 64};
  Result<DeviceBuffer> empty = DeviceBuffer::allocate(*context, 0);
  ASSERT_TRUE(empty);
  // The kernel runs, and its map must do no harm.
  Status status = kernel.launch({view(*empty, none), view(to, some)}, nullptr);
  EXPECT_TRUE(status.ok()) << status.str();
  // Nothing runs.
  status = kernel.launch({view(*empty, none), view(*empty, none)}, nullptr);
  EXPECT_TRUE(status.ok()) << status.str();
  status = to.fill(0);
  EXPECT_TRUE(status.ok()) << status.str();
}

TEST_F(DeviceTest, GraphsCaptureLaunches) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_TRUE(library);
  auto call = [&](const char *name, auto... arguments) {
    auto function = reinterpret_cast<int (*)(decltype(arguments)...)>(dlsym(library, name));
    ASSERT_TRUE(function) << name;
    EXPECT_EQ(function(arguments...), 0) << name;
  };
  ContextScope scope(context->getDriver(), context->get());
  Kernel kernel = load();
  DeviceBuffer from = makeBuffer(input);
  std::vector<uint16_t> output(2 * 3 * 100 * 64);
  DeviceBuffer to = makeBuffer(output);
  std::vector<int64_t> shape = {2, 3, 100, 64};

  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  call("cuStreamCreate", &stream, 1u);
  call("cuStreamBeginCapture_v2", stream, 0);
  Status status = kernel.launch({view(from, shape), view(to, shape)}, stream);
  EXPECT_TRUE(status.ok()) << status.str();
  Status timed = timeLaunches(*context, stream, [] { return Status(); }).takeStatus();
  EXPECT_EQ(timed.code, StatusCode::CaptureInProgress) << timed.str();
  call("cuStreamEndCapture", stream, &graph);
  status = to.download(output.data());
  EXPECT_TRUE(status.ok()) << status.str();
  EXPECT_EQ(output[1], 0);
  call("cuGraphInstantiateWithFlags", &executable, graph, 0ull);
  call("cuGraphLaunch", executable, stream);
  status = to.download(output.data(), stream);
  EXPECT_TRUE(status.ok()) << status.str();
  EXPECT_TRUE(std::equal(output.begin(), output.end(), input.begin()));
  call("cuGraphExecDestroy", executable);
  call("cuGraphDestroy", graph);
  call("cuStreamDestroy_v2", stream);
}

TEST_F(DeviceTest, Times) {
  Kernel kernel = load();
  DeviceBuffer from = makeBuffer(input), to = makeBuffer(input);
  std::vector<int64_t> shape = {2, 3, 100, 64};
  LaunchArgument arguments[] = {view(from, shape), view(to, shape)};
  auto launch = [&] { return kernel.launch(std::span<const LaunchArgument>(arguments), nullptr); };
  TimingOptions options{.warmupMs = 5, .measureMs = 20, .launchesPerSample = 20};
  Result<std::vector<double>> samples = timeLaunches(*context, nullptr, launch, options);
  ASSERT_TRUE(samples) << samples.getStatus().str();
  EXPECT_GT(samples->front(), 0);

  // The host's cost, when the queue of the device is never full: 500 launches at a time.
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    Stopwatch watch;
    for (int i = 0; i < 500; ++i)
      ASSERT_TRUE(launch().ok());
    best = std::min(best, watch.elapsedMs() * 1e3 / 500);
    ASSERT_TRUE(to.fill(0).ok());
  }
  std::printf("one launch: %.2f us of GPU time in a row, %.2f us of host time\n",
              samples->front() * 1e3, best);
}
