//===- KVRanges.h - loops over ranges of key tiles --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_KVRANGES_H
#define ATTN_LIB_TRANSFORMS_ATTN_KVRANGES_H

#include "lib/Analysis/MaskTiles/MaskTiles.h"
#include "lib/Transforms/Attn/KVLoop.h"

namespace attn {

/// Emits the loops of a block over the tiles of `ranges` and lets them replace the results of `kv`.
/// With `certain`, `if begin < end` stands around them, and the first step inside is certain to
/// run.
void emitKVRanges(mlir::OpBuilder &builder, KVLoop kv, const MaskTiles::Ranges &ranges,
                  bool certain);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_KVRANGES_H
