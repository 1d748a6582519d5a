//===- Machine.cpp - the machines there are ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Machine/Machine.h"
#include "lib/Machine/Ampere.h"
#include "lib/Machine/Blackwell.h"
#include "lib/Machine/Hopper.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace attn;

/// The first is the default. A GPU takes the first whose code it runs: newer ones come first.
static llvm::SmallVectorImpl<const Machine *> &getRegistry() {
  static llvm::SmallVector<const Machine *> machines{
      &kHopper, &kBlackwellUltra, &kBlackwell, &kBlackwellSmall, &kAda, &kAmpereSmall, &kAmpere};
  return machines;
}

llvm::ArrayRef<const Machine *> attn::getMachines() { return getRegistry(); }

const Machine *attn::findMachine(llvm::StringRef name) {
  for (const Machine *machine : getMachines())
    if (machine->name == name)
      return machine;
  return nullptr;
}

const Machine &attn::getDefaultMachine() { return kHopper; }

/// "a", "a or b", "a, b or c".
static std::string listNames(llvm::ArrayRef<llvm::StringRef> names) {
  if (names.size() == 1)
    return names.front().str();
  return llvm::join(names.drop_back(), ", ") + " or " + names.back().str();
}

std::string attn::listMachines() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Machine *machine : getMachines())
    names.push_back(machine->name);
  return listNames(names);
}

const Product *attn::findProduct(llvm::StringRef name) {
  for (const Machine *machine : getMachines())
    if (machine->product.name == name)
      return &machine->product;
  return nullptr;
}

std::string attn::listProducts() {
  llvm::SetVector<llvm::StringRef> names;
  for (const Machine *machine : getMachines())
    names.insert(machine->product.name);
  return listNames(names.getArrayRef());
}

int64_t attn::getMostOfAny(int64_t Machine::*number) {
  int64_t most = 0;
  for (const Machine *machine : getMachines())
    most = std::max(most, machine->*number);
  return most;
}

void attn::registerMachine(const Machine &machine) { getRegistry().push_back(&machine); }

std::string Machine::listRoles() const {
  return llvm::formatv("1 to {0} warpgroups and registers in multiples of {1} from {2} to {3}",
                       warpgroups, registerStep, leastRegisters, getMostBudget());
}
