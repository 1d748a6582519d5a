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

LogicalResult attn::lowerNormalize(NormalizeOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)))
    return failure();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value acc = op.getAcc(), output = op.getOutput();
  Type element = cast<MemRefType>(output.getType()).getElementType();
  int64_t columns = cast<MemRefType>(acc.getType()).getDimSize(1);
  if (ShapedType::isDynamic(columns))
    return op.emitOpError("expected a static Dv in the last dimension of acc, got ")
           << acc.getType();
  Value zero = b.f32(0), infinity = b.f32(-std::numeric_limits<double>::infinity());
  Value sink;
  if (op.getSink())
    sink = arith::MulFOp::create(b, op.getSink(), b.f32(llvm::numbers::log2e));
  b.loop(b.index(0), b.dim(acc, 0), 1, [&](Value m) {
    Value maximum = b.load(op.getRowMax(), {m}), sum = b.load(op.getRowSum(), {m});
    Value factor = b.f32(1);
    if (sink) {
      // The sink is one more key without a value, absorbed as a step would.
      Value after = b.max(maximum, sink);
      Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, after, infinity);
      Value offset = arith::SelectOp::create(b, nothing, zero, after);
      factor = emitExp2(b, arith::SubFOp::create(b, maximum, offset));
      sum = b.fma(sum, factor, emitExp2(b, arith::SubFOp::create(b, sink, offset)));
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
    Value log = arith::AddFOp::create(b, maximum, math::Log2Op::create(b, sum));
    Value lse = arith::MulFOp::create(b, log, b.f32(llvm::numbers::ln2));
    b.store(arith::SelectOp::create(b, empty, infinity, lse), op.getLse(), {m});
  });
  op.erase();
  return success();
}
