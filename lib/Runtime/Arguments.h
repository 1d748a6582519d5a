//===- Arguments.h - what plans ask of the arguments of a call --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_RUNTIME_ARGUMENTS_H
#define ATTN_RUNTIME_ARGUMENTS_H

#include "attn/Runtime.h"
#include "lib/Target/PTX/KernelPlan.h"

namespace attn {

/// "a tensor", "an integer"…
const char *describe(LaunchArgument::Kind kind);

/// The tensor that an argument is, or an InvalidArgument. `argument` < arguments.size().
Status getTensor(unsigned argument, LaunchArguments arguments, const TensorView *&tensor);
/// The same, and it has the dimension.
Status getDimension(unsigned argument, unsigned dim, LaunchArguments arguments,
                    const TensorView *&tensor);

/// The value of a factor for these arguments.
Status evaluate(const SizeFactor &factor, LaunchArguments arguments, int64_t &value);

} // namespace attn

#endif // ATTN_RUNTIME_ARGUMENTS_H
