//===- Machine.cpp - the machines there are ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Machine.h"
#include "lib/Machine/Hopper.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace attn;

static constexpr const Machine *kMachines[] = {&kHopper};

const Machine *attn::findMachine(llvm::StringRef name) {
  for (const Machine *machine : kMachines)
    if (machine->name == name)
      return machine;
  return nullptr;
}

const Machine &attn::getDefaultMachine() { return kHopper; }

std::string attn::listMachines() {
  return llvm::join(
      llvm::map_range(kMachines, [](const Machine *machine) { return machine->name.str(); }),
      " or ");
}
