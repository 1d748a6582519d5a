//===- RunTool.h - every tool of this project, by its name --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TOOLS_ATTN_TOOL_RUNTOOL_H
#define ATTN_TOOLS_ATTN_TOOL_RUNTOOL_H

#include <optional>

namespace attn {

/// Runs the tool that the file name of argv[0] names, and returns its exit code. Nothing where no
/// tool has that name.
std::optional<int> runTool(int argc, char **argv);

} // namespace attn

#endif // ATTN_TOOLS_ATTN_TOOL_RUNTOOL_H
