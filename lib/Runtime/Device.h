//===- Device.h - a GPU and its context -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_DEVICE_H
#define ATTN_LIB_RUNTIME_DEVICE_H

#include "attn/Runtime.h"
#include "lib/Runtime/Driver.h"

namespace attn {

/// Facts that the driver knows about device `ordinal`.
Result<DeviceInfo> queryDevice(const Driver &driver, int ordinal);

/// A context that stays while this lives.
///
/// Streams and tensors of a caller belong to the context it runs in, and a kernel launches only
/// into its own. So the current context is used when there is one, whoever made it, and kept by its
/// owner; otherwise the device's primary context, which the CUDA runtime shares.
class DeviceContext {
public:
  /// `ordinal` as in LoadOptions::device.
  static Result<DeviceContext> open(int ordinal);

  DeviceContext(DeviceContext &&other);
  DeviceContext &operator=(DeviceContext &&) = delete;
  ~DeviceContext();

  const Driver &getDriver() const { return *driver; }
  const DeviceInfo &getInfo() const { return info; }
  cuda::Context get() const { return context; }

private:
  DeviceContext(const Driver *driver, DeviceInfo info) : driver(driver), info(std::move(info)) {}
  const Driver *driver;
  DeviceInfo info;
  cuda::Context context = nullptr;
  /// Whether `context` is a primary context that was retained here.
  bool retained = false;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_DEVICE_H
