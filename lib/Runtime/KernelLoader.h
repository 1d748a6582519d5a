//===- KernelLoader.h - load images whose plan is parsed --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_KERNELLOADER_H
#define ATTN_LIB_RUNTIME_KERNELLOADER_H

#include "attn/Runtime.h"
#include "lib/Plan/Plan.h"
#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// The code of one way, as the compiler or the disk has it.
struct WayCode {
  std::shared_ptr<const KernelImage> image;
  std::vector<KernelPlan> kernels;
};
/// Makes the code of the way of a name, in the thread whose call first takes that way.
using WaySource = std::function<Result<WayCode>(const std::string &way)>;

/// Kernel::load for those who have the plan already, as the compiler does.
struct KernelLoader {
  /// All ways of the image.
  static Result<Kernel> load(const KernelImage &image, const FunctionPlan &plan,
                             const LoadOptions &options);
  /// None: calls load the ways that they take. The plan has ways, and rules.
  static Result<Kernel> open(const FunctionPlan &plan, const LoadOptions &options,
                             WaySource source);
  /// Makes the last way ready, which is for all calls that no other is for.
  static Status prepareLast(const Kernel &kernel);
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_KERNELLOADER_H
