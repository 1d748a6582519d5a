//===- CUDADevice.cpp - kernels on an NVIDIA GPU --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/DataTypes.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "test/Execution/GuardedTensor.h"
#include "test/Execution/TestDevice.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <algorithm>

namespace attn::test {
namespace {

llvm::Error toError(const Status &status) {
  return status.ok() ? llvm::Error::success() : llvm::createStringError("cuda: " + status.str());
}

/// A tensor's place in device memory, and what is written to or read from there.
class DeviceTensor {
public:
  DeviceTensor(Array &array, bool isOutput, Memory memory, uint64_t seed)
      : host(array, isOutput, memory, seed) {}

  llvm::Error upload(const DeviceContext &context) {
    Result<DeviceBuffer> allocated = DeviceBuffer::allocate(context, host.bytes.size());
    if (!allocated)
      return toError(allocated.getStatus());
    buffer = std::make_unique<DeviceBuffer>(std::move(*allocated));
    return toError(buffer->upload(host.bytes.data()));
  }

  LaunchArgument getArgument() const {
    TensorView view;
    view.data = static_cast<char *>(buffer->data()) + GuardedTensor::kGuardBytes;
    view.type = getDataType(host.array.getKind());
    view.rank = host.array.getRank();
    view.shape = host.shape.data();
    view.strides = host.strides.data();
    return view;
  }

  llvm::Error download() {
    if (llvm::Error error = toError(buffer->download(host.bytes.data())))
      return error;
    return host.copyBack();
  }

private:
  GuardedTensor host;
  std::unique_ptr<DeviceBuffer> buffer;
};

class CUDAKernel : public TestKernel {
public:
  CUDAKernel(std::shared_ptr<DeviceContext> context, Kernel kernel)
      : context(std::move(context)), kernel(std::move(kernel)) {}

  llvm::Error run(llvm::MutableArrayRef<Input> inputs, llvm::MutableArrayRef<Array> outputs,
                  Memory memory, uint64_t seed) override {
    std::vector<std::unique_ptr<DeviceTensor>> tensors;
    std::vector<LaunchArgument> arguments;
    auto add = [&](Array &array, bool isOutput) -> llvm::Error {
      tensors.push_back(std::make_unique<DeviceTensor>(array, isOutput, memory, ++seed));
      if (llvm::Error error = tensors.back()->upload(*context))
        return error;
      arguments.push_back(tensors.back()->getArgument());
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
    if (llvm::Error error = toError(kernel.launch(arguments, nullptr)))
      return error;
    for (size_t i = tensors.size() - outputs.size(); i < tensors.size(); ++i)
      if (llvm::Error error = tensors[i]->download())
        return error;
    return llvm::Error::success();
  }

private:
  std::shared_ptr<DeviceContext> context;
  Kernel kernel;
};

class CUDADevice : public HopperDevice {
public:
  explicit CUDADevice(std::string emitFolder) : emitFolder(std::move(emitFolder)) {}

  llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                      const Problem &problem) override {
    CUDAOptions options;
    setSchedule(options, problem);
    std::string source;
    if (!emitFolder.empty())
      llvm::raw_string_ostream(source) << *module;
    llvm::Expected<CUDACode> code = compileForCUDA(module, options);
    if (!code)
      return code.takeError();
    KernelImage image{std::move(code->ptx), writeKernelPlans(code->plans), ""};
    if (!emitFolder.empty()) {
      if (llvm::Error error = emit(source, image))
        return std::move(error);
      return nullptr;
    }
    if (!context) {
      Result<DeviceContext> opened = DeviceContext::open(-1);
      if (!opened)
        return toError(opened.getStatus());
      context = std::make_shared<DeviceContext>(std::move(*opened));
    }
    Result<Kernel> kernel = Kernel::load(image);
    if (!kernel)
      return toError(kernel.getStatus());
    return std::make_unique<CUDAKernel>(context, std::move(*kernel));
  }

private:
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
  std::shared_ptr<DeviceContext> context;
};

} // namespace

std::unique_ptr<TestDevice> makeCUDADevice(const std::string &emitFolder) {
  return std::make_unique<CUDADevice>(emitFolder);
}

} // namespace attn::test
