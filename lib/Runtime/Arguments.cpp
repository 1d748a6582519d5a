//===- Arguments.cpp - what plans ask of the arguments of a call ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Arguments.h"
#include <algorithm>

namespace attn {

const char *describe(LaunchArgument::Kind kind) {
  switch (kind) {
  case LaunchArgument::Kind::Tensor:
    return "a tensor";
  case LaunchArgument::Kind::Integer:
    return "an integer";
  case LaunchArgument::Kind::Real:
    return "a floating-point number";
  }
  return "";
}

Status explainNoTensor(unsigned argument, LaunchArguments arguments) {
  return Status::aboutArgument(argument, "expected ",
                               std::string(" to be a tensor, got ") +
                                   describe(arguments[argument].getKind()));
}

Status explainNoTensor(unsigned argument, unsigned dim, LaunchArguments arguments) {
  const TensorView *tensor = findTensor(argument, arguments);
  if (!tensor)
    return explainNoTensor(argument, arguments);
  return Status::aboutArgument(argument, "expected ",
                               " of at least " + std::to_string(dim + 1) + " dimensions, got " +
                                   std::to_string(tensor->rank));
}

Status explainNoTensor(const SizeFactor &factor, LaunchArguments arguments) {
  for (const SizeFactor &inner : factor.of)
    if (inner.argument >= 0 && !findTensor(inner.argument, inner.dim, arguments))
      return explainNoTensor(inner, arguments);
  return explainNoTensor(static_cast<unsigned>(factor.argument), factor.dim, arguments);
}

std::optional<int64_t> evaluateParts(const SizeFactor &factor, LaunchArguments arguments) {
  int64_t blocks = 1, most = factor.dim, sequences = 0;
  for (size_t i = 0; i < factor.of.size(); ++i) {
    std::optional<int64_t> value = evaluate(factor.of[i], arguments);
    if (!value)
      return std::nullopt;
    if (i == 0)
      most = std::min(most, *value);
    else if (__builtin_mul_overflow(blocks, *value, &blocks))
      blocks = INT64_MAX;
    if (i == 1)
      sequences = *value;
  }
  return factor.argument == SizeFactor::kSlots ? countSlots(sequences, blocks, factor.divisor, most)
                                               : countParts(blocks, factor.divisor, most);
}

unsigned countArguments(const SizeFactor &factor) {
  unsigned count = static_cast<unsigned>(std::max(factor.argument, -1) + 1);
  for (const SizeFactor &inner : factor.of)
    count = std::max(count, countArguments(inner));
  return count;
}

} // namespace attn
