//===- Scheduler.cpp - schedules of ops ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Scheduler.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Schedule/GPUBlock.h"
#include "lib/Transforms/Attn/GradSchedule.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

/// More would not fill any device better.
static constexpr int64_t kMostParts = 64;

bool attn::isPacked(Operation *op) {
  auto attention = dyn_cast<AttentionOp>(op);
  return attention && attention.getQuery().getDefiningOp<PackHeadsOp>();
}

/// Tiles that lie in cells of the mask's reads, where those of the rule do not: to pass over tiles
/// is worth more than that they are a good number of registers.
static Choice fitToCells(Operation *op, Choice choice) {
  constexpr Cell small = {64, 64};
  auto scored = dyn_cast<ScoredOpInterface>(op);
  std::optional<Cell> cell = scored ? findCell(scored.getMask()) : std::nullopt;
  if (cell && !cell->holds({choice.schedule.blockM, choice.schedule.blockN}) && cell->holds(small))
    return {{.blockM = small.rows, .blockN = small.keys}, "cpu-cells"};
  return choice;
}

GPUProblem Scheduler::getProblem(AttentionOp op) const {
  GPUProblem problem = getGPUProblem(op, countSplits());
  problem.fixedSplit = getFixedSplit();
  return problem;
}

int64_t Scheduler::getKeysOfParts(AttentionOp op) const {
  if (keysOfParts > 0 || getFixedSplit() <= 0)
    return keysOfParts;
  return chooseKeysOfParts(*machine, getProblem(op));
}

/// Lets tiles of keys fill the parts of a fixed split, where nobody has said how large tiles are.
void Scheduler::fitToFixedSplit(AttentionOp op, Schedule &schedule) const {
  if (schedule.fixedSplit <= 0 || said.has(&Schedule::blockN))
    return;
  // Of a CPU, whole vectors.
  constexpr int64_t kStep = 16;
  schedule.blockN =
      machine ? getKeysOfParts(op) : fitToParts(schedule.fixedSplit, kStep, schedule.blockN);
}

Choice Scheduler::choose(Operation *op) const {
  auto attention = dyn_cast<AttentionOp>(op);
  if (!attention)
    return machine ? chooseGradForCUDA(op, *machine, registers.get())
                   : fitToCells(op, chooseGradForCPU(lanes));
  Type element = attention.getQuery().getType().getElementType();
  if (!machine)
    return fitToCells(op, chooseForCPU(lanes, bf16Dot && element.isBF16()));
  GPUProblem problem = getProblem(attention);
  if (isPacked(attention))
    return chooseForDecoding(*machine, problem,
                             said.get(&Schedule::blockN).value_or(getKeysOfParts(attention)),
                             said.has(&Schedule::blockN) || said.has(&Schedule::stages));
  return chooseForCUDA(*machine, problem);
}

/// Takes words from the rule's schedule that depend on others, where somebody has said those. A
/// tail, and what is recomputed, belong to blocks that stay by the rule. The columns that are
/// kept fit the registers that the rule's own block leaves.
void Scheduler::dropDependents(Schedule &schedule) const {
  bool saysStay = said.has(&Schedule::stay);
  if (saysStay) {
    schedule.tail = 0;
    schedule.recompute = false;
  }
  if (isBlockSaid() || saysStay || said.has(&Schedule::recompute))
    schedule.keep = 0;
}

/// Sets the words that follow from others.
void Scheduler::settle(Operation *op, Schedule &schedule) const {
  if (!machine)
    return;
  if (areSizesSaid() && !said.has(&Schedule::consumers)) {
    int64_t owned = isa<AttentionGradKeyValueOp>(op) ? schedule.blockN : schedule.blockM;
    // As few as can have all rows.
    int64_t most = machine->getMostRows(1),
            rows = owned % most ? machine->getWarpgroupRows() : most;
    schedule.consumers = std::max<int64_t>(1, owned / rows);
  }
  // A number that is given holds.
  if (isPacked(op) && countSplits() == 1 && !schedule.fixedSplit) {
    schedule.fill = true;
    schedule.splits = kMostParts;
    schedule.stay = false;
  }
  // Sizes that somebody says may leave no room for the blocks of the rule's own.
  auto attention = dyn_cast<AttentionOp>(op);
  auto isTooLarge = [&] {
    auto [bytes, parts] = getFactors(attention.getQuery().getType().getElementTypeBitWidth());
    GPUBlock block{attention.getHeadDim(), attention.getValueDim(), bytes, schedule, parts};
    return getSharedBytes(*machine, block) > machine->getBlockBytes(schedule.resident);
  };
  if (schedule.stay && !said.has(&Schedule::resident))
    schedule.resident = 1;
  while (attention && schedule.resident > 1 && !said.has(&Schedule::resident) && isTooLarge())
    --schedule.resident;
  schedule.lists &= !schedule.stay && !schedule.fixedSplit;
  // Which tile a consumer begins with is a matter of all its rows.
  schedule.apart &= schedule.consumers > 1 && !schedule.fixedSplit;
}

/// Says which row decided, and what it chose.
static void explain(Operation *op, StringRef rule, const Schedule &made, bool isForGPU) {
  std::string text = llvm::formatv("rule {0} chose block_m {1}, block_n {2}, splits {3}", rule,
                                   made.blockM, made.blockN, made.splits);
  if (isForGPU)
    text += llvm::formatv(", stages {0}, consumers {1}{2}{3}", made.stages, made.consumers,
                          made.stay ? ", blocks stay" : "", made.lists ? ", tiles are listed" : "");
  if (made.fixedSplit)
    text += llvm::formatv(", parts of {0} keys", made.fixedSplit);
  if (made.resident > 1)
    text += llvm::formatv(", {0} blocks on a multiprocessor", made.resident);
  if (made.tail)
    text += llvm::formatv(", {0} for each multiprocessor follow", made.tail);
  if (auto way = op->getParentOp()->getAttrOfType<StringAttr>(plan::PlanDialect::kWayAttrName))
    text += llvm::formatv(", for the way {0}", way.getValue());
  remark::passed(op->getLoc(), remark::RemarkOpts::name("schedule").category("attn")) << text;
}

FailureOr<ScheduleAttr> Scheduler::make(Operation *op, const Choice &choice) const {
  Schedule made = choice.schedule;
  dropDependents(made);
  said.apply(made, /*isOnCPU=*/!machine, /*isOfGradient=*/!isa<AttentionOp>(op));
  // Packed rows are one consumer's, whatever other rows are.
  if (isPacked(op))
    made.blockM = choice.schedule.blockM;
  if (auto attention = dyn_cast<AttentionOp>(op))
    fitToFixedSplit(attention, made);
  settle(op, made);
  auto schedule =
      ScheduleAttr::getChecked([&] { return op->emitOpError(); }, op->getContext(), made);
  if (!schedule)
    return failure();
  explain(op, isBlockSaid() ? StringRef("options") : choice.rule, made, machine != nullptr);
  return schedule;
}
