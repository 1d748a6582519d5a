//===- Normalize.cpp - the end of the online softmax on tiles ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn;

/// The sums of rows, whole.
static Value sumParts(TileBuilder &b, Value sums) {
  auto type = cast<RankedTensorType>(sums.getType());
  if (type.getRank() == 1)
    return sums;
  auto rows = RankedTensorType::get({type.getDimSize(0)}, type.getElementType());
  return tile::ReduceOp::create(b, rows, tile::Combiner::Add, sums, /*init=*/Value());
}

Value attn::toBase2(TileBuilder &b, Value lse) {
  ArrayRef<int64_t> rows = cast<RankedTensorType>(lse.getType()).getShape();
  return math::FmaOp::create(b, lse, b.constant(1.0 / M_LN2, rows), b.constant(0.0, rows));
}

Value attn::emitLow(TileBuilder &b, Value lse, Value max, Value sumLog2) {
  ArrayRef<int64_t> rows = cast<RankedTensorType>(lse.getType()).getShape();
  Value low = arith::SubFOp::create(b, max, toBase2(b, lse));
  low = arith::AddFOp::create(b, low, sumLog2);
  // Of an infinite one there is no rest.
  Value infinity = b.constant(std::numeric_limits<double>::infinity(), rows);
  Value isFinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, low), infinity);
  return arith::SelectOp::create(b, isFinite, low, b.constant(0, rows));
}

/// Of elements of 8 bits, the factor that all weights of the block's head have, null for none:
/// those of other steps are the same.
static FailureOr<Value> inlineWeightFactor(BlockConverter &block) {
  OnlineAttentionOp step;
  block.grid.walk([&](OnlineAttentionOp op) { step = op; });
  if (!step || step.getScore().empty() ||
      getElementTypeOrSelf(step.getQuery()).getIntOrFloatBitWidth() > 8)
    return Value();
  Value factor = getFactor(step.getScore());
  if (!factor || !isOfHead(step.getScore(), factor))
    return Value();
  return inlineHeadFactors(block, step, factor);
}

LogicalResult attn::convertNormalize(BlockConverter &block, NormalizeOp op) {
  TileBuilder &b = block.builder;
  Value acc = block.lookupInRegisters(op, op.getAcc()),
        max = block.lookupInRegisters(op, op.getRowMax()),
        sum = block.lookupInRegisters(op, op.getRowSum());
  if (!acc || !max || !sum || failed(checkRows(op, block.rows, {acc, max, sum})))
    return failure();
  Type element = op.getOutput().getType().getElementType();
  if (element.isF64())
    return op.emitOpError("expected an output of f16, bf16 or f32 on this target, got ") << element;
  sum = sumParts(b, sum);
  int64_t dv = op.getAcc().getType().getDimSize(1);
  RankedTensorType row = RankedTensorType::get({block.rows}, b.getF32Type());
  // One unit of the maximum as a natural logarithm, or in base 2 without a sink.
  std::optional<double> foldedScale = findFoldedScale(block.grid);
  double unit = foldedScale.value_or(1.0);
  // The maximum in base 2, or the sink where that is larger.
  Value max2;
  if (op.getLseLow())
    max2 = foldedScale ? arith::MulFOp::create(b, max, b.constant(unit, row.getShape())) : max;
  if (op.getSink()) {
    Value sink = block.lookupInRegisters(op, op.getSink());
    if (!sink)
      return failure();
    if (!isa<RankedTensorType>(sink.getType()))
      sink = b.splat(sink, row.getShape());
    else if (failed(checkRows(op, block.rows, {sink})))
      return failure();
    // The sink joins the maximum and the sum; the accumulator follows the maximum. All are natural
    // logarithms: in base 2 a finite sink may be none.
    auto power = [&](Value difference) -> Value {
      Value exponent =
          arith::MulFOp::create(b, difference, b.constant(1.0 / M_LN2, row.getShape()));
      return math::Exp2Op::create(b, exponent);
    };
    Value zero = b.constant(0.0, row.getShape()), one = b.constant(1.0, row.getShape());
    max = arith::MulFOp::create(b, max, b.constant(unit * M_LN2, row.getShape()));
    Value joined = arith::MaximumFOp::create(b, max, sink);
    Value safe = arith::SelectOp::create(b, b.isEqual(joined, kLowest), zero, joined);
    // 1 where the sink is no larger, whatever assemblers make of the product in the maximum.
    Value isSink = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sink, max);
    Value factor =
        arith::SelectOp::create(b, isSink, power(arith::SubFOp::create(b, max, safe)), one);
    // Of a sink of +inf too, though inf - inf is none.
    Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, safe);
    Value extra =
        arith::SelectOp::create(b, isMax, one, power(arith::SubFOp::create(b, sink, safe)));
    sum = arith::AddFOp::create(b, arith::MulFOp::create(b, sum, factor), extra);
    acc = arith::MulFOp::create(b, acc, b.rowsToTile(factor, dv));
    if (max2)
      max2 = arith::SelectOp::create(b, isSink, toBase2(b, sink), max2);
    max = joined;
  } else if (foldedScale) {
    max = arith::MulFOp::create(b, max, b.constant(unit, row.getShape()));
  }
  Value empty = b.isEqual(sum, 0.0);
  Value divisor = arith::SelectOp::create(b, empty, b.constant(1.0, row.getShape()), sum);
  Value inverse = arith::DivFOp::create(b, b.constant(1.0, row.getShape()), divisor);
  FailureOr<Value> factor = inlineWeightFactor(block);
  if (failed(factor))
    return failure();
  if (*factor)
    inverse = arith::MulFOp::create(b, inverse, b.splat(*factor, row.getShape()));
  Value o = arith::MulFOp::create(b, acc, b.rowsToTile(inverse, dv));
  block.mapping.map(op->getResult(0), b.narrow(o, element));
  if (op.getLse()) {
    Value log = math::Log2Op::create(b, divisor), ln2 = b.constant(M_LN2, row.getShape()), lse;
    if (op.getSink())
      lse = arith::AddFOp::create(b, max, arith::MulFOp::create(b, log, ln2));
    else
      lse = arith::MulFOp::create(b, arith::AddFOp::create(b, max, log), ln2);
    lse = arith::SelectOp::create(b, empty, b.constant(kLowest, row.getShape()), lse);
    block.mapping.map(op->getResult(1), lse);
    if (op.getLseLow())
      block.mapping.map(op->getResult(2), emitLow(b, lse, max2, log));
  }
  return success();
}
