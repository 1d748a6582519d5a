//===- Guarded.h - LLVM's ways of saying no, as errors ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_GUARDED_H
#define ATTN_LIB_SUPPORT_GUARDED_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Runs `body`, turning a fatal error or a crash inside LLVM into an error that says what it was to
/// do, "optimise" or "compile". Memory that `body` allocated is lost then: a leak is better than a
/// dead process. From any number of threads at once.
llvm::Error runGuarded(llvm::StringRef stage, llvm::function_ref<void()> body);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_GUARDED_H
