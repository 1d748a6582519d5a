//===- Memory.cpp - whose memory an address is ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Launch.h"
#include <cstdio>

namespace attn {

static std::string formatAddress(const void *data) {
  char text[32];
  std::snprintf(text, sizeof(text), "%p", data);
  return text;
}

static Status askDriver(const Driver &driver, const DeviceInfo &device, const TensorView &tensor,
                        size_t argument) {
  unsigned type = cuda::MemoryUnknown, isManaged = 0;
  int ordinal = device.ordinal;
  cuda::PointerAttribute attributes[] = {cuda::PointerMemoryType, cuda::PointerIsManaged,
                                         cuda::PointerDeviceOrdinal};
  void *values[] = {&type, &isManaged, &ordinal};
  // A driver that does not answer says nothing against the address.
  if (driver.PointerGetAttributes(3, attributes, values,
                                  reinterpret_cast<cuda::Pointer>(tensor.data)) != cuda::Success)
    return {};
  std::string wanted = " in memory of device " + std::to_string(device.ordinal);
  if (type == cuda::MemoryUnknown)
    return Status::aboutArgument(argument, "expected ",
                                 wanted + ", got the address " + formatAddress(tensor.data) +
                                     ", which the driver does not know",
                                 "copy the tensor to the device");
  if (type == cuda::MemoryDevice && !isManaged && ordinal != device.ordinal)
    return Status::aboutArgument(argument, "expected ",
                                 wanted + ", got memory of device " + std::to_string(ordinal),
                                 "copy the tensor, or compile for that device");
  return {};
}

Status checkMemory(const Driver &driver, const DeviceInfo &device, const TensorView &tensor,
                   size_t argument) {
  struct Slot {
    const void *data;
    const Driver *driver;
    int ordinal;
  };
  // Zero-initialised; a direct-mapped table, where two addresses in one slot only cost questions.
  static thread_local Slot slots[256];
  if (!tensor.data || isEmpty(tensor))
    return {};
  uint64_t hash = reinterpret_cast<uintptr_t>(tensor.data) * 0x9e3779b97f4a7c15u;
  Slot &slot = slots[hash >> 56];
  if (slot.data == tensor.data && slot.driver == &driver && slot.ordinal == device.ordinal)
    return {};
  if (Status status = askDriver(driver, device, tensor, argument); !status.ok())
    return status;
  slot = {tensor.data, &driver, device.ordinal};
  return {};
}

} // namespace attn
