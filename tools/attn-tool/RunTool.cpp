//===- RunTool.cpp - every tool of this project, by its name ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "tools/attn-tool/RunTool.h"
#include "lib/Registration/CommandLine.h"
#include "lib/Registration/Registration.h"
#include "lib/Tools/AttnReduce/ReductionPatterns.h"
#include "lib/Tools/AttnRun/AttnRun.h"
#include "lib/Tools/AttnTranslate/AttnTranslate.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace attn {

static int runAttnOpt(int argc, char **argv, DialectRegistry &registry) {
  registerPasses();
  prepareCommandLine("attn-opt");
  return failed(MlirOptMain(argc, argv, "attn-opt: runs attn passes\n", registry));
}

static int runAttnReduce(int argc, char **argv, DialectRegistry &registry) {
  registerReductionPatterns(registry);
  registerPasses();
  prepareCommandLine("attn-reduce");
  MLIRContext context(registry);
  return failed(mlirReduceMain(argc, argv, context));
}

static int runAttnLspServer(int argc, char **argv, DialectRegistry &registry) {
  prepareCommandLine("attn-lsp-server");
  return failed(MlirLspServerMain(argc, argv, registry));
}

std::optional<int> runTool(int argc, char **argv) {
  llvm::StringRef name = llvm::sys::path::filename(argv[0]);
  DialectRegistry registry;
  registerDialects(registry);
  if (name == "attn-opt")
    return runAttnOpt(argc, argv, registry);
  if (name == "attn-run")
    return runAttnRun(argc, argv, registry);
  if (name == "attn-translate")
    return runAttnTranslate(argc, argv, registry);
  if (name == "attn-reduce")
    return runAttnReduce(argc, argv, registry);
  if (name == "attn-lsp-server")
    return runAttnLspServer(argc, argv, registry);
  return std::nullopt;
}

} // namespace attn
