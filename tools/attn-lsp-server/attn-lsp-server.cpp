//===- attn-lsp-server.cpp - what editors ask about IR -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Registration/CommandLine.h"
#include "lib/Registration/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Support/LLVM.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  attn::prepareCommandLine("attn-lsp-server");
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
