//===- Driver.cpp - the CUDA driver, opened when first needed ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Driver.h"
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

namespace attn {

static constexpr const char *installHint =
    "install an NVIDIA driver of version 525 or newer (in a container: start it with the GPU "
    "runtime), or compile for the cpu device";

std::string formatCudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status Driver::check(cuda::Code code, std::string_view what) const {
  if (code == cuda::Success)
    return {};
  const char *name = nullptr, *text = nullptr;
  if (GetErrorName(code, &name) != cuda::Success || !name)
    name = "unknown error";
  if (GetErrorString(code, &text) != cuda::Success || !text)
    text = "no description";
  Status status{StatusCode::DriverFailure,
                "failed to " + std::string(what) + ": " + text + " (" + name + ")", ""};
  switch (code) {
  case cuda::OutOfMemory:
    status.code = StatusCode::OutOfMemory;
    status.hint = "free device memory, or use smaller tensors";
    break;
  case cuda::NotInitialized:
    status.hint = "start processes with spawn: a child of fork() cannot use its parent's GPU";
    break;
  case cuda::CaptureUnsupported:
  case cuda::CaptureInvalidated:
  case cuda::CaptureImplicit:
  case cuda::CaptureWrongThread:
    status.code = StatusCode::CaptureInProgress;
    status.hint = "load and time kernels before the capture begins";
    break;
  case cuda::LaunchOutOfResources:
    status.code = StatusCode::ResourceLimit;
    status.hint = "choose a schedule with fewer threads or registers";
    break;
  default:
    // What a kernel does wrong is reported by later calls, and the context stays unusable.
    if (code >= cuda::firstKernelFault && code <= cuda::lastKernelFault)
      status.hint = "restart the process: a kernel that ran earlier failed; compute-sanitizer "
                    "finds which";
    break;
  }
  return status;
}

static Status makeTooOld(const char *missing) {
  return {StatusCode::DriverTooOld,
          "expected a driver for CUDA 12.0 or newer, got one without " + std::string(missing),
          installHint};
}

/// Fills the table, or returns the name of the first function that is missing.
static const char *findFunctions(void *library, Driver &driver) {
  using GetProcAddressFn =
      cuda::Code (*)(const char *name, void **address, int version, uint64_t flags, int *found);
  auto getAddress = reinterpret_cast<GetProcAddressFn>(dlsym(library, "cuGetProcAddress_v2"));
  if (!getAddress)
    return "cuGetProcAddress_v2";
  auto find = [&](const char *name, auto &function, int version) {
    void *address = nullptr;
    if (getAddress(name, &address, version, cuda::legacyStreamFlag, nullptr) == cuda::Success)
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    return function != nullptr;
  };
#define ATTN_FIND(name, parameters)                                                                \
  if (!find("cu" #name, driver.name, cuda::requestedVersion))                                      \
    return "cu" #name;
  ATTN_CUDA_FUNCTIONS(ATTN_FIND)
#undef ATTN_FIND
#define ATTN_FIND(name, parameters) find("cu" #name, driver.name, cuda::requestedVersion);
  ATTN_CUDA_MEMORY_FUNCTIONS(ATTN_FIND)
#undef ATTN_FIND
  find("cuFuncLoad", driver.FuncLoad, 12040);
  find("cuMemAllocAsync", driver.MemAllocAsync, cuda::requestedVersion);
  find("cuMemFreeAsync", driver.MemFreeAsync, cuda::requestedVersion);
  return nullptr;
}

static Result<std::unique_ptr<const Driver>> openDriver(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status{StatusCode::NoDriver,
                  "expected a CUDA driver, got: " + std::string(reason ? reason : path.c_str()),
                  installHint};
  }
  auto driver = std::make_unique<Driver>();
  if (const char *missing = findFunctions(library, *driver))
    return makeTooOld(missing);

  cuda::Code code = driver->Init(0);
  if (code == cuda::NoDevice)
    return Status{StatusCode::NoDevice, "expected an NVIDIA GPU, got a driver that sees none",
                  "check nvidia-smi and CUDA_VISIBLE_DEVICES, or compile for the cpu device"};
  if (Status status = driver->check(code, "initialise the CUDA driver"); !status.ok()) {
    status.code = StatusCode::NoDriver;
    status.hint = code == cuda::SystemDriverMismatch
                      ? "restart the machine: libcuda and the kernel module differ in version"
                      : installHint;
    return status;
  }
  code = driver->DriverGetVersion(&driver->version);
  if (Status status = driver->check(code, "ask for the driver's version"); !status.ok())
    return status;
  return std::unique_ptr<const Driver>(std::move(driver));
}

namespace {
struct DriverSlot {
  std::mutex mutex;
  std::string path = "libcuda.so.1";
  std::optional<Result<const Driver *>> answer;
  /// Every driver ever opened: kernels loaded through it may still be alive.
  std::vector<std::unique_ptr<const Driver>> opened;
};
} // namespace

/// Never destroyed: kernels in static variables are unloaded while the process ends.
static DriverSlot &getSlot() {
  static DriverSlot &slot = *new DriverSlot;
  return slot;
}

Result<const Driver *> getDriver() {
  DriverSlot &slot = getSlot();
  std::lock_guard lock(slot.mutex);
  if (slot.answer)
    return *slot.answer;
  Result<std::unique_ptr<const Driver>> driver = openDriver(slot.path);
  if (!driver)
    return *(slot.answer = driver.takeStatus());
  slot.opened.push_back(std::move(*driver));
  return *(slot.answer = slot.opened.back().get());
}

void overrideDriverLibrary(std::string path) {
  DriverSlot &slot = getSlot();
  std::lock_guard lock(slot.mutex);
  slot.path = std::move(path);
  slot.answer.reset();
}

ContextScope::ContextScope(const Driver &driver, cuda::Context context) : driver(driver) {
  cuda::Context current = nullptr;
  code = driver.CtxGetCurrent(&current);
  if (code != cuda::Success || current == context)
    return;
  code = driver.CtxPushCurrent(context);
  pushed = code == cuda::Success;
}

ContextScope::~ContextScope() {
  cuda::Context popped = nullptr;
  if (pushed)
    (void)driver.CtxPopCurrent(&popped);
}

} // namespace attn
