//===- GradRows.cpp - gradients a row at a time -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static int64_t getNumColumns(Value matrix) {
  return cast<MemRefType>(matrix.getType()).getDimSize(1);
}

/// sum_d a[m,d] * b[m,d] in f32.
static Value emitRowDot(Emitter &b, Value x, Value y, Value m, int64_t columns) {
  int64_t lanes = b.target.lanes, whole = columns / lanes * lanes;
  auto load = [&](Value matrix, Value column, Value mask) {
    Value loaded =
        mask ? b.loadMasked(matrix, {m, column}, mask) : b.loadVector(matrix, {m, column});
    return b.convert(loaded, b.getF32Type());
  };
  Value sum = b.floatLike(b.f32Vec(), 0);
  sum = b.loop(b.index(0), b.index(whole), lanes, sum, [&](Value column, ValueRange running) {
    Value product = b.fma(load(x, column, {}), load(y, column, {}), running[0]);
    return SmallVector<Value>{product};
  })[0];
  if (whole != columns) {
    Value column = b.index(whole), mask = b.maskBelow(b.index(columns - whole));
    sum = b.fma(load(x, column, mask), load(y, column, mask), sum);
  }
  return vector::ReductionOp::create(b, vector::CombiningKind::ADD, sum);
}

/// `negLse2` where it is small, and larger by what rounding may take where it is not.
static Value emitRoundedUp(Emitter &b, Value negLse2) {
  Value size = math::AbsFOp::create(b, negLse2);
  Value isLarge = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, size, b.f32(kLargeLse2));
  // An infinite one stays that.
  Value finite = arith::MinNumFOp::create(b, size, b.f32(std::numeric_limits<float>::max()));
  return arith::SelectOp::create(b, isLarge, b.fma(finite, b.f32(kLse2Rounding), negLse2), negLse2);
}

LogicalResult attn::lowerGradRows(GradRowsOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)) || failed(checkColumns(op, "output", op.getOutput())) ||
      failed(checkContiguous(op, "d_output", op.getDOutput())))
    return failure();
  int64_t columns = getNumColumns(op.getOutput());
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value infinity = b.f32(-std::numeric_limits<double>::infinity());
  b.loop(b.index(0), b.dim(op.getOutput(), 0), 1, [&](Value m) {
    Value delta = emitRowDot(b, op.getOutput(), op.getDOutput(), m, columns);
    if (op.getDLse())
      delta = arith::SubFOp::create(b, delta, b.load(op.getDLse(), {m}));
    b.store(delta, op.getDelta(), {m});
    Value lse = b.load(op.getLse(), {m});
    Value isEmpty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse, infinity);
    Value negLse2 = arith::MulFOp::create(b, lse, b.f32(-llvm::numbers::log2e));
    if (op->hasAttr(kRoundsUpAttrName))
      negLse2 = emitRoundedUp(b, negLse2);
    b.store(arith::SelectOp::create(b, isEmpty, infinity, negLse2), op.getNegLse2(), {m});
    if (op.getLseLow())
      b.store(arith::NegFOp::create(b, b.load(op.getLseLow(), {m})), op.getNegLow2(), {m});
  });
  op.erase();
  return success();
}

LogicalResult attn::lowerGradEnd(GradEndOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)) || failed(checkColumns(op, "acc", op.getAcc())) ||
      failed(checkContiguous(op, "output", op.getOutput())))
    return failure();
  int64_t columns = getNumColumns(op.getAcc());
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value acc = op.getAcc(), output = op.getOutput();
  Type element = cast<MemRefType>(output.getType()).getElementType();
  Value scale = op.getScale() ? b.splat(op.getScale()) : Value();
  b.loop(b.index(0), b.dim(acc, 0), 1, [&](Value row) {
    forColumns(b, columns, [&](Value column, Value mask) {
      Value sum = mask ? b.loadMasked(acc, {row, column}, mask) : b.loadVector(acc, {row, column});
      if (scale)
        sum = arith::MulFOp::create(b, sum, scale);
      Value out = b.convert(sum, element);
      if (mask)
        b.storeMasked(out, output, {row, column}, mask);
      else
        b.storeVector(out, output, {row, column});
    });
  });
  op.erase();
  return success();
}
