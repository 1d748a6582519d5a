//===- Error.h - exceptions that cross PyTorch's dispatcher --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TORCH_OPERATORS_ERROR_H
#define ATTN_TORCH_OPERATORS_ERROR_H

#include "attn-c/attn.h"
#include <stdexcept>
#include <string>

namespace attn_torch {
/// "attn: code: message", of which python/attn/_watched.py makes an attn.Error.
[[noreturn]] inline void fail(const char *code, const std::string &message) {
  throw std::runtime_error("attn: " + std::string(code) + ": " + message);
}

[[noreturn]] inline void refuse(const std::string &message) { fail("invalid argument", message); }

inline void check(attn_code code) {
  if (code == ATTN_OK)
    return;
  std::string hint = attn_last_hint();
  fail(attn_code_name(code), attn_last_message() + (hint.empty() ? "" : " (" + hint + ")"));
}
} // namespace attn_torch

#endif // ATTN_TORCH_OPERATORS_ERROR_H
