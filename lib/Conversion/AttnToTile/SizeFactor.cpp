//===- SizeFactor.cpp - sizes that follow from arguments -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/SizeFactor.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace attn;

/// The constant above 0 by which an affine expression of this kind multiplies or divides, or 0.
static int64_t getOperandOf(AffineExpr expr, AffineExprKind kind) {
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  auto constant = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
  return constant && binary.getKind() == kind ? std::max<int64_t>(constant.getValue(), 0) : 0;
}

FailureOr<Attribute> attn::getSizeFactor(Operation *user, OpFoldResult size, int64_t step,
                                         int64_t unit) {
  Builder builder(user->getContext());
  if (auto constant = getConstantIntValue(size))
    return Attribute(builder.getI64IntegerAttr(llvm::divideCeil(*constant, step) * unit));
  // A number of tiles, of a size, or that number rounded up.
  if (auto apply = cast<Value>(size).getDefiningOp<affine::AffineApplyOp>(); apply && step == 1) {
    AffineExpr quotient = apply.getAffineMap().getResult(0);
    if (int64_t times = getOperandOf(quotient, AffineExprKind::Mul)) {
      unit = times;
      quotient = cast<AffineBinaryOpExpr>(quotient).getLHS();
    }
    int64_t divisor = getOperandOf(quotient, AffineExprKind::CeilDiv);
    if (divisor && apply->getNumOperands() == 1 &&
        isa<AffineDimExpr, AffineSymbolExpr>(cast<AffineBinaryOpExpr>(quotient).getLHS()))
      return getSizeFactor(user, apply.getOperand(0), divisor, unit);
  }
  if (auto parts = cast<Value>(size).getDefiningOp<CountPartsOp>(); parts && step == 1) {
    SmallVector<Attribute> blocks;
    for (Value block : parts->getOperands()) {
      FailureOr<Attribute> factor = getSizeFactor(user, getAsOpFoldResult(block));
      if (failed(factor))
        return failure();
      blocks.push_back(*factor);
    }
    Attribute keys = blocks.pop_back_val();
    return Attribute(plan::PartsAttr::get(user->getContext(), builder.getArrayAttr(blocks), keys,
                                          parts.getMost(), parts.getSlots()));
  }
  std::optional<ArgumentSize> found = findArgumentSize(cast<Value>(size));
  if (!found)
    return user->emitOpError("expected bounds that are sizes of arguments");
  int64_t common = std::gcd(found->multiplier, step);
  int64_t argument = found->argument.getArgNumber(), divisor = step / common,
          times = found->multiplier / common;
  if (failed(plan::ExtentAttr::verify([&] { return user->emitOpError(); }, argument, found->dim,
                                      divisor, times, unit, found->less)))
    return failure();
  return Attribute(plan::ExtentAttr::get(user->getContext(), argument, found->dim, divisor, times,
                                         unit, found->less));
}
