//===- attn-translate.cpp - takes attention through the rooms ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Registration/Registration.h"
#include "lib/Tools/AttnTranslate/AttnTranslate.h"
#include "mlir/IR/DialectRegistry.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  attn::registerDialects(registry);
  return attn::runAttnTranslate(argc, argv, registry);
}
