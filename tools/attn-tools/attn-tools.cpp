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

#include "lib/Registration/Registration.h"
#include "lib/Registration/CommandLine.h"
#include "lib/Tools/AttnRun/AttnRun.h"
#include "lib/Tools/AttnTranslate/AttnTranslate.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "test/Execution/Main.h"
#include "tools/attn-tools/FileCheck.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

static int runAttnOpt(int argc, char **argv, mlir::DialectRegistry &registry) {
  attn::registerPasses();
  attn::prepareCommandLine("attn-opt");
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "attn-opt: runs attn passes\n", registry));
}

int main(int argc, char **argv) {
  llvm::StringRef name = llvm::sys::path::filename(argv[0]);
  if (name == "FileCheck")
    return attn::runFileCheck(argc, argv);
  if (name == "ExecutionTest")
    return attn::test::runExecutionTests(argc, argv);
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  if (name == "attn-opt")
    return runAttnOpt(argc, argv, registry);
  if (name == "attn-run")
    return attn::runAttnRun(argc, argv, registry);
  if (name == "attn-translate")
    return attn::runAttnTranslate(argc, argv, registry);
  llvm::errs() << "expected to be called as attn-opt, attn-run, attn-translate, ExecutionTest or "
                  "FileCheck, got '"
               << name << "'\n";
  return 1;
}
