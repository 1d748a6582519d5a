//===- RoleBudgets.cpp - registers of who copies and who computes --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/RoleBudgets.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

/// Boxes of a tile's row beyond which it is wide, and tiles of a turn beyond which they are many.
static constexpr int64_t kMostBoxes = 2, kMostTiles = 2;

/// Whether a producer keeps more than what loops count: with tiles of more than two boxes it
/// searches for ends in memory, asks for pages or sequences, or copies more than two tiles a turn
/// where a condition says so. So does one that gathers rows, but the budget for one consumer leaves
/// it more than that.
static bool keepsMuch(func::FuncOp kernel, int64_t consumers) {
  llvm::SmallDenseMap<Operation *, int64_t, 4> conditionalTiles;
  bool isWide = false, searches = false, asks = false, gathers = false;
  kernel.walk([&](CopyOp copy) {
    gathers |= isGathered(copy);
    auto loop = copy->getParentOfType<LoopLikeOpInterface>();
    auto type = dyn_cast<SharedType>(copy.getDest().getType());
    if (!loop || !type || type.isRow())
      return;
    isWide |= type.getNumSlabs() > kMostBoxes;
    auto argument = dyn_cast<BlockArgument>(copy.getSource());
    if (argument && argument.getOwner() == &kernel.getBody().front())
      for (StringRef name : {PlanDialect::kPagedAttrName, PlanDialect::kRaggedAttrName})
        asks |= bool(kernel.getArgAttr(argument.getArgNumber(), name));
    conditionalTiles[loop] += copy->getParentOp() != loop;
  });
  kernel.walk(
      [&](memref::LoadOp load) { searches |= bool(load->getParentOfType<scf::WhileOp>()); });
  if (gathers)
    return consumers > 1;
  return isWide && (searches || asks || llvm::any_of(conditionalTiles, [&](auto entry) {
                      return entry.second > kMostTiles;
                    }));
}

/// Whether threads gather rows of which a warp copies one at a time: then each has two addresses in
/// a tile.
static bool gathersWideRows(func::FuncOp kernel) {
  return kernel
      .walk([](CopyOp copy) {
        bool isWide = cast<SharedType>(copy.getDest().getType()).getNumSlabs() > kMostBoxes;
        return isWide && isGathered(copy) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

attn::RoleBudget attn::tile::getRoleBudget(func::FuncOp kernel, int64_t consumers) {
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  const Machine &machine = getMachine(kernel);
  RoleBudget budget =
      machine.getBudget(consumers, attribute.isStaying() || keepsMuch(kernel, consumers),
                        attribute.getSchedule().resident);
  // The warpgroup that transposes takes registers from all consumers.
  bool transposes =
      kernel.walk([](TransposeOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (int64_t resident = attribute.getSchedule().resident; transposes) {
    int64_t all = machine.getLaunchRegisters(consumers + 2, resident) * (consumers + 2),
            each = (all - budget.producer - machine.roles.transposer) / consumers /
                   machine.registerStep * machine.registerStep;
    budget.consumer = std::min(each, budget.consumer);
  }
  // Each consumer gives one step.
  if (consumers > 1 && gathersWideRows(kernel))
    budget = {budget.producer + consumers * machine.registerStep,
              budget.consumer - machine.registerStep};
  return budget;
}
