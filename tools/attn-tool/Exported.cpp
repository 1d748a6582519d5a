//===- Exported.cpp - the tools inside of libattn.so --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// LLVM and MLIR are most of each tool, and a wheel holds them once: in the library. What a wheel
// calls a tool is attn-tool.c, which is this function and nothing else. No header declares it: it
// is no part of the interface of C.
//
//===----------------------------------------------------------------------------------------===//

#include "tools/attn-tool/RunTool.h"
#include <cstdio>

extern "C" __attribute__((visibility("default"))) int attn_tool_main(int argc, char **argv) {
  if (std::optional<int> code = attn::runTool(argc, argv))
    return *code;
  std::fprintf(stderr, "expected to be called as a tool of attn, got '%s'\n", argv[0]);
  return 1;
}
