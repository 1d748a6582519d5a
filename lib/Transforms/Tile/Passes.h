//===- Passes.h - passes of rooms 5 and 6 ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_PASSES_H
#define ATTN_LIB_TRANSFORMS_TILE_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attn::tile {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_PASSES_H
