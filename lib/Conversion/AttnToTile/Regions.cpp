//===- Regions.cpp - score, mask and grad regions on tiles -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/Regions.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

/// Regions of attn ops have no other ops; those of linalg.generic may.
static LogicalResult checkScalars(Operation &op) {
  bool isRead = isa<tensor::ExtractOp>(op);
  if (!isRead && !op.hasTrait<OpTrait::IsTerminator>() &&
      !isa<arith::ArithDialect, math::MathDialect>(op.getDialect()))
    return op.emitOpError("has no form on tiles");
  auto isScalar = [](Type type) { return type.isIntOrIndexOrFloat(); };
  if (!llvm::all_of(op.getResultTypes(), isScalar) ||
      !llvm::all_of(llvm::drop_begin(op.getOperandTypes(), isRead), isScalar))
    return op.emitOpError("expected scalars in a region");
  return success();
}

Value attn::inlineRegion(BlockConverter &block, Region &region, ValueRange arguments,
                         RankedTensorType shape, Value isFalse) {
  TileBuilder &b = block.builder;
  IRMapping local;
  local.map(region.getArguments(), arguments);
  auto toTile = [&](Value value) -> Value {
    return isa<RankedTensorType>(value.getType()) ? value : b.splat(value, shape.getShape());
  };
  for (Operation &op : region.front()) {
    if (failed(checkScalars(op)))
      return {};
    b.setLoc(op.getLoc());
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = local.lookupOrNull(operand);
      if (!value)
        value = block.lookup(&op, operand);
      if (!value)
        return {};
      operands.push_back(value);
    }
    if (op.hasTrait<OpTrait::IsTerminator>())
      return toTile(operands[0]);
    if (isFalse && isa<arith::OrIOp>(op) && llvm::is_contained(op.getOperands(), isFalse)) {
      local.map(op.getResult(0), operands[op.getOperand(0) == isFalse ? 1 : 0]);
      continue;
    }
    bool onTiles =
        llvm::any_of(operands, [](Value v) { return isa<RankedTensorType>(v.getType()); });
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      if (!isa<MemRefType>(operands[0].getType())) {
        op.emitOpError("expected an element of an argument, got one of a tile ")
            << operands[0].getType();
        return {};
      }
      ValueRange indices = ValueRange(operands).drop_front();
      Type element = extract.getType();
      Value result =
          onTiles
              ? tile::GatherOp::create(b, shape.clone(element), operands[0], indices).getResult()
              : memref::LoadOp::create(b, operands[0], indices).getResult();
      local.map(extract.getResult(), result);
      continue;
    }
    if (!onTiles) {
      OperationState state(op.getLoc(), op.getName(), operands, op.getResultTypes(), op.getAttrs());
      local.map(op.getResults(), b.create(state)->getResults());
      continue;
    }
    for (Value &operand : operands)
      operand = toTile(operand);
    SmallVector<Type> types;
    for (Type type : op.getResultTypes())
      types.push_back(shape.clone(type));
    OperationState state(op.getLoc(), op.getName(), operands, types, op.getAttrs());
    local.map(op.getResults(), b.create(state)->getResults());
  }
  return {};
}

Value attn::findKeepsAll(Region &mask) {
  auto either = mask.front().getTerminator()->getOperand(0).getDefiningOp<arith::OrIOp>();
  if (either)
    for (Value operand : either->getOperands())
      if (!mask.isAncestor(operand.getParentRegion()))
        return operand;
  return {};
}
