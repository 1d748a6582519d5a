//===- Passes.h - the doors as a pass ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ROOMS_PASSES_H
#define ATTN_LIB_ROOMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Rooms/Passes.h.inc"
} // namespace attn

#endif // ATTN_LIB_ROOMS_PASSES_H
