//===- Device.cpp - a GPU and its context -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Device.h"

namespace attn {

static Result<int> countDevices(const Driver &driver) {
  int count = 0;
  if (Status status = driver.check(driver.DeviceGetCount(&count), "count the GPUs"); !status.ok())
    return status;
  if (count == 0)
    return Status{StatusCode::NoDevice, "expected an NVIDIA GPU, got a driver that sees none",
                  "check nvidia-smi and CUDA_VISIBLE_DEVICES, or compile for the cpu device"};
  return count;
}

/// 0 where the driver does not say.
static int queryMemoryRate(const Driver &driver, cuda::Device device) {
  int clock = 0, bus = 0;
  if (driver.DeviceGetAttribute(&clock, cuda::AttributeMemoryClock, device) != cuda::Success ||
      driver.DeviceGetAttribute(&bus, cuda::AttributeMemoryBus, device) != cuda::Success)
    return 0;
  return static_cast<int>(2 * 1000.0 * clock * bus / 8 / 1e9);
}

Result<DeviceInfo> queryDevice(const Driver &driver, int ordinal) {
  Result<int> count = countDevices(driver);
  if (!count)
    return count.takeStatus();
  if (ordinal < 0 || ordinal >= *count)
    return Status{StatusCode::NoDevice,
                  "expected a device from 0 to " + std::to_string(*count - 1) + ", got " +
                      std::to_string(ordinal),
                  "choose one of these, or change CUDA_VISIBLE_DEVICES"};

  DeviceInfo info;
  info.ordinal = ordinal;
  info.driverVersion = driver.version;
  cuda::Device device = 0;
  char name[256] = "";
  int sharedBytes = 0;
  cuda::Code code = driver.DeviceGet(&device, ordinal);
  if (code == cuda::Success)
    code = driver.DeviceGetName(name, sizeof(name), device);
  const std::pair<int *, cuda::DeviceAttribute> attributes[] = {
      {&info.major, cuda::AttributeMajor},
      {&info.minor, cuda::AttributeMinor},
      {&info.multiprocessors, cuda::AttributeMultiprocessors},
      {&sharedBytes, cuda::AttributeSharedPerBlockOptIn}};
  for (auto [value, attribute] : attributes)
    if (code == cuda::Success)
      code = driver.DeviceGetAttribute(value, attribute, device);
  if (code != cuda::Success)
    return driver.check(code, "query device " + std::to_string(ordinal));
  info.name = name;
  info.sharedBytesPerBlock = sharedBytes;
  info.memoryRate = queryMemoryRate(driver, device);
  return info;
}

Result<std::vector<DeviceInfo>> getDevices() {
  Result<const Driver *> driver = getDriver();
  if (!driver)
    return driver.takeStatus();
  Result<int> count = countDevices(**driver);
  if (!count)
    return count.takeStatus();
  std::vector<DeviceInfo> devices;
  for (int ordinal = 0; ordinal < *count; ++ordinal) {
    Result<DeviceInfo> info = queryDevice(**driver, ordinal);
    if (!info)
      return info.takeStatus();
    devices.push_back(std::move(*info));
  }
  return devices;
}

Result<DeviceContext> DeviceContext::open(int ordinal) {
  Result<const Driver *> found = attn::getDriver();
  if (!found)
    return found.takeStatus();
  const Driver &driver = **found;

  // An error here means the same as no context: retaining one will say what is wrong.
  cuda::Context current = nullptr;
  cuda::Device currentDevice = -1;
  if (driver.CtxGetCurrent(&current) != cuda::Success || !current ||
      driver.CtxGetDevice(&currentDevice) != cuda::Success)
    current = nullptr;

  // The driver's handle of a device is its ordinal.
  if (ordinal < 0)
    ordinal = current ? currentDevice : 0;
  Result<DeviceInfo> info = queryDevice(driver, ordinal);
  if (!info)
    return info.takeStatus();
  DeviceContext opened(&driver, std::move(*info));
  cuda::Device device = 0;
  cuda::Code code = driver.DeviceGet(&device, ordinal);
  if (code == cuda::Success && current && device == currentDevice) {
    opened.context = current;
    return opened;
  }
  if (code == cuda::Success)
    code = driver.DevicePrimaryCtxRetain(&opened.context, device);
  if (code != cuda::Success)
    return driver.check(code, "open device " + std::to_string(ordinal));
  opened.retained = true;
  return opened;
}

DeviceContext::DeviceContext(DeviceContext &&other)
    : driver(other.driver), info(std::move(other.info)), context(other.context),
      retained(other.retained) {
  other.retained = false;
}

DeviceContext::~DeviceContext() {
  cuda::Device device = 0;
  if (retained && driver->DeviceGet(&device, info.ordinal) == cuda::Success)
    (void)driver->DevicePrimaryCtxRelease(device);
}

} // namespace attn
