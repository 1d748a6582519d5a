//===- TileDialect.cpp - registration of the tile dialect ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Schedule/ScheduleText.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::plan;
using namespace attn::tile;

#include "dialects/Tile/IR/TileDialect.cpp.inc"
#include "dialects/Tile/IR/TileEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Tile/IR/TileAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Tile/IR/TileTypes.cpp.inc"

namespace {
/// Constants stay in their role: a tile's layout is of the role's warpgroups.
struct TileFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final {
    return isa<SpecializeOp>(region->getParentOp());
  }
};
} // namespace

void TileDialect::initialize() {
  addInterfaces<TileFoldInterface>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Tile/IR/TileAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Tile/IR/TileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/IR/TileOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/IR/TileClearOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Tile/IR/TileTensorOps.cpp.inc"
      >();
}

int64_t attn::tile::getResident(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto kernel = op->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName))
      return kernel.getSchedule().resident;
  return 1;
}

int64_t attn::tile::getMostSharedBytes(Operation *op) {
  return getMachine(op).getBlockBytes(getResident(op));
}

/// Attributes of a dialect are verified before the op that has them, whose type may be none of a
/// function then.
static func::FuncOp getFunction(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto type = function ? function.getFunctionTypeAttr() : TypeAttr();
  return type && isa<FunctionType>(type.getValue()) ? function : func::FuncOp();
}

/// roles_c1: `tile.roles` lists `#tile.role` of different names, each of as many warpgroups as a
/// block may have, on a kernel
static LogicalResult verifyRoles(Operation *op, Attribute attribute) {
  auto roles = dyn_cast<ArrayAttr>(attribute);
  llvm::SmallDenseSet<StringAttr> names;
  int64_t most = attn::getMostOfAny(&attn::Machine::warpgroups);
  if (roles && op->hasAttr(TileDialect::kKernelAttrName) &&
      llvm::all_of(roles, [&](Attribute role) {
        auto named = dyn_cast<RoleAttr>(role);
        return named && named.getWarpgroups() > 0 && named.getWarpgroups() <= most &&
               names.insert(named.getName()).second;
      }))
    return success();
  return op->emitOpError("expected tile.roles with #tile.role of different names, each of 1 to ")
         << most << " warpgroups, on a kernel, got " << attribute;
}

/// roles_c2: `tile.divided` is a unit on a kernel
static LogicalResult verifyDivided(Operation *op, Attribute attribute) {
  if (isa<UnitAttr>(attribute) && op->hasAttr(TileDialect::kKernelAttrName))
    return success();
  return op->emitOpError("expected tile.divided as a unit on a kernel, got ") << attribute;
}

/// role_c1: `tile.role` names one of the kernel's roles
static LogicalResult verifyRole(Operation *op, Attribute attribute) {
  if (getKernelRole(op))
    return success();
  return op->emitOpError("expected one of the kernel's tile.roles as its tile.role, got ")
         << attribute;
}

/// delay_c1: `tile.delay` is a number of turns from 1 to 32, of an op in a kernel that ends no
/// block
static LogicalResult verifyDelay(Operation *op, Attribute attribute) {
  // Each turn is a copy of what is late.
  constexpr int64_t kMostTurns = 32;
  auto turns = dyn_cast<IntegerAttr>(attribute);
  auto function = op->getParentOfType<FunctionOpInterface>();
  if (turns && turns.getType().isInteger(64) && turns.getInt() > 0 &&
      turns.getInt() <= kMostTurns && function && function->hasAttr(TileDialect::kKernelAttrName) &&
      !op->hasTrait<OpTrait::IsTerminator>())
    return success();
  return op->emitOpError("expected an i64 from 1 to ")
         << kMostTurns << " as tile.delay of an op in a kernel that ends no block, got "
         << attribute;
}

LogicalResult TileDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  // dialect_c1: the attributes are `tile.kernel`, `tile.roles`, `tile.divided`, `tile.role`,
  // `tile.delay` and `tile.plan` on ops, `tile.scratch`, `tile.zeroed` and `tile.fragments` on
  // arguments
  if (attribute.getName() == kPlanAttrName && isa<DictionaryAttr>(attribute.getValue()))
    return success();
  if (attribute.getName() == kRolesAttrName)
    return verifyRoles(op, attribute.getValue());
  if (attribute.getName() == kDividedAttrName)
    return verifyDivided(op, attribute.getValue());
  if (attribute.getName() == kRoleAttrName)
    return verifyRole(op, attribute.getValue());
  if (attribute.getName() == kDelayAttrName)
    return verifyDelay(op, attribute.getValue());
  if (attribute.getName() != kKernelAttrName)
    return op->emitOpError(
               "expected tile.kernel, tile.roles, tile.divided, tile.role, tile.delay or tile.plan "
               "of the tile dialect, got '")
           << attribute.getName().getValue() << "'";
  auto kernel = dyn_cast<KernelAttr>(attribute.getValue());
  func::FuncOp function = getFunction(op);
  // kernel_c1: `tile.kernel` is a `#tile.kernel` on a function without results
  if (!kernel || !function)
    return op->emitOpError("expected #tile.kernel on a function, got ") << attribute.getValue();
  if (function.getNumResults() != 0)
    return op->emitOpError("expected a kernel without results, got ") << function.getNumResults();
  // kernel_c6: a kernel has a body of one block
  if (!function.getBody().hasOneBlock())
    return op->emitOpError("expected a kernel with a body of one block, got ")
           << function.getBody().getBlocks().size();
  for (Attribute dimension : kernel.getGrid())
    for (Attribute factor : cast<ArrayAttr>(dimension))
      if (failed(verifyFactor(function, factor)))
        return failure();
  return success();
}

static LogicalResult verifyFragments(FunctionOpInterface function, unsigned index) {
  // kernel_c12: `tile.fragments` is on f32 memory of whole fragments, which is gathered and added
  // to
  auto type = dyn_cast<MemRefType>(function.getArgumentTypes()[index]);
  auto isWhole = [](int64_t extent, int64_t step) {
    return !ShapedType::isDynamic(extent) && extent > 0 && extent % step == 0;
  };
  SmallVector<int64_t> strides;
  int64_t offset, rank = type ? type.getRank() : 0;
  if (rank < 2 || !type.getElementType().isF32() ||
      !isWhole(type.getDimSize(rank - 2), attn::kFragmentRows) ||
      !isWhole(type.getDimSize(rank - 1), attn::kFragmentColumns) ||
      failed(type.getStridesAndOffset(strides, offset)) || strides[rank - 1] != 1 ||
      strides[rank - 2] != type.getDimSize(rank - 1))
    return function.emitOpError("expected tile.fragments on memory of f32 with tiles of whole "
                                "fragments, 16 x 8, as dense last dimensions, got ")
           << function.getArgumentTypes()[index];
  if (function.isExternal())
    return success();
  for (Operation *user : function.getArgument(index).getUsers()) {
    auto store = dyn_cast<StoreOp>(user);
    if (isa<GatherOp, AddAsyncOp, memref::DimOp>(user) || (store && store.getAdd()))
      continue;
    return user->emitOpError("expected memory with tile.fragments to be gathered or added to");
  }
  return success();
}

LogicalResult TileDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  // kernel_c10: `tile.zeroed` is on scratch
  if (attribute.getName() == kZeroedAttrName && function) {
    if (function.getArgAttr(index, kScratchAttrName))
      return success();
    return op->emitOpError("expected tile.zeroed beside tile.scratch, got it on argument ")
           << index << " without";
  }
  if (attribute.getName() == kFragmentsAttrName && function)
    return verifyFragments(function, index);
  if (attribute.getName() != kScratchAttrName || !function)
    return op->emitOpError("expected tile.scratch, tile.zeroed or tile.fragments of the tile "
                           "dialect on an argument, got '")
           << attribute.getName().getValue() << "'";
  // kernel_c5: `tile.scratch` is on a memref, with one factor of a grid for each dimension
  auto type = dyn_cast<MemRefType>(function.getArgumentTypes()[index]);
  auto sizes = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!type || !sizes || int64_t(sizes.size()) != type.getRank() ||
      !llvm::all_of(sizes, llvm::IsaPred<IntegerAttr, ExtentAttr, MultiprocessorsAttr, PartsAttr>))
    return op->emitOpError("expected tile.scratch with an integer, #plan.extent, "
                           "#plan.multiprocessors or #plan.parts for each dimension of a memref, "
                           "got ")
           << attribute.getValue() << " on " << function.getArgumentTypes()[index];
  for (Attribute size : sizes)
    if (failed(verifyFactor(function, size)))
      return failure();
  return success();
}
