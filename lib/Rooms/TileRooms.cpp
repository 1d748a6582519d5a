//===- TileRooms.cpp - rooms 4 to 7: the program of a block, and of a thread ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Rooms/Predicates.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The first register tile among an op's values for which `isMeant` holds, or none.
static RankedTensorType findTile(Operation *op,
                                 llvm::function_ref<bool(RankedTensorType)> isMeant) {
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (auto tile = dyn_cast<RankedTensorType>(type); tile && isMeant(tile))
        return tile;
  return {};
}

static bool isKernel(func::FuncOp function) {
  return function->hasAttr(TileDialect::kKernelAttrName);
}

/// In rooms 4 to 6 a function that is defined is a kernel.
static Complaint refuseFunction(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || function.isExternal() || isKernel(function))
    return {};
  return llvm::formatv("expected a kernel with {0}, got a function without",
                       TileDialect::kKernelAttrName);
}

Complaint attn::refuseKernel(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (!function || !isKernel(function))
    return {};
  return llvm::formatv("expected a function, got a kernel with {0}", TileDialect::kKernelAttrName);
}

/// In rooms 4 to 6 values are numbers, tiles, memory, and what keeps order in it.
static Complaint refuseValues(Operation *op) {
  auto isKnown = [](Type type) {
    return type.isIntOrIndexOrFloat() || isa<RankedTensorType, MemRefType>(type) ||
           isa<TileDialect>(type.getDialect());
  };
  for (Type type : op->getResultTypes())
    if (!isKnown(type))
      return llvm::formatv("expected numbers, tiles and memory, got {0}", type);
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      if (!isKnown(argument.getType()))
        return llvm::formatv("expected numbers, tiles and memory, got {0}", argument.getType());
  return {};
}

/// Refuses ops that none of rooms 4 to 6 has.
static Complaint refuseInBlocks(Operation *op) {
  Complaint complaint = refuseFunction(op);
  return complaint.empty() ? refuseValues(op) : complaint;
}

Complaint attn::refuseInTile(Operation *op) {
  if (Complaint complaint = refuseInBlocks(op); !complaint.empty())
    return complaint;
  if (isa<TileDialect>(op->getDialect()) &&
      !isa<LoadOp, LoadColumnsOp, GatherOp, StoreOp, ScatterAddOp, MmaOp, ReduceOp, SumDiagonalsOp,
           BroadcastOp, CoordOp, VoteOp, PartBeginOp, ClearUnreadOp>(op))
    return "expected register tiles without places, layouts and roles, got '" +
           op->getName().getStringRef().str() + "'";
  if (RankedTensorType tile = findTile(op, [](RankedTensorType t) { return !!t.getEncoding(); }))
    return llvm::formatv("expected tiles without a layout, got {0}", tile);
  return {};
}

Complaint attn::demandOfTile(Operation *op) {
  if (Attribute turns = op->getAttr(TileDialect::kDelayAttrName))
    return llvm::formatv("expected an op that is not late, got {0} = {1}",
                         TileDialect::kDelayAttrName, turns);
  return {};
}

Complaint attn::refuseInPlaced(Operation *op) {
  if (Complaint complaint = refuseInBlocks(op); !complaint.empty())
    return complaint;
  if (Complaint complaint = demandOfTile(op); !complaint.empty())
    return complaint;
  if (isa<TileDialect>(op->getDialect()) &&
      !isa<LoadOp, LoadColumnsOp, LoadSharedOp, GatherOp, StoreOp, ScatterAddOp, MmaOp, ReduceOp,
           SumDiagonalsOp, BroadcastOp, CoordOp, VoteOp, PartBeginOp, AllocSharedOp, CopyOp,
           TransposeOp, ConvertLayoutOp, ClearUnreadOp, SyncOp, FenceOp>(op))
    return "expected synchronous copies and products, got '" + op->getName().getStringRef().str() +
           "'";
  return {};
}

/// The places of a kernel fit the shared memory of a block.
static Complaint demandBudget(func::FuncOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](AllocSharedOp place) { bytes += place.getType().getSizeInBytes(); });
  int64_t most = tile::getMostSharedBytes(kernel);
  if (bytes <= most)
    return {};
  return llvm::formatv("expected at most {0} bytes of shared memory, got {1}", most, bytes);
}

Complaint attn::demandOfPlaced(Operation *op) {
  if (RankedTensorType tile = findTile(op, [](RankedTensorType t) { return !t.getEncoding(); }))
    return llvm::formatv("expected a layout for every tile, got {0}", tile);
  // Verifiers see to a left operand in registers: its layout is `operand_a`.
  if (auto product = dyn_cast<MmaOp>(op); product && !isa<SharedType>(product.getRhs().getType()))
    return llvm::formatv("expected a right operand in shared memory, got {0}",
                         product.getRhs().getType());
  if (auto load = dyn_cast<LoadColumnsOp>(op); load && !isa<SharedType>(load.getSource().getType()))
    return llvm::formatv("expected numbers of columns in shared memory, got {0}",
                         load.getSource().getType());
  return {};
}

Complaint attn::refuseInAsync(Operation *op) {
  Complaint complaint = refuseInBlocks(op);
  return complaint.empty() ? demandOfTile(op) : complaint;
}

/// The region around an op decides the role that runs it, and offsets decide where places are. Ops
/// that name a role stand in a function that lists the role.
static Complaint demandDecided(Operation *op) {
  if (op->hasAttr(TileDialect::kRolesAttrName))
    return "expected a program for each role, got one that lists them in tile.roles";
  auto place = dyn_cast<AllocSharedOp>(op);
  auto barriers = dyn_cast<BarrierInitOp>(op);
  auto columns = dyn_cast<AllocTensorOp>(op);
  if ((place && !place.getOffset()) || (barriers && !barriers.getOffset()) ||
      (columns && !columns.getOffset()))
    return "expected an offset in shared memory, got none";
  return {};
}

/// Refuses ops that only passes of the room know on the way through it.
static Complaint demandRun(Operation *op) {
  const Product &unit = plan::getMachine(op).product;
  bool isLate = isa<CopyOp>(op) || (isa<MmaOp>(op) && unit.form != Product::Form::Registers);
  if (isLate)
    return "expected copies and products in flight, got '" + op->getName().getStringRef().str() +
           "'";
  if (isa<PartBeginOp>(op))
    return "expected a loop that begins at a number of its role, got '" +
           op->getName().getStringRef().str() + "'";
  auto clearing = dyn_cast<ClearUnreadOp>(op);
  if (clearing && clearing.getBy() && !isa<SharedType>(clearing.getBy().getType()))
    return llvm::formatv("expected marks of what is read, got {0}", clearing.getBy().getType());
  if (clearing && clearing.getCondition())
    return "expected a branch around what is cleared, got a condition";
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect == "tensor" || dialect == "cf")
    return "expected structured control flow and no scalars of tiles, got '" +
           op->getName().getStringRef().str() + "'";
  return {};
}

Complaint attn::demandOfAsync(Operation *op) {
  for (auto *demand : {demandDecided, demandRun})
    if (Complaint complaint = demand(op); !complaint.empty())
      return complaint;
  if (auto function = dyn_cast<func::FuncOp>(op))
    return demandBudget(function);
  return demandOfPlaced(op);
}

Complaint attn::demandOfThread(Operation *op) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  StringRef attribute = NVVM::NVVMDialect::getKernelFuncAttrName();
  if (!function || function.isExternal() || function->hasAttr(attribute))
    return {};
  return llvm::formatv("expected a kernel with {0}, got a function without", attribute);
}
