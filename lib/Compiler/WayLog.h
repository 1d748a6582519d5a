//===- WayLog.h - who is told of ways that are compiled ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_COMPILER_WAYLOG_H
#define ATTN_LIB_COMPILER_WAYLOG_H

#include "llvm/ADT/StringRef.h"

namespace attn {

/// Tells the function of setLog, if there is one, that a way of a function was compiled, or loaded
/// from disk.
void logWay(llvm::StringRef function, llvm::StringRef way, bool isFromDisk, double milliseconds);
/// Tells it of a problem that was repaired on the way, such as a damaged file in the cache.
void logRemark(llvm::StringRef function, llvm::StringRef remark);

} // namespace attn

#endif // ATTN_LIB_COMPILER_WAYLOG_H
