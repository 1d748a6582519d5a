//===- Memory.h - how much memory there is ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SUPPORT_MEMORY_H
#define ATTN_LIB_SUPPORT_MEMORY_H

#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace attn {

/// Bytes that can be allocated without swapping: MemAvailable, and the limit of the control group
/// when that is lower. The largest value when the system does not say.
uint64_t getAvailableMemory();

/// "1.5 GiB".
std::string formatBytes(uint64_t bytes);

/// An error when `bytes` exceed the memory available. Linux hands out more memory than it has, so
/// without this question the answer is a killed process. `what` names the use in the message.
llvm::Error checkAvailableMemory(uint64_t bytes, llvm::StringRef what);

} // namespace attn

#endif // ATTN_LIB_SUPPORT_MEMORY_H
