//===- Scratch.h - what kernels of one launch leave for later ones ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_SCRATCH_H
#define ATTN_LIB_RUNTIME_SCRATCH_H

#include "attn/Runtime.h"
#include "lib/Plan/KernelPlan.h"
#include "lib/Runtime/Driver.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace attn {

/// The scratch of all kernels of a plan, made ready to be evaluated.
class ScratchRecipe {
public:
  /// A plan that no launch could follow is an InvalidKernel.
  static Result<ScratchRecipe> create(llvm::ArrayRef<KernelPlan> plans);

  bool empty() const { return tensors.empty(); }
  size_t size() const { return tensors.size(); }
  /// The number of the first; as many arguments has a call.
  size_t getFirstArgument() const { return first; }
  /// Decides what the device decides. Once, before the first launch.
  void bind(const DeviceInfo &device);
  /// Ok when the driver can allocate in the order of a stream, or need not.
  Status checkDriver(const Driver &driver) const;

private:
  friend class Scratch;
  friend struct ScratchLayout;
  struct Tensor {
    DataType type;
    std::vector<SizeFactor> shape;
    bool isZero;
  };
  size_t first = 0;
  /// In the order of their numbers.
  std::vector<Tensor> tensors;
};

/// Where the scratch of a call lies, from the start of one piece of memory; what starts as zeros
/// comes first.
struct ScratchLayout {
  /// For the arguments of a call, without scratch.
  Status compute(const ScratchRecipe &recipe, LaunchArguments arguments);

  /// The shapes, one after the other.
  llvm::SmallVector<int64_t, 16> extents;
  llvm::SmallVector<int64_t, 4> offsets;
  int64_t bytes = 0, zeroBytes = 0;
};

/// The scratch of one launch: one piece of memory in the order of a stream. It becomes valid, and
/// free for others again, where the stream is at the calls; nothing waits, and a graph captures it.
class Scratch {
public:
  Scratch(const Driver &driver, cuda::Stream stream) : driver(driver), stream(stream) {}
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  /// Frees what release() did not.
  ~Scratch() { (void)release(); }

  /// Makes the tensors for the arguments of a call and appends them to these. They refer to this
  /// object. They lie in the workspace if there is one; else they are allocated. Scratch without
  /// elements has no memory.
  Status allocate(const ScratchRecipe &recipe, llvm::SmallVectorImpl<LaunchArgument> &arguments,
                  Workspace workspace);
  /// Gives the memory back after all work that is on the stream now.
  Status release();

private:
  Status acquire(Workspace workspace);

  const Driver &driver;
  cuda::Stream stream;
  cuda::Pointer memory = 0;
  bool isOwned = false;
  ScratchLayout layout;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_SCRATCH_H
