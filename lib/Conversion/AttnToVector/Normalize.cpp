//===- Normalize.cpp - the end of the online softmax --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Exp2.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

void attn::forColumns(Emitter &b, int64_t columns, function_ref<void(Value, Value)> body) {
  int64_t lanes = b.target.lanes, whole = columns / lanes * lanes;
  b.loop(b.index(0), b.index(whole), lanes, [&](Value column) { body(column, Value()); });
  if (whole != columns)
    body(b.index(whole), b.maskBelow(b.index(columns - whole)));
}

static Value emitPower(Emitter &b, Value exponent) {
  return emitExp2(b, arith::MulFOp::create(b, exponent, b.f32(llvm::numbers::log2e)));
}

Value attn::emitLow(Emitter &b, Value lse, Value maximum, Value sumLog2) {
  Value lse2 = arith::MulFOp::create(b, lse, b.f32(llvm::numbers::log2e));
  Value low = arith::AddFOp::create(b, arith::SubFOp::create(b, maximum, lse2), sumLog2);
  // Of an infinite one there is no rest.
  Value isFinite = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, low),
                                         b.f32(std::numeric_limits<double>::infinity()));
  return arith::SelectOp::create(b, isFinite, low, b.f32(0));
}

LogicalResult attn::lowerNormalize(NormalizeOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)) || failed(checkColumns(op, "acc", op.getAcc())) ||
      failed(checkContiguous(op, "output", op.getOutput())))
    return failure();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value acc = op.getAcc(), output = op.getOutput();
  Type element = cast<MemRefType>(output.getType()).getElementType();
  int64_t columns = cast<MemRefType>(acc.getType()).getDimSize(1);
  Value zero = b.f32(0), infinity = b.f32(-std::numeric_limits<double>::infinity());
  b.loop(b.index(0), b.dim(acc, 0), 1, [&](Value m) {
    // A natural logarithm from here on: in base 2 a finite sink may be none.
    Value ln2 = b.f32(llvm::numbers::ln2);
    Value maximum2 = b.load(op.getRowMax(), {m});
    Value maximum = arith::MulFOp::create(b, maximum2, ln2);
    Value sum = b.load(op.getRowSum(), {m}), factor = b.f32(1);
    if (Value sink = op.getSink()) {
      if (isa<MemRefType>(sink.getType()))
        sink = b.load(sink, {m});
      // The sink is one more key without a value, absorbed as a step would.
      Value after = b.max(maximum, sink);
      Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, after, infinity);
      Value offset = arith::SelectOp::create(b, nothing, zero, after);
      factor = emitPower(b, arith::SubFOp::create(b, maximum, offset));
      // Of a sink of +inf too, though inf - inf is none.
      Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, offset);
      Value power = emitPower(b, arith::SubFOp::create(b, sink, offset));
      sum = b.fma(sum, factor, arith::SelectOp::create(b, isMax, b.f32(1), power));
      // The maximum as scores have it, unless the sink is larger.
      Value isSink = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, sink, maximum);
      Value sink2 = arith::MulFOp::create(b, sink, b.f32(llvm::numbers::log2e));
      maximum2 = arith::SelectOp::create(b, isSink, sink2, maximum2);
      maximum = after;
    }
    Value empty = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sum, zero);
    Value quotient = arith::DivFOp::create(b, factor, sum);
    Value scale = b.splat(arith::SelectOp::create(b, empty, zero, quotient));
    forColumns(b, columns, [&](Value column, Value mask) {
      Value in = mask ? b.loadMasked(acc, {m, column}, mask) : b.loadVector(acc, {m, column});
      Value out = b.convert(arith::MulFOp::create(b, in, scale), element);
      if (mask)
        b.storeMasked(out, output, {m, column}, mask);
      else
        b.storeVector(out, output, {m, column});
    });
    if (!op.getLse())
      return;
    Value log2 = math::Log2Op::create(b, sum);
    Value lse = b.fma(log2, ln2, maximum);
    lse = arith::SelectOp::create(b, empty, infinity, lse);
    b.store(lse, op.getLse(), {m});
    if (op.getLseLow())
      b.store(emitLow(b, lse, maximum2, log2), op.getLseLow(), {m});
  });
  op.erase();
  return success();
}
