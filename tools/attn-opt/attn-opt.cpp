//===- attn-opt.cpp - runs passes on IR ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Registration/CommandLine.h"
#include "lib/Registration/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  attn::registerPasses();
  attn::prepareCommandLine("attn-opt");
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "attn-opt: runs attn passes\n", registry));
}
