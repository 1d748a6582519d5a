//===- Runtime.h - load and launch compiled kernels -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The half of attn that a program needs at run time. It links no compiler, and a program that uses
// it starts on machines without a GPU: the driver (libcuda.so.1) is opened by the first call.
//
//   attn::Result<attn::Kernel> kernel = attn::Kernel::load(image);
//   if (!kernel)
//     report(kernel.getStatus().str());
//   attn::Status status = kernel->launch({query, key, value, output}, stream);
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_H
#define ATTN_RUNTIME_H

#include "attn/Status.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

//===----------------------------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------------------------===//

struct DeviceInfo {
  /// As the driver numbers it, after CUDA_VISIBLE_DEVICES.
  int ordinal = 0;
  std::string name;
  /// Compute capability.
  int major = 0, minor = 0;
  int multiprocessors = 0;
  /// GB that its memory moves in a second at most, 10^9 bytes each; 0 where the driver does not
  /// say.
  int memoryRate = 0;
  /// Shared memory that one block can ask for, in bytes, static and dynamic together.
  int64_t sharedBytesPerBlock = 0;
  /// The CUDA version that the driver implements: 1000 * major + 10 * minor, 12040 for 12.4.
  int driverVersion = 0;
};

/// The GPUs of this machine. Errors: NoDriver, NoDevice, DriverTooOld.
Result<std::vector<DeviceInfo>> getDevices();

//===----------------------------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------------------------===//

enum class DataType : uint8_t { F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I32, I64 };

/// "f16", "bf16"…: the name of the type in the compiler's IR.
const char *getName(DataType type);
/// Bytes of one element; an I1 occupies one.
int64_t getByteSize(DataType type);

/// A tensor in device memory that somebody else owns: the fields of a DLTensor.
struct TensorView {
  /// Address of the element with all indices 0, so a DLTensor's byte_offset is already added.
  void *data = nullptr;
  DataType type = DataType::F32;
  /// Number of dimensions, at most 8.
  int32_t rank = 0;
  /// `rank` extents, in elements.
  const int64_t *shape = nullptr;
  /// `rank` distances between neighbours, in elements; null for row-major.
  const int64_t *strides = nullptr;
};

/// An argument of the function that was compiled, in its order: its operands first, its results
/// after them. Converts from a tensor, an integer or a floating-point number.
class LaunchArgument {
public:
  enum class Kind : uint8_t { Tensor, Integer, Real };

  LaunchArgument(const TensorView &tensor) : kind(Kind::Tensor), tensor(tensor) {}
  LaunchArgument(int value) : kind(Kind::Integer), integer(value) {}
  LaunchArgument(int64_t value) : kind(Kind::Integer), integer(value) {}
  LaunchArgument(float value) : kind(Kind::Real), real(value) {}
  LaunchArgument(double value) : kind(Kind::Real), real(value) {}

  Kind getKind() const { return kind; }
  /// Only for the kind in question.
  const TensorView &getTensor() const { return tensor; }
  int64_t getInteger() const { return integer; }
  double getReal() const { return real; }

private:
  Kind kind;
  union {
    TensorView tensor;
    int64_t integer;
    double real;
  };
};

/// A list of launch arguments, also braced: kernel.launch({q, k, v, o}, stream).
class LaunchArguments {
public:
  LaunchArguments(std::span<const LaunchArgument> arguments)
      : first(arguments.data()), count(arguments.size()) {}
  LaunchArguments(const std::vector<LaunchArgument> &arguments)
      : first(arguments.data()), count(arguments.size()) {}
  LaunchArguments(std::initializer_list<LaunchArgument> arguments)
      : first(arguments.begin()), count(arguments.size()) {}

  const LaunchArgument &operator[](size_t index) const { return first[index]; }
  size_t size() const { return count; }

private:
  const LaunchArgument *first;
  size_t count;
};

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

/// The output of the compiler, which the cache keeps.
struct KernelImage {
  /// Empty for the CPU.
  std::string ptx;
  /// JSON: what calls have to look like, and what every kernel of the PTX is given at a launch.
  std::string plan;
  /// For a GPU an optional cubin of the same PTX, tried first: it saves the driver 0.1 to 0.3 s.
  /// For the CPU an object file.
  std::string machineCode;

  bool operator==(const KernelImage &) const = default;
};

/// One kernel of an image, as the driver made it.
struct KernelInfo {
  std::string name;
  /// Registers of one thread.
  int registers = 0;
  /// Bytes of one thread's stack and spills; more than 0 in an inner loop is slow.
  int64_t localBytes = 0;
  /// Bytes of one block.
  int64_t staticSharedBytes = 0, dynamicSharedBytes = 0;
  /// Bytes of one thread; -1 when the driver took the code from its own cache and did not say.
  int64_t spillStoreBytes = -1, spillLoadBytes = -1;
};

/// A way of running a function, that some of its calls take.
struct WayInfo {
  /// Empty: the way of the calls that no other is for.
  std::string name;
  /// Whether its kernels are on the device.
  bool isReady = false;
};

struct LoadOptions {
  /// -1: the device of the calling thread's current context, or device 0 if it has none.
  int device = -1;
};

/// Device memory of the caller for what kernels of one launch leave for each other. It lies at a
/// multiple of 256 bytes, may hold anything, and is the launch's until the stream has passed.
struct Workspace {
  void *data = nullptr;
  size_t bytes = 0;
  /// Whether an earlier launch of the same kernel, with arguments of the same shapes, has left
  /// there what follows from lengths, masks and the tensors that masks read: lists of tiles, and
  /// parts of keys. Then the kernels that compute it are not launched, as in all layers of a model
  /// but the first. Where lengths or tensors have changed since, results are wrong, and no access
  /// is.
  bool isPlanned = false;
};

/// A compiled function loaded onto one device. Its destruction unloads the code, so the launches
/// must have ended by then. After a move there is nothing left to call but the destructor.
class Kernel {
public:
  /// Loads onto one device. Assembling PTX takes the driver 0.1 to 0.3 s the first time.
  ///
  /// Errors: NoDriver, NoDevice, UnsupportedDevice, DriverTooOld (also without cuMemAllocAsync for
  /// a plan with scratch), InvalidKernel (with an excerpt of the assembler's log), ResourceLimit,
  /// OutOfMemory.
  static Result<Kernel> load(const KernelImage &image, const LoadOptions &options = {});

  Kernel(Kernel &&) noexcept;
  Kernel &operator=(Kernel &&) noexcept;
  ~Kernel();

  /// Starts the kernels on `stream` (a CUstream or cudaStream_t of the kernel's device; null is the
  /// legacy default stream) and returns. Synchronises nothing and reads nothing back, so that a
  /// graph can capture it; arguments are copied, the memory that tensors point to must stay until
  /// the stream has passed. From any number of threads at once.
  ///
  /// Allocates no memory, but for kernels that hand results to each other (keys split over blocks):
  /// these take scratch memory from the stream's allocator (cuMemAllocAsync) and free it
  /// after the last kernel, also after an error. Both calls wait for nothing and are captured like
  /// kernels. With a workspace, scratch lies there, and nothing is allocated.
  ///
  /// A problem with nothing to compute (no batches, heads or rows) starts and allocates nothing.
  ///
  /// A kernel of a function whose ways are compiled when calls take them may have to compile: a
  /// call that is captured does not, and is an error until the call's way is ready (prepare).
  ///
  /// Errors: CaptureInProgress, InvalidArgument (memory of the host or of another GPU, too; a
  /// workspace that is too small), ResourceLimit (a grid too large), OutOfMemory (no room for
  /// scratch; the message says how many bytes), DriverFailure.
  Status launch(LaunchArguments arguments, void *stream, Workspace workspace = {}) const;

  /// The bytes of workspace that a launch with these arguments takes; 0 for most functions. Makes
  /// the way of such calls ready.
  Result<size_t> getWorkspaceBytes(LaunchArguments arguments) const;

  /// Makes the way ready that calls with arguments of these shapes take, or all ways without
  /// arguments. No memory is touched, so that addresses may be null.
  Status prepare(LaunchArguments arguments) const;
  Status prepare() const;
  /// The name of the way that calls with arguments of these shapes take; empty: that of all others.
  Result<std::string> chooseWay(LaunchArguments arguments) const;
  std::vector<WayInfo> getWays() const;

  const DeviceInfo &getDevice() const;
  /// Of the ways that are ready, in launch order.
  std::vector<KernelInfo> getKernels() const;
  /// The assembler's remarks that cost speed, such as C7510 (wgmma serialised). Empty when the
  /// driver took the code from its own cache.
  std::vector<std::string> getWarnings() const;

private:
  friend struct KernelLoader;
  struct State;
  explicit Kernel(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

//===----------------------------------------------------------------------------------------===//
// The kernel cache
//===----------------------------------------------------------------------------------------===//

/// Where compiled code is kept between runs.
struct CacheOptions {
  /// Whether to keep code on disk; that of this process is kept in memory either way.
  bool onDisk = true;
  /// Empty for $XDG_CACHE_HOME/attn, or ~/.cache/attn when that is not set. A directory that every
  /// user may write to is refused: a kernel is code.
  std::string directory;
  /// The least recently used entries leave the directory when it holds more, in bytes.
  uint64_t maxBytes = uint64_t(1) << 30;
  /// The longest that a process waits, in seconds, for another one that compiles the same. Then it
  /// compiles too: the other one may have been stopped.
  double maxWaitSeconds = 10;
  /// Told once about each reason why the disk is not used, such as a directory that cannot be
  /// written to. Never an error: what is not cached is compiled. From any thread, one at a time.
  std::function<void(std::string_view)> remark;
};

} // namespace attn

#endif // ATTN_RUNTIME_H
