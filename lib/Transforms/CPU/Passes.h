//===- Passes.h - passes of the CPU's way down --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_CPU_PASSES_H
#define ATTN_LIB_TRANSFORMS_CPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_CPU_PASSES_H
