//===- DeviceBuffer.h - device memory that owns itself ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_DEVICEBUFFER_H
#define ATTN_LIB_RUNTIME_DEVICEBUFFER_H

#include "lib/Runtime/Device.h"

namespace attn {

/// Device memory for tools and tests; programs bring their own. Movable; the context must outlive
/// it. Nothing here belongs into a graph capture.
class DeviceBuffer {
public:
  /// `bytes` may be 0: then data() is null. Errors: OutOfMemory with the number of bytes.
  static Result<DeviceBuffer> allocate(const DeviceContext &context, size_t bytes);

  DeviceBuffer(DeviceBuffer &&other);
  DeviceBuffer &operator=(DeviceBuffer &&) = delete;
  ~DeviceBuffer();

  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  void *data() const { return reinterpret_cast<void *>(pointer); }
  size_t size() const { return bytes; }

  /// Copies size() bytes from or to the host, or sets every byte; returns when done.
  Status upload(const void *from, void *stream = nullptr) const;
  Status download(void *to, void *stream = nullptr) const;
  Status fill(uint8_t value, void *stream = nullptr) const;

private:
  DeviceBuffer(const DeviceContext &context, cuda::Pointer pointer, size_t bytes)
      : context(&context), pointer(pointer), bytes(bytes) {}
  const DeviceContext *context;
  cuda::Pointer pointer;
  size_t bytes;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_DEVICEBUFFER_H
