//===- Target.h - the machine that options mean -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_TARGET_H
#define ATTN_LIB_COMPILER_TARGET_H

#include "attn/Compiler.h"
#include "lib/Machine/Machine.h"

namespace attn {

/// That a named target is a machine of lib/Machine.
Status checkTargetName(const CompileOptions &options);

/// The machine of that name. Without a name, the one that the device is, or else the default.
const Machine &resolveMachine(const CompileOptions &options);

} // namespace attn

#endif // ATTN_LIB_COMPILER_TARGET_H
