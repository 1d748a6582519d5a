//===- Narrow.h - sums of positions and numbers of any size -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// A mask may compare positions with any number: a window of 2^63 - 1 keys is how some write that
// there is none. Sums of such a number and a position wrap, in 64 bits or, on GPUs, in 32. A number
// that is beyond all positions may be replaced by one just beyond them, which is small.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_NARROW_H
#define ATTN_LIB_ANALYSIS_MASKTILES_NARROW_H

#include "lib/Analysis/MaskTiles/Bound.h"

namespace attn {

/// A literal, `expr >= 0`, that is true for the same positions and that is not wide, or that
/// compares an element at the running position with the rest, which a search does at any size. Null
/// if there is none.
bound::Expr narrowLiteral(bound::ExprPool &pool, bound::Expr literal);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_NARROW_H
