//===- Version.cpp - what tools say of themselves ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Registration/Version.h"
#include "commit.inc"
#include "lib/Machine/Machine.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

void attn::printVersion(raw_ostream &os, StringRef tool) {
  StringRef commit = ATTN_COMMIT;
  os << tool << ' ' << ATTN_VERSION;
  if (!commit.empty())
    os << " (" << commit << ')';
  os << "\nLLVM " LLVM_VERSION_STRING "\ntargets: cpu (" << sys::getHostCPUName() << ")";
  for (const Machine *machine : getMachines())
    os << ", " << machine->name;
  os << '\n';
}

void attn::prepareCommandLine(StringLiteral tool) {
  for (auto &[name, option] : cl::getRegisteredOptions())
    option->setHiddenFlag(cl::Hidden);
  cl::SetVersionPrinter([tool](raw_ostream &os) { printVersion(os, tool); });
}
