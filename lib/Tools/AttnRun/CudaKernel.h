//===- CudaKernel.h - a kernel on an NVIDIA GPU ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_CUDAKERNEL_H
#define ATTN_LIB_TOOLS_ATTNRUN_CUDAKERNEL_H

#include "lib/Runtime/DeviceBuffer.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "lib/Tools/AttnRun/Binding.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// A function compiled for the GPU, and its arguments on it.
class CudaKernel {
public:
  /// Compiles what a call with such extents takes of the function that the options name, lowering
  /// the module in place, and loads it.
  static llvm::Expected<std::unique_ptr<CudaKernel>>
  compile(mlir::ModuleOp module, const CUDAOptions &options, const Binding &binding);

  /// Copies the arguments there; outputs too, whose poison must be overwritten.
  llvm::Error upload(llvm::ArrayRef<ArgumentValue> inputs, llvm::ArrayRef<Array> outputs);
  /// Runs once and copies the outputs back.
  llvm::Error run(llvm::MutableArrayRef<Array> outputs);
  /// Milliseconds of each of many back-to-back launches, by the GPU's clock.
  llvm::Expected<std::vector<double>> measure(double milliseconds);
  /// Microseconds of the host for one launch, and of the driver alone for the same kernels with the
  /// same parameters (none when there is scratch): medians of batches that the GPU's queue can
  /// hold.
  struct HostTimes {
    double launch = 0;
    std::optional<double> driver;
  };
  llvm::Expected<HostTimes> measureHost();

  /// "cuda NVIDIA H200, 168 registers, 163912 bytes of shared memory".
  std::string describe() const;
  double passesMs = 0, ptxMs = 0, loadMs = 0;

private:
  CudaKernel(DeviceContext context, Kernel kernel)
      : context(std::move(context)), kernel(std::move(kernel)) {}

  DeviceContext context;
  Kernel kernel;
  /// The image that the kernel was loaded from.
  KernelImage image;
  std::vector<KernelPlan> plans;
  std::vector<LaunchArgument> arguments;
  std::vector<std::unique_ptr<DeviceBuffer>> buffers;
  size_t numInputs = 0;
  /// Shapes and strides that the arguments point to.
  std::vector<llvm::SmallVector<int64_t, 8>> extents;
};

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_CUDAKERNEL_H
