//===- AttnRun.h - compiles, runs, checks and times a kernel ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_ATTNRUN_H
#define ATTN_LIB_TOOLS_ATTNRUN_ATTNRUN_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace attn {

/// The whole of the tool. Returns the exit code: 0, or 1 after an error or a wrong result.
int runAttnRun(int argc, const char *const *argv, const mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_ATTNRUN_H
