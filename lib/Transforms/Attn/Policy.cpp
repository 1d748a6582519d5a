//===- Policy.cpp - the policies there are ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Policy.h"
#include "lib/Transforms/Attn/HopperRows.h"

using namespace attn;

const Policy &attn::getPolicy(const Machine &machine) {
  static constexpr Policy kNothingMeasured;
  return machine.name == hopper::kMachine ? hopper::kPolicy : kNothingMeasured;
}
