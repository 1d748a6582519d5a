//===- Policy.cpp - the policies there are ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Policy.h"
#include "lib/Transforms/Attn/HopperRows.h"

using namespace attn;

/// Steps of 128 keys spill 116 to 164 bytes under a mask on these, as ptxas tells.
static constexpr Policy kSmallAmpere = [] {
  Policy policy;
  policy.mostMaskedKeys = 64;
  return policy;
}();

const Policy &attn::getPolicy(const Machine &machine) {
  static constexpr Policy kNothingMeasured;
  if (machine.name == "sm_86" || machine.name == "sm_89")
    return kSmallAmpere;
  return machine.name == hopper::kMachine ? hopper::kPolicy : kNothingMeasured;
}
