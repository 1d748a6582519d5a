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
#include "lib/Transforms/Attn/Scheduler.h"
#include "lib/Transforms/Attn/SearchModel.h"
#include <limits>

namespace attn {
#define GEN_PASS_DEF_SETSCHEDULEPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The block of an attention.
static GPUBlock getBlock(ScoredOpInterface op, ScheduleAttr schedule) {
  auto [bytes, parts] = getFactors(op.getQuery().getType().getElementTypeBitWidth());
  return {op.getHeadDim(), op.getValueDim(), bytes, schedule.getWords(), parts};
}

/// Why the op's schedule does not work on the machine, if it does not. Sums by rows take any block
/// of rows.
static LogicalResult checkBlock(Operation *op, const Machine &machine, ScheduleAttr schedule) {
  auto scored = dyn_cast<ScoredOpInterface>(op);
  if (!scored)
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

  LogicalResult checkOptions() {
    if (target != "cpu" && target != "cuda")
      return getOperation().emitError("expected target cpu or cuda, got '") << target << "'";
    if (search < 0 || search > std::numeric_limits<int32_t>::max())
      return getOperation().emitError("expected rows of a search from 0 to 2147483647, got ")
             << search.getValue();
    return success();
  }

  LogicalResult schedule(Operation *op, const Scheduler &scheduler) {
    auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
    if (!schedule) {
      FailureOr<ScheduleAttr> made = scheduler.make(op, scheduler.choose(op));
      if (failed(made))
        return failure();
      op->setAttr(kScheduleAttrName, schedule = *made);
    }
    if (!scheduler.machine)
      return success();
    return failed(checkBlock(op, *scheduler.machine, schedule))
               ? failure()
               : checkSearch(op, scheduler, schedule);
  }

  /// Sizes that a search gives, of an attention.
  LogicalResult checkSearch(Operation *op, const Scheduler &scheduler, ScheduleAttr schedule) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (search == 0 || !attention || isPacked(op) || !scheduler.areSizesSaid())
      return success();
    GPUBlock block = getBlock(cast<ScoredOpInterface>(op), schedule);
    GPUProblem problem = scheduler.getProblem(attention);
    std::string why = leaveOut(*scheduler.machine, problem, block, search);
    return why.empty() ? success() : op->emitOpError(why);
  }

  /// Null where no pass of gradients asks for them.
  FailureOr<std::shared_ptr<CandidateRegisters>> makeRegisters() {
    bool asks = getOperation()
                    .walk([](Operation *op) {
                      bool isPass = isa<ScoredOpInterface>(op) && !isa<AttentionOp>(op);
                      return isPass ? WalkResult::interrupt() : WalkResult::advance();
                    })
                    .wasInterrupted();
    if (target == "cpu" || !asks)
      return std::shared_ptr<CandidateRegisters>();
    auto *dialect = getContext().getLoadedDialect<AttnDialect>();
    if (auto *candidates = dialect->getRegisteredInterface<CandidateInterface>())
      return std::shared_ptr<CandidateRegisters>(candidates->makeRegisters());
    return getOperation().emitError("expected the passes down to room 6 in the registry of "
                                    "dialects, got dialects alone (registerCandidates adds them)");
  }

  LogicalResult transform() override {
    if (failed(checkOptions()))
      return failure();
    ModuleOp module = getOperation();
    const Machine *machine = nullptr;
    if (target == "cuda") {
      machine = &plan::getMachine(module);
      module->setAttr(plan::PlanDialect::kTargetAttrName,
                      plan::TargetAttr::get(&getContext(), machine->name));
    }
    auto registers = makeRegisters();
    if (failed(registers))
      return failure();
    if (machine) {
      checkFused(module, *machine);
      module.walk([&](AttentionGradKeyValueOp op) {
        if (!op->hasAttr(kFusedAttrName))
          splitSums(op, *machine, **registers);
      });
    }
    Scheduler scheduler{machine, lanes, bf16Dot, words.get(), *registers};
    WalkResult walk = module.walk([&](Operation *op) -> WalkResult {
      if (isa<AttentionOp, RowDeltaOp, AttentionGradDeltaOp, AttentionGradQueryOp,
              AttentionGradKeyValueOp>(op))
        return schedule(op, scheduler);
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  ScheduleOptions<Pass> words{*this};
};
} // namespace

std::unique_ptr<Pass> attn::createSetSchedulePass(const SetSchedulePassOptions &options,
                                                  const Overrides &said) {
  auto pass = std::make_unique<SetSchedulePass>(options);
  pass->words = said;
  return pass;
}
