//===- KeptKeys.h - what is known of the keys that a step does not drop ---------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_KEPTKEYS_H
#define ATTN_LIB_TRANSFORMS_ATTN_KEPTKEYS_H

#include "llvm/ADT/StringRef.h"

namespace attn {

/// On a step with a mask: some row of its batch and head keeps each key of its slice, each up to
/// its slice's end, or each there is if there are as many rows as keys. Without it, its mask may
/// drop any of them in all rows.
inline constexpr llvm::StringLiteral kKeptKeysAttrName = "attn.kept_keys";
inline constexpr llvm::StringLiteral kKeepsSlice = "slice", kKeepsPrefix = "prefix",
                                     kKeepsDiagonal = "diagonal";

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_KEPTKEYS_H
