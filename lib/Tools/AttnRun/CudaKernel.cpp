//===- CudaKernel.cpp - a kernel on an NVIDIA GPU ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/CudaKernel.h"
#include "lib/Plan/DataTypes.h"
#include "lib/Plan/Plan.h"
#include "lib/Runtime/Launch.h"
#include "lib/Runtime/Module.h"
#include "lib/Runtime/Timing.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Tools/AttnRun/ChooseWay.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

static Error toError(const Status &status) {
  if (status.ok())
    return Error::success();
  return createStringError("cuda: " + status.str());
}

Expected<std::unique_ptr<CudaKernel>>
CudaKernel::compile(mlir::ModuleOp module, const CUDAOptions &options, const Binding &binding) {
  Result<DeviceContext> context = DeviceContext::open(-1);
  if (!context)
    return toError(context.takeStatus());
  Stopwatch stopwatch;
  Expected<std::vector<WayPlan>> ways = makeWays(module, options);
  if (!ways)
    return ways.takeError();
  std::string way = chooseWay(*ways, binding, context->getInfo());
  double waysMs = stopwatch.lapMs();
  Expected<CUDACode> code = compileWays(module, options, way);
  if (!code)
    return code.takeError();
  code->passesMs += waysMs;
  for (KernelPlan &plan : code->plans)
    plan.when.clear();
  KernelImage image{std::move(code->ptx), writePlan({code->plans, {}}), ""};

  stopwatch.lapMs();
  Result<Kernel> kernel = Kernel::load(image);
  if (!kernel)
    return toError(kernel.takeStatus());
  std::unique_ptr<CudaKernel> result(new CudaKernel(std::move(*context), std::move(*kernel)));
  result->image = std::move(image);
  result->plans = std::move(code->plans);
  result->passesMs = code->passesMs;
  result->ptxMs = code->ptxMs;
  result->loadMs = stopwatch.lapMs();
  return result;
}

Error CudaKernel::upload(ArrayRef<ArgumentValue> inputs, ArrayRef<Array> outputs) {
  numInputs = inputs.size();
  // The arguments point into `extents`, which therefore must not move.
  extents.reserve(2 * (inputs.size() + outputs.size()));
  auto add = [&](const Array &array) -> Error {
    Result<DeviceBuffer> buffer = DeviceBuffer::allocate(context, array.getByteCount());
    if (!buffer)
      return toError(buffer.takeStatus());
    buffers.push_back(std::make_unique<DeviceBuffer>(std::move(*buffer)));
    if (Error error = toError(buffers.back()->upload(array.data())))
      return error;
    TensorView view;
    view.data = buffers.back()->data();
    view.type = getDataType(array.getKind());
    view.rank = array.getRank();
    view.shape = extents.emplace_back(array.getShape()).data();
    view.strides = extents.emplace_back(array.getStrides()).data();
    arguments.push_back(view);
    return Error::success();
  };
  for (const ArgumentValue &input : inputs) {
    if (input.isScalar) {
      arguments.push_back(input.scalar);
      buffers.push_back(nullptr);
    } else if (Error error = add(input.array)) {
      return error;
    }
  }
  for (const Array &output : outputs)
    if (Error error = add(output))
      return error;
  return Error::success();
}

Error CudaKernel::run(MutableArrayRef<Array> outputs) {
  if (Error error = toError(kernel.launch(arguments, nullptr)))
    return error;
  for (auto [i, output] : enumerate(outputs))
    if (Error error = toError(buffers[numInputs + i]->download(output.data())))
      return error;
  return Error::success();
}

Expected<std::vector<double>> CudaKernel::measure(double milliseconds) {
  TimingOptions options;
  options.measureMs = milliseconds;
  Result<std::vector<double>> times =
      timeLaunches(context, nullptr, [&] { return kernel.launch(arguments, nullptr); }, options);
  if (!times)
    return toError(times.takeStatus());
  return std::move(*times);
}

/// Microseconds of each call: medians of batches, in turns so that what else the machine does hits
/// all of them.
static Result<SmallVector<double>> timeHost(const Driver &driver,
                                            ArrayRef<function_ref<Status()>> calls) {
  // The driver queues about 1024 launches and then waits for the GPU.
  constexpr unsigned kLaunches = 200, kBatches = 21;
  SmallVector<std::vector<double>> samples(calls.size());
  for (unsigned batch = 0; batch < kBatches; ++batch)
    for (auto [call, times] : zip_equal(calls, samples)) {
      if (cuda::Code code = driver.StreamSynchronize(nullptr); code != cuda::Success)
        return driver.check(code, "wait for the launches");
      Stopwatch stopwatch;
      for (unsigned i = 0; i < kLaunches; ++i)
        if (Status status = call(); !status.ok())
          return status;
      times.push_back(stopwatch.elapsedMs() * 1e3 / kLaunches);
    }
  SmallVector<double> medians;
  for (std::vector<double> &times : samples) {
    llvm::sort(times);
    medians.push_back(times[kBatches / 2]);
  }
  return medians;
}

/// Calls `use` with a call of the driver alone, as the launch of the only kernel of a plan ends.
static Status withDriverLaunch(const DeviceContext &context, const KernelImage &image,
                               const KernelPlan &plan, LaunchArguments arguments,
                               function_ref<Status(function_ref<Status()>)> use) {
  Result<Module> module = Module::load(context, image);
  if (!module)
    return module.takeStatus();
  Result<Module::Entry> entry = module->prepare(plan);
  if (!entry)
    return entry.takeStatus();
  Result<LaunchRecipe> recipe = LaunchRecipe::create(plan);
  if (!recipe)
    return recipe.takeStatus();

  recipe->bind(context.getInfo());
  LaunchRecipe::Request request;
  const Driver &driver = context.getDriver();
  Status status = recipe->prepare(driver, arguments, nullptr, request);
  if (!status.ok())
    return status;
  return use([&] { return recipe->launch(driver, entry->function, request); });
}

Expected<CudaKernel::HostTimes> CudaKernel::measureHost() {
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  HostTimes result;
  auto launch = [&] { return kernel.launch(arguments, nullptr); };
  auto measure = [&](ArrayRef<function_ref<Status()>> calls) -> Status {
    Result<SmallVector<double>> times = timeHost(driver, calls);
    if (!times)
      return times.takeStatus();
    result.launch = times->front();
    if (calls.size() > 1)
      result.driver = times->back();
    return {};
  };
  bool isAlone = plans.size() == 1 && plans[0].scratch.empty();
  Status status = isAlone ? withDriverLaunch(context, image, plans[0], arguments,
                                             [&](function_ref<Status()> driverLaunch) {
                                               return measure({launch, driverLaunch});
                                             })
                          : measure({launch});
  if (!status.ok())
    return toError(status);
  return result;
}

std::string CudaKernel::describe() const {
  std::string text = "cuda " + kernel.getDevice().name;
  bool isAlone = kernel.getKernels().size() == 1;
  for (const KernelInfo &info : kernel.getKernels()) {
    if (!isAlone)
      text += ", @" + info.name;
    text += formatv(", {0} registers, {1} bytes of shared memory, {2} bytes of local memory",
                    info.registers, info.dynamicSharedBytes, info.localBytes);
  }
  for (const std::string &warning : kernel.getWarnings())
    text += "; " + warning;
  return text;
}

} // namespace attn
