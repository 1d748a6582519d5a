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
#include "llvm/ADT/SetVector.h"

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

static Value toTile(TileBuilder &b, Value value, RankedTensorType shape) {
  return isa<RankedTensorType>(value.getType()) ? value : b.splat(value, shape.getShape());
}

/// The values that the operands have become, or nothing, with a diagnostic.
static FailureOr<SmallVector<Value>> findOperands(BlockConverter &block, Operation &op,
                                                  const IRMapping &local) {
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    Value value = local.lookupOrNull(operand);
    if (!value)
      value = block.lookup(&op, operand);
    if (!value)
      return failure();
    operands.push_back(value);
  }
  return operands;
}

Value attn::keepInside(TileBuilder &b, Value index, Value memref, int64_t dim) {
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value size = b.createOrFold<memref::DimOp>(memref, dim);
  auto type = dyn_cast<RankedTensorType>(index.getType());
  if (type)
    return arith::MaxSIOp::create(b, b.clampBelow(index, zero, size),
                                  b.splat(zero, type.getShape()));
  Value last = b.createOrFold<arith::SubIOp>(size, arith::ConstantIndexOp::create(b, 1));
  return b.createOrFold<arith::MaxSIOp>(b.createOrFold<arith::MinSIOp>(index, last), zero);
}

/// Where an element is read. A distance is kept inside here, also of rows that are not there and
/// of keys that are dropped, since rows are not: then more of a thread's distances are the same.
static SmallVector<Value> findPlace(TileBuilder &b, tensor::ExtractOp extract,
                                    ArrayRef<Value> operands) {
  SmallVector<Value> indices(operands.drop_front());
  for (auto [dim, index, from] : llvm::enumerate(indices, extract.getIndices()))
    if (mayBeOutside(from, extract.getTensor(), dim))
      index = keepInside(b, index, operands[0], dim);
  return indices;
}

/// An op that is no terminator, on tiles if one of its operands is one.
static LogicalResult inlineOp(BlockConverter &block, Operation &op, SmallVector<Value> operands,
                              IRMapping &local, RankedTensorType shape) {
  TileBuilder &b = block.builder;
  bool onTiles = llvm::any_of(operands, [](Value v) { return isa<RankedTensorType>(v.getType()); });
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    if (!isa<MemRefType>(operands[0].getType()))
      return op.emitOpError("expected an element of an argument, got one of a tile ")
             << operands[0].getType();
    SmallVector<Value> indices = findPlace(b, extract, operands);
    Type element = extract.getType();
    Value result =
        onTiles ? tile::GatherOp::create(b, shape.clone(element), operands[0], indices).getResult()
                : memref::LoadOp::create(b, operands[0], indices).getResult();
    local.map(extract.getResult(), result);
    return success();
  }
  SmallVector<Type> types(op.getResultTypes());
  if (onTiles) {
    for (Value &operand : operands)
      operand = toTile(b, operand, shape);
    for (Type &type : types)
      type = shape.clone(type);
  }
  OperationState state(op.getLoc(), op.getName(), operands, types, op.getAttrs());
  local.map(op.getResults(), b.create(state)->getResults());
  return success();
}

Value attn::inlineRegion(BlockConverter &block, Region &region, ValueRange arguments,
                         RankedTensorType shape, Value isFalse, unsigned yielded, Value first) {
  TileBuilder &b = block.builder;
  IRMapping local;
  local.map(region.getArguments(), arguments);
  if (first)
    local.map(first, arguments.front());
  Operation *yield = region.front().getTerminator();
  bool isOneOfTwo = yield->getNumOperands() > 1;
  DenseSet<Operation *> origins =
      isOneOfTwo ? findOrigins(region, yielded) : DenseSet<Operation *>();
  for (Operation &op : region.front().without_terminator()) {
    if ((isOneOfTwo && !origins.contains(&op)) ||
        (op.getNumResults() == 1 && local.contains(op.getResult(0))))
      continue;
    if (failed(checkScalars(op)))
      return {};
    b.setLoc(op.getLoc());
    FailureOr<SmallVector<Value>> operands = findOperands(block, op, local);
    if (failed(operands))
      return {};
    if (isFalse && isa<arith::OrIOp>(op) && llvm::is_contained(op.getOperands(), isFalse)) {
      local.map(op.getResult(0), (*operands)[op.getOperand(0) == isFalse ? 1 : 0]);
      continue;
    }
    if (failed(inlineOp(block, op, *operands, local, shape)))
      return {};
  }
  Value result = local.lookupOrNull(yield->getOperand(yielded));
  if (!result)
    result = block.lookup(yield, yield->getOperand(yielded));
  return result ? toTile(b, result, shape) : Value();
}

/// The ops of the region that make the value, in order; nothing where it depends on more than batch
/// and head.
static std::optional<SmallVector<Operation *>> findOpsOfHead(Region &region, Value value) {
  constexpr unsigned kBatch = 1, kHead = 2;
  llvm::SetVector<Operation *> ops;
  SmallVector<Value> left = {value};
  while (!left.empty()) {
    Value next = left.pop_back_val();
    if (auto argument = dyn_cast<BlockArgument>(next);
        argument && argument.getOwner()->getParent() == &region) {
      if (argument.getArgNumber() != kBatch && argument.getArgNumber() != kHead)
        return std::nullopt;
      continue;
    }
    Operation *op = next.getDefiningOp();
    if (!op || op->getParentRegion() != &region || !ops.insert(op))
      continue;
    llvm::append_range(left, op->getOperands());
  }
  SmallVector<Operation *> ordered = ops.takeVector();
  llvm::sort(ordered, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  return ordered;
}

bool attn::isOfHead(Region &region, Value value) {
  return findOpsOfHead(region, value).has_value();
}

ScoreFactors attn::findLeadingFactors(Region &score) {
  ScoreFactors leading;
  leading.product = score.front().getArgument(0);
  auto yield = cast<YieldOp>(score.front().getTerminator());
  while (leading.product.hasOneUse()) {
    auto multiply = dyn_cast<arith::MulFOp>(*leading.product.user_begin());
    Value factor = !multiply                              ? Value()
                   : multiply.getLhs() == leading.product ? multiply.getRhs()
                                                          : multiply.getLhs();
    if (!factor || factor == leading.product || !isOfHead(score, factor))
      break;
    leading.factors.push_back(factor);
    leading.product = multiply;
  }
  leading.isAll = leading.product == yield.getResult() && !leading.factors.empty();
  return leading;
}

FailureOr<Value> attn::inlineHeadFactors(BlockConverter &block, OnlineAttentionOp op,
                                         ArrayRef<Value> factors) {
  if (factors.empty())
    return Value();
  TileBuilder &b = block.builder;
  Region &region = op.getScore();
  IRMapping local;
  for (auto [argument, position] :
       llvm::zip(region.getArguments().slice(1, 2), op.getMixedOrigin())) {
    Value value = block.lookup(op, position);
    if (!value)
      return failure();
    local.map(argument, value);
  }
  OpBuilder::InsertionGuard guard(b);
  block.moveBeforeLoops();
  Value product;
  for (Value factor : factors) {
    std::optional<SmallVector<Operation *>> ops = findOpsOfHead(region, factor);
    for (Operation *inner : *ops) {
      if (local.contains(inner->getResult(0)))
        continue;
      FailureOr<SmallVector<Value>> operands = findOperands(block, *inner, local);
      if (failed(checkScalars(*inner)) || failed(operands) ||
          failed(inlineOp(block, *inner, *operands, local, RankedTensorType())))
        return failure();
    }
    Value value = local.lookupOrNull(factor);
    if (!value)
      value = block.lookup(op, factor);
    if (!value)
      return failure();
    product = product ? b.createOrFold<arith::MulFOp>(product, value) : value;
  }
  return product;
}

LogicalResult attn::inlineContributions(BlockConverter &block, Region &grad, ValueRange arguments,
                                        RankedTensorType shape, const DenseSet<Operation *> &needed,
                                        Contribute contribute) {
  TileBuilder &b = block.builder;
  IRMapping local;
  for (auto [name, value] : llvm::zip_equal(grad.getArguments(), arguments))
    if (value)
      local.map(name, value);
  for (Operation &op : grad.front()) {
    if (!needed.contains(&op))
      continue;
    b.setLoc(op.getLoc());
    if (auto contribution = dyn_cast<ContributeOp>(op)) {
      SmallVector<Value> indices;
      for (Value index : contribution.getIndices()) {
        Value known = local.lookupOrNull(index);
        indices.push_back(known ? known : block.lookup(contribution, index));
      }
      if (llvm::is_contained(indices, Value()))
        return failure();
      Value addend = contribution.getAddend(), known = local.lookupOrNull(addend);
      if (!known && addend.getParentRegion() != &grad)
        known = block.lookup(contribution, addend);
      if (failed(contribute(contribution, known, indices)))
        return failure();
      continue;
    }
    FailureOr<SmallVector<Value>> operands = findOperands(block, op, local);
    if (failed(checkScalars(op)) || failed(operands) ||
        failed(inlineOp(block, op, *operands, local, shape)))
      return failure();
  }
  return success();
}

Value attn::findKeepsAll(Region &mask) {
  auto either = mask.front().getTerminator()->getOperand(0).getDefiningOp<arith::OrIOp>();
  if (either)
    for (Value operand : either->getOperands())
      if (!mask.isAncestor(operand.getParentRegion()))
        return operand;
  return {};
}
