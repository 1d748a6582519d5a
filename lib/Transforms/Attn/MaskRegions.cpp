//===- MaskRegions.cpp - what passes ask of mask regions ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/MaskRegions.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Transforms/Attn/RegionWork.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"

using namespace mlir;
using namespace attn;

std::optional<TensorFact> attn::factOf(Value tensor) {
  if (auto assume = tensor.getDefiningOp<AssumeOp>();
      assume && assume.getFact() == Fact::NonDecreasing)
    return TensorFact::NonDecreasing;
  return std::nullopt;
}

void attn::shiftMask(OpBuilder &builder, Location loc, Region &mask, unsigned position,
                     OpFoldResult origin) {
  if (mask.empty() || isConstantIntValue(origin, 0))
    return;
  Value offset = getValueOrCreateConstantIndexOp(builder, loc, origin);
  OpBuilder inner = OpBuilder::atBlockBegin(&mask.front());
  Value at = mask.getArgument(position);
  auto sum = arith::AddIOp::create(inner, loc, at, offset);
  at.replaceAllUsesExcept(sum, sum);
}

bool attn::hidesFullTiles(Region &mask) {
  return !mask.empty() && measureRegion(mask).gathers &&
         MaskTiles::analyze(mask, factOf).knowsNoFullTile();
}
