//===- WidenRegion.cpp - a score or mask region in another float type --------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToLinalg/WidenRegion.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

/// Ops whose f32 operands or results are a matter of bits or of memory, not of arithmetic.
static bool needsF32(Operation &op) { return isa<arith::BitcastOp, tensor::ExtractOp>(op); }

static Value convert(OpBuilder &builder, Location loc, Value value, FloatType type) {
  if (!value.getType().isF32() && !value.getType().isF64())
    return value;
  if (value.getType() == type)
    return value;
  if (type.isF64())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

/// The place that indices of a captured tensor name: the nearest element where they may lie outside
/// of it (s13).
static SmallVector<Value> findPlace(OpBuilder &builder, Location loc, Value tensor,
                                    ValueRange indices, const IRMapping &mapping) {
  SmallVector<Value> place;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value at = mapping.lookupOrDefault(index);
    if (mayBeOutside(index, tensor, dim)) {
      Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
      Value one = arith::ConstantIndexOp::create(builder, loc, 1);
      Value size = builder.createOrFold<tensor::DimOp>(loc, tensor, dim);
      Value last = builder.createOrFold<arith::SubIOp>(loc, size, one);
      at = builder.createOrFold<arith::MinSIOp>(loc, at, last);
      at = builder.createOrFold<arith::MaxSIOp>(loc, at, zero);
    }
    place.push_back(at);
  }
  return place;
}

Value attn::inlineWidened(OpBuilder &builder, Region &region, ValueRange arguments, FloatType type,
                          function_ref<void(ContributeOp, Value, ValueRange)> contribute,
                          unsigned yielded) {
  Type f32 = builder.getF32Type();
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front()) {
    Location loc = op.getLoc();
    if (auto yield = dyn_cast<YieldOp>(op)) {
      Value of = yield->getOperand(yielded), result = mapping.lookupOrDefault(of);
      return of.getType() == f32 ? convert(builder, loc, result, type) : result;
    }
    if (auto contribution = dyn_cast<ContributeOp>(op)) {
      SmallVector<Value> indices =
          findPlace(builder, loc, contribution.getTensor(), contribution.getIndices(), mapping);
      Value addend = mapping.lookupOrDefault(contribution.getAddend());
      if (contribute)
        contribute(contribution, convert(builder, loc, addend, type), indices);
      continue;
    }
    bool keepsF32 = needsF32(op);
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = mapping.lookupOrDefault(operand);
      if (operand.getType() == f32)
        value = convert(builder, loc, value, keepsF32 ? cast<FloatType>(f32) : type);
      operands.push_back(value);
    }
    if (auto read = dyn_cast<tensor::ExtractOp>(op)) {
      operands.resize(1);
      llvm::append_range(operands,
                         findPlace(builder, loc, read.getTensor(), read.getIndices(), mapping));
    }
    auto widened = [&](Type result) { return result == f32 && !keepsF32 ? Type(type) : result; };
    // A change of precision between f32 and f64 is already done.
    if (isa<arith::ExtFOp, arith::TruncFOp>(op) &&
        operands[0].getType() == widened(op.getResult(0).getType())) {
      mapping.map(op.getResult(0), operands[0]);
      continue;
    }
    OperationState state(loc, op.getName());
    state.addOperands(operands);
    state.addAttributes(op.getAttrs());
    for (Type result : op.getResultTypes())
      state.addTypes(widened(result));
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && constant.getType() == f32) {
      double value = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
      mapping.map(
          op.getResult(0),
          arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value)).getResult());
      continue;
    }
    mapping.map(op.getResults(), builder.create(state)->getResults());
  }
  return {};
}
