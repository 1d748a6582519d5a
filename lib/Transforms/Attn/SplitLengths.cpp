//===- SplitLengths.cpp - attn-split-lengths -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Where a block has few tiles of keys, its start and its end are what it costs; where it has many,
// the keys that it reads are. So short sequences want another schedule than long ones, and a call
// says which they are: the function gets a copy, for calls with few rows and keys. Where few of
// either are enough, the copy is for the others, since a way has a condition whose parts all hold.
// Batches and heads decide nothing, so that the numbers of a sequence do not depend on what stands
// beside it. Few rows with many keys, and many rows with few keys, have sizes for who asks for
// them: more copies would cost all others the time that they take to assemble.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/ScheduleRule.h"
#include "lib/Transforms/Attn/Ways.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {
#define GEN_PASS_DEF_SPLITLENGTHSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The only attention of a function, if its rows and keys are those of arguments and nothing has
/// chosen its schedule; or null.
static AttentionOp findAttention(func::FuncOp function) {
  SmallVector<ScoredOpInterface> scored;
  function.walk([&](ScoredOpInterface op) { scored.push_back(op); });
  auto op = scored.size() == 1 ? dyn_cast<AttentionOp>(scored[0].getOperation()) : AttentionOp();
  bool isFree = op && !op.getVariantsAttr() && !op->hasAttr(kScheduleAttrName) &&
                isa<BlockArgument>(op.getQuery()) && isa<BlockArgument>(op.getKey());
  return isFree ? op : AttentionOp();
}

/// The calls that the copy is for.
static ArrayAttr getCalls(AttentionOp op, const LengthChoice &choice) {
  SmallVector<Attribute> ranges;
  for (auto [matrix, most] :
       {std::pair(op.getQuery(), choice.mostRows), {op.getKey(), choice.mostKeys}}) {
    if (most == LengthChoice::kAny)
      continue;
    auto [least, last] =
        choice.either ? std::pair(most + 1, LengthChoice::kAny) : std::pair(int64_t(0), most);
    ranges.push_back(
        plan::RangeAttr::get(op.getContext(), cast<BlockArgument>(matrix).getArgNumber(),
                             /*dim=*/2, least, last, plan::ExtentAttr(), plan::PartsAttr()));
  }
  return ArrayAttr::get(op.getContext(), ranges);
}

/// The way of the calls that the choice is for, or null if there are none.
static func::FuncOp addWays(func::FuncOp function, AttentionOp op, const LengthChoice &choice,
                            SymbolTable &symbols) {
  bool isShortInFront = !choice.either;
  func::FuncOp inFront =
      addWay(function, isShortInFront ? "_short" : "_long", getCalls(op, choice), symbols);
  if (choice.isForShort == isShortInFront)
    return inFront;
  return inFront == function ? func::FuncOp() : function;
}

namespace {
struct SplitLengthsPass
    : RoomPass<attn::impl::SplitLengthsPassBase<SplitLengthsPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  void split(func::FuncOp function, SymbolTable &symbols) {
    AttentionOp op = findAttention(function);
    if (!op)
      return;
    GPUProblem problem = getGPUProblem(op, /*splits=*/1);
    auto unit = UnitAttr::get(op.getContext());
    const Machine &machine = plan::getMachine(getOperation());
    if ((way == "few" && chooseForFewRows(machine, problem)) ||
        (way == "narrow" && chooseForFewKeys(machine, problem))) {
      op->setAttr(way == "few" ? kFewAttrName : kNarrowAttrName, unit);
      return;
    }
    std::optional<LengthChoice> choice = chooseForLength(machine, problem);
    if (!choice)
      return;
    func::FuncOp marked;
    if (way == "auto")
      marked = addWays(function, op, *choice, symbols);
    else if (choice->isForShort == (way == "short"))
      marked = function;
    if (marked)
      findAttention(marked)->setAttr(choice->isForShort ? kShortAttrName : kLongAttrName, unit);
  }

  LogicalResult transform() override {
    ModuleOp module = getOperation();
    if (!llvm::is_contained(kWays, way.getValue()))
      return module.emitError("expected way=short, long, few, narrow or auto, got '") << way << "'";
    SymbolTable symbols(module);
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (!function.isExternal())
        split(function, symbols);
    return success();
  }
};
} // namespace
