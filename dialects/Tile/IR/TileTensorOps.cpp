//===- TileTensorOps.cpp - operations on tensor memory ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

int64_t attn::tile::getUnits(Operation *op, TensorPlaceType type) {
  return type.getNumRows() / getMachine(op).product.rows;
}

//===----------------------------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------------------------===//

/// columns_c2: the machine has tensor memory, and columns are claimed and released outside of roles
static LogicalResult verifyClaim(Operation *op, ColumnsType type) {
  const Machine &machine = getMachine(op);
  if (type.getCount() > machine.tensor.columns)
    return op->emitOpError("expected at most ") << machine.tensor.columns << " columns on "
                                                << machine.name << ", got " << type.getCount();
  if (op->getParentOfType<SpecializeOp>())
    return op->emitOpError("expected to stand outside of roles, which share the columns");
  return success();
}

LogicalResult AllocTensorOp::verify() {
  // alloc_tensor_c1: an offset is a multiple of 4 from 0 on
  if (int64_t offset = getOffset().value_or(0); offset < 0 || offset % 4 != 0)
    return emitOpError("expected an offset that is a multiple of 4, got ") << offset;
  return verifyClaim(*this, getType());
}

LogicalResult DeallocTensorOp::verify() { return verifyClaim(*this, getColumns().getType()); }

LogicalResult TensorPlaceOp::verify() {
  // tensor_place_c1: a place lies in the share of each unit of its rows
  const Machine &machine = getMachine(*this);
  TensorPlaceType type = getType();
  int64_t units = machine.tensor.lanes ? getUnits(*this, type) : 0;
  int64_t share = units ? getColumns().getType().getCount() / units : 0;
  int64_t first = getFirst(), words = type.getWords();
  if (units && type.getNumRows() % machine.product.rows == 0 && words <= share &&
      first <= share - words)
    return success();
  return emitOpError("expected columns within the ")
         << share << " that each of " << units << " units has of " << getColumns().getType()
         << ", got " << words << " from " << first << " on";
}

//===----------------------------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------------------------===//

/// tensor_access_c1: a register tile has the place's shape and element type, in `acc` or, of 16
/// bits, in `operand_a`, of units whose sums are in tensor memory
static LogicalResult verifyAccess(Operation *op, RankedTensorType tile, TensorPlaceType place) {
  auto acc = dyn_cast_or_null<AccAttr>(tile.getEncoding());
  auto operand = dyn_cast_or_null<OperandAAttr>(tile.getEncoding());
  const Product *product = acc ? &acc.getUnit() : operand ? &operand.getUnit() : nullptr;
  if (product && product->form == Product::Form::Tensor && tile.getShape() == place.getShape() &&
      tile.getElementType() == place.getElementType())
    return success();
  return op->emitOpError("expected the shape and element type of ")
         << place << " in the layout of sums in tensor memory, got " << tile;
}

LogicalResult LoadTensorOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getType()), getSource().getType());
}

LogicalResult StoreTensorOp::verify() {
  return verifyAccess(*this, cast<RankedTensorType>(getValue().getType()), getDest().getType());
}

LogicalResult ScaleTensorOp::verify() {
  // scale_tensor_c1: a number of f32 for each row of a place of f32
  auto factors = cast<RankedTensorType>(getFactors().getType());
  auto row = dyn_cast_or_null<RowAttr>(factors.getEncoding());
  auto acc = row ? dyn_cast<AccAttr>(row.getOf()) : AccAttr();
  TensorPlaceType place = getPlace().getType();
  if (acc && acc.getUnit().form == Product::Form::Tensor && factors.getElementType().isF32() &&
      place.getElementType().isF32() && factors.getDimSize(0) == place.getNumRows())
    return success();
  return emitOpError("expected f32 for each row of a place of f32, in the layout of its rows, got ")
         << factors << " and " << place;
}

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

static std::pair<int64_t, int64_t> getShape(Type type, bool isTransposed) {
  auto shared = dyn_cast<SharedType>(type);
  ArrayRef<int64_t> shape = shared ? shared.getShape() : cast<TensorPlaceType>(type).getShape();
  return isTransposed ? std::pair(shape[1], shape[0]) : std::pair(shape[0], shape[1]);
}

static Type getElement(Type type) {
  auto shared = dyn_cast<SharedType>(type);
  return shared ? shared.getElementType() : cast<TensorPlaceType>(type).getElementType();
}

LogicalResult MmaTensorOp::verify() {
  Type lhs = getLhs().getType();
  SharedType rhs = getRhs().getType();
  TensorPlaceType sum = getSum().getType();
  // mma_tensor_c1: operands are matrices, shared ones a single stage, and a lhs in tensor memory is
  // not transposed
  for (Type type : {lhs, Type(rhs)})
    if (auto shared = dyn_cast<SharedType>(type);
        shared ? shared.isRow() || shared.getStages() != 1 : getTransposeLhs())
      return emitOpError("expected matrices (one stage of a ring), and no transposed lhs in tensor "
                         "memory, got ")
             << type;
  // mma_tensor_c2: M x K times K x N gives M x N, with K in steps of a product
  const Product &product = getMachine(*this).product;
  Type element = getElement(lhs);
  auto [m, k] = getShape(lhs, getTransposeLhs());
  auto [depth, n] = getShape(rhs, getTransposeRhs());
  int64_t step = product.sumBytes * 8 / std::max(1u, element.getIntOrFloatBitWidth());
  if (k != depth || m != sum.getNumRows() || n != sum.getNumColumns() || k % step != 0)
    return emitOpError("expected M x K times K x N to give M x N, with K in multiples of ")
           << step << ", got " << m << "x" << k << " times " << depth << "x" << n << " and " << sum;
  // mma_tensor_c3: operands have one float type of 16 bits, and the sum is f32 of whole products
  if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() != 16 ||
      element != getElement(rhs) || !sum.getElementType().isF32() || n % product.columnStep != 0)
    return emitOpError(
               "expected one float type of 16 bits for both operands, and a sum of f32 with "
               "columns in multiples of ")
           << product.columnStep << ", got " << element << " and " << getElement(rhs) << ", and "
           << sum;
  // mma_tensor_c4: the machine has such products, and a slot is one of the barrier
  if (product.form != Product::Form::Tensor)
    return emitOpError("expected a machine with tensor memory, got ") << getMachine(*this).name;
  int64_t stages = getBarrier().getType().getStages();
  if (int64_t slots = getSlot() ? getSlot().getType().getStages() : 1; stages != slots)
    return emitOpError("expected a slot of ") << stages << " stages, got " << slots;
  return success();
}

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileTensorOps.cpp.inc"
