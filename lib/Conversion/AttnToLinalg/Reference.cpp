//===- Reference.cpp - definitions as loops over whole tensors ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToLinalg/Reference.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;

Value Reference::number(double value) {
  return arith::ConstantOp::create(*this, getFloatAttr(real, value));
}

Value Reference::lowest() {
  return arith::ConstantOp::create(
      *this, getFloatAttr(real, APFloat::getInf(real.getFloatSemantics(), true)));
}

Value Reference::toReal(Value x) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  if (width > real.getWidth())
    return arith::TruncFOp::create(*this, real, x);
  return width < real.getWidth() ? arith::ExtFOp::create(*this, real, x).getResult() : x;
}

Value Reference::toRoundedBase2(Value logarithm) {
  auto type = cast<FloatType>(logarithm.getType());
  Value factor = arith::ConstantOp::create(*this, getFloatAttr(type, double(kF32Log2e)));
  return toReal(arith::MulFOp::create(*this, logarithm, factor));
}

Value Reference::isLowest(Value x) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, x, lowest());
}

Value Reference::isZero(Value x) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::OEQ, x, number(0.0));
}

Value Reference::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(*this, condition, a, b);
}

Value Reference::index(unsigned dim) { return linalg::IndexOp::create(*this, dim); }

Value Reference::position(unsigned dim, OpFoldResult origin) {
  return createOrFold<arith::AddIOp>(index(dim),
                                     getValueOrCreateConstantIndexOp(*this, getLoc(), origin));
}

Value Reference::filled(ArrayRef<OpFoldResult> sizes, Value value) {
  Value empty = tensor::EmptyOp::create(*this, sizes, value.getType());
  return linalg::FillOp::create(*this, value, empty).getResult(0);
}

Value Reference::loop(ValueRange ins, Value out, Projections projections, ArrayRef<It> iterators,
                      Body body) {
  SmallVector<AffineMap> maps;
  for (const SmallVector<int64_t> &dims : projections) {
    SmallVector<AffineExpr> exprs =
        llvm::map_to_vector(dims, [&](int64_t d) { return getAffineDimExpr(d); });
    maps.push_back(AffineMap::get(iterators.size(), 0, exprs, getContext()));
  }
  return linalg::GenericOp::create(*this, TypeRange{out.getType()}, ins, out, maps, iterators,
                                   [&](OpBuilder &builder, Location loc, ValueRange args) {
                                     Reference inner(loc, builder, real);
                                     linalg::YieldOp::create(inner, body(inner, args));
                                   })
      .getResult(0);
}

Value Reference::convert(Value tensor, Type element) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == element)
    return tensor;
  Value out =
      tensor::EmptyOp::create(*this, tensor::getMixedSizes(*this, getLoc(), tensor), element);
  SmallVector<int64_t> all = llvm::to_vector(llvm::seq<int64_t>(type.getRank()));
  SmallVector<It> iterators(type.getRank(), It::parallel);
  return loop(tensor, out, {all, all}, iterators, [&](Reference &b, ValueRange args) -> Value {
    if (args[0].getType().getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(b, element, args[0]);
    return arith::ExtFOp::create(b, element, args[0]);
  });
}
