//===- RoleBudgets.cpp - registers of who copies and who computes --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/RoleBudgets.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

/// Whether a producer keeps more than what loops count: with tiles of more than two boxes it
/// searches for ends in memory, asks for pages or sequences, or copies more than two tiles a turn
/// where a condition says so.
static bool keepsMuch(func::FuncOp kernel) {
  constexpr int64_t mostBoxes = 2, mostTiles = 2;
  llvm::SmallDenseMap<Operation *, int64_t, 4> conditionalTiles;
  bool isWide = false, searches = false, asks = false;
  kernel.walk([&](CopyOp copy) {
    auto loop = copy->getParentOfType<LoopLikeOpInterface>();
    auto type = dyn_cast<SharedType>(copy.getDest().getType());
    if (!loop || !type || type.isRow())
      return;
    isWide |= type.getNumSlabs() > mostBoxes;
    auto argument = dyn_cast<BlockArgument>(copy.getSource());
    if (argument && argument.getOwner() == &kernel.getBody().front())
      for (StringRef name : {PlanDialect::kPagedAttrName, PlanDialect::kRaggedAttrName})
        asks |= bool(kernel.getArgAttr(argument.getArgNumber(), name));
    conditionalTiles[loop] += copy->getParentOp() != loop;
  });
  kernel.walk(
      [&](memref::LoadOp load) { searches |= bool(load->getParentOfType<scf::WhileOp>()); });
  return isWide && (searches || asks || llvm::any_of(conditionalTiles, [&](auto entry) {
                      return entry.second > mostTiles;
                    }));
}

attn::RoleBudget attn::tile::getRoleBudget(func::FuncOp kernel, int64_t consumers) {
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  return getMachine(kernel).getBudget(consumers, attribute.isStaying() || keepsMuch(kernel),
                                      attribute.getSchedule().resident);
}
