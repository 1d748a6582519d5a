//===- AttnPositions.cpp - where a part stands in a whole ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnPositions.h"

#include "dialects/Attn/IR/AttnPositionsEnums.cpp.inc"

using namespace attn;

Placement PositionsAttr::getPlacement(unsigned position) const {
  const Placement placements[] = {getBatch(), getHead(), getRow(), getKey()};
  return placements[position];
}
