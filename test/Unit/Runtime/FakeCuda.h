//===- FakeCuda.h - what tests see of the fake driver -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_RUNTIME_FAKECUDA_H
#define ATTN_TEST_UNIT_RUNTIME_FAKECUDA_H

#include "lib/Runtime/CudaTypes.h"
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace attn {

/// The state of the fake driver: what it answers, and what it was asked. One per process; the
/// library exports `FakeCuda *getFakeCuda()`.
struct FakeCuda {
  //===- What it answers --------------------------------------------------------------------===//
  int version = 13000;
  int deviceCount = 1;
  int major = 9, minor = 0;
  int sharedPerBlock = 232448;
  /// kHz, and bits: an H200's.
  int memoryClock = 3201000, memoryBus = 6144;
  int maxThreads = 1024, registers = 168, localBytes = 0, sharedBytes = 512;
  /// Functions that cuGetProcAddress does not know.
  std::set<std::string> missing;
  /// The code that the function named returns, for those not named Success.
  std::string failing;
  cuda::Code failure = cuda::Success;
  /// Copied into the buffers of cuModuleLoadDataEx.
  std::string infoLog, errorLog;
  /// Whether images that are not PTX text load.
  bool acceptsCubin = true;
  /// Whether cuModuleLoadDataEx knows JitSplitCompile.
  bool splitsCompilation = true;
  cuda::CaptureStatus capture = cuda::CaptureNone;
  /// Addresses of memory that is not the device's.
  cuda::Pointer hostAddress = 0, otherDeviceAddress = 0;
  bool hasVirtualMemory = true;
  /// How many pieces of memory there are to map.
  int pieces = 1 << 20;
  /// Whether streams have not passed the events yet.
  bool isBusy = false;
  /// What the next timing says, in milliseconds.
  float elapsedMs = 2;

  //===- What it was asked ------------------------------------------------------------------===//
  struct Launch {
    cuda::LaunchConfig config;
    std::vector<unsigned> cluster;
    bool isProgrammatic = false;
    std::vector<std::string> parameters;
  };
  struct Fill {
    cuda::Pointer to;
    size_t bytes;
    cuda::Stream stream;
  };
  struct Encoding {
    cuda::TensorMapType type;
    void *address;
    std::vector<uint64_t> sizes, strides;
    std::vector<uint32_t> box;
    cuda::TensorMapSwizzle swizzle;
  };
  /// Bytes of each kernel parameter, to copy them at a launch.
  std::vector<size_t> parameterSizes;
  /// Threads of each cuModuleLoadDataEx of PTX, 1 where it was not told.
  std::vector<size_t> assemblerThreads;
  /// Off for measurements.
  bool records = true;
  std::vector<Launch> launches;
  std::vector<Encoding> encodings;
  std::vector<Fill> fills;
  std::vector<std::string> calls;
  int maxDynamicShared = -1;
  std::atomic<uint64_t> numLaunches{0}, numEncodings{0};
  int retained = 0, modules = 0, allocations = 0, events = 0;
  /// What cuMemAlloc gave out.
  std::set<cuda::Pointer> memory;
  /// Of the last cuMemAllocAsync, which always answers the same address.
  static constexpr cuda::Pointer scratchAddress = 0x7000000;
  /// Pieces of memory, and the addresses that they stand at. All are of one size.
  static constexpr size_t pieceBytes = 2 << 20;
  static constexpr cuda::Pointer reservedAddress = uint64_t(1) << 40;
  size_t reservedBytes = 0;
  std::map<cuda::MemoryHandle, int> handles;
  std::map<cuda::Pointer, cuda::MemoryHandle> mapped;
  std::set<cuda::Pointer> accessible;
  size_t scratchBytes = 0;
  cuda::Stream scratchStream = nullptr;
};

} // namespace attn

#endif // ATTN_TEST_UNIT_RUNTIME_FAKECUDA_H
