//===- Passes.h - from the grid of room 3 to programs of blocks --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_PASSES_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/AttnToTile/Passes.h.inc"
} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_PASSES_H
