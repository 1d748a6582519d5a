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
        if (factor.divisor == 0 || factor.argument >= int64_t(recipe.first))
          return fail("expected sizes of scratch from arguments below " +
                      std::to_string(recipe.first) + " and divisors of at least 1, got argument " +
                      std::to_string(factor.argument) + " and divisor " +
                      std::to_string(factor.divisor));
      recipe.tensors.push_back({*type, scratch.shape});
    }
  return recipe;
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

Status Scratch::allocate(const ScratchRecipe &recipe,
                         llvm::SmallVectorImpl<LaunchArgument> &arguments) {
  std::span<const LaunchArgument> given(arguments.data(), arguments.size());
  /// What vector accesses and tensor maps ask for, and more.
  constexpr int64_t alignment = 256;
  int64_t bytes = 0;
  llvm::SmallVector<int64_t, 4> offsets;
  for (const ScratchRecipe::Tensor &tensor : recipe.tensors) {
    offsets.push_back(bytes);
    int64_t size = getByteSize(tensor.type);
    bool overflows = false, isEmpty = false;
    for (const SizeFactor &factor : tensor.shape) {
      std::optional<int64_t> extent = evaluate(factor, given);
      if (!extent)
        return explainNoTensor(factor.argument, factor.dim, given);
      extents.push_back(*extent);
      overflows |= __builtin_mul_overflow(size, *extent, &size);
      isEmpty |= *extent == 0;
    }
    if (isEmpty)
      continue;
    if (overflows || size > std::numeric_limits<int64_t>::max() - bytes - alignment)
      return {StatusCode::OutOfMemory, "expected scratch memory whose bytes fit 63 bits, got more",
              hint};
    bytes += (size + alignment - 1) / alignment * alignment;
  }

  if (bytes > 0) {
    cuda::Code code = driver.MemAllocAsync(&memory, static_cast<size_t>(bytes), stream);
    if (code != cuda::Success) {
      memory = 0;
      Status status =
          driver.check(code, "allocate " + std::to_string(bytes) + " bytes of scratch memory");
      if (code == cuda::OutOfMemory || code == cuda::NotSupported)
        status.hint += (status.hint.empty() ? "" : ", or ") + std::string(hint);
      return status;
    }
  }
  const int64_t *shape = extents.data();
  for (auto [tensor, offset] : llvm::zip_equal(recipe.tensors, offsets)) {
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
  if (!memory)
    return {};
  cuda::Code code = driver.MemFreeAsync(memory, stream);
  memory = 0;
  return driver.check(code, "free scratch memory");
}

} // namespace attn
