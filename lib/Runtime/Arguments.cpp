//===- Arguments.cpp - what plans ask of the arguments of a call ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Arguments.h"

namespace attn {

static Status makeInvalid(std::string message) {
  return {StatusCode::InvalidArgument, std::move(message), ""};
}

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

Status getTensor(unsigned argument, LaunchArguments arguments, const TensorView *&tensor) {
  const LaunchArgument &value = arguments[argument];
  if (value.getKind() != LaunchArgument::Kind::Tensor)
    return makeInvalid("expected argument " + std::to_string(argument) + " to be a tensor, got " +
                       describe(value.getKind()));
  tensor = &value.getTensor();
  return {};
}

Status getDimension(unsigned argument, unsigned dim, LaunchArguments arguments,
                    const TensorView *&tensor) {
  if (Status status = getTensor(argument, arguments, tensor); !status.ok())
    return status;
  if (dim < static_cast<unsigned>(tensor->rank))
    return {};
  return makeInvalid("expected argument " + std::to_string(argument) + " of at least " +
                     std::to_string(dim + 1) + " dimensions, got " + std::to_string(tensor->rank));
}

Status evaluate(const SizeFactor &factor, LaunchArguments arguments, int64_t &value) {
  value = factor.dim;
  if (factor.argument < 0)
    return {};
  const TensorView *tensor = nullptr;
  if (Status status = getDimension(factor.argument, factor.dim, arguments, tensor); !status.ok())
    return status;
  int64_t size = tensor->shape[factor.dim];
  value = size / factor.divisor + (size % factor.divisor != 0);
  return {};
}

} // namespace attn
