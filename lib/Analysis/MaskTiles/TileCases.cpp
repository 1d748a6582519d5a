//===- TileCases.cpp - a mask by what holds in a tile -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/TileCases.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attn {

SmallVector<Value> getCaseConditions(Region &mask, Cell tile) {
  SmallVector<Value> conditions = findTileConditions(mask, tile);
  conditions.truncate(std::min(conditions.size(), TileCases::maxConditions));
  return conditions;
}

void eraseUnused(Region &mask) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(mask.front())))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Lets the case have a copy of the mask in which each condition is a constant. The copy is in an
/// op of the same kind, in no block and without operands.
static void specialize(TileCases::Case &special, Region &mask, ArrayRef<Value> conditions) {
  special.holder = mask.getParentOp()->cloneWithoutRegions();
  special.holder.get()->setOperands({});
  special.mask = &special.holder.get()->getRegion(mask.getRegionNumber());
  IRMapping mapping;
  mask.cloneInto(special.mask, mapping);
  auto builder = OpBuilder::atBlockBegin(&special.mask->front());
  for (auto [condition, holds] : llvm::zip_equal(conditions, special.holds)) {
    Value constant =
        arith::ConstantOp::create(builder, condition.getLoc(), builder.getBoolAttr(holds));
    mapping.lookup(condition).replaceAllUsesWith(constant);
  }
  eraseUnused(*special.mask);
}

TileCases TileCases::analyze(Region &mask, Cell tile, FactOf factOf, MaskAxis running) {
  TileCases result;
  if (mask.empty()) {
    result.cases.push_back({{}, nullptr, &mask, MaskTiles::analyze(mask, factOf, running)});
    return result;
  }
  result.conditions = getCaseConditions(mask, tile);
  size_t count = result.conditions.size();
  for (unsigned number = 0; number < 1u << count; ++number) {
    Case each;
    for (size_t i = 0; i < count; ++i)
      each.holds.push_back(number >> i & 1);
    specialize(each, mask, result.conditions);
    each.tiles = MaskTiles::analyze(*each.mask, factOf, running);
    if (!each.tiles.isAlwaysSkip())
      result.cases.push_back(std::move(each));
  }
  return result;
}

} // namespace attn
