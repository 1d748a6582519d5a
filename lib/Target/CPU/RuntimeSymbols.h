//===- RuntimeSymbols.h - what generated code calls by name -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_RUNTIMESYMBOLS_H
#define ATTN_LIB_TARGET_CPU_RUNTIMESYMBOLS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <utility>

namespace attn {

/// Names and addresses that every compiled module can call. Others, such as expf, are found in the
/// process.
llvm::ArrayRef<std::pair<llvm::StringRef, void *>> getRuntimeSymbols();

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_RUNTIMESYMBOLS_H
