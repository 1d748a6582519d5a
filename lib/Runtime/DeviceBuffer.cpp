//===- DeviceBuffer.cpp - device memory that owns itself --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/DeviceBuffer.h"

namespace attn {

Result<DeviceBuffer> DeviceBuffer::allocate(const DeviceContext &context, size_t bytes) {
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  cuda::Pointer pointer = 0;
  cuda::Code code = scope.getCode();
  if (code == cuda::Success && bytes > 0)
    code = driver.MemAlloc(&pointer, bytes);
  if (code != cuda::Success)
    return driver.check(code, "allocate " + std::to_string(bytes) + " bytes of device memory");
  return DeviceBuffer(context, pointer, bytes);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer &&other)
    : context(other.context), pointer(other.pointer), bytes(other.bytes) {
  other.pointer = 0;
}

DeviceBuffer::~DeviceBuffer() {
  if (!pointer)
    return;
  ContextScope scope(context->getDriver(), context->get());
  if (scope.getCode() == cuda::Success)
    (void)context->getDriver().MemFree(pointer);
}

/// Runs one asynchronous operation and waits for it.
template <typename Fn>
static Status runAndWait(const DeviceContext &context, void *stream, const char *what, Fn start) {
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  cuda::Code code = scope.getCode();
  if (code == cuda::Success)
    code = start(driver, static_cast<cuda::Stream>(stream));
  if (code == cuda::Success)
    code = driver.StreamSynchronize(static_cast<cuda::Stream>(stream));
  return driver.check(code, what);
}

Status DeviceBuffer::upload(const void *from, void *stream) const {
  if (bytes == 0)
    return {};
  return runAndWait(*context, stream, "copy to the device",
                    [&](const Driver &driver, cuda::Stream cudaStream) {
                      return driver.MemcpyHtoDAsync(pointer, from, bytes, cudaStream);
                    });
}

Status DeviceBuffer::download(void *to, void *stream) const {
  if (bytes == 0)
    return {};
  return runAndWait(*context, stream, "copy from the device",
                    [&](const Driver &driver, cuda::Stream cudaStream) {
                      return driver.MemcpyDtoHAsync(to, pointer, bytes, cudaStream);
                    });
}

Status DeviceBuffer::fill(uint8_t value, void *stream) const {
  if (bytes == 0)
    return {};
  return runAndWait(*context, stream, "fill device memory",
                    [&](const Driver &driver, cuda::Stream cudaStream) {
                      return driver.MemsetD8Async(pointer, value, bytes, cudaStream);
                    });
}

} // namespace attn
