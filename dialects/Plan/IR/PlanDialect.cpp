//===- PlanDialect.cpp - registration of the plan dialect
//--------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::plan;

#include "dialects/Plan/IR/PlanDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Plan/IR/PlanAttrs.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Plan/IR/PlanAttrs.cpp.inc"
      >();
}

const attn::Machine &attn::plan::getMachine(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(PlanDialect::kTargetAttrName))
      return target.getMachine();
  return getDefaultMachine();
}

/// Attributes of a dialect are verified before the op that has them, whose type may be none of a
/// function then.
static func::FuncOp getFunction(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  auto type = function ? function.getFunctionTypeAttr() : TypeAttr();
  return type && isa<FunctionType>(type.getValue()) ? function : func::FuncOp();
}

/// The type of an argument that is a tensor or a memref with that dimension, or null.
static ShapedType getShaped(FunctionOpInterface function, int64_t argument, int64_t dim) {
  ArrayRef<Type> types = function.getArgumentTypes();
  auto type =
      argument < int64_t(types.size()) ? dyn_cast<ShapedType>(types[argument]) : ShapedType();
  bool hasDim = type && isa<RankedTensorType, MemRefType>(type) && dim < type.getRank();
  return hasDim ? type : ShapedType();
}

/// extent_c2: every extent names a dimension of a tensor or memref argument
static LogicalResult verifyExtent(FunctionOpInterface function, ExtentAttr extent) {
  int64_t count = function.getArgumentTypes().size();
  if (extent.getArgument() >= count)
    return function.emitOpError("expected extents of its ")
           << count << " arguments, got argument " << extent.getArgument();
  if (getShaped(function, extent.getArgument(), extent.getDim()))
    return success();
  return function.emitOpError("expected argument ")
         << extent.getArgument() << " to be a tensor or memref with dimension " << extent.getDim()
         << ", got " << function.getArgumentTypes()[extent.getArgument()];
}

LogicalResult attn::plan::verifyFactor(FunctionOpInterface function, Attribute factor) {
  if (auto extent = dyn_cast<ExtentAttr>(factor))
    return verifyExtent(function, extent);
  auto parts = dyn_cast<PartsAttr>(factor);
  if (!parts)
    return success();
  for (Attribute block : parts.getBlocks())
    if (failed(verifyFactor(function, block)))
      return failure();
  return verifyFactor(function, parts.getKeys());
}

/// target_c1: `plan.target` is a `#plan.target` on a module
static LogicalResult verifyTarget(Operation *op, Attribute attribute) {
  if (isa<ModuleOp>(op) && isa<TargetAttr>(attribute))
    return success();
  return op->emitOpError("expected #plan.target on a module, got ") << attribute;
}

/// Whether a range is one of a function's arguments, of parts or of the device. It may say why not
/// itself.
static FailureOr<bool> isRangeOf(func::FuncOp function, Attribute attribute) {
  auto range = dyn_cast<RangeAttr>(attribute);
  if (!range || range.getDevice())
    return bool(range);
  if (range.getParts())
    return failed(verifyFactor(function, range.getParts())) ? FailureOr<bool>() : true;
  if (!getShaped(function, range.getArgument(), range.getDim()))
    return false;
  bool isWrong = range.getPer() && failed(verifyExtent(function, range.getPer()));
  return isWrong ? FailureOr<bool>() : true;
}

/// when_c1: `plan.when` lists conditions, each a list of `#plan.range` of dimensions of a
/// function's tensor or memref arguments, of parts or of the device
static LogicalResult verifyWhen(Operation *op, Attribute attribute) {
  auto conditions = dyn_cast<ArrayAttr>(attribute);
  // A function of LLVM has addresses in place of what the ranges are of.
  if (conditions && isa<FunctionOpInterface>(op) && !isa<func::FuncOp>(op))
    return success();
  func::FuncOp function = getFunction(op);
  bool isRight = conditions && function && !conditions.empty();
  for (Attribute condition : isRight ? conditions.getValue() : ArrayRef<Attribute>()) {
    auto ranges = dyn_cast<ArrayAttr>(condition);
    isRight &= bool(ranges);
    for (Attribute element : ranges ? ranges.getValue() : ArrayRef<Attribute>()) {
      FailureOr<bool> isRange = isRangeOf(function, element);
      if (failed(isRange))
        return failure();
      isRight &= *isRange;
    }
  }
  if (isRight)
    return success();
  return op->emitOpError(
             "expected lists of #plan.range of dimensions of tensor or memref arguments "
             "as plan.when of a function, got ")
         << attribute;
}

/// way_c1: `plan.way` is a string on a function
static LogicalResult verifyWay(Operation *op, Attribute attribute) {
  if (isa<StringAttr>(attribute) && isa<FunctionOpInterface>(op))
    return success();
  return op->emitOpError("expected a string as plan.way of a function, got ") << attribute;
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  // dialect_c1: the attributes are `plan.target`, `plan.when` and `plan.way` on ops, `plan.packed`,
  // `plan.paged` and `plan.ragged` on arguments
  if (attribute.getName() == kTargetAttrName)
    return verifyTarget(op, attribute.getValue());
  if (attribute.getName() == kWhenAttrName)
    return verifyWhen(op, attribute.getValue());
  if (attribute.getName() == kWayAttrName)
    return verifyWay(op, attribute.getValue());
  return op->emitOpError("expected plan.target, plan.when or plan.way of the plan dialect, got '")
         << attribute.getName().getValue() << "'";
}

/// packed_c2: `plan.packed` is on a memref of rank 3 or more, or of rank 2 or more with
/// `plan.ragged`, `keys` is one of rank 2 or more
static LogicalResult verifyPacked(FunctionOpInterface function, unsigned index,
                                  Attribute attribute) {
  auto packed = dyn_cast<PackedAttr>(attribute);
  auto hasDim = [&](int64_t argument, int64_t dim) {
    return isa_and_nonnull<MemRefType>(getShaped(function, argument, dim));
  };
  bool isRagged = bool(function.getArgAttr(index, PlanDialect::kRaggedAttrName));
  if (packed && hasDim(index, isRagged ? 1 : 2) && hasDim(packed.getKeys(), 1))
    return success();
  return function.emitOpError("expected #plan.packed on a memref of rank 3 or more, with a memref "
                              "of rank 2 or more as keys, got ")
         << attribute << " on argument " << index;
}

/// paged_c2: `plan.paged` is on a memref of rank 4 whose dimension 1 is `page`, `table` is a memref
/// of rank 2 of i32 or i64
static LogicalResult verifyPaged(FunctionOpInterface function, unsigned index,
                                 Attribute attribute) {
  auto paged = dyn_cast<PagedAttr>(attribute);
  auto getMemRef = [&](int64_t argument, int64_t rank) {
    auto type = dyn_cast_or_null<MemRefType>(getShaped(function, argument, rank - 1));
    return type && type.getRank() == rank ? type : MemRefType();
  };
  MemRefType pool = getMemRef(index, 4), table = paged ? getMemRef(paged.getTable(), 2) : pool;
  if (paged && pool && table && pool.getDimSize(1) == paged.getPage() &&
      (table.getElementType().isSignlessInteger(32) ||
       table.getElementType().isSignlessInteger(64)))
    return success();
  return function.emitOpError("expected #plan.paged on a memref of rank 4 with pages of that size, "
                              "with a memref of rank 2 of i32 or i64 as table, got ")
         << attribute << " on argument " << index;
}

/// ragged_c2: `plan.ragged` is on a memref of rank 2 or 3, `offsets` is a memref of rank 1 of i32
/// or i64, and `most` has dimension `dim`
static LogicalResult verifyRagged(FunctionOpInterface function, unsigned index,
                                  Attribute attribute) {
  auto ragged = dyn_cast<RaggedAttr>(attribute);
  auto getMemRef = [&](int64_t argument, int64_t dim) {
    return dyn_cast_or_null<MemRefType>(getShaped(function, argument, dim));
  };
  MemRefType rows = getMemRef(index, 1),
             offsets = ragged ? getMemRef(ragged.getOffsets(), 0) : rows;
  if (ragged && rows && rows.getRank() <= 3 && offsets && offsets.getRank() == 1 &&
      (offsets.getElementType().isSignlessInteger(32) ||
       offsets.getElementType().isSignlessInteger(64)) &&
      getMemRef(ragged.getMost(), ragged.getDim()))
    return success();
  return function.emitOpError("expected #plan.ragged on a memref of rank 2 or 3, with a memref of "
                              "rank 1 of i32 or i64 as offsets and a dimension as most, got ")
         << attribute << " on argument " << index;
}

LogicalResult PlanDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                    NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (attribute.getName() == kPagedAttrName && function)
    return verifyPaged(function, index, attribute.getValue());
  if (attribute.getName() == kPackedAttrName && function)
    return verifyPacked(function, index, attribute.getValue());
  if (attribute.getName() == kRaggedAttrName && function)
    return verifyRagged(function, index, attribute.getValue());
  return op->emitOpError(
             "expected plan.packed, plan.paged or plan.ragged of the plan dialect on an "
             "argument, got '")
         << attribute.getName().getValue() << "'";
}
