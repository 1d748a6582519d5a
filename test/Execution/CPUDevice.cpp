//===- CPUDevice.cpp - kernels on the processor ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Invoke.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "test/Execution/AddressSanitizer.h"
#include "test/Execution/GuardedTensor.h"
#include "test/Execution/TestDevice.h"
#include "test/Unit/GuardedMemory.h"

namespace attn::test {

void call(CompiledKernel &kernel, llvm::MutableArrayRef<Input> inputs,
          llvm::MutableArrayRef<Array> outputs) {
  KernelArguments arguments;
  for (auto [input, type] : llvm::zip_equal(inputs, kernel.signature.arguments)) {
    if (input.isScalar)
      arguments.addScalar(type.kind, input.scalar);
    else
      arguments.addMemRef(input.array);
  }
  for (Array &output : outputs)
    arguments.addMemRef(output);
  arguments.call(kernel.function);
}

namespace {

/// A tensor as a kernel sees it: one end of it is at a page that nobody may touch, its other end at
/// the guard words. Where there is AddressSanitizer, these and the gaps between rows are poisoned.
class KernelMemory {
public:
  KernelMemory(GuardedTensor &tensor, bool atEnd)
      : tensor(tensor), atEnd(atEnd), size(tensor.bytes.size() - 2 * kGuard),
        pages(kGuard + size, atEnd) {
    std::memcpy(pages.data(), getBytes(), pages.size());
    setPoisoned(pages.data(), pages.size(), true);
    tensor.forEachRow([&](int64_t offset, int64_t length) {
      setPoisoned(data() + offset, size_t(length), false);
    });
  }
  ~KernelMemory() { setPoisoned(pages.data(), pages.size(), false); }
  KernelMemory(const KernelMemory &) = delete;
  KernelMemory &operator=(const KernelMemory &) = delete;

  uint8_t *data() { return pages.data() + (atEnd ? kGuard : 0); }

  void copyBack() {
    setPoisoned(pages.data(), pages.size(), false);
    std::memcpy(getBytes(), pages.data(), pages.size());
  }

private:
  static constexpr size_t kGuard = GuardedTensor::kGuardBytes;
  uint8_t *getBytes() { return tensor.bytes.data() + (atEnd ? 0 : kGuard); }

  GuardedTensor &tensor;
  bool atEnd;
  size_t size;
  Guarded<uint8_t> pages;
};

class CPUKernel : public TestKernel {
public:
  explicit CPUKernel(std::unique_ptr<CompiledKernel> kernel) : kernel(std::move(kernel)) {}

  llvm::Error run(llvm::MutableArrayRef<Input> inputs, llvm::MutableArrayRef<Array> outputs,
                  Memory layout, uint64_t seed) override {
    std::vector<std::unique_ptr<GuardedTensor>> tensors;
    std::vector<std::unique_ptr<KernelMemory>> memory;
    KernelArguments arguments;
    auto add = [&](Array &array, bool isOutput) {
      GuardedTensor &tensor =
          *tensors.emplace_back(std::make_unique<GuardedTensor>(array, isOutput, layout, ++seed));
      memory.push_back(std::make_unique<KernelMemory>(tensor, /*atEnd=*/seed % 3 != 0));
      arguments.addMemRef(memory.back()->data(), tensor.shape, tensor.strides);
    };
    for (auto [input, type] : llvm::zip_equal(inputs, kernel->signature.arguments)) {
      if (input.isScalar)
        arguments.addScalar(type.kind, input.scalar);
      else
        add(input.array, /*isOutput=*/false);
    }
    for (Array &output : outputs)
      add(output, /*isOutput=*/true);
    arguments.call(kernel->function);
    for (auto &copy : memory)
      copy->copyBack();
    for (auto &tensor : llvm::ArrayRef(tensors).take_back(outputs.size()))
      if (llvm::Error error = tensor->copyBack())
        return error;
    return llvm::Error::success();
  }

  /// Gradients take five products where threads have a head each.
  unsigned getNumWays() const override { return 2; }
  void takeWay(unsigned way) override { setThreadCount(way ? 16 : 1); }

private:
  std::unique_ptr<CompiledKernel> kernel;
};

/// The processor of that name, or this one.
llvm::Expected<HostInfo> getHost(const std::string &cpu) {
  HostOverride other;
  if (!cpu.empty())
    other.cpu = cpu;
  return getHostInfo(other);
}

class CPUDevice : public TestDevice {
public:
  std::vector<std::string> getTypes() const override { return {"f32", "bf16", "f16"}; }
  std::vector<std::pair<int64_t, int64_t>> getBlockSizes() const override {
    return {{1, 1}, {3, 5}, {16, 48}, {80, 112}, {128, 176}};
  }
  int64_t getColumnMultiple() const override { return 1; }
  std::pair<int64_t, int64_t> getSmallGradBlock(const Problem &) const override { return {16, 48}; }
  ScheduleLimits getScheduleLimits(const Problem &) const override { return {1, 200, 1, 200}; }
  std::vector<std::pair<std::string, int64_t>> getProcessors() const override {
    std::vector<std::pair<std::string, int64_t>> processors;
    for (const char *name : {"", "x86-64-v3", "x86-64-v4", "x86-64"}) {
      if (llvm::Expected<HostInfo> host = getHost(name))
        processors.emplace_back(name, host->f32Lanes);
      else
        llvm::consumeError(host.takeError());
    }
    return processors;
  }
  /// bench/results/cpu-error-bounds.json
  Errors getErrors(llvm::StringRef type) const override {
    return type == "f16" ? Errors{6.1e-4, 6.1e-4, 6.1e-4} : Errors{6.5e-3, 1.3e-2, 1.9e-2};
  }

  llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                      const Problem &problem) override {
    CPUOptions options;
    options.schedule = getOverrides(problem);
    llvm::Expected<HostInfo> host = getHost(problem.cpu);
    if (!host)
      return host.takeError();
    options.jit.host = std::move(*host);
    options.jit.sanitize = hasAddressSanitizer();
    llvm::Expected<std::unique_ptr<CompiledKernel>> kernel = compileForCPU(module, options);
    if (!kernel)
      return kernel.takeError();
    return std::make_unique<CPUKernel>(std::move(*kernel));
  }
};

} // namespace

std::unique_ptr<TestDevice> makeCPUDevice() { return std::make_unique<CPUDevice>(); }

} // namespace attn::test
