//===- LastStatus.h - what the last call of a thread says ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_LASTSTATUS_H
#define ATTN_LIB_CAPI_LASTSTATUS_H

#include "attn-c/attn.h"
#include "attn/Runtime.h"
#include "llvm/ADT/Twine.h"

namespace attn {

/// The code of a status, which attn_last_message and attn_last_hint tell from now on if it is an
/// error.
attn_code finish(Status status);
/// An invalid argument.
attn_code fail(const llvm::Twine &message, const llvm::Twine &hint = "");
attn_code failNull(llvm::StringRef name);

} // namespace attn

#endif // ATTN_LIB_CAPI_LASTSTATUS_H
