//===- MakeWays.cpp - attn-make-ways ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Where a block has few tiles of keys, its start and its end are what it costs; where it has many,
// the keys that it reads are. Few rows leave tiles empty, and heads that share keys read them
// again. So calls of one function want different kernels, and a call's extents say which: the
// function gets a copy for each way of the rule (WayRules.h). Batches decide nothing, so that the
// numbers of a sequence do not depend on what stands beside it.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Schedule/ScheduleOptions.h"
#include "lib/Transforms/Attn/PackHeads.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/Scheduler.h"
#include "lib/Transforms/Attn/WayCopy.h"
#include "lib/Transforms/Attn/WayRules.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <numeric>

namespace attn {
#define GEN_PASS_DEF_MAKEWAYSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The only attention of a function, if its rows and keys are those of arguments; or null.
static AttentionOp findAttention(func::FuncOp function) {
  SmallVector<ScoredOpInterface> scored;
  function.walk([&](ScoredOpInterface op) { scored.push_back(op); });
  auto op = scored.size() == 1 ? dyn_cast<AttentionOp>(scored[0].getOperation()) : AttentionOp();
  auto areKnown = [](Value value) {
    return findArgumentSize(value, 1) && findArgumentSize(value, 2);
  };
  bool isAlone = op && !op.getVariantsAttr() && areKnown(op.getQuery()) && areKnown(op.getKey());
  return isAlone ? op : AttentionOp();
}

//===----------------------------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------------------------===//

/// A range of the attention's call, as the plan says it.
static plan::RangeAttr getRange(AttentionOp op, const CallRange &range) {
  MLIRContext *context = op.getContext();
  ArgumentSize heads = *findArgumentSize(op.getKey(), 1);
  auto of = [&](Value value, int64_t dim, plan::ExtentAttr per = {}) {
    ArgumentSize size = *findArgumentSize(value, dim);
    return plan::RangeAttr::get(context, size.argument.getArgNumber(), size.dim,
                                llvm::divideCeil(range.least, size.multiplier),
                                range.most / size.multiplier, per, plan::PartsAttr(), StringAttr());
  };
  switch (range.size) {
  case CallRange::Size::Rows:
    return of(op.getQuery(), 2);
  case CallRange::Size::Keys:
    return of(op.getKey(), 2);
  case CallRange::Size::Group:
    return of(op.getQuery(), 1,
              plan::ExtentAttr::get(context, heads.argument.getArgNumber(), heads.dim,
                                    /*divisor=*/1, /*multiplier=*/1, /*unit=*/1, /*less=*/0));
  case CallRange::Size::MemoryRate:
    return plan::RangeAttr::get(context, -1, -1, range.least, range.most, plan::ExtentAttr(),
                                plan::PartsAttr(), StringAttr::get(context, "memory_rate"));
  }
  return {};
}

/// The size of an argument that a range is about, where types say it. Parts and rates are the
/// device's to say.
static std::optional<int64_t> getSize(func::FuncOp function, plan::RangeAttr range) {
  if (range.getParts() || range.getDevice())
    return std::nullopt;
  auto getDim = [&](int64_t argument, int64_t dim) {
    return cast<ShapedType>(function.getArgument(argument).getType()).getDimSize(dim);
  };
  int64_t size = getDim(range.getArgument(), range.getDim());
  if (ShapedType::isDynamic(size))
    return std::nullopt;
  plan::ExtentAttr per = range.getPer();
  if (!per)
    return size;
  int64_t unit = getDim(per.getArgument(), per.getDim());
  if (ShapedType::isDynamic(unit))
    return std::nullopt;
  return llvm::divideCeil(size, std::max<int64_t>(unit, 1));
}

/// What types leave of the conditions: none where no call meets one, and one without ranges where
/// all calls do.
static SmallVector<Attribute> getConditions(func::FuncOp function, AttentionOp op,
                                            const WayChoice &way) {
  SmallVector<Attribute> conditions;
  for (const CallRanges &ranges : way.when) {
    SmallVector<Attribute> open;
    bool canHold = true, mayFail = false;
    for (const CallRange &each : ranges) {
      plan::RangeAttr range = getRange(op, each);
      std::optional<int64_t> size = getSize(function, range);
      canHold &= !size || (*size >= range.getLeast() && *size <= range.getMost());
      mayFail |= !size;
      open.push_back(range);
    }
    if (!canHold)
      continue;
    if (!mayFail)
      return {ArrayAttr::get(op.getContext(), {})};
    conditions.push_back(ArrayAttr::get(op.getContext(), open));
  }
  return conditions;
}

/// How many calls of a function meet conditions, as types say it.
enum class Calls : uint8_t { None, Some, All };
static Calls countCalls(ArrayRef<Attribute> conditions) {
  if (conditions.empty())
    return Calls::None;
  return cast<ArrayAttr>(conditions[0]).empty() ? Calls::All : Calls::Some;
}

//===----------------------------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------------------------===//

/// How many parts attn-split-kv makes of the keys of a call with packed rows.
static plan::PartsAttr getParts(AttentionOp op, ScheduleAttr schedule) {
  MLIRContext *context = op.getContext();
  auto pack = op.getQuery().getDefiningOp<PackHeadsOp>();
  auto getExtent = [&](Value value, int64_t dim, int64_t divisor) {
    ArgumentSize size = *findArgumentSize(value, dim);
    int64_t common = std::gcd(divisor, size.multiplier);
    return plan::ExtentAttr::get(context, size.argument.getArgNumber(), size.dim, divisor / common,
                                 size.multiplier / common, /*unit=*/1, size.less);
  };
  auto blocks = ArrayAttr::get(context, {getExtent(pack, 0, 1), getExtent(pack.getKey(), 1, 1),
                                         getExtent(pack, 2, schedule->blockM)});
  auto keys = getExtent(pack.getKey(), 2, schedule->blockN * kLeastTilesOfParts);
  return plan::PartsAttr::get(context, blocks, keys, schedule->splits, /*slots=*/false);
}

/// The same, of one part.
static ScheduleAttr keepWhole(ScheduleAttr schedule) {
  Schedule words = schedule.getWords();
  words.splits = 1;
  words.fill = false;
  return ScheduleAttr::get(schedule.getContext(), words);
}

/// Packed rows split their keys into as many parts as fill the device, which a call decides. Where
/// its blocks fill the device by themselves there is one part, which goes through memory all the
/// same, and is merged with none: 2 to 8 % of a call. So those calls have a way whose keys are
/// whole. `conditions` are those of the function.
static void spareMerge(func::FuncOp function, StringRef base, AttentionOp op, StringRef way,
                       ArrayRef<Attribute> conditions, SymbolTable &symbols) {
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  // Parts that are dealt go through memory in any case.
  if (!schedule->fill || schedule->balance)
    return;
  MLIRContext *context = op.getContext();
  auto onePart = plan::RangeAttr::get(context, /*argument=*/-1, /*dim=*/-1, /*least=*/0, /*most=*/1,
                                      plan::ExtentAttr(), getParts(op, schedule), StringAttr());
  SmallVector<Attribute> narrower;
  for (Attribute condition : conditions) {
    SmallVector<Attribute> ranges(cast<ArrayAttr>(condition).getValue());
    ranges.push_back(onePart);
    narrower.push_back(ArrayAttr::get(context, ranges));
  }
  func::FuncOp whole = copyFor(function, base, (way + "-whole").str(), narrower, symbols);
  auto attentions = whole.getOps<AttentionOp>();
  (*attentions.begin())->setAttr(kScheduleAttrName, keepWhole(schedule));
}

//===----------------------------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------------------------===//

/// Sizes that are given hold for all lengths.
static bool saysSizes(const Scheduler &scheduler) {
  return scheduler.isBlockSaid() || scheduler.said.has(&Schedule::stay) ||
         scheduler.countSplits() != 1;
}

namespace {
struct MakeWaysPass
    : RoomPass<attn::impl::MakeWaysPassBase<MakeWaysPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;
  MakeWaysPass() = default;
  MakeWaysPass(const MakeWaysPass &other) : RoomPass(other) {}

  /// Makes the function with this attention a way's.
  LogicalResult become(AttentionOp op, const WayChoice &choice, const Scheduler &scheduler) {
    op->removeAttr(kPackAttrName);
    Scheduler own = scheduler;
    own.keysOfParts = scheduler.getKeysOfParts(op);
    if (choice.slots)
      packHeads(op, choice.slots);
    if (op->hasAttr(kScheduleAttrName))
      return success();
    FailureOr<ScheduleAttr> schedule =
        own.make(op, choice.choice ? *choice.choice : own.choose(op));
    if (succeeded(schedule))
      op->setAttr(kScheduleAttrName, *schedule);
    return success(succeeded(schedule));
  }

  /// Adds the way of some calls to a function, or makes the function itself the way of all.
  FailureOr<Calls> add(func::FuncOp function, const WayChoice &choice, const Scheduler &scheduler,
                       SymbolTable &symbols) {
    AttentionOp op = findAttention(function);
    SmallVector<Attribute> conditions = getConditions(function, op, choice);
    Calls calls = countCalls(conditions);
    if (calls == Calls::None)
      return calls;
    StringRef base = function.getName();
    func::FuncOp way =
        calls == Calls::All ? function : copyFor(function, base, choice.name, conditions, symbols);
    AttentionOp made = findAttention(way);
    if (failed(become(made, choice, scheduler)))
      return failure();
    if (choice.slots)
      spareMerge(way, base, made, choice.name, conditions, symbols);
    return calls;
  }

  LogicalResult makeWays(func::FuncOp function, const Scheduler &scheduler, SymbolTable &symbols) {
    AttentionOp op = findAttention(function);
    // Nobody has measured ways of other elements than those of 16 bits.
    if (!op || op.getQuery().getType().getElementTypeBitWidth() != 16)
      return success();
    auto written = op->getAttrOfType<IntegerAttr>(kPackAttrName);
    int64_t count = written ? written.getInt() : slots.getValue();
    if (count && canPackHeads(op)) {
      FailureOr<Calls> calls =
          add(function, choosePacked(*scheduler.machine, count), scheduler, symbols);
      if (failed(calls) || *calls == Calls::All)
        return success(succeeded(calls));
      // The schedule that is written at the op is that of packed rows.
      if (*calls == Calls::Some)
        op->removeAttr(kScheduleAttrName);
    }
    op->removeAttr(kPackAttrName);
    if (op->hasAttr(kScheduleAttrName) || (saysSizes(scheduler) && isForCalls()))
      return success();
    GPUProblem problem = scheduler.getProblem(op);
    for (const WayChoice &choice :
         chooseWays(*scheduler.machine, problem, way, !count && canPackHeads(op))) {
      FailureOr<Calls> calls = add(function, choice, scheduler, symbols);
      if (failed(calls) || *calls == Calls::All)
        return success(succeeded(calls));
    }
    return success();
  }

  /// Whether calls decide which ways they take.
  bool isForCalls() const { return way == "auto" || way == "lengths"; }

  LogicalResult checkOptions() {
    if (!llvm::is_contained(kWays, way.getValue()))
      return getOperation().emitError(
                 "expected way=auto, lengths, short, long, few, narrow or groups, got '")
             << way << "'";
    if (slots != 0 && (slots < 2 || slots > 64 || !llvm::isPowerOf2_64(slots)))
      return getOperation().emitError("expected slots of 0, 2, 4, 8, 16, 32 or 64, got ")
             << slots.getValue();
    return success();
  }

  LogicalResult transform() override {
    if (failed(checkOptions()))
      return failure();
    Scheduler scheduler;
    scheduler.machine = &plan::getMachine(getOperation());
    scheduler.said = words.get();
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(makeWays(function, scheduler, symbols)))
        return failure();
    return success();
  }

  ScheduleOptions<Pass> words{*this};
};
} // namespace

std::unique_ptr<Pass> attn::createMakeWaysPass(const MakeWaysPassOptions &options,
                                               const Overrides &said) {
  auto pass = std::make_unique<MakeWaysPass>(options);
  pass->words = said;
  return pass;
}
