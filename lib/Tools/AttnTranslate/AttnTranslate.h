//===- AttnTranslate.h - the body of attn-translate --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNTRANSLATE_ATTNTRANSLATE_H
#define ATTN_LIB_TOOLS_ATTNTRANSLATE_ATTNTRANSLATE_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace attn {

/// Reads IR, takes it through the rooms up to a door, and prints it there. Returns the exit code.
int runAttnTranslate(int argc, const char *const *argv, mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNTRANSLATE_ATTNTRANSLATE_H
