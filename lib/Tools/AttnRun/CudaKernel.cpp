//===- CudaKernel.cpp - a kernel on an NVIDIA GPU ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/CudaKernel.h"
#include "lib/Runtime/DataTypes.h"
#include "lib/Runtime/Timing.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

static Error toError(Status status) {
  if (status.ok())
    return Error::success();
  return createStringError("cuda: " + status.str());
}

Expected<std::unique_ptr<CudaKernel>> CudaKernel::compile(mlir::ModuleOp module, int64_t splits) {
  CUDAOptions options;
  options.splits = splits;
  Expected<CUDACode> code = compileForCUDA(module, options);
  if (!code)
    return code.takeError();
  KernelImage image{std::move(code->ptx), writeKernelPlans(code->plans), ""};

  Stopwatch stopwatch;
  Result<DeviceContext> context = DeviceContext::open(-1);
  if (!context)
    return toError(context.takeStatus());
  Result<Kernel> kernel = Kernel::load(image);
  if (!kernel)
    return toError(kernel.takeStatus());
  std::unique_ptr<CudaKernel> result(new CudaKernel(std::move(*context), std::move(*kernel)));
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

Expected<double> CudaKernel::measureHost() {
  constexpr unsigned kLaunches = 200, kBatches = 21;
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  std::vector<double> times;
  for (unsigned batch = 0; batch < kBatches; ++batch) {
    if (cuda::Code code = driver.StreamSynchronize(nullptr); code != cuda::Success)
      return toError(driver.check(code, "wait for the launches"));
    Stopwatch stopwatch;
    for (unsigned i = 0; i < kLaunches; ++i)
      if (Status status = kernel.launch(arguments, nullptr); !status.ok())
        return toError(status);
    times.push_back(stopwatch.elapsedMs() * 1e3 / kLaunches);
  }
  llvm::sort(times);
  return times[kBatches / 2];
}

std::string CudaKernel::describe() const {
  std::string text = "cuda " + kernel.getDevice().name;
  bool isAlone = kernel.getKernels().size() == 1;
  for (const KernelInfo &info : kernel.getKernels()) {
    if (!isAlone)
      text += ", @" + info.name;
    text += formatv(", {0} registers, {1} bytes of shared memory, {2} bytes of local memory", info.registers,
                    info.dynamicSharedBytes, info.localBytes);
  }
  for (const std::string &warning : kernel.getWarnings())
    text += "; " + warning;
  return text;
}

} // namespace attn
