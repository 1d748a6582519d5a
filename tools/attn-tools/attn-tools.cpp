//===- attn-tools.cpp - the tools and tests as one program ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// LLVM and MLIR are most of each tool, so a bundle for another machine holds them once: this
// program is the tool that it is called as, through a link of that name.
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Main.h"
#include "tools/attn-tool/RunTool.h"
#include "tools/attn-tools/FileCheck.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

int main(int argc, char **argv) {
  llvm::StringRef name = llvm::sys::path::filename(argv[0]);
  if (name == "FileCheck")
    return attn::runFileCheck(argc, argv);
  if (name == "ExecutionTest")
    return attn::test::runExecutionTests(argc, argv);
  if (std::optional<int> code = attn::runTool(argc, argv))
    return *code;
  llvm::errs() << "expected to be called as a tool of attn, ExecutionTest or FileCheck, got '"
               << name << "'\n";
  return 1;
}
