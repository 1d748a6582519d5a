//===- Launch.h - from arguments to a launch --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_LAUNCH_H
#define ATTN_LIB_RUNTIME_LAUNCH_H

#include "lib/Runtime/TensorMaps.h"
#include <vector>

namespace attn {

/// A kernel plan made ready to be evaluated: nothing in it is looked up by name any more, and
/// nothing is allocated when it runs.
class LaunchRecipe {
public:
  /// A plan that no launch could follow is an InvalidKernel.
  static Result<LaunchRecipe> create(const KernelPlan &plan);

  /// Decides what the device decides. Once, before the first launch.
  void bind(const DeviceInfo &device);

  /// One more than the highest argument that the plan mentions.
  size_t getNumArguments() const { return numArguments; }

  /// Drivers before CUDA 12.1 take no more than 4 KiB of parameters.
  static constexpr unsigned maxParameterBytes = 4096, maxParameters = 256;

  /// A request to the driver. Points into itself.
  struct Request {
    Request() = default;
    Request(const Request &) = delete;
    Request &operator=(const Request &) = delete;

    /// Without blocks when the grid is empty.
    cuda::LaunchConfig config;
    cuda::LaunchAttribute attributes[2];
    alignas(64) char storage[maxParameterBytes];
    void *parameters[maxParameters];
  };
  Status prepare(const Driver &driver, LaunchArguments arguments, cuda::Stream stream,
                 Request &request) const;
  /// Starts the kernel, or nothing when its grid is empty. The kernel's context is current.
  Status launch(const Driver &driver, cuda::Function function, Request &request) const;
  Status launch(const Driver &driver, cuda::Function function, LaunchArguments arguments,
                cuda::Stream stream) const {
    Request request;
    Status status = prepare(driver, arguments, stream, request);
    return status.ok() ? launch(driver, function, request) : status;
  }

private:
  enum class ValueType : uint8_t { I32, I64, F32 };

  /// How one kernel parameter is made.
  struct Parameter {
    KernelParameter::Kind kind;
    ValueType type = ValueType::I64;
    unsigned argument = 0, dim = 0;
    /// Index into `encoders`.
    unsigned encoder = 0;
    /// Where it lies in the parameter block, in bytes.
    unsigned offset = 0;
  };

  Status addParameter(const KernelParameter &parameter, unsigned &bytes);
  Status computeGrid(LaunchArguments arguments, std::array<unsigned, 3> &blocks) const;
  Status writeParameter(const Parameter &parameter, const Driver &driver, LaunchArguments arguments,
                        char *to) const;
  Status writeInteger(const Parameter &parameter, int64_t value, char *to) const;

  std::string name;
  size_t numArguments = 0;
  std::vector<Parameter> parameters;
  std::vector<TensorMapEncoder> encoders;
  std::array<std::vector<SizeFactor>, 3> grid;
  std::array<unsigned, 3> block = {}, cluster = {};
  unsigned sharedBytes = 0;
  bool isProgrammatic = false;
};

/// Ok when the memory of a tensor can be reached from a device: host memory that the driver does
/// not know, or another GPU's, would end the context. An address that was right is not asked about
/// again by the same thread, up to a few hundred of them.
Status checkMemory(const Driver &driver, const DeviceInfo &device, const TensorView &tensor,
                   size_t argument);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_LAUNCH_H
