//===- Kernel.cpp - functions become kernels: parameters, plan, shared memory -===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Kernel.h"
#include "dialects/Plan/IR/PlanFactors.h"
#include "lib/Plan/PlanAttr.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include <numeric>

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

static constexpr StringLiteral kSharedName = "attn_shared";

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Every place and barrier has an offset, which instructions can add to an address.
static LogicalResult verifyAllocated(func::FuncOp function) {
  WalkResult walk = function.walk([](Operation *op) {
    if (isa<AllocSharedOp, BarrierInitOp>(op) && !op->hasAttr("offset")) {
      op->emitOpError("expected an offset, which tile-allocate-shared decides, got none");
      return WalkResult::interrupt();
    }
    auto barriers = dyn_cast<BarrierInitOp>(op);
    int64_t offset = barriers ? int64_t(*barriers.getOffset()) : 0;
    if (offset >= 0)
      return WalkResult::advance();
    op->emitOpError("expected an offset in shared memory, got ") << offset;
    return WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  int64_t end = getSharedBytes(function), most = getMostSharedBytes(function);
  if (end <= most)
    return success();
  return function.emitOpError("expected places and barriers within ")
         << most << " bytes of shared memory, got an end at " << end;
}

static bool isSharedMemory(LLVM::GlobalOp global) {
  auto type = dyn_cast<LLVM::LLVMArrayType>(global.getType());
  return global.getAddrSpace() == unsigned(NVVM::NVVMMemorySpace::Shared) && type &&
         type.getNumElements() == 0 && global.getAlignment() == kPlaceBytes;
}

Value attn::tile::getSharedBase(OpBuilder &builder, Location loc) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto globals = module.getOps<LLVM::GlobalOp>();
  return LLVM::AddressOfOp::create(builder, loc, *llvm::find_if(globals, isSharedMemory));
}

/// Declares it once for all kernels, under a name that no function has.
static void declareSharedMemory(ModuleOp module) {
  if (llvm::any_of(module.getOps<LLVM::GlobalOp>(), isSharedMemory))
    return;
  OpBuilder builder(module.getContext());
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  auto global = LLVM::GlobalOp::create(
      builder, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External, kSharedName,
      /*value=*/Attribute(), kPlaceBytes, unsigned(NVVM::NVVMMemorySpace::Shared));
  SymbolTable(module).insert(global, module.getBody()->begin());
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

std::pair<int64_t, int64_t> attn::tile::getBoxShape(const Machine &machine, SharedType type,
                                                    int64_t page) {
  int64_t rows = std::gcd(type.getNumRows(), page), most = machine.copy.rows;
  return {type.getSlabColumns(), rows > most && page ? std::gcd(rows, most) : std::min(rows, most)};
}

namespace {
/// The parts of one memref argument that a kernel's body needs.
struct Needs {
  bool pointer = false;
  /// That the last dimension is contiguous, as it is for boxes.
  bool contiguous = false;
  llvm::SmallSetVector<unsigned, 4> sizes;
  /// Distinct (columns, rows, swizzle) of its boxes.
  llvm::SmallSetVector<std::tuple<int64_t, int64_t, int64_t>, 2> boxes;
};
} // namespace

static void needBox(Needs &needs, const Machine &machine, SharedType type, int64_t page = 0) {
  auto [columns, rows] = getBoxShape(machine, type, page);
  needs.boxes.insert({columns, rows, type.getSwizzle()});
}

/// The sizes of the last `rank` dimensions, which bound a tile. Sequences bound rows by themselves.
static void needBounds(Needs &needs, MemRefType type, int64_t rank, bool isRagged = false) {
  needs.pointer = true;
  for (int64_t dim = type.getRank() - rank + isRagged; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      needs.sizes.insert(dim);
}

/// Threads find the rows and columns of a tile by these. Sequences bound rows by themselves,
/// and a table may name pages that a pool does not have.
static void needShare(Needs &needs, MemRefType type, SharedType tile, bool isPaged, bool isRagged) {
  int64_t rank = type.getRank(), rows = isPaged ? 0 : tile.isRow() ? rank - 1 : rank - 2;
  needs.pointer = true;
  needs.contiguous |= !tile.isRow();
  for (int64_t dim : {rows, rank - 1})
    if (type.isDynamicDim(dim) && !(isRagged && dim == rows) && !(tile.isRow() && dim != rows))
      needs.sizes.insert(dim);
}

static LogicalResult addUser(Needs &needs, const Machine &machine, MemRefType type,
                             bool inFragments, int64_t page, bool isRagged, Operation *user) {
  if (auto op = dyn_cast<CopyAsyncOp>(user)) {
    needBox(needs, machine, cast<SharedType>(op.getDest().getType()), page);
  } else if (auto op = dyn_cast<StoreAsyncOp>(user)) {
    needBox(needs, machine, cast<SharedType>(op.getSource().getType()));
  } else if (isa<FindRowsOp, GatherAsyncOp>(user)) {
    needs.pointer = needs.contiguous = true;
    // A table may name pages that the pool does not have.
    if (type.isDynamicDim(0))
      needs.sizes.insert(0);
  } else if (isa<GatherOp, ScatterAddOp, memref::LoadOp, memref::StoreOp>(user) ||
             (isa<AddAsyncOp>(user) && inFragments)) {
    needs.pointer = true;
  } else if (auto op = dyn_cast<AddAsyncOp>(user)) {
    auto place = cast<SharedType>(op.getPlace().getType());
    needs.boxes.insert({place.getSlabColumns(), kFragmentRows, place.getSwizzle()});
  } else if (auto op = dyn_cast<LoadOp>(user)) {
    needBounds(needs, type, cast<RankedTensorType>(op.getType()).getRank(), isRagged);
  } else if (auto op = dyn_cast<StoreOp>(user)) {
    needBounds(needs, type, cast<RankedTensorType>(op.getValue().getType()).getRank(), isRagged);
  } else if (isa<CopyOp>(user)) {
    needBounds(needs, type, 2);
  } else if (auto op = dyn_cast<CopyShareOp>(user)) {
    needShare(needs, type, op.getDest().getType(), page != 0, isRagged);
  } else if (auto op = dyn_cast<memref::DimOp>(user); op && op.getConstantIndex() &&
                                                      *op.getConstantIndex() >= 0 &&
                                                      *op.getConstantIndex() < type.getRank()) {
    if (type.isDynamicDim(*op.getConstantIndex()))
      needs.sizes.insert(*op.getConstantIndex());
  } else {
    return user->emitOpError(
        "expected tile ops, memref.load, memref.store or memref.dim of a constant as users of a "
        "kernel argument");
  }
  return success();
}

static std::string stringifyElement(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

namespace {
/// Collects the parameters of a kernel in the order of its PTX signature.
class ParameterList {
public:
  ParameterList(MLIRContext *context) : context(context) {}

  void add(KernelParameter parameter, Type type, DictionaryAttr attributes) {
    parameters.push_back(std::move(parameter));
    types.push_back(type);
    argumentAttributes.push_back(attributes);
  }

  void addScalar(KernelParameter::Kind kind, unsigned argument, unsigned dim, Type type) {
    add({kind, argument, dim, stringifyElement(type), {}}, type, DictionaryAttr::get(context));
  }

  void addPointer(unsigned argument) {
    add({KernelParameter::Kind::Pointer, argument, 0, "", {}},
        LLVM::LLVMPointerType::get(context, unsigned(NVVM::NVVMMemorySpace::Global)),
        DictionaryAttr::get(context));
  }

  void addTensorMap(unsigned argument, MemRefType memref, std::tuple<int64_t, int64_t, int64_t> box,
                    PackedAttr packed, bool isPaged, bool isRagged) {
    TensorMap map;
    map.elementType = stringifyElement(memref.getElementType());
    for (unsigned dim = memref.getRank(); dim-- > 0;)
      map.dims.push_back(dim);
    map.box.assign(memref.getRank(), 1);
    map.box[0] = std::get<0>(box);
    map.box[1] = std::get<1>(box);
    map.swizzle = std::get<2>(box);
    // The rows of a page, then heads, then pages.
    if (isPaged)
      map.dims = {3, 1, 2, 0};
    // The rows of all sequences, then heads.
    if (isRagged)
      map.dims = {2, 0, 1};
    // Heads within rows.
    if (packed) {
      std::swap(map.dims[1], map.dims[2]);
      map.box[2] = map.box[1] / packed.getSlots();
      map.box[1] = packed.getSlots();
    }
    Builder builder(context);
    auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 128);
    add({KernelParameter::Kind::TensorMap, argument, 0, "", map},
        LLVM::LLVMPointerType::get(context),
        builder.getDictionaryAttr({
            builder.getNamedAttr("llvm.align", builder.getI64IntegerAttr(64)),
            builder.getNamedAttr("llvm.byval", TypeAttr::get(bytes)),
            builder.getNamedAttr("nvvm.grid_constant", builder.getUnitAttr()),
        }));
  }

  MLIRContext *context;
  std::vector<KernelParameter> parameters;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> argumentAttributes;
};
} // namespace

/// The strides of a memref; its last dimension must be contiguous for boxes.
static FailureOr<SmallVector<int64_t>> getStrides(func::FuncOp function, unsigned index,
                                                  bool needsContiguous) {
  auto type = cast<MemRefType>(function.getArgumentTypes()[index]);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) || (needsContiguous && strides.back() != 1))
    return function.emitOpError("expected argument ")
           << index << " to be strided with contiguous last dimension, got " << type;
  return strides;
}

/// The argument's plan.packed, or null.
static PackedAttr getPacked(func::FuncOp function, unsigned index) {
  return function.getArgAttrOfType<PackedAttr>(index, PlanDialect::kPackedAttrName);
}

/// The argument's plan.paged, or null.
static PagedAttr getPaged(func::FuncOp function, unsigned index) {
  return function.getArgAttrOfType<PagedAttr>(index, PlanDialect::kPagedAttrName);
}

/// The argument's plan.ragged, or null.
static RaggedAttr getRagged(func::FuncOp function, unsigned index) {
  return function.getArgAttrOfType<RaggedAttr>(index, PlanDialect::kRaggedAttrName);
}

/// The dimension of an argument that has its heads.
static unsigned getHeadDim(func::FuncOp function, unsigned index) {
  return getPaged(function, index) ? 2 : 1;
}

/// The needs of paged arguments, and of their tables.
static LogicalResult needTables(func::FuncOp function, MutableArrayRef<Needs> needs) {
  for (BlockArgument argument : function.getArguments()) {
    PagedAttr paged = getPaged(function, argument.getArgNumber());
    if (!paged || argument.use_empty())
      continue;
    for (Operation *user : argument.getUsers())
      if (!isa<CopyAsyncOp, CopyShareOp, FindRowsOp, GatherAsyncOp, memref::DimOp>(user))
        return user->emitOpError("expected an argument that is not paged");
    // Boxes begin where the swizzle does.
    for (auto [columns, rows, swizzle] : needs[argument.getArgNumber()].boxes)
      if (rows % 8 != 0)
        return function.emitOpError("expected boxes of a multiple of 8 rows of argument ")
               << argument.getArgNumber() << ", got " << rows;
    Needs &table = needs[paged.getTable()];
    table.pointer = true;
    if (cast<MemRefType>(function.getArgumentTypes()[paged.getTable()]).isDynamicDim(1))
      table.sizes.insert(1);
  }
  return success();
}

/// The needs of ragged arguments, and of what says where their sequences are.
static LogicalResult needSequences(func::FuncOp function, MutableArrayRef<Needs> needs) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    RaggedAttr ragged = getRagged(function, index);
    bool isAccessed = false;
    for (Operation *user : argument.getUsers()) {
      isAccessed |= !isa<memref::DimOp>(user);
      if (ragged && !isa<LoadOp, StoreOp, CopyAsyncOp, CopyShareOp, memref::DimOp>(user))
        return user->emitOpError("expected an argument that is not ragged");
    }
    if (!ragged || !isAccessed)
      continue;
    needs[ragged.getOffsets()].pointer = true;
    for (auto [number, dim] :
         {std::pair<int64_t, int64_t>{index, 0}, {ragged.getMost(), ragged.getDim()}})
      if (cast<MemRefType>(function.getArgumentTypes()[number]).isDynamicDim(dim))
        needs[number].sizes.insert(dim);
  }
  return success();
}

/// The needs of packed arguments, and of the argument that has their key heads.
static LogicalResult needGroups(func::FuncOp function, MutableArrayRef<Needs> needs) {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    PackedAttr packed = getPacked(function, index);
    if (!packed || argument.use_empty())
      continue;
    // A box that is stored would write to the heads of other groups.
    for (Operation *user : argument.getUsers())
      if (!isa<LoadOp, StoreOp, CopyAsyncOp, CopyShareOp, memref::DimOp>(user))
        return user->emitOpError("expected an argument that is not packed");
    for (unsigned number : {index, unsigned(packed.getKeys())}) {
      unsigned dim = getHeadDim(function, number);
      if (cast<MemRefType>(function.getArgumentTypes()[number]).isDynamicDim(dim))
        needs[number].sizes.insert(dim);
    }
    for (auto [columns, rows, swizzle] : needs[index].boxes)
      if (rows % packed.getSlots() != 0)
        return function.emitOpError("expected boxes of a multiple of ")
               << packed.getSlots() << " rows of argument " << index << ", got " << rows;
  }
  return success();
}

static FailureOr<ParameterList> collectParameters(func::FuncOp function) {
  ParameterList list(function.getContext());
  const Machine &machine = getMachine(function);
  Builder builder(function.getContext());
  SmallVector<Needs> allNeeds(function.getNumArguments());
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    bool inFragments =
        bool(function.getArgAttr(argument.getArgNumber(), TileDialect::kFragmentsAttrName));
    PagedAttr paged = getPaged(function, argument.getArgNumber());
    int64_t page = paged ? paged.getPage() : 0;
    SmallVector<Operation *> users(argument.getUsers());
    for (Operation *user : llvm::reverse(users))
      if (type && failed(addUser(allNeeds[argument.getArgNumber()], machine, type, inFragments,
                                 page, bool(getRagged(function, argument.getArgNumber())), user)))
        return failure();
  }
  if (failed(needGroups(function, allNeeds)) || failed(needTables(function, allNeeds)) ||
      failed(needSequences(function, allNeeds)))
    return failure();
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      if (!argument.getType().isIndex() && !argument.getType().isIntOrFloat())
        return function.emitOpError("expected memref and scalar arguments, got ")
               << argument.getType();
      list.addScalar(KernelParameter::Kind::Scalar, index, 0,
                     argument.getType().isIndex() ? builder.getI32Type() : argument.getType());
      continue;
    }
    const Needs &needs = allNeeds[index];
    FailureOr<SmallVector<int64_t>> strides =
        getStrides(function, index, needs.contiguous || !needs.boxes.empty());
    if (failed(strides))
      return failure();
    for (const auto &box : needs.boxes)
      list.addTensorMap(index, type, box, getPacked(function, index),
                        bool(getPaged(function, index)), bool(getRagged(function, index)));
    if (needs.pointer)
      list.addPointer(index);
    for (unsigned dim = 0; dim < type.getRank(); ++dim)
      if (needs.sizes.contains(dim))
        list.addScalar(KernelParameter::Kind::Size, index, dim, builder.getI32Type());
    for (unsigned dim = 0; needs.pointer && dim < type.getRank(); ++dim)
      if (ShapedType::isDynamic((*strides)[dim]))
        list.addScalar(KernelParameter::Kind::Stride, index, dim, builder.getI64Type());
  }
  return list;
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

static std::vector<ScratchTensor> getScratch(func::FuncOp function) {
  std::vector<ScratchTensor> scratch;
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (auto sizes = function.getArgAttrOfType<ArrayAttr>(index, TileDialect::kScratchAttrName)) {
      ScratchTensor &tensor = scratch.emplace_back();
      tensor.argument = index;
      tensor.elementType = stringifyElement(cast<MemRefType>(type).getElementType());
      for (Attribute size : sizes)
        tensor.shape.push_back(toFactor(size));
      tensor.isZero = bool(function.getArgAttr(index, TileDialect::kZeroedAttrName));
    }
  return scratch;
}

static KernelPlan makePlan(func::FuncOp function, KernelAttr kernel, const ParameterList &list) {
  const Machine &machine = getMachine(function);
  KernelPlan plan;
  plan.name = function.getName().str();
  plan.target = machine.name.str();
  plan.parameters = list.parameters;
  for (auto [dimension, factors] : llvm::zip(kernel.getGrid(), plan.grid))
    for (Attribute factor : cast<ArrayAttr>(dimension))
      factors.push_back(toFactor(factor));
  plan.block = {unsigned(kernel.getWarpgroups() * machine.warpgroupThreads), 1, 1};
  plan.dynamicSharedBytes = getSharedBytes(function);
  if (DenseI64ArrayAttr cluster = kernel.getCluster())
    for (auto [extent, blocks] : llvm::zip(cluster.asArrayRef(), plan.cluster))
      blocks = unsigned(extent);
  plan.isProgrammatic = kernel.getProgrammatic();
  plan.scratch = getScratch(function);
  WayPlan way = plan::getWay(function);
  plan.way = std::move(way.name);
  plan.when = std::move(way.when);
  return plan;
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// A size or stride of an argument, i32 or i64: a constant or a parameter.
static Value emitNumber(OpBuilder &builder, func::FuncOp function, const ParameterList &list,
                        Block &entry, KernelParameter::Kind kind, unsigned index, unsigned dim) {
  auto type = cast<MemRefType>(function.getArgumentTypes()[index]);
  bool isSize = kind == KernelParameter::Kind::Size;
  int64_t number = isSize ? type.getDimSize(dim) : type.getStridesAndOffset().first[dim];
  if (!ShapedType::isDynamic(number))
    return LLVM::ConstantOp::create(builder, function.getLoc(),
                                    isSize ? builder.getI32IntegerAttr(number)
                                           : builder.getI64IntegerAttr(number));
  for (auto [parameter, value] : llvm::zip_equal(list.parameters, entry.getArguments()))
    if (parameter.kind == kind && parameter.argument == index && parameter.dim == dim)
      return value;
  return {};
}

/// The heads of an argument, i32.
static Value getHeads(OpBuilder &builder, func::FuncOp function, const ParameterList &list,
                      Block &entry, unsigned index) {
  return emitNumber(builder, function, list, entry, KernelParameter::Kind::Size, index,
                    getHeadDim(function, index));
}

/// The memory of an argument.
static Value getPointer(const ParameterList &list, Block &entry, unsigned index) {
  for (auto [parameter, value] : llvm::zip_equal(list.parameters, entry.getArguments()))
    if (parameter.kind == KernelParameter::Kind::Pointer && parameter.argument == index)
      return value;
  return {};
}

static RaggedRows emitRaggedRows(OpBuilder &builder, func::FuncOp function, RaggedAttr ragged,
                                 const ParameterList &list, Block &entry, unsigned argument) {
  unsigned offsets = ragged.getOffsets();
  auto get = [&](KernelParameter::Kind kind, unsigned index, unsigned dim) {
    return emitNumber(builder, function, list, entry, kind, index, dim);
  };
  return {cast<MemRefType>(function.getArgumentTypes()[offsets]).getElementType(),
          getPointer(list, entry, offsets), get(KernelParameter::Kind::Stride, offsets, 0),
          get(KernelParameter::Kind::Size, argument, 0),
          get(KernelParameter::Kind::Size, ragged.getMost(), ragged.getDim())};
}

static PageTable emitPageTable(OpBuilder &builder, func::FuncOp function, PagedAttr paged,
                               const ParameterList &list, Block &entry) {
  unsigned index = paged.getTable();
  auto get = [&](KernelParameter::Kind kind, unsigned dim) {
    return emitNumber(builder, function, list, entry, kind, index, dim);
  };
  PageTable table;
  table.page = paged.getPage();
  table.element = cast<MemRefType>(function.getArgumentTypes()[index]).getElementType();
  table.pointer = getPointer(list, entry, index);
  for (unsigned dim : {0u, 1u})
    table.strides[dim] = get(KernelParameter::Kind::Stride, dim);
  table.count = get(KernelParameter::Kind::Size, 1);
  return table;
}

static PackedRows emitPackedRows(OpBuilder &builder, func::FuncOp function, PackedAttr packed,
                                 const ParameterList &list, Block &entry, BlockArgument argument) {
  Value heads = getHeads(builder, function, list, entry, argument.getArgNumber()),
        keyHeads = getHeads(builder, function, list, entry, packed.getKeys());
  return {packed.getSlots(), LLVM::UDivOp::create(builder, function.getLoc(), heads, keyHeads)};
}

/// Binds the new parameters to the old arguments: scalars are replaced, memrefs become
/// placeholders.
static void bindArguments(OpBuilder &builder, func::FuncOp function, const ParameterList &list,
                          Kernel &kernel) {
  Block &body = function.getBody().front();
  Block &entry = kernel.function.getBody().front();
  Location loc = kernel.function.getLoc();
  auto parameters = llvm::zip_equal(list.parameters, entry.getArguments());
  for (BlockArgument argument : body.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    PackedAttr packed = getPacked(function, argument.getArgNumber());
    GlobalArgument global{type, {}, {}, {}, {}};
    if (type) {
      SmallVector<int64_t> strides;
      int64_t offset;
      (void)type.getStridesAndOffset(strides, offset);
      for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
        global.sizes.push_back(
            ShapedType::isDynamic(size)
                ? Value()
                : LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(size)));
        global.strides.push_back(
            ShapedType::isDynamic(stride)
                ? Value()
                : LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(stride)));
      }
    }
    for (auto [parameter, value] : parameters) {
      if (parameter.argument != argument.getArgNumber())
        continue;
      switch (parameter.kind) {
      case KernelParameter::Kind::TensorMap: {
        const std::vector<unsigned> &box = parameter.map.box;
        // Heads and rows of a packed argument are rows of its boxes.
        int64_t rows = packed ? box[1] * box[2] : box[1];
        global.boxes.push_back({box[0], rows, parameter.map.swizzle, value});
        break;
      }
      case KernelParameter::Kind::Pointer:
        global.pointer = value;
        break;
      case KernelParameter::Kind::Size:
        global.sizes[parameter.dim] = value;
        break;
      case KernelParameter::Kind::Stride:
        global.strides[parameter.dim] = value;
        break;
      case KernelParameter::Kind::Scalar: {
        Value scalar = value;
        if (argument.getType().isIndex())
          scalar = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
        argument.replaceAllUsesWith(scalar);
        break;
      }
      }
    }
    if (!type)
      continue;
    global.inFragments =
        bool(function.getArgAttr(argument.getArgNumber(), TileDialect::kFragmentsAttrName));
    if (packed && !argument.use_empty())
      global.packed = emitPackedRows(builder, function, packed, list, entry, argument);
    PagedAttr paged = getPaged(function, argument.getArgNumber());
    if (paged && !argument.use_empty())
      global.paged = emitPageTable(builder, function, paged, list, entry);
    RaggedAttr ragged = getRagged(function, argument.getArgNumber());
    if (ragged && llvm::any_of(argument.getUsers(),
                               [](Operation *user) { return !isa<memref::DimOp>(user); }))
      global.ragged =
          emitRaggedRows(builder, function, ragged, list, entry, argument.getArgNumber());
    Value placeholder =
        UnrealizedConversionCastOp::create(builder, loc, type, ValueRange()).getResult(0);
    argument.replaceAllUsesWith(placeholder);
    kernel.arguments.insert({placeholder, std::move(global)});
  }
}

/// The thread's number and its warpgroup's. The shuffle tells ptxas that the latter is the same for
/// a whole warp.
static void emitThreadNumbers(OpBuilder &builder, Kernel &kernel) {
  Location loc = kernel.function.getLoc();
  Type i32 = builder.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(value));
  };
  kernel.thread = NVVM::ThreadIdXOp::create(builder, loc, i32);
  Value warpgroup = LLVM::LShrOp::create(builder, loc, kernel.thread,
                                         constant(llvm::Log2_64(kernel.machine->warpgroupThreads)));
  kernel.warpgroup = NVVM::ShflOp::create(builder, loc, i32, constant(-1), warpgroup, constant(0),
                                          constant(kLanes - 1), NVVM::ShflKind::idx, UnitAttr());
}

/// Replaces memref.dim by the parameter that holds it.
static void replaceDims(Kernel &kernel) {
  for (auto &[memref, global] : kernel.arguments)
    for (Operation *user : llvm::make_early_inc_range(memref.getUsers()))
      if (auto dim = dyn_cast<memref::DimOp>(user)) {
        OpBuilder builder(dim);
        Value size = global.sizes[*dim.getConstantIndex()];
        dim.replaceAllUsesWith(
            arith::IndexCastOp::create(builder, dim.getLoc(), builder.getIndexType(), size)
                .getResult());
        dim.erase();
      }
}

FailureOr<Kernel> attn::tile::convertKernelFunction(func::FuncOp function) {
  auto attribute = function->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("expected a kernel with a body of one block");
  if (failed(verifyAllocated(function)))
    return failure();
  FailureOr<ParameterList> list = collectParameters(function);
  if (failed(list))
    return failure();
  declareSharedMemory(function->getParentOfType<ModuleOp>());

  MLIRContext *context = function.getContext();
  OpBuilder builder(function);
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), list->types);
  Kernel kernel;
  kernel.machine = &getMachine(function);
  kernel.warpgroups = attribute.getWarpgroups();
  kernel.function = LLVM::LLVMFuncOp::create(builder, function.getLoc(), function.getName(), type);
  for (auto [index, attributes] : llvm::enumerate(list->argumentAttributes))
    kernel.function.setArgAttrs(index, attributes);
  kernel.launchRegisters =
      kernel.machine->getLaunchRegisters(kernel.warpgroups, attribute.getSchedule().resident);
  // setmaxnreg is ignored unless ptxas knows the registers at entry: all that blocks of this size
  // can have.
  int64_t threads = kernel.warpgroups * kernel.machine->warpgroupThreads;
  kernel.function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                           builder.getDenseI32ArrayAttr({int32_t(threads), 1, 1}));
  kernel.function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                           builder.getI32IntegerAttr(int32_t(attribute.getSchedule().resident)));
  kernel.function->setAttr(
      NVVM::NVVMDialect::getMaxnregAttrName(),
      builder.getI32IntegerAttr(std::min(kernel.launchRegisters, kernel.machine->mostRegisters)));
  // Copies of a step, with a mask and without, have the same bits where each operation rounds.
  if (attribute.getSchedule().fixedSplit > 0)
    kernel.function.setPassthroughAttr(builder.getStrArrayAttr({kUnfusedAttrName}));
  kernel.function->setAttr(TileDialect::kPlanAttrName,
                           toAttribute(context, makePlan(function, attribute, *list)));

  Block *entry = kernel.function.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  Block &body = function.getBody().front();
  emitThreadNumbers(builder, kernel);
  bindArguments(builder, function, *list, kernel);
  body.getTerminator()->erase();
  entry->getOperations().splice(entry->end(), body.getOperations());
  builder.setInsertionPointToEnd(entry);
  LLVM::ReturnOp::create(builder, function.getLoc(), ValueRange());
  replaceDims(kernel);
  function.erase();
  return kernel;
}

FailureOr<const GlobalArgument *> Kernel::getArgument(Operation *op, Value memref) const {
  auto it = arguments.find(memref);
  if (it == arguments.end())
    return op->emitOpError("expected an argument of the kernel as its memory");
  return &it->second;
}
