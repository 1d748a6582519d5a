//===- CUDADevice.cpp - kernels on an NVIDIA GPU --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Tensors stand between guards, and with Memory::Random between gaps: NaN in what is read, a
// pattern in what is written, which must survive. So a kernel that reads or writes where it must
// not is found out.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/DataTypes.h"
#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "test/Execution/TestDevice.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace attn::test {
namespace {

constexpr int64_t kGuardBytes = 1024;
/// NaN in every floating-point type, and -1.
constexpr uint8_t kGuardOfInputs = 0xff;
constexpr uint8_t kGuardOfOutputs = 0xa5;

llvm::Error toError(const Status &status) {
  return status.ok() ? llvm::Error::success() : llvm::createStringError("cuda: " + status.str());
}

/// A tensor's place in device memory, and what is written to or read from there.
class DeviceTensor {
public:
  DeviceTensor(Array &array, uint8_t guard, Memory memory, uint64_t seed)
      : array(array), guard(guard), shape(array.getShape()), strides(array.getStrides()) {
    if (memory == Memory::Random && shape.size() == 4)
      drawStrides(seed);
    int64_t last = 0;
    for (auto [extent, stride] : llvm::zip_equal(shape, strides))
      last += std::max<int64_t>(extent - 1, 0) * stride;
    int64_t bytes = array.size() ? (last + 1) * getByteSize(array.getKind()) : 0;
    staging.assign(bytes + 2 * kGuardBytes, guard);
    forEachElement([](char *place, char *element, int64_t size) { std::memcpy(place, element, size); });
  }

  llvm::Error upload(const DeviceContext &context) {
    Result<DeviceBuffer> allocated = DeviceBuffer::allocate(context, staging.size());
    if (!allocated)
      return toError(allocated.getStatus());
    buffer = std::make_unique<DeviceBuffer>(std::move(*allocated));
    return toError(buffer->upload(staging.data()));
  }

  LaunchArgument getArgument() const {
    TensorView view;
    view.data = static_cast<char *>(buffer->data()) + kGuardBytes;
    view.type = getDataType(array.getKind());
    view.rank = array.getRank();
    view.shape = shape.data();
    view.strides = strides.data();
    return view;
  }

  /// Fills the array, and looks at what should not have been touched.
  llvm::Error download() {
    if (llvm::Error error = toError(buffer->download(staging.data())))
      return error;
    forEachElement([&](char *place, char *element, int64_t size) {
      std::memcpy(element, place, size);
      std::memset(place, guard, size);
    });
    auto touched = std::find_if(staging.begin(), staging.end(), [&](uint8_t b) { return b != guard; });
    if (touched == staging.end())
      return llvm::Error::success();
    return llvm::createStringError(
        llvm::formatv("expected writes inside the result only, got one at byte {0} from its start",
                      touched - staging.begin() - kGuardBytes)
            .str());
  }

private:
  /// Any order of the first three dimensions; gaps that keep rows at multiples of 16 bytes.
  void drawStrides(uint64_t seed) {
    std::mt19937_64 random(seed);
    unsigned order[] = {0, 1, 2};
    std::shuffle(std::begin(order), std::end(order), random);
    int64_t step = 16 / getByteSize(array.getKind());
    auto pad = [&](int64_t extent) {
      return (extent + step - 1) / step * step + step * int64_t(random() % 3);
    };
    strides = {0, 0, 0, 1};
    int64_t stride = pad(std::max<int64_t>(shape[3], 1));
    for (unsigned dim : order) {
      strides[dim] = stride;
      stride = pad(stride * std::max<int64_t>(shape[dim], 1));
    }
  }

  /// Calls `fn` with each element's place in the staging memory and in the array.
  void forEachElement(llvm::function_ref<void(char *, char *, int64_t)> fn) {
    int64_t size = getByteSize(array.getKind());
    llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
    for (int64_t i = 0; i < array.size(); ++i) {
      int64_t place = 0, element = 0;
      for (size_t dim = 0; dim < index.size(); ++dim) {
        place += index[dim] * strides[dim];
        element += index[dim] * array.getStrides()[dim];
      }
      fn(reinterpret_cast<char *>(staging.data()) + kGuardBytes + place * size,
         static_cast<char *>(array.data()) + element * size, size);
      for (size_t dim = index.size(); dim-- > 0;) {
        if (++index[dim] < shape[dim])
          break;
        index[dim] = 0;
      }
    }
  }

  Array &array;
  uint8_t guard;
  llvm::SmallVector<int64_t, 4> shape, strides;
  std::vector<uint8_t> staging;
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
    auto add = [&](Array &array, uint8_t guard) -> llvm::Error {
      tensors.push_back(std::make_unique<DeviceTensor>(array, guard, memory, ++seed));
      if (llvm::Error error = tensors.back()->upload(*context))
        return error;
      arguments.push_back(tensors.back()->getArgument());
      return llvm::Error::success();
    };
    for (Input &input : inputs) {
      if (input.isScalar)
        arguments.push_back(input.scalar);
      else if (llvm::Error error = add(input.array, kGuardOfInputs))
        return error;
    }
    for (Array &output : outputs)
      if (llvm::Error error = add(output, kGuardOfOutputs))
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

class CUDADevice : public TestDevice {
public:
  explicit CUDADevice(std::string emitFolder) : emitFolder(std::move(emitFolder)) {}

  std::vector<std::string> getTypes() const override { return {"bf16", "f16"}; }
  std::vector<std::pair<int64_t, int64_t>> getBlockSizes() const override {
    return {{64, 64}, {64, 128}, {128, 64}, {128, 80}, {128, 96}, {128, 112}, {128, 176}};
  }
  /// Rows are copied in steps of 16 bytes.
  int64_t getColumnMultiple() const override { return 8; }
  bool canSplitKeys() const override { return true; }

  llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                      const Problem &problem) override {
    CUDAOptions options;
    options.blockM = problem.blockM;
    options.blockN = problem.blockN;
    options.splits = problem.splits;
    llvm::Expected<CUDACode> code = compileForCUDA(module, options);
    if (!code)
      return code.takeError();
    KernelImage image{std::move(code->ptx), writeKernelPlans(code->plans), ""};
    if (!emitFolder.empty()) {
      if (llvm::Error error = emit(image))
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
  llvm::Error emit(const KernelImage &image) {
    const testing::TestInfo *test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = llvm::formatv("{0}.{1}.{2}", test->test_suite_name(), test->name(), ++numEmitted);
    std::replace(name.begin(), name.end(), '/', '.');
    for (auto [text, suffix] : {std::pair(&image.ptx, "ptx"), std::pair(&image.plan, "json")}) {
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
