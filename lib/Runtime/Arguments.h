//===- Arguments.h - what plans ask of the arguments of a call --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_ARGUMENTS_H
#define ATTN_LIB_RUNTIME_ARGUMENTS_H

#include "attn/Runtime.h"
#include "lib/Plan/KernelPlan.h"
#include <algorithm>
#include <optional>

namespace attn {

/// "a tensor", "an integer"…
const char *describe(LaunchArgument::Kind kind);

// A launch asks dozens of these questions. A Status takes longer to make and destroy than most of
// the answers, so there is one only where there is something to say.

/// The tensor that an argument is; null for a number. `argument` < arguments.size().
inline const TensorView *findTensor(unsigned argument, LaunchArguments arguments) {
  const LaunchArgument &value = arguments[argument];
  return value.getKind() == LaunchArgument::Kind::Tensor ? &value.getTensor() : nullptr;
}
/// The same, null too when it has not the dimension.
inline const TensorView *findTensor(unsigned argument, unsigned dim, LaunchArguments arguments) {
  const TensorView *tensor = findTensor(argument, arguments);
  return tensor && dim < static_cast<unsigned>(tensor->rank) ? tensor : nullptr;
}
/// The InvalidArgument when there is no such tensor.
Status explainNoTensor(unsigned argument, LaunchArguments arguments);
Status explainNoTensor(unsigned argument, unsigned dim, LaunchArguments arguments);
Status explainNoTensor(const SizeFactor &factor, LaunchArguments arguments);
/// One more than the highest argument that a factor reads.
unsigned countArguments(const SizeFactor &factor);

/// The multiprocessors that have blocks.
inline unsigned countTaken(const SizeFactor &factor, int multiprocessors) {
  return static_cast<unsigned>(
      std::max<int64_t>(int64_t(multiprocessors) - int64_t(factor.less), 1));
}

/// Makes a constant of what the device decides.
inline void bindDevice(SizeFactor &factor, const DeviceInfo &device) {
  if (factor.argument == SizeFactor::kMultiprocessors)
    factor = {SizeFactor::kConstant, factor.dim * countTaken(factor, device.multiprocessors), 1};
  if (factor.argument == SizeFactor::kMemoryRate)
    factor = {SizeFactor::kConstant, static_cast<unsigned>(device.memoryRate), 1};
  if (factor.isCounted())
    factor.divisor = static_cast<unsigned>(device.multiprocessors);
}

std::optional<int64_t> evaluateParts(const SizeFactor &factor, LaunchArguments arguments);

/// The value of a bound factor for these arguments; nothing without its tensor (explainNoTensor).
inline std::optional<int64_t> evaluate(const SizeFactor &factor, LaunchArguments arguments) {
  if (factor.isCounted())
    return evaluateParts(factor, arguments);
  if (factor.argument < 0)
    return factor.dim;
  const TensorView *tensor = findTensor(factor.argument, factor.dim, arguments);
  if (!tensor)
    return std::nullopt;
  int64_t size = (tensor->shape[factor.dim] - int64_t(factor.less)) * factor.multiplier;
  return (size / factor.divisor + (size % factor.divisor != 0)) * factor.unit;
}

} // namespace attn

#endif // ATTN_LIB_RUNTIME_ARGUMENTS_H
