//===- AttnArguments.h - facts about a function's arguments -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNARGUMENTS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNARGUMENTS_H

#include "llvm/ADT/StringRef.h"

namespace attn {

/// A unit attribute of a tensor that is only read element by element: its last dimension may have
/// any stride too, like those before it. The CPU's compiler finds such arguments by itself. On a
/// GPU a stride that is known makes addresses cheaper, so there it is for the source to say.
inline constexpr llvm::StringLiteral kStridedAttrName = "attn.strided";

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNARGUMENTS_H
