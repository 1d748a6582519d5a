//===- CountRegisters.cpp - registers that the tiles of a program take ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Registers/CountRegisters.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace llvm;
using namespace attn::tile;
using mlir::Operation;

/// Bits of a register.
static constexpr int64_t kRegisterBits = 32;

static bool isElementwise(Operation *op) {
  return mlir::isa_and_nonnull<mlir::arith::ArithDialect, mlir::math::MathDialect>(
      op->getDialect());
}

namespace {
/// Whether a tile can be made element by element where it is used: from scalars, rows and
/// coordinates, or read from memory at places made of them. A tile that takes many steps, as random
/// numbers do, is made once and kept.
class InPlace {
public:
  bool isMade(mlir::Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      return false;
    auto it = known.find(op);
    return it != known.end() ? it->second : known[op] = canMake(op);
  }

private:
  static constexpr size_t kMostSteps = 64;

  static bool isGiven(Operation *op) {
    return mlir::isa<mlir::arith::ConstantOp, BroadcastOp, CoordOp>(op);
  }
  static bool isStep(Operation *op) {
    return isElementwise(op) || mlir::isa<GatherOp, LoadColumnsOp>(op);
  }

  static bool canMake(Operation *op) {
    if (isGiven(op))
      return true;
    SetVector<Operation *> steps;
    steps.insert(op);
    for (size_t at = 0; at < steps.size(); ++at) {
      if (!isStep(steps[at]) || steps.size() > kMostSteps)
        return false;
      for (mlir::Value operand : steps[at]->getOperands()) {
        if (!mlir::isa<mlir::RankedTensorType>(operand.getType()))
          continue;
        Operation *made = operand.getDefiningOp();
        if (!made)
          return false;
        if (!isGiven(made))
          steps.insert(made);
      }
    }
    return true;
  }

  llvm::DenseMap<Operation *, bool> known;
};
} // namespace

/// Whether the tile is a step on the way to others of its block: a function of several steps is
/// computed element by element, unless threads wait between them.
static bool isIntermediate(mlir::Value value) {
  Operation *op = value.getDefiningOp();
  return op && isElementwise(op) && !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return isElementwise(user) && user->getBlock() == op->getBlock();
         });
}

/// Whether all elements of a tile are there before and after the op: threads wait for each other or
/// for a product, or control flow joins.
static bool isMeeting(Operation *op) {
  return mlir::isa<MmaWaitOp, MmaAsyncOp, BarrierWaitOp, SyncOp, NamedBarrierOp>(op) ||
         op->getNumRegions() > 0;
}

namespace {
using ValueSet = SmallSetVector<mlir::Value, 16>;

/// Walks blocks backwards with the set of values that are live.
struct Pressure {
  RegisterCount worst;
  int64_t bits = 0;
  InPlace inPlace;

  void visit(mlir::Block &block, const ValueSet &through) {
    ValueSet live;
    for (Operation &op : llvm::reverse(block)) {
      if (!op.hasTrait<mlir::OpTrait::IsTerminator>())
        count(live, through, &op);
      for (mlir::Value result : op.getResults())
        live.remove(result);
      if (op.getNumRegions() > 0)
        visitRegions(op, live, through);
      live.insert(op.operand_begin(), op.operand_end());
      addFlying(op, live);
    }
  }

private:
  void visitRegions(Operation &op, ValueSet &live, const ValueSet &through) {
    ValueSet inside(through);
    inside.insert(live.begin(), live.end());
    llvm::SetVector<mlir::Value> used;
    mlir::getUsedValuesDefinedAbove(op.getRegions(), used);
    // Values that a loop uses stay for its next step.
    if (mlir::isa<mlir::LoopLikeOpInterface>(op))
      inside.insert(used.begin(), used.end());
    for (mlir::Region &region : op.getRegions())
      for (mlir::Block &inner : region)
        visit(inner, inside);
    live.insert(used.begin(), used.end());
  }

  /// A product reads its left operand until threads have waited for it, and has its sum in place.
  static void addFlying(Operation &op, ValueSet &live) {
    if (!mlir::isa<MmaWaitOp>(op))
      return;
    for (mlir::Value operand : op.getOperands())
      if (auto product = operand.getDefiningOp<MmaAsyncOp>())
        for (mlir::Value read : {mlir::Value(product.getLhs()), mlir::Value(product.getKept())})
          if (read)
            live.insert(read);
  }

  void count(const ValueSet &live, const ValueSet &through, Operation *op) {
    bool meets = isMeeting(op);
    int64_t sum = 0;
    for (mlir::Value value : live)
      sum += countBits(value, meets);
    for (mlir::Value value : through)
      if (!live.contains(value))
        sum += countBits(value, meets);
    if (sum <= bits)
      return;
    bits = sum;
    worst = {int64_t(divideCeil(bits, kRegisterBits)), op};
  }

  /// Bits of a thread that hold the value.
  int64_t countBits(mlir::Value value, bool meets) {
    mlir::RankedTensorType type = getTileType(value.getType());
    if (!type || !hasLayout(type) || !mlir::isa<mlir::FloatType>(type.getElementType()) ||
        inPlace.isMade(value) || (!meets && isIntermediate(value)))
      return 0;
    return getLayout(type).getNumRegisters() * type.getElementTypeBitWidth();
  }
};
} // namespace

RegisterCount attn::tile::countRegisters(mlir::Region &region) {
  Pressure pressure;
  for (mlir::Block &block : region)
    pressure.visit(block, {});
  return pressure.worst;
}

llvm::SmallVector<RoleCount> attn::tile::countRegisters(mlir::func::FuncOp kernel) {
  llvm::SmallVector<RoleCount> counts;
  kernel.walk([&](SpecializeOp op) {
    for (auto [name, budget, region] :
         llvm::zip_equal(op.getNames(), op.getRegisters(), op.getRoles()))
      counts.push_back({mlir::cast<mlir::StringAttr>(name).getValue(), budget,
                        attn::tile::countRegisters(region)});
  });
  if (!counts.empty())
    return counts;
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  const Machine &machine = plan::getMachine(kernel);
  int64_t launch =
      machine.getLaunchRegisters(attribute.getWarpgroups(), attribute.getSchedule().resident);
  counts.push_back(
      {"block", std::min(launch, machine.mostRegisters), countRegisters(kernel.getBody())});
  return counts;
}
