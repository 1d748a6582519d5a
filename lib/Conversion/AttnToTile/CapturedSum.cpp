//===- CapturedSum.cpp - gradients of captured tensors, which blocks add to -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/CapturedSum.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "lib/Conversion/AttnToTile/SizeFactor.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// The parts of the grid
//===----------------------------------------------------------------------------------------===//

/// All ops within `scope` that make `values`, and the arguments of blocks that these come from.
static void findMakers(ValueRange values, Operation *scope, DenseSet<Operation *> &makers,
                       DenseSet<Value> &arguments) {
  SmallVector<Value> work(values);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op)
      arguments.insert(value);
    else if (scope->isProperAncestor(op) && makers.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
}

/// Whether the indices are the same for all keys. (score, gradient, b, h, m, n)
static bool isByRow(ContributeOp contribution) {
  DenseSet<Operation *> makers;
  DenseSet<Value> arguments;
  Region *grad = contribution->getParentRegion();
  findMakers(contribution.getIndices(), grad->getParentOp(), makers, arguments);
  return llvm::none_of(ArrayRef<unsigned>{0, 1, 5}, [&](unsigned number) {
    return arguments.contains(grad->getArgument(number));
  });
}

namespace {
/// By how much the values of a region grow from (m, n) to (m + 1, n + 1). Values whose growth
/// differs from place to place are not in it.
class Growths {
public:
  explicit Growths(Region &grad) : grad(grad) {
    for (unsigned argument : {2, 3})
      growths[grad.getArgument(argument)] = 0;
    for (unsigned argument : {4, 5})
      growths[grad.getArgument(argument)] = 1;
    for (Operation &op : grad.front())
      if (std::optional<int64_t> growth = infer(op); growth && op.getNumResults() == 1)
        growths[op.getResult(0)] = *growth;
  }

  std::optional<int64_t> get(Value value) const {
    if (!grad.isAncestor(value.getParentRegion()))
      return 0;
    auto known = growths.find(value);
    return known == growths.end() ? std::nullopt : std::optional(known->second);
  }

private:
  static bool isWide(Value value) {
    return value.getType().isIndex() || value.getType().getIntOrFloatBitWidth() >= 32;
  }

  std::optional<int64_t> infer(Operation &op) const {
    SmallVector<int64_t> of;
    for (Value operand : op.getOperands()) {
      std::optional<int64_t> growth = get(operand);
      // Sums of sums stay small.
      if (!growth || std::abs(*growth) > 64)
        return std::nullopt;
      of.push_back(*growth);
    }
    if (isa<arith::AddIOp>(op))
      return of[0] + of[1];
    if (isa<arith::SubIOp>(op))
      return of[0] - of[1];
    // Positions fit 32 bits.
    if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp>(op) &&
        isWide(op.getOperand(0)) && isWide(op.getResult(0)))
      return of[0];
    bool isFixed = llvm::all_of(of, [](int64_t growth) { return growth == 0; });
    bool isDifference = isa<arith::CmpIOp>(op) && of[0] == of[1];
    return isFixed || isDifference ? std::optional<int64_t>(0) : std::nullopt;
  }

  Region &grad;
  DenseMap<Value, int64_t> growths;
};
} // namespace

static SharedPlace getSharedPlace(ContributeOp contribution) {
  if (isByRow(contribution))
    return SharedPlace::Row;
  Growths growths(*contribution->getParentRegion());
  bool isByDiagonal =
      llvm::all_of(contribution.getIndices(), [&](Value index) { return growths.get(index) == 0; });
  return isByDiagonal ? SharedPlace::Diagonal : SharedPlace::Element;
}

std::optional<CapturedSum> attn::findCapturedSum(scf::ForallOp grid) {
  CapturedSum sum;
  grid.walk([&](GradCapturedStepOp step) {
    sum.step = step;
    return WalkResult::interrupt();
  });
  if (!sum.step)
    return std::nullopt;
  for (auto contribution : sum.step.getGrad().getOps<ContributeOp>())
    sum.places.push_back(getSharedPlace(contribution));
  // The loop over tiles of keys is the one that moves the step along them.
  DenseSet<Operation *> makers;
  DenseSet<Value> arguments;
  if (!sum.step.getOrigin().empty())
    findMakers(sum.step.getOrigin().drop_front(3), grid, makers, arguments);
  unsigned next = grid.getRank();
  for (Operation *op = sum.step->getParentOp(); op != grid; op = op->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop || arguments.contains(loop.getInductionVar()))
      continue;
    while (next > 0 && !isOneInteger(grid.getMixedUpperBound()[next - 1]))
      --next;
    if (next > 0)
      sum.loops[loop] = --next;
  }
  return sum;
}

/// Whether the block knows the values before any loop that it has itself, or branch.
static bool areOfBlock(ValueRange values, scf::ForallOp grid, const CapturedSum &sum) {
  DenseSet<Operation *> makers;
  DenseSet<Value> arguments;
  findMakers(values, grid, makers, arguments);
  auto isOfBlock = [&](Operation *parent) {
    return parent == grid || sum.loops.contains(parent) || !grid->isAncestor(parent);
  };
  return llvm::all_of(makers, [&](Operation *op) { return isOfBlock(op->getParentOp()); }) &&
         llvm::all_of(arguments, [&](Value argument) {
           return isOfBlock(argument.getParentBlock()->getParentOp());
         });
}

LogicalResult attn::checkCapturedSum(scf::ForallOp grid, const CapturedSum &sum) {
  GradCapturedStepOp first = sum.step;
  if (grid.getRank() != 3 || grid.getNumResults() != 1)
    return grid.emitOpError("expected a grid over (B, H, M tiles) that makes the gradient of a "
                            "captured tensor alone, got ")
           << grid.getRank() << " dimensions and " << grid.getNumResults() << " results";
  WalkResult walk = grid.walk([&](Operation *op) -> WalkResult {
    if (isa<scf::ForOp, scf::IfOp>(op))
      for (Type type : op->getResultTypes())
        if (isa<RankedTensorType>(type) && type != first.getSum().getType())
          return op->emitOpError("expected to carry the sum of type ")
                 << first.getSum().getType() << ", got " << type;
    auto step = dyn_cast<GradCapturedStepOp>(op);
    if (!step)
      return WalkResult::advance();
    if (step.getOrigin().size() != 4 || step.getQuery() != first.getQuery() ||
        step.getOrigin().take_front(3) != first.getOrigin().take_front(3))
      return step.emitOpError("expected all steps of a grid at one position of their rows");
    ValueRange rows = step.getOrigin().take_front(3);
    if (!areOfBlock(rows, grid, sum) || !areOfBlock(step.getQuery(), grid, sum))
      return step.emitOpError("expected the rows of a block, got those of a loop inside of it");
    if (llvm::map_to_vector(step.getGrad().getOps<ContributeOp>(), getSharedPlace) != sum.places)
      return step.emitOpError("expected the contributions of the grid's first step");
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

//===----------------------------------------------------------------------------------------===//
// Adding
//===----------------------------------------------------------------------------------------===//

SmallVector<Value> attn::getPlace(BlockConverter &block, ContributeOp contribution,
                                  ValueRange indices, RankedTensorType shape) {
  TileBuilder &b = block.builder;
  const ArgumentSlice &part = block.captured->part;
  SmallVector<Value> place;
  for (auto [dim, index, first] : llvm::enumerate(indices, part.position)) {
    // A part begins elsewhere where its block owns the index, which is a position then.
    if (!isConstantIntValue(first, 0)) {
      Value offset =
          isa<RankedTensorType>(index.getType()) ? b.splat(first, shape.getShape()) : first;
      place.push_back(b.createOrFold<arith::AddIOp>(index, offset));
    } else if (mayBeOutside(contribution.getIndices()[dim], contribution.getTensor(), dim)) {
      place.push_back(keepInside(b, index, part.memref, dim));
    } else {
      place.push_back(index);
    }
  }
  return place;
}

LogicalResult attn::addRows(BlockConverter &block, ValueRange unadded) {
  if (unadded.empty())
    return success();
  TileBuilder &b = block.builder;
  GradCapturedStepOp step = block.captured->step;
  b.setLoc(step.getLoc());
  SmallVector<Value> at;
  for (OpFoldResult position : step.getMixedOrigin())
    at.push_back(isa<Value>(position) && at.size() == 3 ? Value() : block.lookup(step, position));
  if (llvm::is_contained(ArrayRef(at).take_front(3), Value()))
    return failure();
  Value size = block.findSlice(step.getQuery())->sizes.front();
  auto shape = RankedTensorType::get({block.rows}, b.getF32Type());
  Value row = tile::CoordOp::create(b, shape.clone(b.getIndexType()), 0, at[2]);
  Value end = b.createOrFold<arith::AddIOp>(at[2], size);
  Value isInside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, b.splat(end, shape.getShape()));
  row = b.clampBelow(row, at[2], size);

  // Of the region only what makes the indices.
  DenseSet<Operation *> needed;
  DenseSet<Value> arguments;
  for (auto [contribution, place] :
       llvm::zip_equal(step.getGrad().getOps<ContributeOp>(), block.captured->places)) {
    if (place != SharedPlace::Row)
      continue;
    findMakers(contribution.getIndices(), step, needed, arguments);
    needed.insert(contribution);
  }
  auto add = [&](ContributeOp contribution, Value, ValueRange indices) -> LogicalResult {
    Value sum = tile::ReduceOp::create(b, shape, tile::Combiner::Add, unadded.front(), Value());
    unadded = unadded.drop_front();
    tile::ScatterAddOp::create(b, sum, block.captured->part.memref,
                               getPlace(block, contribution, indices, shape), isInside);
    return success();
  };
  return inlineContributions(block, step.getGrad(), {Value(), Value(), at[0], at[1], row, Value()},
                             shape, needed, add);
}

//===----------------------------------------------------------------------------------------===//
// Starting with zeros
//===----------------------------------------------------------------------------------------===//

/// The factors of a grid with a block for each tile of 64 columns of the last dimension, and of as
/// many rows, or those of a warpgroup, of the one before.
static constexpr int64_t kZeros = 64;

static int64_t getTile(const Machine &machine, MemRefType type, int64_t dim) {
  if (dim + 2 < type.getRank())
    return 1;
  bool isColumns = type.getRank() > 1 && dim + 1 == type.getRank();
  return isColumns ? kZeros : std::max(kZeros, machine.getWarpgroupRows());
}

FailureOr<ArrayAttr> attn::getGridOfZeros(Operation *function, MemRefType type,
                                          ArrayRef<OpFoldResult> sizes) {
  const Machine &machine = plan::getMachine(function);
  Builder b(type.getContext());
  SmallVector<Attribute> factors;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    FailureOr<Attribute> factor = getSizeFactor(function, size, getTile(machine, type, dim));
    if (failed(factor))
      return failure();
    factors.push_back(*factor);
  }
  ArrayAttr one = b.getArrayAttr({});
  return b.getArrayAttr({b.getArrayAttr(factors), one, one});
}

void attn::emitZeros(TileBuilder &b, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  const Machine &machine = plan::getMachine(b.getInsertionBlock()->getParentOp());
  Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
  if (type.getRank() == 0) {
    memref::StoreOp::create(b, zero, memref);
    return;
  }
  Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  SmallVector<Value> position(type.getRank());
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    Value step = arith::ConstantIndexOp::create(b, getTile(machine, type, dim));
    Value size = memref::DimOp::create(b, memref, arith::ConstantIndexOp::create(b, dim));
    Value count = arith::CeilDivUIOp::create(b, size, step);
    position[dim] = arith::MulIOp::create(b, arith::RemUIOp::create(b, block, count), step);
    block = arith::DivUIOp::create(b, block, count);
  }
  SmallVector<int64_t> shape;
  for (int64_t dim = std::max<int64_t>(type.getRank() - 2, 0); dim < type.getRank(); ++dim)
    shape.push_back(getTile(machine, type, dim));
  tile::StoreOp::create(b, b.splat(zero, shape), memref, position);
}
