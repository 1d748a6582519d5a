//===- DeviceTensor.cpp - the execution tests' tensors on a GPU -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/DeviceTensor.h"
#include "lib/Plan/DataTypes.h"
#include "test/Execution/GuardedTensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace attn::test {

llvm::Error toError(const Status &status) {
  return status.ok() ? llvm::Error::success() : llvm::createStringError("cuda: " + status.str());
}

static TensorView makeView(char *data, ElementKind kind, llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<int64_t> strides) {
  TensorView view;
  view.data = data;
  view.type = getDataType(kind);
  view.rank = shape.size();
  view.shape = shape.data();
  view.strides = strides.data();
  return view;
}

static llvm::Expected<std::unique_ptr<DeviceBuffer>> allocate(const DeviceContext &context,
                                                              int64_t bytes) {
  Result<DeviceBuffer> buffer = DeviceBuffer::allocate(context, bytes);
  if (!buffer)
    return toError(buffer.getStatus());
  return std::make_unique<DeviceBuffer>(std::move(*buffer));
}

namespace {

/// All of it is on the host, too.
class NearTensor : public DeviceTensor {
public:
  NearTensor(Array &array, bool isOutput, Memory memory, uint64_t seed)
      : host(array, isOutput, memory, seed) {}

  llvm::Error upload(const DeviceContext &context) override {
    if (llvm::Error error = allocate(context, host.bytes.size()).moveInto(buffer))
      return error;
    return toError(buffer->upload(host.bytes.data()));
  }
  TensorView getView() const override {
    return makeView(static_cast<char *>(buffer->data()) + GuardedTensor::kGuardBytes,
                    host.array.getKind(), host.shape, host.strides);
  }
  llvm::Error fetch() override { return toError(buffer->download(host.bytes.data())); }
  llvm::ArrayRef<uint8_t> getFetched() const override { return host.bytes; }
  llvm::Error copyBack() override { return host.copyBack(); }

private:
  GuardedTensor host;
  std::unique_ptr<DeviceBuffer> buffer;
};

/// A row-major tensor of rank 4 whose last batch, head or row lies beyond 2^31 elements. The gaps
/// hold NaN around what is read and a pattern around what is written; of these the ends are looked
/// at, and only rows and ends are on the host.
class FarTensor : public DeviceTensor {
public:
  static constexpr int64_t kGuardBytes = GuardedTensor::kGuardBytes;

  /// Whether there is a dimension to stretch.
  static bool accepts(const Array &array) {
    return array.getRank() == 4 && array.size() > 0 &&
           llvm::any_of(array.getShape().drop_back(), [](int64_t extent) { return extent > 1; });
  }

  FarTensor(Array &array, bool isOutput, uint64_t seed)
      : array(array), guard(isOutput ? 0xa5 : 0xff), elementBytes(getByteSize(array.getKind())),
        rowBytes(array.getShape()[3] * elementBytes), rows(array.getByteCount() + 2 * kGuardBytes) {
    llvm::ArrayRef<int64_t> shape = array.getShape();
    unsigned far = seed % 3;
    while (shape[far] < 2)
      far = (far + 1) % 3;
    strides = {0, 0, 0, 1};
    int64_t stride = llvm::alignTo(shape[3], 8);
    for (int dim = 2; dim >= 0; --dim) {
      if (dim == int(far))
        continue;
      strides[dim] = stride;
      stride *= shape[dim];
    }
    strides[far] = std::max<int64_t>(
        stride, llvm::alignTo(llvm::divideCeil(int64_t(1) << 31, shape[far] - 1) + 8, 8));
    int64_t last = 0;
    for (auto [extent, step] : llvm::zip_equal(shape, strides))
      last += (extent - 1) * step;
    numBytes = (last + 1) * elementBytes + 2 * kGuardBytes;
  }

  llvm::Error upload(const DeviceContext &context) override {
    this->context = &context;
    if (llvm::Error error = allocate(context, numBytes).moveInto(buffer))
      return error;
    if (llvm::Error error = toError(buffer->fill(guard)))
      return error;
    return forEachRow([&](cuda::Pointer place, int64_t row) {
      return context.getDriver().MemcpyHtoDAsync(
          place, static_cast<char *>(array.data()) + row * rowBytes, rowBytes, nullptr);
    });
  }

  TensorView getView() const override {
    return makeView(static_cast<char *>(buffer->data()) + kGuardBytes, array.getKind(),
                    array.getShape(), strides);
  }

  llvm::Error fetch() override {
    cuda::Pointer start = reinterpret_cast<cuda::Pointer>(buffer->data());
    const Driver &driver = context->getDriver();
    return forEachRow([&](cuda::Pointer place, int64_t row) {
      uint8_t *to = rows.data() + 2 * kGuardBytes + row * rowBytes;
      cuda::Code code = driver.MemcpyDtoHAsync(to, place, rowBytes, nullptr);
      if (row > 0 || code != cuda::Success)
        return code;
      code = driver.MemcpyDtoHAsync(rows.data(), start, kGuardBytes, nullptr);
      if (code != cuda::Success)
        return code;
      return driver.MemcpyDtoHAsync(rows.data() + kGuardBytes, start + numBytes - kGuardBytes,
                                    kGuardBytes, nullptr);
    });
  }

  llvm::ArrayRef<uint8_t> getFetched() const override { return rows; }

  llvm::Error copyBack() override {
    llvm::ArrayRef<uint8_t> ends = getFetched().take_front(2 * kGuardBytes);
    std::memcpy(array.data(), rows.data() + ends.size(), array.getByteCount());
    if (llvm::all_of(ends, [&](uint8_t byte) { return byte == guard; }))
      return llvm::Error::success();
    return llvm::createStringError("expected writes inside the result only, got one at its ends");
  }

private:
  /// Calls `copy` with the place and the row-major number of each row, and waits.
  llvm::Error forEachRow(llvm::function_ref<cuda::Code(cuda::Pointer, int64_t)> copy) {
    const Driver &driver = context->getDriver();
    ContextScope scope(driver, context->get());
    cuda::Code code = scope.getCode();
    llvm::ArrayRef<int64_t> shape = array.getShape();
    int64_t numRows = shape[0] * shape[1] * shape[2];
    for (int64_t row = 0; row < numRows && code == cuda::Success; ++row) {
      int64_t offset = row / (shape[1] * shape[2]) * strides[0] +
                       row / shape[2] % shape[1] * strides[1] + row % shape[2] * strides[2];
      code = copy(reinterpret_cast<cuda::Pointer>(buffer->data()) + kGuardBytes +
                      offset * elementBytes,
                  row);
    }
    if (code == cuda::Success)
      code = driver.StreamSynchronize(nullptr);
    return toError(driver.check(code, "copy rows"));
  }

  Array &array;
  uint8_t guard;
  int64_t elementBytes, rowBytes, numBytes = 0;
  llvm::SmallVector<int64_t, 4> strides;
  /// The guards at both ends, then the rows.
  std::vector<uint8_t> rows;
  const DeviceContext *context = nullptr;
  std::unique_ptr<DeviceBuffer> buffer;
};

} // namespace

std::unique_ptr<DeviceTensor> DeviceTensor::create(Array &array, bool isOutput, Memory memory,
                                                   uint64_t seed) {
  if (memory == Memory::Far && FarTensor::accepts(array))
    return std::make_unique<FarTensor>(array, isOutput, seed);
  return std::make_unique<NearTensor>(array, isOutput, memory, seed);
}

} // namespace attn::test
