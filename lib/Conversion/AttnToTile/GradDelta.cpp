//===- GradDelta.cpp - delta without its error, on tiles --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The block's numbers of an operand that is a slice of an argument; null, with a diagnostic, of
/// another one.
static Value loadRows(BlockConverter &block, GradDeltaEndOp op, Value operand) {
  const ArgumentSlice *slice = block.findSlice(operand);
  if (!slice) {
    op.emitOpError("expected neg_lse2, delta and d_lse to be slices of the kernel's arguments");
    return {};
  }
  const RowNumbers *numbers = block.findRowNumbers(slice->memref);
  return negateIf(block.builder, numbers && numbers->isNegated,
                  block.builder.load(*slice, {block.rows}));
}

/// Whether the weights of a row add up to 1 as far as rounding lets them.
static Value emitIsWhole(TileBuilder &b, Value total, Value negLse2, ArrayRef<int64_t> rows) {
  Value off =
      math::AbsFOp::create(b, arith::SubFOp::create(b, total, b.constant(1, rows)).getResult());
  Value ofLse = arith::MulFOp::create(b, math::AbsFOp::create(b, negLse2).getResult(),
                                      b.constant(GradDeltaEndOp::kSlackOfLse, rows));
  auto isWithin = [&](Value slack) -> Value {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, off, slack);
  };
  Value least = isWithin(b.constant(GradDeltaEndOp::kLeastSlack, rows));
  Value most = isWithin(b.constant(GradDeltaEndOp::kMostSlack, rows));
  return arith::OrIOp::create(b, least,
                              arith::AndIOp::create(b, most, isWithin(ofLse)).getResult());
}

LogicalResult attn::convertGradDeltaEnd(BlockConverter &block, GradDeltaEndOp op) {
  TileBuilder &b = block.builder;
  Value weight = block.lookupInRegisters(op, op.getWeight()),
        residual = block.lookupInRegisters(op, op.getResidual());
  if (!weight || !residual || failed(checkRows(op, block.rows, {weight, residual})))
    return failure();
  Value negLse2 = loadRows(block, op, op.getNegLse2()), delta = loadRows(block, op, op.getDelta());
  Value lseGradient = op.getDLse() ? loadRows(block, op, op.getDLse()) : Value();
  if (!negLse2 || !delta || (op.getDLse() && !lseGradient))
    return failure();
  int64_t rows[] = {block.rows};
  Value total = weight;
  if (op.getSink()) {
    Value sink = block.lookup(op, op.getSink());
    if (!sink)
      return failure();
    // The sink is a key without a value: dP is 0.
    Value log2e = b.constant(llvm::numbers::log2e, rows);
    Value ofSink =
        math::Exp2Op::create(b, math::FmaOp::create(b, b.splat(sink, rows), log2e, negLse2));
    total = arith::AddFOp::create(b, weight, ofSink);
    residual = arith::SubFOp::create(b, residual, arith::MulFOp::create(b, ofSink, delta));
  }
  Value error = arith::DivFOp::create(b, residual, total);
  // Near to each other: the residual has the gradient of lse in it.
  if (lseGradient)
    error = arith::SubFOp::create(b, error, lseGradient);
  Value exact = arith::AddFOp::create(b, delta, error);
  Value isWhole = emitIsWhole(b, total, negLse2, rows);
  block.mapping.map(op->getResult(0),
                    arith::SelectOp::create(b, isWhole, exact, delta).getResult());
  return success();
}
