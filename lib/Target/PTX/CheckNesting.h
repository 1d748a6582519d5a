//===- CheckNesting.h - plans that a parser may be given --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TARGET_PTX_CHECKNESTING_H
#define ATTN_TARGET_PTX_CHECKNESTING_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Whether a text nests no deeper than a plan does. The parser of JSON recurses: brackets by the
/// thousand would be the end of the stack.
llvm::Error checkNesting(llvm::StringRef json);

} // namespace attn

#endif // ATTN_TARGET_PTX_CHECKNESTING_H
