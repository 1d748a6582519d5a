//===- Guarded.cpp - LLVM's ways of saying no, as errors --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Guarded.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include <mutex>
#include <string>

using namespace llvm;

namespace attn {

/// Of the thread's last fatal error.
static thread_local std::string fatalReason;

namespace {
/// LLVM's handlers belong to the process: the first guard installs them, the last one removes them.
class HandlerGuard {
public:
  HandlerGuard() {
    std::lock_guard<std::mutex> lock(getMutex());
    if (count++)
      return;
    install_fatal_error_handler([](void *, const char *text, bool) {
      fatalReason = text;
      if (CrashRecoveryContext *context = CrashRecoveryContext::GetCurrent())
        context->HandleExit(1);
    });
    CrashRecoveryContext::Enable();
  }
  ~HandlerGuard() {
    std::lock_guard<std::mutex> lock(getMutex());
    if (--count)
      return;
    CrashRecoveryContext::Disable();
    remove_fatal_error_handler();
  }

private:
  static std::mutex &getMutex() {
    static std::mutex &mutex = *new std::mutex;
    return mutex;
  }
  static inline unsigned count = 0;
};
} // namespace

Error runGuarded(StringRef stage, function_ref<void()> body) {
  fatalReason.clear();
  HandlerGuard handlers;
  CrashRecoveryContext context;
  if (context.RunSafely(body))
    return Error::success();
  return createStringError("expected LLVM to " + stage +
                           " the kernel, got: " + (fatalReason.empty() ? "a crash" : fatalReason));
}

} // namespace attn
