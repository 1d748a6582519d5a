//===- SpareMerge.cpp - attn-spare-merge -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Packed rows split their keys into as many parts as fill the device, which a call decides. Where
// its blocks fill the device by themselves there is one part, which goes through memory all the
// same, and is merged with none: 2 to 8 % of a call. So the function gets a copy, for those calls,
// whose keys are whole.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/Ways.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <numeric>

namespace attn {
#define GEN_PASS_DEF_SPAREMERGEPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The attention of a function whose parts are to fill the device, if its rows are packed ones of
/// an argument, as its keys are one; or null.
static AttentionOp findFilling(func::FuncOp function) {
  auto attentions = llvm::to_vector(function.getOps<AttentionOp>());
  if (attentions.size() != 1)
    return {};
  auto schedule = attentions[0]->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  auto pack = attentions[0].getQuery().getDefiningOp<PackHeadsOp>();
  bool fills = schedule && schedule->fill && pack && isa<BlockArgument>(pack.getSource()) &&
               attentions[0].getKey() == pack.getKey() && isa<BlockArgument>(pack.getKey());
  return fills ? attentions[0] : AttentionOp();
}

/// How many parts attn-split-kv makes of the keys of a call.
static plan::PartsAttr getParts(AttentionOp op, ScheduleAttr schedule) {
  MLIRContext *context = op.getContext();
  auto pack = op.getQuery().getDefiningOp<PackHeadsOp>();
  auto getExtent = [&](Value argument, int64_t dim, int64_t divisor, int64_t multiplier = 1) {
    int64_t common = std::gcd(divisor, multiplier);
    return plan::ExtentAttr::get(context, cast<BlockArgument>(argument).getArgNumber(), dim,
                                 divisor / common, multiplier / common, /*unit=*/1);
  };
  auto blocks =
      ArrayAttr::get(context, {getExtent(pack.getSource(), 0, 1), getExtent(pack.getKey(), 1, 1),
                               getExtent(pack.getSource(), 2, schedule->blockM, pack.getSlots())});
  auto keys = getExtent(pack.getKey(), 2, schedule->blockN * kLeastTilesOfParts);
  return plan::PartsAttr::get(context, blocks, keys, schedule->splits);
}

/// The same, of one part.
static ScheduleAttr keepWhole(ScheduleAttr schedule) {
  Schedule words = schedule.getWords();
  words.splits = 1;
  words.fill = false;
  return ScheduleAttr::get(schedule.getContext(), words);
}

namespace {
struct SpareMergePass
    : RoomPass<attn::impl::SpareMergePassBase<SpareMergePass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  void spare(func::FuncOp function, SymbolTable &symbols) {
    AttentionOp op = findFilling(function);
    if (!op)
      return;
    auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    SmallVector<Attribute> when;
    if (auto calls = function->getAttrOfType<ArrayAttr>(plan::PlanDialect::kWhenAttrName))
      llvm::append_range(when, calls);
    when.push_back(plan::RangeAttr::get(op.getContext(), /*argument=*/-1, /*dim=*/-1, /*least=*/0,
                                        /*most=*/1, plan::ExtentAttr(), getParts(op, schedule)));
    func::FuncOp way = addWay(function, "_whole", ArrayAttr::get(op.getContext(), when), symbols);
    if (way)
      findFilling(way)->setAttr(kScheduleAttrName, keepWhole(schedule));
  }

  LogicalResult transform() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal())
        spare(function, symbols);
    return success();
  }
};
} // namespace
