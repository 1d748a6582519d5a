//===- KernelLoader.h - loading with a plan that has been read --------------------------===//
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

/// Kernel::load for who has read the image's plan.
struct KernelLoader {
  static Result<Kernel> load(const KernelImage &image, const FunctionPlan &plan,
                             const LoadOptions &options);

private:
  /// Finds the functions of all ways, whose kernels are `plans` in order.
  static Status prepare(Kernel::State &state, llvm::ArrayRef<KernelPlan> plans);
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_KERNELLOADER_H
