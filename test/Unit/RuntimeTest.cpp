//===- RuntimeTest.cpp - the driver, loading, timing ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Bundle.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Runtime/JitLog.h"
#include "lib/Runtime/KernelLoader.h"
#include "lib/Runtime/Timing.h"
#include "test/Unit/Runtime/Fixture.h"
#include <algorithm>
#include <thread>

using namespace attn;

namespace {
class RuntimeTest : public FakeCudaTest {
protected:
  Status loadError(KernelImage image) { return Kernel::load(image).takeStatus(); }
  Status loadError() { return loadError(makeImage({makePlan()})); }
};
} // namespace

#define EXPECT_STATUS(status, expectedCode, ...)                                                   \
  do {                                                                                             \
    Status got = (status);                                                                         \
    EXPECT_EQ(got.code, StatusCode::expectedCode) << got.str();                                    \
    for (const char *text : std::initializer_list<const char *>{__VA_ARGS__})                      \
      EXPECT_NE(got.str().find(text), std::string::npos) << got.str();                             \
  } while (false)

//===----------------------------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------------------------===//

TEST_F(RuntimeTest, NoDriver) {
  overrideDriverLibrary("libattn-no-such-driver.so.1");
  EXPECT_STATUS(getDevices().takeStatus(), NoDriver,
                "expected a CUDA driver, got: ", "libattn-no-such-driver.so.1",
                "install an NVIDIA driver");
  EXPECT_STATUS(loadError(), NoDriver, "cpu device");
}

TEST_F(RuntimeTest, NotADriver) {
  overrideDriverLibrary("libc.so.6");
  EXPECT_STATUS(getDevices().takeStatus(), DriverTooOld, "one without cuGetProcAddress_v2");
}

TEST_F(RuntimeTest, DriverWithoutFunction) {
  fake->missing = {"cuTensorMapEncodeTiled"};
  EXPECT_STATUS(getDevices().takeStatus(), DriverTooOld, "one without cuTensorMapEncodeTiled");
}

TEST_F(RuntimeTest, DriverBeforeFuncLoad) {
  fake->missing = {"cuFuncLoad"};
  EXPECT_STATUS(loadError(), Ok);
}

TEST_F(RuntimeTest, InitFails) {
  fail("Init", cuda::SystemDriverMismatch);
  EXPECT_STATUS(getDevices().takeStatus(), NoDriver, "restart the machine");
}

TEST_F(RuntimeTest, NoDevice) {
  fake->deviceCount = 0;
  EXPECT_STATUS(loadError(), NoDevice, "CUDA_VISIBLE_DEVICES");
}

TEST_F(RuntimeTest, WrongDevice) {
  EXPECT_STATUS(Kernel::load(makeImage({makePlan()}), {.device = 3}).takeStatus(), NoDevice,
                "expected a device from 0 to 0, got 3");
}

TEST_F(RuntimeTest, Devices) {
  Result<std::vector<DeviceInfo>> devices = getDevices();
  ASSERT_TRUE(devices) << devices.getStatus().str();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ((*devices)[0].name, "Fake GPU");
  EXPECT_EQ((*devices)[0].sharedBytesPerBlock, 232448);
  EXPECT_EQ((*devices)[0].driverVersion, 13000);
}

TEST_F(RuntimeTest, OpensOnceFromManyThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { good += bool(getDriver()); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "Init"), 1);
}

//===----------------------------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------------------------===//

TEST_F(RuntimeTest, Load) {
  fake->infoLog = "ptxas info    : 0 bytes gmem\n"
                  "ptxas info    : Compiling entry function 'attention' for 'sm_90a'\n"
                  "ptxas info    : Function properties for attention\n"
                  "    8 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
                  "ptxas info    : Used 168 registers, used 1 barriers, 512 bytes smem\n"
                  "ptxas info    : (C7512) Potential Performance Loss: wgmma serialized\n";
  {
    Result<Kernel> kernel = Kernel::load(makeImage({makePlan()}));
    ASSERT_TRUE(kernel) << kernel.getStatus().str();
    ASSERT_EQ(kernel->getKernels().size(), 1u);
    const KernelInfo info = kernel->getKernels()[0];
    EXPECT_EQ(info.name, "attention");
    EXPECT_EQ(info.registers, 168);
    EXPECT_EQ(info.staticSharedBytes, 512);
    EXPECT_EQ(info.dynamicSharedBytes, 200000);
    EXPECT_EQ(info.spillStoreBytes, 24);
    EXPECT_EQ(info.spillLoadBytes, 32);
    EXPECT_EQ(kernel->getDevice().major, 9);
    EXPECT_EQ(kernel->getWarnings(),
              std::vector<std::string>{"(C7512) Potential Performance Loss: wgmma serialized"});
    EXPECT_EQ(fake->maxDynamicShared, 200000);
    EXPECT_EQ(fake->modules, 1);
    Kernel moved = std::move(*kernel);
    EXPECT_EQ(moved.getKernels().size(), 1u);
  }
  EXPECT_EQ(fake->modules, 0);
}

TEST_F(RuntimeTest, LoadWithoutLog) {
  Result<Kernel> kernel = Kernel::load(makeImage({makePlan()}));
  ASSERT_TRUE(kernel) << kernel.getStatus().str();
  EXPECT_EQ(kernel->getKernels()[0].spillStoreBytes, -1);
  EXPECT_TRUE(kernel->getWarnings().empty());
}

TEST_F(RuntimeTest, KernelsAreAssembledBesideEachOther) {
  KernelPlan other = makePlan();
  other.name = "other";
  KernelImage one = makeImage({makePlan()}), two = makeImage({makePlan(), other});
  one.ptx += ".visible .entry attention(";
  two.ptx += ".visible .entry attention(\n.visible .entry other(";
  EXPECT_STATUS(loadError(one), Ok);
  EXPECT_STATUS(loadError(two), Ok);
  EXPECT_EQ(fake->assemblerThreads, (std::vector<size_t>{1, 2}));
}

TEST_F(RuntimeTest, DriversThatAssembleInOneThread) {
  KernelImage two = makeImage({makePlan()});
  two.ptx += ".visible .entry attention(\n.visible .entry other(";
  fake->splitsCompilation = false;
  EXPECT_STATUS(loadError(two), Ok);
  EXPECT_EQ(fake->assemblerThreads, (std::vector<size_t>{2, 1}));
  fake->version = 12090;
  EXPECT_STATUS(loadError(two), Ok);
  EXPECT_EQ(fake->assemblerThreads.back(), 1u);
  // What is wrong with the image is said as ever.
  fake->version = 13000;
  fail("ModuleLoadDataEx", cuda::InvalidValue);
  EXPECT_STATUS(loadError(two), DriverFailure, "load the kernel");
}

TEST_F(RuntimeTest, SmallSharedMemoryNeedsNoPermission) {
  KernelPlan plan = makePlan();
  plan.dynamicSharedBytes = 1024;
  EXPECT_STATUS(loadError(makeImage({plan})), Ok);
  EXPECT_EQ(fake->maxDynamicShared, -1);
}

TEST_F(RuntimeTest, CubinFirst) {
  KernelImage image = makeImage({makePlan()});
  image.machineCode = "\x7f"
                      "ELF";
  EXPECT_STATUS(loadError(image), Ok);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "ModuleLoadDataEx"), 1);
  fake->acceptsCubin = false;
  EXPECT_STATUS(loadError(image), Ok);
  EXPECT_EQ(std::count(fake->calls.begin(), fake->calls.end(), "ModuleLoadDataEx"), 3);
}

TEST_F(RuntimeTest, CapabilityWithoutWgmma) {
  fake->major = 8;
  EXPECT_STATUS(loadError(), UnsupportedDevice,
                "expected a device of compute capability 9.0 (the kernel uses wgmma), got 8.0 "
                "(Fake GPU)",
                "use an H100");
  fake->major = 10;
  EXPECT_STATUS(loadError(), UnsupportedDevice, "got 10.0");
}

TEST_F(RuntimeTest, Targets) {
  KernelPlan plan = makePlan();
  for (const char *good : {"sm_80", "sm_90", "sm_90a", "sm_90f"}) {
    plan.target = good;
    EXPECT_STATUS(loadError(makeImage({plan})), Ok);
  }
  plan.target = "sm_100f";
  EXPECT_STATUS(loadError(makeImage({plan})), UnsupportedDevice, "capability 10.0, got 9.0");
  for (const char *bad : {"", "sm_", "gfx90a", "sm_90x"}) {
    plan.target = bad;
    EXPECT_STATUS(loadError(makeImage({plan})), InvalidKernel, "expected a target such as sm_90a");
  }
}

/// Code of the device's own kind, then of its family, then the newest of what is for all.
TEST_F(RuntimeTest, BundlesHaveTheBestForTheDevice) {
  std::vector<KernelImage> images;
  for (const char *target : {"sm_80", "sm_90a", "sm_89", "sm_120f", "sm_120a"}) {
    KernelPlan plan = makePlan();
    plan.target = target;
    images.push_back(makeImage({plan}));
    images.back().ptx += std::string("// ") + target;
  }
  Result<std::string> text = writeBundle(images);
  ASSERT_TRUE(text) << text.getStatus().str();
  Result<std::vector<KernelImage>> read = readBundle(*text);
  ASSERT_TRUE(read) << read.getStatus().str();
  EXPECT_EQ(*read, images);
  auto choose = [&](int major, int minor) -> std::string {
    DeviceInfo device;
    device.name = "GPU";
    device.major = major;
    device.minor = minor;
    Result<const KernelImage *> image = chooseImage(*read, device);
    return image ? (*image)->ptx.substr((*image)->ptx.find("// ") + 3) : image.getStatus().message;
  };
  EXPECT_EQ(choose(8, 0), "sm_80");
  EXPECT_EQ(choose(8, 7), "sm_80");
  EXPECT_EQ(choose(8, 9), "sm_89");
  EXPECT_EQ(choose(9, 0), "sm_90a");
  EXPECT_EQ(choose(10, 0), "sm_89");
  EXPECT_EQ(choose(12, 0), "sm_120a");
  EXPECT_EQ(choose(12, 1), "sm_120f");
  EXPECT_EQ(choose(7, 5), "expected code that a device of compute capability 7.5 runs (GPU), got "
                          "that for sm_80, sm_90a, sm_89, sm_120f, sm_120a");
  EXPECT_TRUE(loadBest(*read));
  fake->major = 7;
  EXPECT_STATUS(loadBest(*read).takeStatus(), UnsupportedDevice, "got that for sm_80, sm_90a");
}

TEST_F(RuntimeTest, InvalidBundles) {
  auto getError = [](const char *text) { return readBundle(text).getStatus(); };
  EXPECT_STATUS(getError("{"), InvalidKernel, "expected a bundle in JSON");
  EXPECT_STATUS(getError("[]"), InvalidKernel, "expected a bundle of version 1, got none");
  EXPECT_STATUS(getError(R"({"version": 2})"), InvalidKernel, "got version 2");
  EXPECT_STATUS(getError(R"({"version": 1, "images": []})"), InvalidKernel, "got none");
  EXPECT_STATUS(getError(R"({"version": 1, "images": [{"ptx": ""}]})"), InvalidKernel,
                "expected plan and ptx in image 0");
  EXPECT_STATUS(writeBundle(std::vector<KernelImage>{{"", "{", ""}}).getStatus(), InvalidKernel,
                "expected a plan in JSON");
  EXPECT_STATUS(loadBest({}).takeStatus(), InvalidKernel, "expected images for the device");
}

TEST_F(RuntimeTest, DriverTooOldForPtx) {
  fake->version = 12020;
  fail("ModuleLoadDataEx", cuda::UnsupportedPtxVersion);
  EXPECT_STATUS(loadError(), DriverTooOld,
                "expected a driver that assembles PTX 8.4 (CUDA 12.4 or newer), got one for CUDA "
                "12.2",
                "update the NVIDIA driver");
}

TEST_F(RuntimeTest, InvalidPtx) {
  fail("ModuleLoadDataEx", cuda::InvalidPtx);
  fake->errorLog = "ptxas application ptx input, line 12; error   : Unknown symbol 'foo'\n"
                   "ptxas fatal   : Ptx assembly aborted due to errors\n";
  EXPECT_STATUS(loadError(), InvalidKernel,
                "expected valid PTX, got: ptxas application ptx input, line 12; error   : Unknown "
                "symbol 'foo'");
  EXPECT_EQ(loadError().str().find("aborted"), std::string::npos);
}

TEST_F(RuntimeTest, LoadFailures) {
  fail("ModuleLoadDataEx", cuda::OutOfMemory);
  EXPECT_STATUS(loadError(), OutOfMemory, "failed to load the kernel: out of memory");
  fail("ModuleLoadDataEx", cuda::JitCompilerNotFound);
  EXPECT_STATUS(loadError(), NoDriver, "libnvidia-ptxjitcompiler.so.1");
  fail("ModuleLoadDataEx", cuda::NoBinaryForGpu);
  EXPECT_STATUS(loadError(), UnsupportedDevice, "on compute capability 9.0");
  fail("ModuleLoadDataEx", cuda::CaptureUnsupported);
  EXPECT_STATUS(loadError(), CaptureInProgress, "before the capture begins");
  fail("ModuleGetFunction", cuda::NotFound);
  EXPECT_STATUS(loadError(), InvalidKernel, "the entry 'attention' of its plan");
  fail("FuncSetAttribute", cuda::InvalidValue);
  EXPECT_STATUS(loadError(), DriverFailure, "prepare the kernel 'attention'");
  fail("DevicePrimaryCtxRetain", cuda::OutOfMemory);
  EXPECT_STATUS(loadError(), OutOfMemory, "open device 0");
  fail("DeviceGetCount", cuda::NotInitialized);
  EXPECT_STATUS(loadError(), DriverFailure, "fork()");
}

TEST_F(RuntimeTest, ResourceLimits) {
  fake->sharedPerBlock = 101376;
  EXPECT_STATUS(loadError(), ResourceLimit,
                "expected at most 101376 bytes of shared memory, got 200512 in kernel 'attention'",
                "99136 bytes less would fit");
  fake->sharedPerBlock = 232448;
  fake->maxThreads = 256;
  EXPECT_STATUS(loadError(), ResourceLimit, "expected at most 256 threads in a block, got 384");
}

TEST_F(RuntimeTest, InvalidPlans) {
  EXPECT_STATUS(loadError({".version 8.4", "{", ""}), InvalidKernel);
  EXPECT_STATUS(loadError(makeImage({})), InvalidKernel, "expected a plan with a kernel");
  auto check = [&](auto change, const char *message) {
    KernelPlan plan = makePlan();
    change(plan);
    EXPECT_STATUS(loadError(makeImage({plan})), InvalidKernel, message);
  };
  check([](KernelPlan &plan) { plan.block[0] = 2048; }, "block extents from 1 to 1024, got 2048");
  check([](KernelPlan &plan) { plan.cluster[1] = 0; }, "cluster extents from 1 to 16, got 0");
  check([](KernelPlan &plan) { plan.dynamicSharedBytes = 1ull << 31; }, "that fits 31 bits");
  check([](KernelPlan &plan) { plan.parameters[3].type = "i16"; }, "got 'i16'");
  check([](KernelPlan &plan) { plan.parameters[3].type = "f32"; }, "got 'f32'");
  check([](KernelPlan &plan) { plan.parameters[0].map.box[1] = 257; }, "from 1 to 256, got 257");
  check([](KernelPlan &plan) { plan.parameters[0].map.box[0] = 4; }, "multiple of 16 bytes, got 8");
  check([](KernelPlan &plan) { plan.parameters[0].map.swizzle = 64; }, "64 bytes, got 128");
  check([](KernelPlan &plan) { plan.parameters[0].map.swizzle = 256; }, "0, 32, 64 or 128");
  check([](KernelPlan &plan) { plan.parameters[0].map.elementType = "i4"; }, "got 'i4'");
  check([](KernelPlan &plan) { plan.parameters[0].map.dims[1] = 3; }, "distinct dimensions");
  check([](KernelPlan &plan) { plan.parameters.resize(300, plan.parameters[4]); }, "at most 256");
}

/// Of a function whose ways are loaded when calls take them.
TEST_F(RuntimeTest, InvalidWays) {
  FunctionPlan plan;
  auto getError = [&] {
    return KernelLoader::open(plan, {},
                              [](const std::string &) -> Result<WayCode> {
                                return Status{StatusCode::InvalidKernel, "nobody asks", ""};
                              })
        .getStatus();
  };
  EXPECT_STATUS(getError(), InvalidKernel, "expected a plan with the rules of calls, got none");
  plan.rules.emplace();
  EXPECT_STATUS(getError(), InvalidKernel, "expected the last way of the plan to be for all calls");
  ExtentRange rows;
  rows.size = {0, 2, 1};
  plan.ways = {{"few", {{rows}}}};
  EXPECT_STATUS(getError(), InvalidKernel, "expected the last way of the plan to be for all calls");
  plan.ways.push_back({"", {}});
  EXPECT_STATUS(getError(), InvalidKernel, "expected conditions on the arguments of the function");
  plan.rules->values.resize(1);
  EXPECT_TRUE(getError().ok());
}

TEST_F(RuntimeTest, InvalidScratch) {
  auto check = [&](auto change, const char *message) {
    std::vector<KernelPlan> plans = makeSplitPlans();
    change(plans[0].scratch);
    EXPECT_STATUS(loadError(makeImage(plans)), InvalidKernel, message);
  };
  using Tensors = std::vector<ScratchTensor>;
  check([](Tensors &scratch) { scratch[1].argument = 6; }, "scratch with the number 5, got 6");
  check([](Tensors &scratch) { scratch.pop_back(); }, "expected scratch behind all arguments");
  check([](Tensors &scratch) { scratch[0].elementType = "f31"; }, "type such as f32, got 'f31'");
  check([](Tensors &scratch) { scratch[0].shape.clear(); }, "of 1 to 8 dimensions, got 0");
  check([](Tensors &scratch) { scratch[1].shape[0] = {4, 0, 1}; },
        "sizes of scratch from arguments below 4 and divisors of at least 1, got argument 4");
  check([](Tensors &scratch) { scratch[1].shape[1].divisor = 0; }, "at least 1");
}

TEST_F(RuntimeTest, DriverWithoutStreamOrderedMemory) {
  fake->missing = {"cuMemAllocAsync"};
  overrideDriverLibrary(ATTN_FAKE_CUDA);
  EXPECT_EQ(Kernel::load(makeImage({makePlan()})).getStatus().code, StatusCode::Ok);
  Status status = loadError(makeImage(makeSplitPlans()));
  EXPECT_STATUS(status, DriverTooOld, "cuMemAllocAsync and cuMemFreeAsync");
  EXPECT_EQ(status.hint, "update the NVIDIA driver, or compile with splits=1, which needs no "
                         "scratch memory");
}

TEST_F(RuntimeTest, JitLog) {
  JitLog log = parseJitLog("ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
                           "ptxas info    : Function properties for a\n"
                           "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
                           "ptxas info    : Function properties for __internal_helper\n"
                           "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
                           "ptxas info    : Used 40 registers\r\n"
                           "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
                           "garbage (C7 and more\n");
  ASSERT_EQ(log.entries.size(), 2u);
  EXPECT_EQ(log.find("a")->spillStoreBytes, 4);
  EXPECT_EQ(log.find("a")->stackBytes, 0);
  EXPECT_EQ(log.find("a")->registers, 40);
  EXPECT_EQ(log.find("b")->registers, -1);
  EXPECT_EQ(log.find("c"), nullptr);
  EXPECT_TRUE(log.warnings.empty());
  EXPECT_EQ(excerptErrors("error 1\nerror 2\nnote\nerror 3\nerror 4\n"),
            "error 1; error 2; error 3; and 1 more");
  EXPECT_EQ(excerptErrors(""), "");
}

//===----------------------------------------------------------------------------------------===//
// Memory and time
//===----------------------------------------------------------------------------------------===//

TEST_F(RuntimeTest, Buffers) {
  Result<DeviceContext> context = DeviceContext::open(-1);
  ASSERT_TRUE(context) << context.getStatus().str();
  {
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(*context, 4);
    ASSERT_TRUE(buffer) << buffer.getStatus().str();
    int32_t value = 0x01020304;
    EXPECT_STATUS(buffer->upload(&value), Ok);
    value = 0;
    EXPECT_STATUS(buffer->download(&value), Ok);
    EXPECT_EQ(value, 0x01020304);
    EXPECT_STATUS(buffer->fill(0xff), Ok);
    EXPECT_STATUS(buffer->download(&value), Ok);
    EXPECT_EQ(value, -1);
  }
  fail("MemAlloc", cuda::OutOfMemory);
  EXPECT_STATUS(DeviceBuffer::allocate(*context, 4096).takeStatus(), OutOfMemory,
                "failed to allocate 4096 bytes of device memory: out of memory",
                "free device memory");
  Result<DeviceBuffer> empty = DeviceBuffer::allocate(*context, 0);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->data(), nullptr);
}

TEST_F(RuntimeTest, Timing) {
  Result<DeviceContext> context = DeviceContext::open(-1);
  ASSERT_TRUE(context) << context.getStatus().str();
  int count = 0;
  auto launch = [&]() -> Status {
    ++count;
    return {};
  };
  TimingOptions options{.warmupMs = 4, .measureMs = 6, .launchesPerSample = 4};
  Result<std::vector<double>> samples = timeLaunches(*context, nullptr, launch, options);
  ASSERT_TRUE(samples) << samples.getStatus().str();
  EXPECT_EQ(*samples, std::vector<double>({0.5, 0.5, 0.5}));
  EXPECT_EQ(count, 20);

  fake->capture = cuda::CaptureActive;
  EXPECT_STATUS(timeLaunches(*context, nullptr, launch, options).takeStatus(), CaptureInProgress,
                "expected a stream that is not being captured");
  fake->capture = cuda::CaptureNone;
  fail("EventSynchronize", static_cast<cuda::Code>(700));
  EXPECT_STATUS(timeLaunches(*context, nullptr, launch, options).takeStatus(), DriverFailure,
                "compute-sanitizer");
  fail("EventCreate", cuda::OutOfMemory);
  EXPECT_STATUS(timeLaunches(*context, nullptr, launch, options).takeStatus(), OutOfMemory);
}
