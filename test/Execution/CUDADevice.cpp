//===- CUDADevice.cpp - kernels on an NVIDIA GPU --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/Plan.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "test/Execution/DeviceTensor.h"
#include "test/Execution/TestDevice.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <map>
#include <optional>

namespace attn::test {
namespace {

/// Two streams that do not wait for the default one.
class SideStreams {
public:
  /// Makes them in the current context, with which they end.
  llvm::Error create() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    auto createStream = reinterpret_cast<int (*)(cuda::Stream *, unsigned)>(
        library ? dlsym(library, "cuStreamCreate") : nullptr);
    for (cuda::Stream &stream : streams)
      if (!stream && (!createStream || createStream(&stream, /*CU_STREAM_NON_BLOCKING=*/1) != 0))
        return llvm::createStringError("expected a stream of the driver, got none");
    return llvm::Error::success();
  }
  cuda::Stream operator[](unsigned index) const { return streams[index]; }

private:
  cuda::Stream streams[2] = {nullptr, nullptr};
};

/// A context, and what is current in place of it when a problem asks for that.
struct Place {
  std::shared_ptr<DeviceContext> context, current;
  SideStreams streams;
};

/// The arguments of one launch.
class Arguments {
public:
  llvm::Error place(const DeviceContext &context, llvm::MutableArrayRef<Input> inputs,
                    llvm::MutableArrayRef<Array> outputs, Memory memory, uint64_t seed) {
    numOutputs = outputs.size();
    auto add = [&](Array &array, bool isOutput) -> llvm::Error {
      tensors.push_back(DeviceTensor::create(array, isOutput, memory, ++seed));
      if (llvm::Error error = tensors.back()->upload(context))
        return error;
      arguments.push_back(tensors.back()->getView());
      return llvm::Error::success();
    };
    for (Input &input : inputs) {
      if (input.isScalar)
        arguments.push_back(input.scalar);
      else if (llvm::Error error = add(input.array, /*isOutput=*/false))
        return error;
    }
    for (Array &output : outputs)
      if (llvm::Error error = add(output, /*isOutput=*/true))
        return error;
    return llvm::Error::success();
  }

  llvm::ArrayRef<std::unique_ptr<DeviceTensor>> getOutputs() const {
    return llvm::ArrayRef(tensors).take_back(numOutputs);
  }

  std::vector<LaunchArgument> arguments;

private:
  std::vector<std::unique_ptr<DeviceTensor>> tensors;
  size_t numOutputs = 0;
};

class CUDAKernel : public TestKernel {
public:
  CUDAKernel(Place place, Kernel kernel) : place(std::move(place)), kernel(std::move(kernel)) {}

  /// The seed decides: on the default stream, on another one, or on two at once.
  llvm::Error run(llvm::MutableArrayRef<Input> inputs, llvm::MutableArrayRef<Array> outputs,
                  Memory memory, uint64_t seed) override {
    unsigned way = memory == Memory::Far ? 0 : seed / 1000 % 4;
    unsigned numLaunches = way == 3 ? 2 : 1;
    const DeviceContext &context = *place.context;
    std::optional<ContextScope> scope;
    if (place.current)
      scope.emplace(context.getDriver(), place.current->get());
    std::vector<Arguments> launches(numLaunches);
    for (Arguments &launch : launches)
      if (llvm::Error error = launch.place(context, inputs, outputs, memory, seed))
        return error;
    for (unsigned i = 0; i < numLaunches; ++i)
      if (llvm::Error error =
              toError(kernel.launch(launches[i].arguments, way < 2 ? nullptr : place.streams[i])))
        return error;
    if (llvm::Error error = wait(way < 2 ? 0 : numLaunches))
      return error;
    for (Arguments &launch : launches)
      for (auto &tensor : launch.getOutputs())
        if (llvm::Error error = tensor->fetch())
          return error;
    for (auto [i, first, last] :
         llvm::enumerate(launches.front().getOutputs(), launches.back().getOutputs())) {
      if (!isAddedTo(i) && first->getFetched() != last->getFetched())
        return llvm::createStringError("expected equal results on two streams, got others");
      if (llvm::Error error = first->copyBack())
        return error;
    }
    return llvm::Error::success();
  }

  bool addsInAnyOrder() const override { return true; }

private:
  /// Copies wait for the default stream only.
  llvm::Error wait(unsigned numStreams) {
    const Driver &driver = place.context->getDriver();
    ContextScope scope(driver, place.context->get());
    for (unsigned i = 0; i < numStreams; ++i)
      if (cuda::Code code = driver.StreamSynchronize(place.streams[i]); code != cuda::Success)
        return toError(driver.check(code, "run a kernel on a stream"));
    return llvm::Error::success();
  }

  Place place;
  Kernel kernel;
};

class CUDADevice : public HopperDevice {
public:
  explicit CUDADevice(std::string emitFolder) : emitFolder(std::move(emitFolder)) {}

  bool truncatesBase2() const override { return true; }

  llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                      const Problem &problem) override {
    CUDAOptions options;
    options.schedule = getOverrides(problem);
    options.way = problem.way == "auto" ? getOptions().way : problem.way;
    options.fused = getOptions().fused;
    options.target = getOptions().target;
    std::string source;
    if (!emitFolder.empty())
      llvm::raw_string_ostream(source) << *module;
    llvm::Expected<CUDACode> code = compileForCUDA(module, options);
    if (!code)
      return code.takeError();
    KernelImage image{std::move(code->ptx), writePlan({code->plans, {}}), ""};
    if (!emitFolder.empty()) {
      if (llvm::Error error = emit(source, image))
        return std::move(error);
      return nullptr;
    }
    llvm::Expected<Place> place = getPlace(problem.gpu);
    if (!place)
      return place.takeError();
    Result<Kernel> kernel = Kernel::load(image, {problem.gpu});
    if (!kernel)
      return toError(kernel.getStatus());
    return std::make_unique<CUDAKernel>(std::move(*place), std::move(*kernel));
  }

private:
  llvm::Expected<Place> getPlace(int gpu) {
    Place &place = places[gpu];
    if (!place.context) {
      Result<DeviceContext> opened = DeviceContext::open(gpu);
      if (!opened)
        return toError(opened.getStatus());
      place.context = std::make_shared<DeviceContext>(std::move(*opened));
    }
    if (gpu > 0 && !place.current) {
      llvm::Expected<Place> first = getPlace(0);
      if (!first)
        return first.takeError();
      place.current = first->context;
    }
    ContextScope scope(place.context->getDriver(), place.context->get());
    if (llvm::Error error = place.streams.create())
      return std::move(error);
    return place;
  }

  llvm::Error emit(const std::string &source, const KernelImage &image) {
    const testing::TestInfo *test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        llvm::formatv("{0}.{1}.{2}", test->test_suite_name(), test->name(), ++numEmitted);
    std::replace(name.begin(), name.end(), '/', '.');
    for (auto [text, suffix] : {std::pair(&source, "mlir"), std::pair(&image.ptx, "ptx"),
                                std::pair(&image.plan, "json")}) {
      std::error_code code;
      llvm::raw_fd_ostream file(emitFolder + "/" + name + "." + suffix, code);
      if (code)
        return llvm::createStringError(code, "cannot write to " + emitFolder);
      file << *text;
    }
    return llvm::Error::success();
  }

  std::string emitFolder;
  unsigned numEmitted = 0;
  std::map<int, Place> places;
};

} // namespace

int countGPUs() {
  Result<std::vector<DeviceInfo>> devices = getDevices();
  return devices ? int(devices->size()) : 0;
}

int64_t getFreeGPUMemory() {
  Result<DeviceContext> context = DeviceContext::open(-1);
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  auto getInfo = reinterpret_cast<int (*)(size_t *, size_t *)>(
      library ? dlsym(library, "cuMemGetInfo_v2") : nullptr);
  size_t free = 0, total = 0;
  if (!context || !getInfo)
    return 0;
  ContextScope scope(context->getDriver(), context->get());
  return getInfo(&free, &total) == 0 ? int64_t(free) : 0;
}

std::unique_ptr<TestDevice> makeCUDADevice(const std::string &emitFolder) {
  return std::make_unique<CUDADevice>(emitFolder);
}

} // namespace attn::test
