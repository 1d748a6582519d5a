//===- Module.cpp - PTX on a device -----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Module.h"
#include "llvm/ADT/StringRef.h"
#include <cstring>

using llvm::StringRef;

namespace attn {

/// Room for the lines of a few dozen kernels; the driver cuts what exceeds it.
static constexpr size_t logBytes = size_t(64) << 10;

static std::string quote(std::string_view name) { return "'" + std::string(name) + "'"; }

static std::string formatCapability(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

/// The CUDA version whose drivers are the first to assemble a PTX version; 0 for one not known.
static int getRequiredCuda(StringRef ptxVersion) {
  static constexpr std::pair<const char *, int> versions[] = {
      {"7.8", 11080}, {"8.0", 12000}, {"8.1", 12010}, {"8.2", 12020},
      {"8.3", 12030}, {"8.4", 12040}, {"8.5", 12050}, {"8.6", 12070},
      {"8.7", 12080}, {"8.8", 12090}, {"9.0", 13000}, {"9.1", 13010}};
  for (auto [ptx, cuda] : versions)
    if (ptxVersion == ptx)
      return cuda;
  return 0;
}

Status checkTarget(std::string_view target, const DeviceInfo &device) {
  StringRef rest = target;
  unsigned number = 0;
  if (!rest.consume_front("sm_") || rest.consumeInteger(10, number) ||
      (!rest.empty() && rest != "a" && rest != "f"))
    return {StatusCode::InvalidKernel, "expected a target such as sm_90a, got " + quote(target),
            ""};
  int major = number / 10, minor = number % 10;
  // "a" code runs on its own capability, "f" code on its family, plain code on anything newer.
  bool newer = device.major > major || (device.major == major && device.minor >= minor);
  bool runs = rest == "a"   ? device.major == major && device.minor == minor
              : rest == "f" ? newer && device.major == major
                            : newer;
  if (runs)
    return {};
  bool isHopper = rest == "a" && major == 9;
  return {StatusCode::UnsupportedDevice,
          "expected a device of compute capability " + formatCapability(major, minor) +
              (isHopper ? " (the kernel uses wgmma)" : "") + ", got " +
              formatCapability(device.major, device.minor) + " (" + device.name + ")",
          isHopper ? "use an H100, H200 or GH200, or compile for the cpu device"
                   : "compile for the device at hand, or for the cpu device"};
}

static Status explainLoadFailure(const Driver &driver, const DeviceInfo &device, cuda::Code code,
                                 StringRef ptx, std::string_view errorLog) {
  Status status = driver.check(code, "load the kernel");
  std::string excerpt = excerptErrors(errorLog);
  StringRef version = ptx.split(".version ").second.take_while([](char c) {
    return (c >= '0' && c <= '9') || c == '.';
  });

  if (code == cuda::UnsupportedPtxVersion || StringRef(excerpt).contains("Unsupported .version")) {
    int required = getRequiredCuda(version);
    status.code = StatusCode::DriverTooOld;
    status.message = "expected a driver that assembles PTX " + version.str();
    if (required)
      status.message += " (CUDA " + formatCudaVersion(required) + " or newer)";
    status.message += ", got one for CUDA " + formatCudaVersion(driver.version);
    status.hint = "update the NVIDIA driver, or compile for an older PTX version";
  } else if (code == cuda::InvalidPtx || code == cuda::InvalidImage) {
    status.code = StatusCode::InvalidKernel;
    status.message = "expected valid PTX, got: " + (excerpt.empty() ? status.message : excerpt);
  } else if (code == cuda::NoBinaryForGpu) {
    status.code = StatusCode::UnsupportedDevice;
    status.message += " on compute capability " + formatCapability(device.major, device.minor);
  } else if (code == cuda::JitCompilerNotFound) {
    status.code = StatusCode::NoDriver;
    status.hint = "install libnvidia-ptxjitcompiler.so.1 of the same driver (in a container: "
                  "enable the capabilities compute and utility)";
  }
  return status;
}

namespace {
struct JitLogs {
  std::string info, errors;
};
} // namespace

/// Several kernels are assembled beside each other where `threads` is more than 1; the code is the
/// same.
static cuda::Code assemble(const Driver &driver, const std::string &ptx, size_t threads,
                           JitLogs &logs, cuda::Module &module) {
  logs.info.assign(logBytes, '\0');
  logs.errors.assign(logBytes, '\0');
  // The driver takes numbers in the place of pointers.
  auto number = [](uintptr_t value) {
    return reinterpret_cast<void *>(value); // NOLINT(performance-no-int-to-ptr)
  };
  cuda::JitOption options[] = {cuda::JitInfoLog,    cuda::JitInfoLogBytes,
                               cuda::JitErrorLog,   cuda::JitErrorLogBytes,
                               cuda::JitLogVerbose, cuda::JitSplitCompile};
  void *values[] = {logs.info.data(),   number(logBytes - 1),
                    logs.errors.data(), number(logBytes - 1),
                    number(1),          number(threads)};
  unsigned numOptions = std::size(options) - (threads > 1 ? 0 : 1);
  cuda::Code code = driver.ModuleLoadDataEx(&module, ptx.c_str(), numOptions, options, values);
  // Of what has been written, without the zeros behind it.
  logs.info.resize(std::strlen(logs.info.data()));
  logs.errors.resize(std::strlen(logs.errors.data()));
  return code;
}

Result<Module> Module::load(const DeviceContext &context, const KernelImage &image) {
  const Driver &driver = context.getDriver();
  ContextScope scope(driver, context.get());
  if (Status status = driver.check(scope.getCode(), "enter the device's context"); !status.ok())
    return status;

  cuda::Module module = nullptr;
  if (!image.machineCode.empty() && driver.ModuleLoadDataEx(&module, image.machineCode.data(), 0,
                                                            nullptr, nullptr) == cuda::Success)
    return Module(context, module);

  // The driver assembles modules one after the other, whichever threads load them, but kernels of
  // one beside each other. A driver that refuses is asked again without.
  JitLogs logs;
  size_t kernels = StringRef(image.ptx).count(".entry ");
  cuda::Code code = cuda::InvalidValue;
  if (kernels > 1 && driver.version >= cuda::splitCompileVersion)
    code = assemble(driver, image.ptx, kernels, logs, module);
  if (code == cuda::InvalidValue)
    code = assemble(driver, image.ptx, /*threads=*/1, logs, module);
  if (code != cuda::Success)
    return explainLoadFailure(driver, context.getInfo(), code, image.ptx, logs.errors);
  Module loaded(context, module);
  loaded.log = parseJitLog(logs.info);
  return loaded;
}

Module::Module(Module &&other)
    : context(other.context), module(other.module), log(std::move(other.log)) {
  other.module = nullptr;
}

Module::~Module() {
  if (!module)
    return;
  // In a process that is ending the driver may be gone already, and its answer does not matter.
  ContextScope scope(context->getDriver(), context->get());
  if (scope.getCode() == cuda::Success)
    (void)context->getDriver().ModuleUnload(module);
}

static Status checkResources(const KernelPlan &plan, const KernelInfo &info, int maxThreads,
                             const DeviceInfo &device) {
  int64_t bytes = info.staticSharedBytes + info.dynamicSharedBytes;
  if (bytes > device.sharedBytesPerBlock)
    return {StatusCode::ResourceLimit,
            "expected at most " + std::to_string(device.sharedBytesPerBlock) +
                " bytes of shared memory, got " + std::to_string(bytes) + " in kernel " +
                quote(plan.name),
            "choose smaller tiles or fewer stages: " +
                std::to_string(bytes - device.sharedBytesPerBlock) + " bytes less would fit"};
  int64_t threads = int64_t(plan.block[0]) * plan.block[1] * plan.block[2];
  if (threads > maxThreads)
    return {StatusCode::ResourceLimit,
            "expected at most " + std::to_string(maxThreads) + " threads in a block, got " +
                std::to_string(threads) + " in kernel " + quote(plan.name) + " of " +
                std::to_string(info.registers) + " registers",
            "choose a schedule with fewer threads or registers"};
  return {};
}

Result<Module::Entry> Module::prepare(const KernelPlan &plan) const {
  const Driver &driver = context->getDriver();
  ContextScope scope(driver, context->get());
  Entry entry;
  cuda::Code code = scope.getCode();
  if (code == cuda::Success)
    code = driver.ModuleGetFunction(&entry.function, module, plan.name.c_str());
  if (code == cuda::NotFound)
    return Status{StatusCode::InvalidKernel,
                  "expected PTX with the entry " + quote(plan.name) + " of its plan, got none", ""};

  int maxThreads = 0, localBytes = 0, sharedBytes = 0;
  KernelInfo &info = entry.info;
  const std::pair<int *, cuda::FunctionAttribute> attributes[] = {
      {&maxThreads, cuda::AttributeMaxThreads},
      {&info.registers, cuda::AttributeRegisters},
      {&localBytes, cuda::AttributeLocalBytes},
      {&sharedBytes, cuda::AttributeSharedBytes}};
  for (auto [value, attribute] : attributes)
    if (code == cuda::Success)
      code = driver.FuncGetAttribute(value, attribute, entry.function);
  if (code != cuda::Success)
    return driver.check(code, "find the kernel " + quote(plan.name));

  info.name = plan.name;
  info.localBytes = localBytes;
  info.staticSharedBytes = sharedBytes;
  info.dynamicSharedBytes = static_cast<int64_t>(plan.dynamicSharedBytes);
  if (const JitLog::Entry *logged = log.find(plan.name)) {
    info.spillStoreBytes = logged->spillStoreBytes;
    info.spillLoadBytes = logged->spillLoadBytes;
  }
  if (Status status = checkResources(plan, info, maxThreads, context->getInfo()); !status.ok())
    return status;

  // Up to 48 KiB, static and dynamic together, need no permission.
  if (info.staticSharedBytes + info.dynamicSharedBytes > int64_t(48) << 10)
    code = driver.FuncSetAttribute(entry.function, cuda::AttributeMaxDynamicShared,
                                   static_cast<int>(info.dynamicSharedBytes));
  if (code == cuda::Success && driver.FuncLoad)
    code = driver.FuncLoad(entry.function);
  if (code != cuda::Success)
    return driver.check(code, "prepare the kernel " + quote(plan.name));
  return entry;
}

} // namespace attn
