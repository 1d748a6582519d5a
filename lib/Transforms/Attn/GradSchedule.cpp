//===- GradSchedule.cpp - schedules of gradients on a GPU -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/GradSchedule.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Analysis/MaskTiles/Cells.h"
#include "lib/Schedule/GradBlock.h"
#include "lib/Transforms/Attn/GradSteps.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileConditions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

/// The block of a pass, but for the numbers of its schedule.
static GradBlock describe(ScoredOpInterface op) {
  auto [bytes, parts] = getFactors(op.getQuery().getType().getElementTypeBitWidth());
  GradBlock block{op.getHeadDim(), op.getValueDim(), bytes, false, 0, 0, 0};
  block.parts = parts;
  if (auto pass = dyn_cast<AttentionGradKeyValueOp>(op.getOperation())) {
    block.rowsRun = true;
    block.sumsKeys = bool(pass.getDKey());
    block.sumsValues = bool(pass.getDValue());
  }
  return block;
}

static bool divides(Region &region) {
  return region
      .walk([](Operation *op) {
        bool isQuotient = isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
                              arith::FloorDivSIOp, arith::CeilDivSIOp, arith::CeilDivUIOp>(op);
        return isQuotient && !matchPattern(op->getOperand(1), m_Constant())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static int64_t countOtherRanges(Region &mask) {
  int64_t count = 0;
  mask.walk([&](Operation *op) {
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (isa<arith::OrIOp>(op))
      ++count;
    else if (isa<arith::XOrIOp>(op) ||
             (compare && compare.getPredicate() == arith::CmpIPredicate::ne))
      count += 2;
  });
  return count;
}

/// Whether an index is an element of another tensor.
static bool isElement(Value index) {
  if (auto cast = index.getDefiningOp<arith::IndexCastOp>())
    index = cast.getIn();
  return bool(index.getDefiningOp<tensor::ExtractOp>());
}

static void measureMask(Region &mask, GradWork &work) {
  RegionWork alone = measureRegion(mask);
  work.isMasked = !mask.empty();
  work.gathersMask = alone.gathers;
  work.maskOperations = std::max<int64_t>(alone.weight - 1, 0);
  work.otherRanges = countOtherRanges(mask);
  work.divides = divides(mask);
  mask.walk([&](tensor::ExtractOp read) {
    work.readsMask = true;
    work.searchesMask |= bool(read.getTensor().getDefiningOp<AssumeOp>());
    work.chainsMask |= llvm::any_of(read.getIndices(), isElement);
  });
}

static Region *findGrad(ScoredOpInterface op) {
  return llvm::TypeSwitch<Operation *, Region *>(op)
      .Case<AttentionGradQueryOp, AttentionGradKeyValueOp>(
          [](auto pass) { return &pass.getGrad(); })
      .Default(nullptr);
}

/// Whether gradients of scores are computed from the scores, or added to a captured tensor's beside
/// them.
static bool derivesScores(Region *grad) {
  return grad && !grad->empty() &&
         (!grad->getArgument(0).use_empty() || !grad->front().getOps<ContributeOp>().empty());
}

static GradWork measureAll(ScoredOpInterface op) {
  RegionWork regions = measureRegions(op);
  GradWork work;
  Region *grad = findGrad(op);
  work.derivesScores = derivesScores(grad);
  work.isLong = regions.isLong;
  work.isRagged = findRagged(op.getQuery()) || findRagged(op.getKey());
  work.keptScores = grad ? countKeptScores(op.getScore(), *grad) : 0;
  // A score may be kept for its derivative, and what both compute takes registers beside it; a
  // factor until both products have it.
  work.hasFactor = bool(getFactor(op.getScore()));
  constexpr int64_t mostScoreWork = 20;
  RegionWork score = measureRegion(op.getScore());
  work.hasScore = !op.getScore().empty();
  work.gathersScore = score.gathers;
  work.tablesOfScore = score.tables;
  work.shiftsScore = score.shifts > 0;
  if (auto keyValue = dyn_cast<AttentionGradKeyValueOp>(op.getOperation()))
    work.readsLow = bool(keyValue.getNegLow2());
  if (work.derivesScores || work.hasFactor || score.isLong || score.weight > mostScoreWork)
    work.heldTiles = 1 + regions.weight / 8 + (regions.isLong ? 6 : 0) + (work.hasFactor ? 1 : 0);
  measureMask(op.getMask(), work);
  work.rowConditions = regions.rowConditions;
  work.maskWeight = work.isMasked && work.heldTiles ? std::max<int64_t>(regions.weight - 1, 0)
                                                    : work.maskOperations;
  return work;
}

/// The largest tile that passes have: blocks own rows or keys of two consumers, or of one, and of
/// what runs, tiles are a power of two (fitToCells).
static Cell getLargestTile(const Machine &machine) {
  int64_t largest = 2 * machine.getWarpgroupRows();
  return {largest, largest};
}

/// Whether sums of the widest heads leave no registers for two loops over a list.
static bool isWidest(const Machine &machine, ScoredOpInterface op) {
  return std::max(op.getHeadDim(), op.getValueDim()) > 3 * machine.getWarpgroupRows();
}

/// Where reads of cells decide about all tiles that passes have, the op with what is left of its
/// mask in them, to be measured; else null.
static OwningOpRef<Operation *> copyInCells(const Machine &machine, ScoredOpInterface op) {
  std::optional<Cell> cell = findCell(op.getMask());
  bool rowsRun = isa<AttentionGradKeyValueOp>(op.getOperation());
  if (!cell || !cell->holds(getLargestTile(machine)) ||
      !(rowsRun || isa<AttentionGradQueryOp>(op.getOperation())))
    return nullptr;
  OwningOpRef<Operation *> copy = copyInCell(op, *cell);
  if (copy && rowsRun && isWidest(machine, op) &&
      !cast<ScoredOpInterface>(copy.get()).getMask().empty())
    return nullptr;
  return copy;
}

/// Whether tiles have few parts about each of which a read decides: they are listed, and keep the
/// mask.
static bool areListedByParts(const Machine &machine, ScoredOpInterface op) {
  Cell largest = getLargestTile(machine);
  std::optional<Cell> cell = findCell(op.getMask());
  bool isPass = isa<AttentionGradQueryOp, AttentionGradKeyValueOp>(op.getOperation());
  return isPass && cell && !cell->holds(largest) && !isWidest(machine, op) &&
         getPart(largest, *cell).rows != 0 && copyInCell(op, *cell);
}

static GradWork measure(const Machine &machine, ScoredOpInterface op) {
  OwningOpRef<Operation *> copy = copyInCells(machine, op);
  GradWork work = measureAll(copy ? cast<ScoredOpInterface>(copy.get()) : op);
  work.isListed = copy || areListedByParts(machine, op);
  return work;
}

/// Products of fewer columns wait for shared memory.
static constexpr int64_t kLeastRunning = 32;

/// Tiles lie in cells, and are listed. Blocks that own rows have no loop where blocks that own keys
/// add to their sums.
static void fitToCells(ScoredOpInterface op, Schedule &schedule) {
  int64_t &running =
      isa<AttentionGradKeyValueOp>(op.getOperation()) ? schedule.blockM : schedule.blockN;
  running = llvm::bit_floor(uint64_t(running));
  bool hasLoop = !op->hasAttr(kFusedAttrName) || !isa<AttentionGradQueryOp>(op.getOperation());
  Cell part = getPart({schedule.blockM, schedule.blockN}, *findCell(op.getMask()));
  schedule.lists = hasLoop && part.rows != 0;
}

namespace {
/// Chooses the block of one pass.
class PassRule {
public:
  PassRule(ScoredOpInterface op, const Machine &machine, CandidateRegisters &registers)
      : op(op), machine(machine), registers(registers), work(measure(machine, op)) {}

  Choice choose() {
    if (op->hasAttr(kFusedAttrName) && isa<AttentionGradKeyValueOp>(op.getOperation()))
      if (auto block = chooseFusedBlock(machine, describe(op), work))
        return fit(*block, "cuda-grad-fused");
    GradBlock block = chooseWhole();
    if (auto divided = findDivision(block))
      return fit(*divided, "cuda-grad-divided");
    return fit(block, block.rowsRun ? "cuda-grad-keys" : "cuda-grad-rows");
  }

  /// Whether both sums do not fit a thread together, and two roles cannot share them out either.
  bool splitsSums() {
    GradBlock block = chooseWhole();
    return isTooMuch(block) && !findDivision(block);
  }

private:
  Schedule makeSchedule(const GradBlock &block) {
    Schedule schedule = getSchedule(machine, block);
    if (work.isListed)
      fitToCells(op, schedule);
    return schedule;
  }
  Choice fit(const GradBlock &block, StringRef rule) { return {makeSchedule(block), rule}; }

  int64_t countSpare(const GradBlock &block) {
    return registers.countSpare(op, makeSchedule(block)).value_or(0);
  }
  auto getCount() {
    return [this](const GradBlock &block) { return countSpare(block); };
  }

  GradBlock chooseWhole() { return chooseGradBlock(machine, describe(op), work, getCount()); }

  /// Whether a thread has no registers for both sums, in the best block that there is. With
  /// factors, to make the weights twice costs less than narrow products.
  bool isTooMuch(const GradBlock &block) {
    return !fitsGradBlock(machine, block, work, getCount()) ||
           (work.hasFactor && block.running < kLeastRunning);
  }

  /// Both sums as the business of two roles, where they are too much for one, or leave it narrow
  /// products only.
  std::optional<GradBlock> findDivision(const GradBlock &block) {
    // Where a count says what fits, 32 rows are few under a mask too.
    bool isFew = isCounted(machine, block, work) && work.isMasked;
    int64_t least = isFew ? kLeastRunning + 1 : kLeastRunning;
    bool isNarrow = block.rowsRun && block.running < least;
    return isNarrow || isTooMuch(block) ? chooseDividedBlock(machine, block, work, getCount())
                                        : std::nullopt;
  }

  ScoredOpInterface op;
  const Machine &machine;
  CandidateRegisters &registers;
  GradWork work;
};
} // namespace

Choice attn::chooseGradForCUDA(Operation *op, const Machine &machine,
                               CandidateRegisters *registers) {
  if (auto scored = dyn_cast<ScoredOpInterface>(op))
    return PassRule(scored, machine, *registers).choose();
  int64_t rows = 2 * machine.getWarpgroupRows();
  return {{.blockM = rows, .blockN = rows, .consumers = 2}, "cuda-rows"};
}

std::string attn::refuseGradSchedule(const Machine &machine, ScoredOpInterface op,
                                     ScheduleAttr schedule) {
  return refuseGradBlock(machine, withSchedule(machine, describe(op), schedule.getWords()));
}

void attn::checkFused(ModuleOp module, const Machine &machine) {
  llvm::SmallDenseSet<Attribute, 4> refused;
  module.walk([&](AttentionGradKeyValueOp op) {
    auto scored = cast<ScoredOpInterface>(op.getOperation());
    Attribute number = op->getAttr(kFusedAttrName);
    if (number && !chooseFusedBlock(machine, describe(scored), measure(machine, scored)))
      refused.insert(number);
  });
  module.walk([&](Operation *op) {
    if (refused.contains(op->getAttr(kFusedAttrName)))
      op->removeAttr(kFusedAttrName);
  });
}

std::optional<Schedule> attn::chooseParts(AttentionGradKeyValueOp pass, int64_t mostParts) {
  bool isFused = pass->hasAttr(kFusedAttrName), isWide = pass.getHeadDim() > 96;
  // Scores that read a tensor at each place, f32, and, where blocks add to gradients of queries,
  // factors of weights beside wide sums.
  if (pass.getQuery().getType().getElementTypeBitWidth() != 16 ||
      measureRegion(pass.getScore()).gathers || (isFused && isWide && getFactor(pass.getScore())))
    return std::nullopt;
  Schedule words = pass->getAttrOfType<ScheduleAttr>(kScheduleAttrName).getWords();
  words.splits = mostParts;
  // Without a mask as many rows as each of two consumers has keys spill 4 bytes.
  bool isSquare = words.consumers == 2 && 2 * words.blockM == words.blockN;
  if (isFused && isWide && pass.getMask().empty() && isSquare)
    words.blockM = words.blockM * 3 / 4;
  words.fill = true;
  // Bounds of the part live as long as the block otherwise, which spills at D = 128.
  words.recompute = true;
  return words;
}

void attn::splitSums(AttentionGradKeyValueOp op, const Machine &machine,
                     CandidateRegisters &registers) {
  auto scored = cast<ScoredOpInterface>(op.getOperation());
  if (!op.getDKey() || !op.getDValue() || !PassRule(scored, machine, registers).splitsSums())
    return;
  OpBuilder b(op);
  auto createPass = [&](Type keyType, Type valueType) {
    auto pass = AttentionGradKeyValueOp::create(
        b, op.getLoc(), keyType, valueType, TypeRange(), op.getQuery(), op.getKey(), op.getValue(),
        op.getDOutput(), op.getNegLse2(), op.getDelta(), op.getNegLow2(), op.getScale(),
        op.getOrigin(), /*wrt=*/ValueRange());
    copyRegions(op, pass);
    return pass;
  };
  op.getDKey().replaceAllUsesWith(createPass(op.getDKey().getType(), Type()).getDKey());
  op.getDValue().replaceAllUsesWith(createPass(Type(), op.getDValue().getType()).getDValue());
  op.erase();
}
