//===- GPUMath.cpp - which functions a GPU has instructions for -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The schedule asks before anything is lowered, and the last conversion when everything else is:
// one list, so that the first knows what the last will do.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/GPUMath/GPUMath.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

bool attn::hasInstructions(Operation *op) {
  if (isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
          math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp, math::IsFiniteOp,
          math::IsNaNOp, math::RoundOp, math::RoundEvenOp, math::TruncOp>(op))
    return true;
  Type type = op->getResult(0).getType();
  if (isa<math::SqrtOp>(op))
    return type.isF32() || type.isF64();
  return isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::Log10Op, math::RsqrtOp,
             math::TanhOp>(op) &&
         type.isF32();
}

bool attn::isLongMath(Operation *op) {
  if (!isa_and_nonnull<math::MathDialect>(op->getDialect()))
    return false;
  // LLVM counts the bits of ~x & (x - 1), and makes those words of many scores before it counts:
  // with the widest tiles up to 212 bytes spill.
  return isa<math::CountTrailingZerosOp>(op) || !hasInstructions(op);
}
