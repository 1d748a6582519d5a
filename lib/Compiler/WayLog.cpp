//===- WayLog.cpp - who is told of ways that are compiled -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/WayLog.h"
#include "attn/Compiler.h"
#include "llvm/Support/FormatVariadic.h"
#include <mutex>

namespace attn {

static std::mutex mutex;
// Never destroyed: a thread may compile while the process ends.
static std::function<void(std::string_view)> &getLog() {
  static auto &log = *new std::function<void(std::string_view)>;
  return log;
}

void setLog(std::function<void(std::string_view)> log) {
  std::lock_guard lock(mutex);
  getLog() = std::move(log);
}

static void tell(const std::string &line) {
  std::function<void(std::string_view)> log;
  {
    std::lock_guard lock(mutex);
    log = getLog();
  }
  if (log)
    log(line);
}

void logWay(llvm::StringRef function, llvm::StringRef way, bool isFromDisk, double milliseconds) {
  tell(llvm::formatv("{0}: a call takes {1}, {2} in {3:f1} ms", function,
                     way.empty() ? "the way of most calls" : "the way '" + way.str() + "'",
                     isFromDisk ? "loaded from disk" : "compiled", milliseconds)
           .str());
}

void logRemark(llvm::StringRef function, llvm::StringRef remark) {
  tell((function + ": " + remark).str());
}

} // namespace attn
