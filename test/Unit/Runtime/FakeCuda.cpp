//===- FakeCuda.cpp - a CUDA driver for machines without one ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Answers as the driver's documentation says, including the refusals: a launch without its context
// current, a tensor map that is not aligned. It runs nothing.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/Runtime/FakeCuda.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

using namespace attn;
using namespace attn::cuda;

/// A process without gtest says by its environment which card it wants.
static bool readEnvironment(FakeCuda &fake) {
  const char *bus = std::getenv("FAKE_CUDA_MEMORY_BUS");
  if (bus)
    fake.memoryBus = std::atoi(bus);
  return bus != nullptr;
}

static FakeCuda &state() {
  static FakeCuda fake;
  [[maybe_unused]] static const bool isSaid = readEnvironment(fake);
  return fake;
}
static std::mutex &recordMutex() {
  static std::mutex mutex;
  return mutex;
}

/// The primary context of device 0 and the thread's stack of contexts.
static ContextObject *const primary = reinterpret_cast<ContextObject *>(0x1000);
static thread_local std::vector<Context> contexts;

static Code enter(const char *name) {
  FakeCuda &fake = state();
  if (fake.records) {
    std::lock_guard lock(recordMutex());
    fake.calls.push_back(name);
  }
  return fake.failure != Success && fake.failing == name ? fake.failure : Success;
}

#define ENTER()                                                                                    \
  if (Code code = enter(__func__ + 2); code != Success)                                            \
  return code
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeCuda *getFakeCuda() { return &state(); }

EXPORT Code cuInit(unsigned) {
  ENTER();
  return state().deviceCount ? Success : NoDevice;
}
EXPORT Code cuDriverGetVersion(int *version) {
  ENTER();
  *version = state().version;
  return Success;
}
EXPORT Code cuGetErrorName(Code code, const char **name) {
  static thread_local std::string text;
  text = "CUDA_ERROR_" + std::to_string(code);
  *name = text.c_str();
  return Success;
}
EXPORT Code cuGetErrorString(Code code, const char **text) {
  *text = code == OutOfMemory ? "out of memory" : "injected error";
  return Success;
}
EXPORT Code cuDeviceGetCount(int *count) {
  ENTER();
  *count = state().deviceCount;
  return Success;
}
EXPORT Code cuDeviceGet(Device *device, int ordinal) {
  ENTER();
  *device = ordinal;
  return ordinal < state().deviceCount ? Success : InvalidDevice;
}
EXPORT Code cuDeviceGetName(char *name, int capacity, Device) {
  ENTER();
  std::strncpy(name, "Fake GPU", capacity);
  return Success;
}
EXPORT Code cuDeviceGetAttribute(int *value, DeviceAttribute attribute, Device) {
  ENTER();
  switch (attribute) {
  case AttributeMultiprocessors:
    *value = 132;
    return Success;
  case AttributeMemoryClock:
    *value = state().memoryClock;
    return Success;
  case AttributeMemoryBus:
    *value = state().memoryBus;
    return Success;
  case AttributeMajor:
    *value = state().major;
    return Success;
  case AttributeMinor:
    *value = state().minor;
    return Success;
  case AttributeSharedPerBlockOptIn:
    *value = state().sharedPerBlock;
    return Success;
  case AttributeVirtualMemory:
    *value = state().hasVirtualMemory;
    return Success;
  }
  return InvalidValue;
}
EXPORT Code cuDevicePrimaryCtxRetain(Context *context, Device) {
  ENTER();
  ++state().retained;
  *context = primary;
  return Success;
}
EXPORT Code cuDevicePrimaryCtxRelease(Device) {
  ENTER();
  --state().retained;
  return Success;
}
EXPORT Code cuCtxGetCurrent(Context *context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return Success;
}
EXPORT Code cuCtxGetDevice(Device *device) {
  *device = 0;
  return contexts.empty() ? InvalidContext : Success;
}
EXPORT Code cuCtxPushCurrent(Context context) {
  ENTER();
  contexts.push_back(context);
  return Success;
}
EXPORT Code cuCtxPopCurrent(Context *context) {
  ENTER();
  if (contexts.empty())
    return InvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return Success;
}

EXPORT Code cuModuleLoadDataEx(Module *module, const void *image, unsigned numOptions,
                               JitOption *options, void **values) {
  FakeCuda &fake = state();
  size_t infoBytes = 0, errorBytes = 0, threads = 1;
  char *info = nullptr, *errors = nullptr;
  for (unsigned i = 0; i < numOptions; ++i) {
    if (options[i] == JitInfoLog)
      info = static_cast<char *>(values[i]);
    else if (options[i] == JitInfoLogBytes)
      infoBytes = reinterpret_cast<size_t>(values[i]);
    else if (options[i] == JitErrorLog)
      errors = static_cast<char *>(values[i]);
    else if (options[i] == JitErrorLogBytes)
      errorBytes = reinterpret_cast<size_t>(values[i]);
    else if (options[i] == JitSplitCompile)
      threads = reinterpret_cast<size_t>(values[i]);
  }
  if (info)
    std::strncpy(info, fake.infoLog.c_str(), infoBytes);
  if (errors)
    std::strncpy(errors, fake.errorLog.c_str(), errorBytes);
  ENTER();
  if (contexts.empty())
    return InvalidContext;
  bool isPtx =
      std::string_view(static_cast<const char *>(image)).find(".version") != std::string_view::npos;
  if (!isPtx && !fake.acceptsCubin)
    return InvalidImage;
  if (isPtx)
    fake.assemblerThreads.push_back(threads);
  if (threads > 1 && !fake.splitsCompilation)
    return InvalidValue;
  ++fake.modules;
  *module = reinterpret_cast<Module>(0x2000);
  return Success;
}
EXPORT Code cuModuleUnload(Module) {
  ENTER();
  --state().modules;
  return contexts.empty() ? InvalidContext : Success;
}
EXPORT Code cuModuleGetFunction(Function *function, Module, const char *) {
  ENTER();
  *function = reinterpret_cast<Function>(0x3000);
  return Success;
}
EXPORT Code cuFuncGetAttribute(int *value, FunctionAttribute attribute, Function) {
  ENTER();
  FakeCuda &fake = state();
  switch (attribute) {
  case AttributeMaxThreads:
    *value = fake.maxThreads;
    return Success;
  case AttributeSharedBytes:
    *value = fake.sharedBytes;
    return Success;
  case AttributeLocalBytes:
    *value = fake.localBytes;
    return Success;
  case AttributeRegisters:
    *value = fake.registers;
    return Success;
  case AttributeMaxDynamicShared:
    break;
  }
  return InvalidValue;
}
EXPORT Code cuFuncSetAttribute(Function, FunctionAttribute attribute, int value) {
  ENTER();
  if (attribute != AttributeMaxDynamicShared || value > state().sharedPerBlock)
    return InvalidValue;
  state().maxDynamicShared = value;
  return Success;
}
EXPORT Code cuFuncLoad(Function) {
  ENTER();
  return Success;
}

EXPORT Code cuTensorMapEncodeTiled(TensorMapObject *map, TensorMapType type, uint32_t rank,
                                   void *address, const uint64_t *sizes, const uint64_t *strides,
                                   const uint32_t *box, const uint32_t *elementStrides,
                                   TensorMapInterleave, TensorMapSwizzle swizzle,
                                   TensorMapPromotion, TensorMapFill) {
  ENTER();
  FakeCuda &fake = state();
  fake.numEncodings.fetch_add(1, std::memory_order_relaxed);
  if (!address || reinterpret_cast<uintptr_t>(address) % 16 ||
      reinterpret_cast<uintptr_t>(map) % 64 || rank < 1 || rank > 5)
    return InvalidValue;
  for (uint32_t i = 0; i < rank; ++i)
    if (sizes[i] < 1 || sizes[i] > uint64_t(1) << 32 || box[i] < 1 || box[i] > 256 ||
        elementStrides[i] != 1 || (i && (strides[i - 1] % 16 || strides[i - 1] >> 40)))
      return InvalidValue;
  std::memset(map, 0, sizeof(*map));
  map->words[0] = reinterpret_cast<uintptr_t>(address);
  if (!fake.records)
    return Success;
  std::lock_guard lock(recordMutex());
  fake.encodings.push_back({type,
                            address,
                            {sizes, sizes + rank},
                            {strides, strides + rank - 1},
                            {box, box + rank},
                            swizzle});
  return Success;
}

EXPORT Code cuLaunchKernelEx(const LaunchConfig *config, Function, void **parameters, void **) {
  ENTER();
  FakeCuda &fake = state();
  if (contexts.empty())
    return InvalidContext;
  fake.numLaunches.fetch_add(1, std::memory_order_relaxed);
  if (!config->gridX || !config->gridY || !config->gridZ)
    return InvalidValue;
  if (!fake.records)
    return Success;
  FakeCuda::Launch launch{*config, {}, false, {}};
  for (unsigned i = 0; i < config->numAttributes; ++i)
    if (config->attributes[i].id == LaunchProgrammaticSerialization)
      launch.isProgrammatic = config->attributes[i].isProgrammatic;
    else if (config->attributes[i].id == LaunchClusterDimension)
      launch.cluster = {config->attributes[i].cluster.x, config->attributes[i].cluster.y,
                        config->attributes[i].cluster.z};
  for (size_t i = 0; i < fake.parameterSizes.size(); ++i)
    launch.parameters.emplace_back(static_cast<const char *>(parameters[i]),
                                   fake.parameterSizes[i]);
  std::lock_guard lock(recordMutex());
  fake.launches.push_back(std::move(launch));
  return Success;
}

EXPORT Code cuPointerGetAttributes(unsigned count, PointerAttribute *attributes, void **values,
                                   Pointer pointer) {
  ENTER();
  FakeCuda &fake = state();
  bool isKnown = pointer != fake.hostAddress;
  for (unsigned i = 0; i < count; ++i)
    if (attributes[i] == PointerMemoryType)
      *static_cast<unsigned *>(values[i]) = isKnown ? MemoryDevice : MemoryUnknown;
    else if (attributes[i] == PointerDeviceOrdinal)
      *static_cast<int *>(values[i]) = !isKnown ? -2 : pointer == fake.otherDeviceAddress ? 1 : 0;
    else if (attributes[i] == PointerIsManaged)
      *static_cast<unsigned *>(values[i]) = 0;
  return Success;
}
EXPORT Code cuStreamIsCapturing(Stream, CaptureStatus *status) {
  ENTER();
  *status = state().capture;
  return Success;
}
EXPORT Code cuStreamSynchronize(Stream) {
  ENTER();
  return state().capture == CaptureNone ? Success : CaptureUnsupported;
}
EXPORT Code cuEventCreate(Event *event, unsigned) {
  ENTER();
  ++state().events;
  *event = reinterpret_cast<Event>(0x4000);
  return Success;
}
EXPORT Code cuEventDestroy(Event) {
  ENTER();
  --state().events;
  return Success;
}
EXPORT Code cuEventRecord(Event, Stream) {
  ENTER();
  return Success;
}
EXPORT Code cuEventSynchronize(Event) {
  ENTER();
  return Success;
}
EXPORT Code cuEventQuery(Event) {
  ENTER();
  return state().isBusy ? NotReady : Success;
}
EXPORT Code cuEventElapsedTime(float *milliseconds, Event, Event) {
  ENTER();
  *milliseconds = state().elapsedMs;
  return Success;
}

EXPORT Code cuMemAlloc(Pointer *pointer, size_t bytes) {
  ENTER();
  ++state().allocations;
  *pointer = reinterpret_cast<Pointer>(new char[bytes]);
  state().memory.insert(*pointer);
  return Success;
}
EXPORT Code cuMemFree(Pointer pointer) {
  ENTER();
  --state().allocations;
  state().memory.erase(pointer);
  delete[] reinterpret_cast<char *>(pointer);
  return Success;
}
// In the order of a stream: nothing is allowed to wait, so a capture is as good as none.
EXPORT Code cuMemAllocAsync(Pointer *pointer, size_t bytes, Stream stream) {
  ENTER();
  FakeCuda &fake = state();
  if (contexts.empty() || bytes == 0)
    return InvalidValue;
  ++fake.allocations;
  *pointer = FakeCuda::scratchAddress;
  fake.scratchBytes = bytes;
  fake.scratchStream = stream;
  return Success;
}
EXPORT Code cuMemFreeAsync(Pointer pointer, Stream stream) {
  ENTER();
  FakeCuda &fake = state();
  if (contexts.empty() || pointer != FakeCuda::scratchAddress || stream != fake.scratchStream)
    return InvalidValue;
  --fake.allocations;
  return Success;
}
EXPORT Code cuMemcpyHtoDAsync(Pointer to, const void *from, size_t bytes, Stream) {
  ENTER();
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return Success;
}
EXPORT Code cuMemcpyDtoHAsync(void *to, Pointer from, size_t bytes, Stream) {
  ENTER();
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return Success;
}
EXPORT Code cuMemsetD8Async(Pointer to, unsigned char value, size_t bytes, Stream stream) {
  ENTER();
  state().fills.push_back({to, bytes, stream});
  // Other addresses are made up.
  if (state().memory.count(to))
    std::memset(reinterpret_cast<void *>(to), value, bytes);
  return Success;
}

EXPORT Code cuMemGetAllocationGranularity(size_t *bytes, const AllocationProperties *properties,
                                          Granularity) {
  ENTER();
  *bytes = FakeCuda::pieceBytes;
  return properties->type == AllocationPinned ? Success : InvalidValue;
}
EXPORT Code cuMemAddressReserve(Pointer *pointer, size_t bytes, size_t, Pointer,
                                unsigned long long) {
  ENTER();
  FakeCuda &fake = state();
  if (fake.reservedBytes || !bytes || bytes % FakeCuda::pieceBytes)
    return InvalidValue;
  fake.reservedBytes = bytes;
  *pointer = FakeCuda::reservedAddress;
  return Success;
}
EXPORT Code cuMemAddressFree(Pointer pointer, size_t bytes) {
  ENTER();
  FakeCuda &fake = state();
  if (pointer != FakeCuda::reservedAddress || bytes != fake.reservedBytes || !fake.mapped.empty())
    return InvalidValue;
  fake.reservedBytes = 0;
  return Success;
}
EXPORT Code cuMemCreate(MemoryHandle *handle, size_t bytes, const AllocationProperties *,
                        unsigned long long) {
  ENTER();
  FakeCuda &fake = state();
  static MemoryHandle next = 1;
  if (contexts.empty() || bytes != FakeCuda::pieceBytes)
    return InvalidValue;
  if (static_cast<int>(fake.handles.size()) >= fake.pieces)
    return OutOfMemory;
  *handle = next++;
  fake.handles[*handle] = 0;
  return Success;
}
EXPORT Code cuMemRelease(MemoryHandle handle) {
  ENTER();
  auto found = state().handles.find(handle);
  // The driver would keep the memory until nothing is mapped; the project does not count on it.
  if (found == state().handles.end() || found->second)
    return InvalidValue;
  state().handles.erase(found);
  return Success;
}
EXPORT Code cuMemMap(Pointer pointer, size_t bytes, size_t offset, MemoryHandle handle,
                     unsigned long long) {
  ENTER();
  FakeCuda &fake = state();
  if (pointer < FakeCuda::reservedAddress || pointer % FakeCuda::pieceBytes || offset ||
      bytes != FakeCuda::pieceBytes || fake.mapped.count(pointer) || !fake.handles.count(handle) ||
      pointer + bytes > FakeCuda::reservedAddress + fake.reservedBytes)
    return InvalidValue;
  fake.mapped[pointer] = handle;
  ++fake.handles[handle];
  return Success;
}
EXPORT Code cuMemUnmap(Pointer pointer, size_t bytes) {
  ENTER();
  FakeCuda &fake = state();
  auto found = fake.mapped.find(pointer);
  if (found == fake.mapped.end() || bytes != FakeCuda::pieceBytes || fake.isBusy)
    return InvalidValue;
  --fake.handles[found->second];
  fake.mapped.erase(found);
  fake.accessible.erase(pointer);
  return Success;
}
EXPORT Code cuMemSetAccess(Pointer pointer, size_t bytes, const AccessDescription *description,
                           size_t count) {
  ENTER();
  FakeCuda &fake = state();
  for (size_t at = 0; at < bytes; at += FakeCuda::pieceBytes)
    if (!fake.mapped.count(pointer + at) || count != 1 || description->access != AccessReadWrite)
      return InvalidValue;
    else
      fake.accessible.insert(pointer + at);
  return Success;
}

EXPORT Code cuGetProcAddress_v2(const char *name, void **address, int version, uint64_t flags,
                                int *) {
  static const std::pair<const char *, void *> functions[] = {
#define ENTRY(name, parameters) {"cu" #name, reinterpret_cast<void *>(cu##name)},
      ATTN_CUDA_FUNCTIONS(ENTRY) ATTN_CUDA_MEMORY_FUNCTIONS(ENTRY)
#undef ENTRY
          {"cuFuncLoad", reinterpret_cast<void *>(cuFuncLoad)},
      {"cuMemAllocAsync", reinterpret_cast<void *>(cuMemAllocAsync)},
      {"cuMemFreeAsync", reinterpret_cast<void *>(cuMemFreeAsync)}};
  *address = nullptr;
  if (version > state().version || flags != legacyStreamFlag)
    return NotFound;
  for (auto [known, function] : functions)
    if (std::string_view(known) == name && !state().missing.count(name))
      *address = function;
  return *address ? Success : NotFound;
}
