//===- GradDelta.cpp - delta without its error ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Exp2.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// Whether the weights of rows add up to 1 as far as rounding lets them.
static Value emitIsWhole(Emitter &b, Value total, Value negLse2) {
  auto constant = [&](double value) { return b.floatLike(b.f32Vec(), value); };
  Value off = math::AbsFOp::create(b, arith::SubFOp::create(b, total, constant(1)).getResult());
  Value slack = arith::MulFOp::create(b, math::AbsFOp::create(b, negLse2).getResult(),
                                      constant(GradDeltaEndOp::kSlackOfLse));
  slack = b.min(b.max(slack, constant(GradDeltaEndOp::kLeastSlack)),
                constant(GradDeltaEndOp::kMostSlack));
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OLE, off, slack);
}

LogicalResult attn::lowerGradDeltaEnd(GradDeltaEndOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)))
    return failure();
  for (auto [name, rows] : {std::pair<StringRef, Value>{"weight", op.getWeight()},
                            {"residual", op.getResidual()},
                            {"neg_lse2", op.getNegLse2()},
                            {"delta", op.getDelta()},
                            {"d_lse", op.getDLse()},
                            {"output", op.getOutput()}})
    if (rows && failed(checkContiguous(op, name, rows)))
      return failure();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value rows = b.dim(op.getOutput(), 0);
  b.loop(b.index(0), rows, target.lanes, [&](Value row) {
    Value exist = b.maskBelow(b.sub(rows, row));
    auto load = [&](Value numbers) { return b.loadMasked(numbers, {row}, exist); };
    Value total = load(op.getWeight()), residual = load(op.getResidual()),
          negLse2 = load(op.getNegLse2()), delta = load(op.getDelta());
    if (op.getSink()) {
      // The sink is a key without a value: dP is 0.
      Value exponent =
          b.fma(b.splat(op.getSink()), b.floatLike(b.f32Vec(), llvm::numbers::log2e), negLse2);
      Value ofSink = emitExp2(b, exponent);
      total = arith::AddFOp::create(b, total, ofSink);
      residual = arith::SubFOp::create(b, residual, arith::MulFOp::create(b, ofSink, delta));
    }
    Value error = arith::DivFOp::create(b, residual, total);
    // Near to each other: the residual has the gradient of lse in it.
    if (op.getDLse())
      error = arith::SubFOp::create(b, error, load(op.getDLse()));
    Value exact = arith::AddFOp::create(b, delta, error);
    exact = arith::SelectOp::create(b, emitIsWhole(b, total, negLse2), exact, delta);
    b.storeMasked(exact, op.getOutput(), {row}, exist);
  });
  op.erase();
  return success();
}
