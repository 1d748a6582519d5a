//===- SetSchedule.cpp - attn-set-schedule -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Rooms/RoomPass.h"
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

/// Why the op's schedule does not work on the machine, if it does not. Sums by rows take any block
/// of rows.
static LogicalResult checkBlock(Operation *op, const Machine &machine, ScheduleAttr schedule) {
  auto scored = dyn_cast<ScoredOpInterface>(op);
  if (!scored || !hasProducts(scored))
    return success();
  std::string why;
  if (isa<AttentionOp>(op))
    why = refuseBlock(machine, getGPUBlock(scored.getHeadDim(), scored.getValueDim(),
                                           scored.getQuery().getType().getElementType(), schedule));
  else
    why = refuseGradSchedule(machine, scored, schedule);
  return why.empty() ? success() : op->emitOpError(why);
}

namespace {
struct SetSchedulePass
    : RoomPass<attn::impl::SetSchedulePassBase<SetSchedulePass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  Choice choose(Operation *op, const Machine *machine) {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention)
      return machine ? chooseGradForCUDA(op, *machine) : chooseGradForCPU(lanes);
    if (machine && isPacked(attention))
      return chooseForDecoding(*machine, getGPUProblem(attention, splits),
                               attention.getQuery().getType().getElementTypeBitWidth() / 8, blockN,
                               blockN || stages);
    if (machine) {
      GPUProblem problem = getGPUProblem(attention, splits);
      auto few = op->hasAttr(kFewAttrName)      ? chooseForFewRows(*machine, problem)
                 : op->hasAttr(kNarrowAttrName) ? chooseForFewKeys(*machine, problem)
                                                : std::nullopt;
      if (few)
        return *few;
      bool isMarked = op->hasAttr(kShortAttrName) || op->hasAttr(kLongAttrName);
      auto choice = isMarked ? chooseForLength(*machine, problem) : std::nullopt;
      return choice ? choice->choice : chooseForCUDA(*machine, problem);
    }
    return chooseForCPU(lanes, bf16Dot && attention.getQuery().getType().getElementType().isBF16());
  }

  LogicalResult checkOptions() {
    if (target != "cpu" && target != "cuda")
      return getOperation().emitError("expected target cpu or cuda, got '") << target << "'";
    if (search < 0 || search > std::numeric_limits<int32_t>::max())
      return getOperation().emitError("expected rows of a search from 0 to 2147483647, got ")
             << search.getValue();
    if (!llvm::is_contained({"auto", "true", "false"}, stay.getValue()))
      return getOperation().emitError("expected stay=true, false or auto, got '") << stay << "'";
    int64_t most = int64_t(1) << 30;
    if (blockM < 0 || blockN < 0 || stages < 0 || splits < 1 ||
        std::max({blockM.getValue(), blockN.getValue(), stages.getValue(), splits.getValue()}) >
            most)
      return getOperation().emitError("expected block-m, block-n and stages from 0 to 2^30 and "
                                      "splits from 1 to 2^30, got ")
             << blockM.getValue() << ", " << blockN.getValue() << ", " << stages.getValue()
             << " and " << splits.getValue();
    return success();
  }

  /// Of the rule, but for what options say. `machine` is null on a CPU, where blocks have no stages
  /// and one thread.
  FailureOr<ScheduleAttr> makeSchedule(Operation *op, const Machine *machine) {
    Choice choice = choose(op, machine);
    const Schedule &sizes = choice.schedule;
    Schedule made = sizes;
    // Packed rows are one consumer's, whatever other rows are.
    if (blockM && !isPacked(op))
      made.blockM = blockM;
    if (blockN)
      made.blockN = blockN;
    if (machine && stages)
      made.stages = stages;
    if (machine && (blockM || blockN)) {
      int64_t owned = isa<AttentionGradKeyValueOp>(op) ? made.blockN : made.blockM;
      made.consumers = std::max<int64_t>(1, owned / machine->productRows);
    }
    made.splits = isa<AttentionOp>(op) ? splits.getValue() : 1;
    // A number that is given holds.
    made.fill = machine && isPacked(op) && made.splits == 1;
    if (made.fill)
      made.splits = kMostParts;
    made.stay = machine && isa<AttentionOp>(op) && !made.fill &&
                (stay == "auto" ? sizes.stay : stay == "true");
    made.lists = machine && isa<AttentionOp>(op) && sizes.lists && !made.stay;
    made.slack = !machine || !isa<AttentionOp>(op) ? -1 : slack == -2 ? sizes.slack : slack;
    bool staysByRule = made.stay && stay == "auto";
    made.tail = staysByRule ? sizes.tail : 0;
    made.recompute = machine && (recompute || (staysByRule && sizes.recompute));
    made.hold = machine && isa<AttentionOp>(op) && (hold || sizes.hold);
    made.apart = machine && isa<AttentionOp>(op) && (apart || sizes.apart) && made.consumers > 1;
    // What registers the rule's own blocks leave.
    bool isAsChosen = !blockM && !blockN && !stages && stay == "auto" && !recompute;
    made.keep = !machine || !isa<AttentionOp>(op) ? 0
                : keep >= 0                       ? keep.getValue()
                : isAsChosen                      ? sizes.keep
                                                  : 0;
    auto schedule =
        ScheduleAttr::getChecked([&] { return op->emitOpError(); }, &getContext(), made);
    if (!schedule)
      return failure();
    std::string text =
        llvm::formatv("rule {0} chose block_m {1}, block_n {2}, splits {3}",
                      blockM || blockN || stages ? StringRef("options") : choice.rule, made.blockM,
                      made.blockN, made.splits);
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
    if (search == 0 || !attention || isPacked(op) || (!blockM && !blockN) ||
        !hasProducts(cast<ScoredOpInterface>(op)))
      return success();
    GPUBlock block = getGPUBlock(attention.getHeadDim(), attention.getValueDim(),
                                 attention.getQuery().getType().getElementType(), schedule);
    std::string why = leaveOut(machine, getGPUProblem(attention, splits), block, search);
    return why.empty() ? success() : op->emitOpError(why);
  }

  LogicalResult transform() override {
    if (failed(checkOptions()))
      return failure();
    ModuleOp module = getOperation();
    const Machine *machine = nullptr;
    if (target == "cuda") {
      machine = &tile::getMachine(module);
      module->setAttr(tile::TileDialect::kTargetAttrName,
                      tile::TargetAttr::get(&getContext(), machine->name));
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
};
} // namespace
