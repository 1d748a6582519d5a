//===- JitLog.h - what the driver's assembler says --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_JITLOG_H
#define ATTN_LIB_RUNTIME_JITLOG_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The facts in the verbose log of PTX being assembled: the lines of `ptxas -v`.
struct JitLog {
  struct Entry {
    std::string name;
    /// Per thread; -1 for what the log does not say.
    int64_t stackBytes = -1, spillStoreBytes = -1, spillLoadBytes = -1;
    int registers = -1;
  };
  /// The kernels, in the log's order.
  std::vector<Entry> entries;
  /// Lines with a code, "(C7510) Potential Performance Loss: …", without what precedes the code.
  std::vector<std::string> warnings;

  const Entry *find(std::string_view name) const;
};

JitLog parseJitLog(std::string_view text);

/// The lines of an error log that say what is wrong, at most `maxLines` of them, joined by "; ".
std::string excerptErrors(std::string_view text, unsigned maxLines = 3);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_JITLOG_H
