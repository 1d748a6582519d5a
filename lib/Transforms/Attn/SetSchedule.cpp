//===- SetSchedule.cpp - attn-set-schedule -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Schedule/ScheduleOptions.h"
#include "lib/Transforms/Attn/GradSchedule.h"
#include "lib/Transforms/Attn/MaskRegions.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/ScheduleRule.h"
#include "lib/Transforms/Attn/SearchModel.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

namespace attn {
#define GEN_PASS_DEF_SETSCHEDULEPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// What rows are heads too, few of them.
static bool isPacked(Operation *op) {
  auto attention = dyn_cast<AttentionOp>(op);
  return attention && attention.getQuery().getDefiningOp<PackHeadsOp>();
}

/// More would not fill any device better.
static constexpr int64_t kMostParts = 64;

/// Elements of more than 16 bits have no products on a GPU, which room 4 says.
static bool hasProducts(ScoredOpInterface op) {
  return op.getQuery().getType().getElementTypeBitWidth() <= 16;
}

/// The block of an attention.
static GPUBlock getBlock(ScoredOpInterface op, ScheduleAttr schedule) {
  return {op.getHeadDim(), op.getValueDim(), op.getQuery().getType().getElementTypeBitWidth() / 8,
          schedule.getWords()};
}

/// Why the op's schedule does not work on the machine, if it does not. Sums by rows take any block
/// of rows.
static LogicalResult checkBlock(Operation *op, const Machine &machine, ScheduleAttr schedule) {
  auto scored = dyn_cast<ScoredOpInterface>(op);
  if (!scored || !hasProducts(scored))
    return success();
  std::string why;
  if (isa<AttentionOp>(op))
    why = refuseBlock(machine, getBlock(scored, schedule));
  else
    why = refuseGradSchedule(machine, scored, schedule);
  return why.empty() ? success() : op->emitOpError(why);
}

namespace {
struct SetSchedulePass
    : RoomPass<attn::impl::SetSchedulePassBase<SetSchedulePass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;
  SetSchedulePass() = default;
  SetSchedulePass(const SetSchedulePass &other) : RoomPass(other) {}

  /// Of the rule.
  Choice choose(Operation *op, const Machine *machine) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention)
      return machine ? chooseGradForCUDA(op, *machine) : chooseGradForCPU(lanes);
    if (!machine)
      return chooseForCPU(lanes,
                          bf16Dot && attention.getQuery().getType().getElementType().isBF16());
    GPUProblem problem = getGPUProblem(attention, countSplits());
    if (isPacked(attention))
      return chooseForDecoding(*machine, problem,
                               attention.getQuery().getType().getElementTypeBitWidth() / 8,
                               said.get(&Schedule::blockN).value_or(0),
                               said.has(&Schedule::blockN) || said.has(&Schedule::stages));
    auto few = op->hasAttr(kFewAttrName)      ? chooseForFewRows(*machine, problem)
               : op->hasAttr(kNarrowAttrName) ? chooseForFewKeys(*machine, problem)
                                              : std::nullopt;
    if (few)
      return *few;
    bool isMarked = op->hasAttr(kShortAttrName) || op->hasAttr(kLongAttrName);
    auto choice = isMarked ? chooseForLength(*machine, problem) : std::nullopt;
    return choice ? choice->choice : chooseForCUDA(*machine, problem);
  }

  LogicalResult checkOptions() {
    if (target != "cpu" && target != "cuda")
      return getOperation().emitError("expected target cpu or cuda, got '") << target << "'";
    if (search < 0 || search > std::numeric_limits<int32_t>::max())
      return getOperation().emitError("expected rows of a search from 0 to 2147483647, got ")
             << search.getValue();
    return success();
  }

  int64_t countSplits() const { return said.get(&Schedule::splits).value_or(1); }

  /// Whether somebody has said rows or keys, or also how many of them are in flight.
  bool areSizesSaid() const { return said.has(&Schedule::blockM) || said.has(&Schedule::blockN); }
  bool isBlockSaid() const { return areSizesSaid() || said.has(&Schedule::stages); }

  /// Takes words from the rule's schedule that depend on others, where somebody has said those. A
  /// tail, and what is recomputed, belong to blocks that stay by the rule. The columns that are
  /// kept fit the registers that the rule's own block leaves.
  void dropDependents(Schedule &schedule) {
    bool saysStay = said.has(&Schedule::stay);
    if (saysStay) {
      schedule.tail = 0;
      schedule.recompute = false;
    }
    if (isBlockSaid() || saysStay || said.has(&Schedule::recompute))
      schedule.keep = 0;
  }

  /// Sets the words that follow from others.
  void settle(Operation *op, const Machine *machine, Schedule &schedule) {
    if (!machine)
      return;
    if (areSizesSaid() && !said.has(&Schedule::consumers)) {
      int64_t owned = isa<AttentionGradKeyValueOp>(op) ? schedule.blockN : schedule.blockM;
      schedule.consumers = std::max<int64_t>(1, owned / machine->productRows);
    }
    // A number that is given holds.
    if (isPacked(op) && countSplits() == 1) {
      schedule.fill = true;
      schedule.splits = kMostParts;
      schedule.stay = false;
    }
    schedule.lists &= !schedule.stay;
    schedule.apart &= schedule.consumers > 1;
  }

  /// Of the rule, but for the words that are said and what follows from them. `machine` is null on
  /// a CPU, where blocks have no stages and one thread.
  FailureOr<ScheduleAttr> makeSchedule(Operation *op, const Machine *machine) {
    Choice choice = choose(op, machine);
    Schedule made = choice.schedule;
    dropDependents(made);
    said.apply(made, /*isOnCPU=*/!machine, /*isOfGradient=*/!isa<AttentionOp>(op));
    // Packed rows are one consumer's, whatever other rows are.
    if (isPacked(op))
      made.blockM = choice.schedule.blockM;
    settle(op, machine, made);
    auto schedule =
        ScheduleAttr::getChecked([&] { return op->emitOpError(); }, &getContext(), made);
    if (!schedule)
      return failure();
    std::string text = llvm::formatv("rule {0} chose block_m {1}, block_n {2}, splits {3}",
                                     isBlockSaid() ? StringRef("options") : choice.rule,
                                     made.blockM, made.blockN, made.splits);
    if (machine)
      text +=
          llvm::formatv(", stages {0}, consumers {1}{2}{3}", made.stages, made.consumers,
                        made.stay ? ", blocks stay" : "", made.lists ? ", tiles are listed" : "");
    if (made.resident > 1)
      text += llvm::formatv(", {0} blocks on a multiprocessor", made.resident);
    if (made.tail)
      text += llvm::formatv(", {0} for each multiprocessor follow", made.tail);
    remark::passed(op->getLoc(), remark::RemarkOpts::name("schedule").category("attn")) << text;
    return schedule;
  }

  LogicalResult schedule(Operation *op, const Machine *machine) {
    auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    if (!schedule) {
      FailureOr<ScheduleAttr> made = makeSchedule(op, machine);
      if (failed(made))
        return failure();
      op->setAttr(kScheduleAttrName, schedule = *made);
    }
    for (StringRef mark : {kShortAttrName, kLongAttrName, kFewAttrName, kNarrowAttrName})
      op->removeAttr(mark);
    if (!machine)
      return success();
    return failed(checkBlock(op, *machine, schedule)) ? failure()
                                                      : checkSearch(op, *machine, schedule);
  }

  /// Sizes that a search gives, of an attention.
  LogicalResult checkSearch(Operation *op, const Machine &machine, ScheduleAttr schedule) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (search == 0 || !attention || isPacked(op) || !areSizesSaid() ||
        !hasProducts(cast<ScoredOpInterface>(op)))
      return success();
    GPUBlock block = getBlock(cast<ScoredOpInterface>(op), schedule);
    std::string why = leaveOut(machine, getGPUProblem(attention, countSplits()), block, search);
    return why.empty() ? success() : op->emitOpError(why);
  }

  LogicalResult transform() override {
    if (failed(checkOptions()))
      return failure();
    said = words.get();
    ModuleOp module = getOperation();
    const Machine *machine = nullptr;
    if (target == "cuda") {
      machine = &plan::getMachine(module);
      module->setAttr(plan::PlanDialect::kTargetAttrName,
                      plan::TargetAttr::get(&getContext(), machine->name));
    }
    if (machine) {
      checkFused(module, *machine);
      module.walk([&](AttentionGradKeyValueOp op) {
        if (!op->hasAttr(kFusedAttrName))
          splitSums(op, *machine);
      });
    }
    WalkResult walk = module.walk([&](Operation *op) -> WalkResult {
      if (isa<AttentionOp, RowDeltaOp, AttentionGradDeltaOp, AttentionGradQueryOp,
              AttentionGradKeyValueOp>(op))
        return schedule(op, machine);
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  ScheduleOptions<Pass> words{*this};
  /// What the words say.
  Overrides said;
};
} // namespace

std::unique_ptr<Pass> attn::createSetSchedulePass(const SetSchedulePassOptions &options,
                                                  const Overrides &said) {
  auto pass = std::make_unique<SetSchedulePass>(options);
  pass->words = said;
  return pass;
}
