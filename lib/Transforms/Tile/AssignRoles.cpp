//===- AssignRoles.cpp - tile-assign-roles -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Lifetimes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "lib/Transforms/Tile/RoleBudgets.h"

namespace attn::tile {
#define GEN_PASS_DEF_ASSIGNROLESPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

static bool gathersRows(func::FuncOp kernel) {
  return kernel
      .walk([](CopyOp copy) {
        return isGathered(copy) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

static bool transposesTiles(func::FuncOp kernel) {
  return kernel.walk([](TransposeOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static constexpr StringLiteral kTransposer = "transposer";

/// One warpgroup copies, those of room 5 compute. Of the former one thread asks for boxes, and all
/// gather rows. One more transposes tiles, if there are some, while others multiply.
static FailureOr<ArrayAttr> makeRoles(func::FuncOp kernel) {
  const attn::Machine &machine = getMachine(kernel);
  auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  int64_t consumers = attribute.getWarpgroups();
  if (consumers > machine.getMostConsumers())
    return kernel.emitOpError("expected at most ")
           << machine.getMostConsumers() << " warpgroups beside the producer's, got " << consumers
           << " (smaller blocks need fewer)";
  attn::RoleBudget budget = getRoleBudget(kernel, consumers);
  Builder builder(kernel.getContext());
  auto makeRole = [&](StringRef name, int64_t warpgroups, int64_t registers, bool isElected) {
    return RoleAttr::get(kernel.getContext(), builder.getStringAttr(name), warpgroups, registers,
                         isElected);
  };
  SmallVector<Attribute, 3> roles = {
      makeRole("producer", 1, budget.producer, !gathersRows(kernel)),
      makeRole("consumer", consumers, budget.consumer, /*isElected=*/false)};
  if (transposesTiles(kernel))
    roles.push_back(makeRole(kTransposer, 1, machine.roles.transposer, /*isElected=*/false));
  return builder.getArrayAttr(roles);
}

/// Whether the op does more than compute values: others follow from where these are needed.
static bool needsRole(Operation *op) {
  if (op->getNumRegions() > 0 || op->hasTrait<OpTrait::IsTerminator>())
    return false;
  // The reader of a place says when the place may be filled again.
  if (isa<MmaOp, LoadColumnsOp, LoadSharedOp>(op))
    return true;
  auto effects = getEffectsRecursively(op);
  return !effects || llvm::any_of(*effects, [](const MemoryEffects::EffectInstance &effect) {
    return isa<MemoryEffects::Write>(effect.getEffect());
  });
}

/// Level `placed`, as far as roles depend on that.
static LogicalResult checkLevel(func::FuncOp kernel) {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (isa_and_nonnull<TileDialect>(op->getDialect()) &&
        !isa<LoadOp, LoadColumnsOp, LoadSharedOp, GatherOp, StoreOp, ScatterAddOp, AllocSharedOp,
             CopyOp, TransposeOp, MmaOp, ReduceOp, SumDiagonalsOp, BroadcastOp, CoordOp,
             PartBeginOp, ConvertLayoutOp, ClearUnreadOp>(op))
      return op->emitOpError("does not belong to level 'placed': roles are made here");
    if (auto copy = dyn_cast<CopyOp>(op)) {
      auto place = copy.getDest().getDefiningOp<AllocSharedOp>();
      if (!place || place->getParentOp() != kernel)
        return copy.emitOpError("expected a tile.alloc_shared of the kernel as destination");
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct AssignRolesPass
    : KernelPass<attn::tile::impl::AssignRolesPassBase<AssignRolesPass>,
                 attn::within(attn::Room::Placed), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    if (!hasPlaces(kernel))
      return success();
    if (failed(checkLevel(kernel)))
      return failure();
    if (const attn::Machine &machine = getMachine(kernel); !machine.hasRoles()) {
      if (kernel->hasAttr(TileDialect::kRolesAttrName))
        return kernel.emitOpError("expected no tile.roles on ")
               << machine.name << ", where all threads copy and compute";
      return success();
    }
    if (!kernel->hasAttr(TileDialect::kRolesAttrName)) {
      FailureOr<ArrayAttr> roles = makeRoles(kernel);
      if (failed(roles))
        return failure();
      kernel->setAttr(TileDialect::kRolesAttrName, *roles);
    }
    auto roles = llvm::to_vector(
        kernel->getAttrOfType<ArrayAttr>(TileDialect::kRolesAttrName).getAsRange<RoleAttr>());
    const auto *copying = llvm::find_if(roles, [](RoleAttr role) { return role.getElected(); });
    // A role that gathers rows is not elected, and comes first.
    if (copying == roles.end() && !roles.empty() && gathersRows(kernel))
      copying = roles.begin();
    const auto *computing = llvm::find_if(
        roles, [&](const RoleAttr &role) { return !role.getElected() && &role != copying; });
    if (computing == roles.end())
      return kernel.emitOpError("expected a role that is not elected among its tile.roles");
    if (copying == roles.end())
      copying = computing;
    const auto *transposing =
        llvm::find_if(roles, [](RoleAttr role) { return role.getName() == kTransposer; });
    if (transposing == roles.end())
      transposing = computing;
    WalkResult walk = kernel.walk([&](Operation *op) {
      if (!op->hasAttr(TileDialect::kRoleAttrName) && needsRole(op))
        op->setAttr(TileDialect::kRoleAttrName, (isa<CopyOp>(op)        ? copying
                                                 : isa<TransposeOp>(op) ? transposing
                                                                        : computing)
                                                    ->getName());
      RoleAttr role = getKernelRole(op);
      if (!role || !role.getElected() || isa<CopyOp>(op))
        return WalkResult::advance();
      op->emitOpError("expected a role that is not elected, got ") << role.getName();
      return WalkResult::interrupt();
    });
    return failure(walk.wasInterrupted());
  }

  static bool hasPlaces(func::FuncOp kernel) {
    return kernel.walk([](AllocSharedOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }
};
} // namespace
