//===- TileOps.cpp - syntax and folds of the tile ops ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Types that follow from other types
//===----------------------------------------------------------------------===//

/// The slot of a barrier has its stages; nothing is written.
static ParseResult parseSlotType(OpAsmParser &parser,
                                 std::optional<OpAsmParser::UnresolvedOperand> slot, Type barrier,
                                 Type &type) {
  if (!slot)
    return success();
  auto barrierType = dyn_cast<BarrierType>(barrier);
  if (!barrierType)
    return parser.emitError(parser.getNameLoc()) << "expected a !tile.barrier, got " << barrier;
  type = SlotType::get(parser.getContext(), barrierType.getStages());
  return success();
}

static void printSlotType(OpAsmPrinter &, Operation *, Value, Type, Type) {}

/// `tile.stage` writes its ring's type only.
static ParseResult parseStageTypes(OpAsmParser &parser, Type &ring, Type &slot, Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(ring))
    return failure();
  auto type = dyn_cast<SharedType>(ring);
  if (!type)
    return parser.emitError(loc) << "expected a !tile.shared, got " << ring;
  slot = SlotType::get(parser.getContext(), type.getStages());
  result = type.getStageType();
  return success();
}

static void printStageTypes(OpAsmPrinter &printer, Operation *, Type ring, Type, Type) {
  printer << ring;
}

RankedTensorType attn::tile::getTileType(Type type) {
  if (auto inFlight = dyn_cast<InFlightType>(type))
    return inFlight.getTile();
  return dyn_cast<RankedTensorType>(type);
}

/// The results of `tile.mma_wait` are its operands, landed.
static ParseResult parseLandedTypes(OpAsmParser &parser, SmallVectorImpl<Type> &values,
                                    SmallVectorImpl<Type> &results) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseTypeList(values))
    return failure();
  for (Type type : values) {
    RankedTensorType tile = getTileType(type);
    if (!tile)
      return parser.emitError(loc)
             << "expected register tiles and accumulators in flight, got " << type;
    results.push_back(tile);
  }
  return success();
}

static void printLandedTypes(OpAsmPrinter &printer, Operation *, TypeRange values, TypeRange) {
  printer << values;
}

//===----------------------------------------------------------------------===//
// Keywords
//===----------------------------------------------------------------------===//

static ParseResult parseSyncOrArrive(OpAsmParser &parser, UnitAttr &arrive) {
  if (succeeded(parser.parseOptionalKeyword("arrive"))) {
    arrive = parser.getBuilder().getUnitAttr();
    return success();
  }
  return parser.parseKeyword("sync");
}

static void printSyncOrArrive(OpAsmPrinter &printer, Operation *, UnitAttr arrive) {
  printer << (arrive ? "arrive" : "sync");
}

/// role producer warpgroups 1 registers 24 elected { ... }
static ParseResult parseRoles(OpAsmParser &parser, ArrayAttr &names, DenseI64ArrayAttr &warpgroups,
                              DenseI64ArrayAttr &registers, DenseBoolArrayAttr &elected,
                              SmallVectorImpl<std::unique_ptr<Region>> &roles) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> nameList;
  SmallVector<int64_t> warpgroupList, registerList;
  SmallVector<bool> electedList;
  while (succeeded(parser.parseOptionalKeyword("role"))) {
    std::string name;
    int64_t numWarpgroups, numRegisters;
    if (parser.parseKeywordOrString(&name) || parser.parseKeyword("warpgroups") ||
        parser.parseInteger(numWarpgroups) || parser.parseKeyword("registers") ||
        parser.parseInteger(numRegisters))
      return failure();
    electedList.push_back(succeeded(parser.parseOptionalKeyword("elected")));
    nameList.push_back(builder.getStringAttr(name));
    warpgroupList.push_back(numWarpgroups);
    registerList.push_back(numRegisters);
    auto region = std::make_unique<Region>();
    if (parser.parseRegion(*region))
      return failure();
    SpecializeOp::ensureTerminator(*region, builder, builder.getUnknownLoc());
    roles.push_back(std::move(region));
  }
  names = builder.getArrayAttr(nameList);
  warpgroups = builder.getDenseI64ArrayAttr(warpgroupList);
  registers = builder.getDenseI64ArrayAttr(registerList);
  elected = builder.getDenseBoolArrayAttr(electedList);
  return success();
}

static void printRoles(OpAsmPrinter &printer, Operation *, ArrayAttr names,
                       DenseI64ArrayAttr warpgroups, DenseI64ArrayAttr registers,
                       DenseBoolArrayAttr elected, RegionRange roles) {
  for (auto [index, role] : llvm::enumerate(roles)) {
    printer.printNewline();
    printer << "role ";
    printer.printKeywordOrString(cast<StringAttr>(names[index]).getValue());
    printer << " warpgroups " << warpgroups[index] << " registers " << registers[index];
    printer << (elected[index] ? " elected " : " ");
    printer.printRegion(*role, /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/false);
  }
}

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

RoleInfo attn::tile::getRole(Operation *op) {
  Region *region = op->getParentRegion();
  while (region && !isa<SpecializeOp, FunctionOpInterface>(region->getParentOp()))
    region = region->getParentRegion();
  RoleInfo role;
  if (!region)
    return role;
  if (auto specialize = dyn_cast<SpecializeOp>(region->getParentOp())) {
    unsigned index = region->getRegionNumber();
    for (int64_t before : specialize.getWarpgroups().take_front(index))
      role.firstWarpgroup += before;
    role.warpgroups = specialize.getWarpgroups()[index];
    role.isElected = specialize.getElected()[index];
  } else if (auto kernel =
                 region->getParentOp()->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName)) {
    role.warpgroups = kernel.getWarpgroups();
  }
  return role;
}

RoleAttr attn::tile::getKernelRole(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(TileDialect::kRoleAttrName);
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto roles = function ? function->getAttrOfType<ArrayAttr>(TileDialect::kRolesAttrName) : nullptr;
  if (!name || !roles)
    return {};
  for (Attribute role : roles)
    if (auto kernelRole = dyn_cast<RoleAttr>(role); kernelRole && kernelRole.getName() == name)
      return kernelRole;
  return {};
}

bool attn::tile::takesParts(RoleAttr role, PartBeginOp op) {
  return !role.getElected() && role.getWarpgroups() == int64_t(op.getParts().size());
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

/// A product reads its operands in shared memory; those in registers are values.
static void addProductReads(MutableArrayRef<OpOperand> operands, Effects &effects) {
  for (OpOperand &operand : operands)
    if (isa<SharedType>(operand.get().getType()))
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

void MmaOp::getEffects(Effects &effects) {
  addProductReads((*this)->getOpOperands().take_front(2), effects);
}

void MmaAsyncOp::getEffects(Effects &effects) {
  addProductReads((*this)->getOpOperands().take_front(2), effects);
  // It joins the group that the next commit closes.
  effects.emplace_back(MemoryEffects::Write::get());
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

int64_t attn::tile::getSharedEnd(int64_t begin, int64_t bytes) {
  int64_t end;
  return llvm::AddOverflow(begin, bytes, end) ? std::numeric_limits<int64_t>::max() : end;
}

int64_t attn::tile::getSharedBytes(Operation *kernel) {
  int64_t end = 0;
  kernel->walk([&](AllocSharedOp op) {
    if (std::optional<uint64_t> begin = op.getOffset())
      end = std::max(end, getSharedEnd(*begin, cast<SharedType>(op.getType()).getSizeInBytes()));
  });
  kernel->walk([&](BarrierInitOp op) {
    if (std::optional<uint64_t> begin = op.getOffset())
      end = std::max(end, getSharedEnd(*begin, cast<BarrierType>(op.getType()).getSizeInBytes()));
  });
  kernel->walk([&](AllocTensorOp op) {
    if (std::optional<uint64_t> begin = op.getOffset())
      end = std::max(end, getSharedEnd(*begin, kColumnsBytes));
  });
  return end;
}

//===----------------------------------------------------------------------===//
// Folds
//===----------------------------------------------------------------------===//

std::optional<float> attn::tile::getConstantF32(Value value) {
  FloatAttr constant;
  if (!value || !value.getType().isF32() || !matchPattern(value, m_Constant(&constant)))
    return std::nullopt;
  return constant.getValue().convertToFloat();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getSource().getType() == getType())
    return getSource();
  if (auto before = getSource().getDefiningOp<ConvertLayoutOp>();
      before && before.getSource().getType() == getType())
    return before.getSource();
  return {};
}
