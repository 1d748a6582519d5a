//===- MakeGroupWays.cpp - attn-make-group-ways -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A call says how many query heads share a key head, and how many blocks of keys there are. Where
// these are few, gradients have a way that splits the query heads into as many parts as fill the
// device, and starts blocks with much work first (attn-split-groups).
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnArguments.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GradSchedule.h"
#include "lib/Transforms/Attn/GroupParts.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/WayCopy.h"
#include "llvm/Support/MathExtras.h"

namespace attn {
#define GEN_PASS_DEF_MAKEGROUPWAYSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The passes over keys of a function, if each may have parts; else none. Parts take registers, of
/// which rows of any strides leave none.
static SmallVector<AttentionGradKeyValueOp> findPasses(func::FuncOp function) {
  for (unsigned index : llvm::seq(function.getNumArguments()))
    if (function.getArgAttr(index, kStridedAttrName))
      return {};
  auto passes = llvm::to_vector(function.getOps<AttentionGradKeyValueOp>());
  bool canSplit = llvm::all_of(passes, [](AttentionGradKeyValueOp pass) {
    auto schedule = pass->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    // Views tell other sizes than those of arguments, and lists are of whole groups.
    return schedule && !schedule->lists && schedule->splits == 1 &&
           isa<BlockArgument>(pass.getQuery()) && isa<BlockArgument>(pass.getKey()) &&
           chooseParts(pass, kMostGroupParts);
  });
  return canSplit ? passes : SmallVector<AttentionGradKeyValueOp>();
}

/// A size of an argument, in units of `divisor`.
static Attribute getExtent(BlockArgument argument, int64_t dim, int64_t divisor) {
  MLIRContext *context = argument.getContext();
  int64_t size = cast<RankedTensorType>(argument.getType()).getDimSize(dim);
  if (!ShapedType::isDynamic(size))
    return Builder(context).getI64IntegerAttr(llvm::divideCeil(size, divisor));
  return plan::ExtentAttr::get(context, argument.getArgNumber(), dim, divisor, /*multiplier=*/1,
                               /*unit=*/1, /*less=*/0);
}

/// At least two query heads for a key head, and so few blocks that two parts would not fill the
/// device more than once. Null where types say that no call is like that.
static ArrayAttr getCondition(AttentionGradKeyValueOp pass, ScheduleAttr schedule) {
  MLIRContext *context = pass.getContext();
  auto query = cast<BlockArgument>(pass.getQuery()), key = cast<BlockArgument>(pass.getKey());
  int64_t heads = pass.getQuery().getType().getDimSize(1),
          keyHeads = pass.getKey().getType().getDimSize(1);
  if (!ShapedType::isDynamic(heads) && heads < 2 * std::max<int64_t>(keyHeads, 1))
    return {};
  int64_t keys = countKeysOfFew(schedule, !pass.getMask().empty());
  auto blocks = ArrayAttr::get(
      context, {getExtent(key, 0, 1), getExtent(key, 1, 1), getExtent(key, 2, keys)});
  auto parts = plan::PartsAttr::get(context, blocks, getExtent(query, 1, 1), kMostGroupParts,
                                    /*slots=*/false);
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  auto perKeyHead = plan::ExtentAttr::get(context, key.getArgNumber(), 1, /*divisor=*/1,
                                          /*multiplier=*/1, /*unit=*/1, /*less=*/0);
  Attribute group = plan::RangeAttr::get(context, query.getArgNumber(), /*dim=*/1, /*least=*/2, any,
                                         perKeyHead, plan::PartsAttr(), StringAttr());
  Attribute several = plan::RangeAttr::get(context, /*argument=*/-1, /*dim=*/-1, /*least=*/2, any,
                                           plan::ExtentAttr(), parts, StringAttr());
  return ArrayAttr::get(context, {group, several});
}

/// Lets the device decide on parts of the query heads.
static void splitGroups(ArrayRef<AttentionGradKeyValueOp> passes) {
  for (AttentionGradKeyValueOp pass : passes)
    pass->setAttr(kScheduleAttrName,
                  ScheduleAttr::get(pass.getContext(), *chooseParts(pass, kMostGroupParts)));
}

namespace {
struct MakeGroupWaysPass
    : RoomPass<attn::impl::MakeGroupWaysPassBase<MakeGroupWaysPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  void makeWay(func::FuncOp function, SymbolTable &symbols) {
    SmallVector<AttentionGradKeyValueOp> passes = findPasses(function);
    if (passes.empty())
      return;
    auto schedule = passes[0]->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    ArrayAttr condition = getCondition(passes[0], schedule);
    if (!condition)
      return;
    if (!allCalls)
      passes = findPasses(copyFor(function, function.getName(), "groups", {condition}, symbols));
    splitGroups(passes);
  }

  LogicalResult transform() override {
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal())
        makeWay(function, symbols);
    return success();
  }
};
} // namespace
