//===- DiagonalKeys.cpp - masks that let each row keep its own key ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A copy of the mask, with one position for the row and the key and one number for both extents, is
// simplified by upstream's patterns. Where nothing but `true` is left, no tensor has a say.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/DiagonalKeys.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace attn;

/// Whether a value is how many rows or keys there are in all.
static bool isLength(Value value, OnlineAttentionOp step) {
  auto dim = value.getDefiningOp<tensor::DimOp>();
  return dim && dim.getConstantIndex() == 2 &&
         llvm::is_contained(
             {getWhole(step.getQuery()), getWhole(step.getKey()), getWhole(step.getValue())},
             dim.getSource());
}

/// Whether the step's rows and keys count from 0: shards of longer sequences have an origin.
static bool countsFromZero(const StepLoop &over, OnlineAttentionOp step) {
  auto slice = step.getQuery().getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || !isConstantIntValue(over.origin, 0) || slice.getSourceType().getRank() != 4)
    return false;
  return isEqualConstantIntOrValue(slice.getMixedOffsets()[2], step.getMixedOrigin()[2]);
}

/// A function (b, h, position, length, captured...) that yields what the mask does on the diagonal.
static func::FuncOp makeDiagonal(OpBuilder &builder, OnlineAttentionOp step) {
  Region &mask = step.getMask();
  llvm::SetVector<Value> captured, tensors;
  getUsedValuesDefinedAbove(mask, captured);
  SmallVector<Type> types(4, builder.getIndexType());
  for (Value value : captured)
    if (!isLength(value, step) && !matchPattern(value, m_Constant()) &&
        tensors.insert(getWhole(value)))
      types.push_back(tensors.back().getType());
  auto function =
      func::FuncOp::create(builder, step.getLoc(), "diagonal",
                           builder.getFunctionType(types, TypeRange{builder.getI1Type()}));
  Block *body = function.addEntryBlock();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(body);
  IRMapping mapping;
  BlockArgument position = body->getArgument(2);
  mapping.map(mask.getArguments(),
              ValueRange{body->getArgument(0), body->getArgument(1), position, position});
  for (Value value : captured) {
    if (isLength(value, step))
      mapping.map(value, body->getArgument(3));
    else if (matchPattern(value, m_Constant()))
      builder.clone(*value.getDefiningOp(), mapping);
    else
      mapping.map(value,
                  body->getArgument(4 + (llvm::find(tensors, getWhole(value)) - tensors.begin())));
  }
  for (Operation &op : mask.front().without_terminator())
    builder.clone(op, mapping);
  Value kept = mapping.lookup(mask.front().getTerminator()->getOperand(0));
  func::ReturnOp::create(builder, step.getLoc(), kept);
  return function;
}

bool attn::keepsDiagonal(StepLoop over) {
  auto step = dyn_cast<OnlineAttentionOp>(over.step.getOperation());
  if (!step || step.getMask().empty() || !countsFromZero(over, step))
    return false;
  MLIRContext *context = step.getContext();
  OwningOpRef<ModuleOp> scratch = ModuleOp::create(step.getLoc());
  auto builder = OpBuilder::atBlockBegin(scratch->getBody());
  func::FuncOp diagonal = makeDiagonal(builder, step);

  RewritePatternSet patterns(context);
  for (StringRef name :
       {arith::ArithDialect::getDialectNamespace(), tensor::TensorDialect::getDialectNamespace()})
    for (RegisteredOperationName op : context->getRegisteredOperationsByDialect(name))
      op.getCanonicalizationPatterns(patterns, context);
  FrozenRewritePatternSet frozen(std::move(patterns));
  IRRewriter rewriter(context);
  // Equal reads become one value, equal values a constant, and so on.
  for (bool changed = true; changed;) {
    DominanceInfo dominance;
    eliminateCommonSubExpressions(rewriter, dominance, diagonal, &changed);
    if (failed(applyPatternsGreedily(diagonal, frozen)))
      return false;
  }
  Operation *end = diagonal.getBody().front().getTerminator();
  return matchPattern(end->getOperand(0), m_One());
}
