//===- Arguments.cpp - what plans ask of the arguments of a call ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Arguments.h"

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

} // namespace attn
