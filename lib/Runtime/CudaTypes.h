//===- CudaTypes.h - the part of the CUDA driver's ABI in use ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Our own declarations, so that the project builds on machines without a CUDA toolkit. The numbers
// and layouts are the driver's ABI, which never changes for a given version of a function.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_CUDATYPES_H
#define ATTN_LIB_RUNTIME_CUDATYPES_H

#include <cstddef>
#include <cstdint>

namespace attn::cuda {

/// CUresult: the codes that get a treatment of their own.
enum Code : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  JitCompilerNotFound = 221,
  UnsupportedPtxVersion = 222,
  NotFound = 500,
  NotReady = 600,
  LaunchOutOfResources = 701,
  NotSupported = 801,
  SystemDriverMismatch = 803,
  CaptureUnsupported = 900,
  CaptureInvalidated = 901,
  CaptureImplicit = 906,
  CaptureWrongThread = 908
};

/// The codes of kernels that went wrong, such as an illegal address (700).
inline constexpr int firstKernelFault = 700, lastKernelFault = 719;

using Device = int;
using Pointer = uint64_t;
using Context = struct ContextObject *;
using Module = struct ModuleObject *;
using Function = struct FunctionObject *;
using Stream = struct StreamObject *;
using Event = struct EventObject *;

enum DeviceAttribute : int {
  AttributeMultiprocessors = 16,
  /// In kHz, of which both edges count, and in bits.
  AttributeMemoryClock = 36,
  AttributeMemoryBus = 37,
  AttributeMajor = 75,
  AttributeMinor = 76,
  AttributeSharedPerBlockOptIn = 97,
  AttributeVirtualMemory = 102
};

enum FunctionAttribute : int {
  AttributeMaxThreads = 0,
  AttributeSharedBytes = 1,
  AttributeLocalBytes = 3,
  AttributeRegisters = 4,
  AttributeMaxDynamicShared = 8
};

enum PointerAttribute : int {
  PointerMemoryType = 2,
  PointerIsManaged = 8,
  PointerDeviceOrdinal = 9
};
/// The answers of PointerMemoryType; 0 for an address that the driver knows nothing about.
enum MemoryType : unsigned { MemoryUnknown = 0, MemoryHost = 1, MemoryDevice = 2 };

enum JitOption : int {
  JitInfoLog = 3,
  JitInfoLogBytes = 4,
  JitErrorLog = 5,
  JitErrorLogBytes = 6,
  JitLogVerbose = 12,
  JitSplitCompile = 34
};
/// Drivers older than this refuse JitSplitCompile.
inline constexpr int splitCompileVersion = 13000;

enum TensorMapType : int { MapUInt8 = 0, MapFloat16 = 6, MapFloat32 = 7, MapBFloat16 = 9 };
enum TensorMapInterleave : int { InterleaveNone = 0 };
enum TensorMapSwizzle : int { SwizzleNone = 0, Swizzle32 = 1, Swizzle64 = 2, Swizzle128 = 3 };
enum TensorMapPromotion : int { Promotion128 = 2 };
enum TensorMapFill : int { FillZero = 0 };

/// CUtensorMap, opaque.
struct alignas(64) TensorMapObject {
  uint64_t words[16];
};

enum LaunchAttributeId : unsigned {
  LaunchClusterDimension = 4,
  LaunchProgrammaticSerialization = 6
};

/// CUlaunchAttribute: an id, padding to 8 bytes, and a union of 64 bytes.
struct LaunchAttribute { // NOLINT(bugprone-tagged-union-member-count)
  LaunchAttributeId id;
  char padding[4];
  union {
    char bytes[64];
    struct {
      unsigned x, y, z;
    } cluster;
    int isProgrammatic;
  };
};

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};

static_assert(sizeof(TensorMapObject) == 128 && sizeof(LaunchAttribute) == 72 &&
              sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

/// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc.
enum MemoryLocationType : int { LocationDevice = 1 };
struct MemoryLocation {
  MemoryLocationType type;
  int ordinal;
};
enum AllocationType : int { AllocationPinned = 1 };
struct AllocationProperties {
  AllocationType type;
  int handleTypes;
  MemoryLocation location;
  void *securityAttributes;
  unsigned char flags[8];
};
enum Access : int { AccessReadWrite = 3 };
struct AccessDescription {
  MemoryLocation location;
  Access access;
};
enum Granularity : int { GranularityMinimum = 0 };
static_assert(sizeof(AllocationProperties) == 32 && sizeof(AccessDescription) == 12);
using MemoryHandle = uint64_t;

inline constexpr unsigned eventWithoutTiming = 2;

enum CaptureStatus : int { CaptureNone = 0, CaptureActive = 1, CaptureStatusInvalidated = 2 };

/// The version that cuGetProcAddress is asked for: functions as of CUDA 12.0, the first release
/// that assembles wgmma, in the variant whose null stream is the legacy one.
inline constexpr int requestedVersion = 12000;
inline constexpr uint64_t legacyStreamFlag = 1;

/// X(name without "cu", parameters): every function in use. All return a Code.
#define ATTN_CUDA_FUNCTIONS(X)                                                                     \
  X(Init, (unsigned flags))                                                                        \
  X(DriverGetVersion, (int *version))                                                              \
  X(GetErrorName, (Code code, const char **name))                                                  \
  X(GetErrorString, (Code code, const char **text))                                                \
  X(DeviceGetCount, (int *count))                                                                  \
  X(DeviceGet, (Device * device, int ordinal))                                                     \
  X(DeviceGetName, (char *name, int capacity, Device device))                                      \
  X(DeviceGetAttribute, (int *value, DeviceAttribute attribute, Device device))                    \
  X(DevicePrimaryCtxRetain, (Context * context, Device device))                                    \
  X(DevicePrimaryCtxRelease, (Device device))                                                      \
  X(CtxGetCurrent, (Context * context))                                                            \
  X(CtxGetDevice, (Device * device))                                                               \
  X(CtxPushCurrent, (Context context))                                                             \
  X(CtxPopCurrent, (Context * context))                                                            \
  X(ModuleLoadDataEx,                                                                              \
    (Module * module, const void *image, unsigned numOptions, JitOption *options, void **values))  \
  X(ModuleUnload, (Module module))                                                                 \
  X(ModuleGetFunction, (Function * function, Module module, const char *name))                     \
  X(FuncGetAttribute, (int *value, FunctionAttribute attribute, Function function))                \
  X(FuncSetAttribute, (Function function, FunctionAttribute attribute, int value))                 \
  X(TensorMapEncodeTiled,                                                                          \
    (TensorMapObject * map, TensorMapType type, uint32_t rank, void *address,                      \
     const uint64_t *sizes, const uint64_t *strides, const uint32_t *box,                          \
     const uint32_t *elementStrides, TensorMapInterleave interleave, TensorMapSwizzle swizzle,     \
     TensorMapPromotion promotion, TensorMapFill fill))                                            \
  X(LaunchKernelEx,                                                                                \
    (const LaunchConfig *config, Function function, void **parameters, void **extra))              \
  X(PointerGetAttributes,                                                                          \
    (unsigned count, PointerAttribute *attributes, void **values, Pointer pointer))                \
  X(StreamIsCapturing, (Stream stream, CaptureStatus * status))                                    \
  X(StreamSynchronize, (Stream stream))                                                            \
  X(EventCreate, (Event * event, unsigned flags))                                                  \
  X(EventDestroy, (Event event))                                                                   \
  X(EventRecord, (Event event, Stream stream))                                                     \
  X(EventSynchronize, (Event event))                                                               \
  X(EventQuery, (Event event))                                                                     \
  X(EventElapsedTime, (float *milliseconds, Event start, Event end))                               \
  X(MemAlloc, (Pointer * pointer, size_t bytes))                                                   \
  X(MemFree, (Pointer pointer))                                                                    \
  X(MemcpyHtoDAsync, (Pointer to, const void *from, size_t bytes, Stream stream))                  \
  X(MemcpyDtoHAsync, (void *to, Pointer from, size_t bytes, Stream stream))                        \
  X(MemsetD8Async, (Pointer to, unsigned char value, size_t bytes, Stream stream))

/// X as above: functions of virtual memory, that a driver may lack.
#define ATTN_CUDA_MEMORY_FUNCTIONS(X)                                                              \
  X(MemGetAllocationGranularity,                                                                   \
    (size_t *bytes, const AllocationProperties *properties, Granularity option))                   \
  X(MemAddressReserve, (Pointer * pointer, size_t bytes, size_t alignment, Pointer address,        \
                        unsigned long long flags))                                                 \
  X(MemAddressFree, (Pointer pointer, size_t bytes))                                               \
  X(MemCreate, (MemoryHandle * handle, size_t bytes, const AllocationProperties *properties,       \
                unsigned long long flags))                                                         \
  X(MemRelease, (MemoryHandle handle))                                                             \
  X(MemMap,                                                                                        \
    (Pointer pointer, size_t bytes, size_t offset, MemoryHandle handle, unsigned long long flags)) \
  X(MemUnmap, (Pointer pointer, size_t bytes))                                                     \
  X(MemSetAccess,                                                                                  \
    (Pointer pointer, size_t bytes, const AccessDescription *description, size_t count))

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define ATTN_DECLARE(name, parameters) Code(*name) parameters = nullptr;
  ATTN_CUDA_FUNCTIONS(ATTN_DECLARE)
  ATTN_CUDA_MEMORY_FUNCTIONS(ATTN_DECLARE)
#undef ATTN_DECLARE
  /// Loads a function's code now rather than at its first launch, where a graph capture could not
  /// wait for it. Null before CUDA 12.4.
  Code (*FuncLoad)(Function function) = nullptr;
  /// Memory in the order of a stream: for scratch only, so that a driver without can run the rest.
  Code (*MemAllocAsync)(Pointer *pointer, size_t bytes, Stream stream) = nullptr;
  Code (*MemFreeAsync)(Pointer pointer, Stream stream) = nullptr;
};

} // namespace attn::cuda

#endif // ATTN_LIB_RUNTIME_CUDATYPES_H
