//===- Scratch.cpp - what kernels of one launch leave for later ones --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Scratch.h"
#include "lib/Plan/DataTypes.h"
#include "lib/Runtime/Arguments.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

namespace attn {

static constexpr const char *hint = "compile with splits=1, which needs no scratch memory";

Result<ScratchRecipe> ScratchRecipe::create(llvm::ArrayRef<KernelPlan> plans) {
  ScratchRecipe recipe;
  for (const KernelPlan &plan : plans)
    for (const ScratchTensor &scratch : plan.scratch) {
      auto fail = [&](const std::string &message) {
        return Status{StatusCode::InvalidKernel,
                      message + " in the plan of kernel '" + plan.name + "'", ""};
      };
      if (recipe.empty())
        recipe.first = scratch.argument;
      size_t number = recipe.first + recipe.size();
      if (scratch.argument != number)
        return fail("expected scratch with the number " + std::to_string(number) + ", got " +
                    std::to_string(scratch.argument));
      std::optional<DataType> type = findDataType(scratch.elementType);
      if (!type)
        return fail("expected scratch of a type such as f32, got '" + scratch.elementType + "'");
      if (scratch.shape.empty() || scratch.shape.size() > 8)
        return fail("expected scratch of 1 to 8 dimensions, got " +
                    std::to_string(scratch.shape.size()));
      for (const SizeFactor &factor : scratch.shape)
        if (factor.divisor == 0 || countArguments(factor) > recipe.first)
          return fail("expected sizes of scratch from arguments below " +
                      std::to_string(recipe.first) + " and divisors of at least 1, got argument " +
                      std::to_string(factor.argument) + " and divisor " +
                      std::to_string(factor.divisor));
      recipe.tensors.push_back({*type, scratch.shape, scratch.isZero});
    }
  return recipe;
}

void ScratchRecipe::bind(const DeviceInfo &device) {
  for (Tensor &tensor : tensors)
    for (SizeFactor &factor : tensor.shape)
      bindDevice(factor, device);
}

Status ScratchRecipe::checkDriver(const Driver &driver) const {
  if (empty() || (driver.MemAllocAsync && driver.MemFreeAsync))
    return {};
  return {StatusCode::DriverTooOld,
          "expected a driver with cuMemAllocAsync and cuMemFreeAsync for the kernel's scratch "
          "memory, got one for CUDA " +
              formatCudaVersion(driver.version) + " without",
          std::string("update the NVIDIA driver, or ") + hint};
}

/// What vector accesses and tensor maps ask for, and more.
static constexpr int64_t alignment = 256;

Status ScratchLayout::compute(const ScratchRecipe &recipe, LaunchArguments arguments) {
  llvm::SmallVector<int64_t, 4> sizes;
  int64_t total = 0;
  for (const ScratchRecipe::Tensor &tensor : recipe.tensors) {
    int64_t size = getByteSize(tensor.type);
    bool overflows = false, isEmpty = false;
    for (const SizeFactor &factor : tensor.shape) {
      std::optional<int64_t> extent = evaluate(factor, arguments);
      if (!extent)
        return explainNoTensor(factor, arguments);
      extents.push_back(*extent);
      overflows |= __builtin_mul_overflow(size, *extent, &size);
      isEmpty |= *extent == 0;
    }
    if (!isEmpty && (overflows || size > std::numeric_limits<int64_t>::max() - total - alignment))
      return {StatusCode::OutOfMemory, "expected scratch memory whose bytes fit 63 bits, got more",
              hint};
    sizes.push_back(isEmpty ? 0 : (size + alignment - 1) / alignment * alignment);
    total += sizes.back();
  }
  offsets.resize(sizes.size());
  for (bool isZero : {true, false}) {
    for (auto [tensor, size, offset] : llvm::zip_equal(recipe.tensors, sizes, offsets))
      if (tensor.isZero == isZero) {
        offset = bytes;
        bytes += size;
      }
    zeroBytes = isZero ? bytes : zeroBytes;
  }
  return {};
}

/// The workspace is large enough and lies as scratch does.
static Status checkWorkspace(Workspace workspace, int64_t bytes) {
  if (workspace.bytes < static_cast<uint64_t>(bytes))
    return {StatusCode::InvalidArgument,
            "expected a workspace of at least " + std::to_string(bytes) + " bytes, got " +
                std::to_string(workspace.bytes),
            "ask getWorkspaceBytes for these arguments"};
  if (reinterpret_cast<uintptr_t>(workspace.data) % alignment != 0)
    return {StatusCode::InvalidArgument,
            "expected a workspace at a multiple of " + std::to_string(alignment) +
                " bytes, got one that is not",
            "align it, as cuMemAlloc does"};
  return {};
}

Status Scratch::acquire(Workspace workspace) {
  if (workspace.data) {
    memory = reinterpret_cast<cuda::Pointer>(workspace.data);
    return checkWorkspace(workspace, layout.bytes);
  }
  cuda::Code code = driver.MemAllocAsync(&memory, static_cast<size_t>(layout.bytes), stream);
  isOwned = code == cuda::Success;
  if (isOwned)
    return {};
  Status status =
      driver.check(code, "allocate " + std::to_string(layout.bytes) + " bytes of scratch memory");
  if (code == cuda::OutOfMemory || code == cuda::NotSupported)
    status.hint += (status.hint.empty() ? "" : ", or ") + std::string(hint);
  return status;
}

Status Scratch::allocate(const ScratchRecipe &recipe,
                         llvm::SmallVectorImpl<LaunchArgument> &arguments, Workspace workspace) {
  std::span<const LaunchArgument> given(arguments.data(), arguments.size());
  if (Status status = layout.compute(recipe, given); !status.ok())
    return status;
  if (layout.bytes > 0)
    if (Status status = acquire(workspace); !status.ok())
      return status;
  if (layout.zeroBytes > 0) {
    cuda::Code code =
        driver.MemsetD8Async(memory, 0, static_cast<size_t>(layout.zeroBytes), stream);
    if (code != cuda::Success)
      return driver.check(code, "fill scratch memory with zeros");
  }
  const int64_t *shape = layout.extents.data();
  for (auto [tensor, offset] : llvm::zip_equal(recipe.tensors, layout.offsets)) {
    TensorView view;
    view.data = memory ? reinterpret_cast<char *>(memory) + offset : nullptr;
    view.type = tensor.type;
    view.rank = static_cast<int32_t>(tensor.shape.size());
    view.shape = shape;
    shape += view.rank;
    arguments.push_back(view);
  }
  return {};
}

Status Scratch::release() {
  if (!isOwned)
    return {};
  isOwned = false;
  return driver.check(driver.MemFreeAsync(memory, stream), "free scratch memory");
}

} // namespace attn
