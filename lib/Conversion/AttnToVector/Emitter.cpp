//===- Emitter.cpp - writes loops over vectors --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Emitter.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

Value Emitter::index(int64_t value) { return arith::ConstantIndexOp::create(*this, value); }

Value Emitter::f32(double value) { return floatLike(getF32Type(), value); }

Value Emitter::floatLike(Type type, double value) {
  TypedAttr attr = getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(*this, attr);
}

Value Emitter::intLike(Type type, int64_t value) {
  TypedAttr attr = getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(*this, attr);
}

Value Emitter::add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
Value Emitter::add(Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
Value Emitter::sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
Value Emitter::mul(Value a, int64_t b) { return createOrFold<arith::MulIOp>(a, index(b)); }

Value Emitter::alignUp(Value value, int64_t unit) { return alignDown(add(value, unit - 1), unit); }

Value Emitter::alignDown(Value value, int64_t unit) {
  if (unit == 1)
    return value;
  if (llvm::isPowerOf2_64(unit))
    return createOrFold<arith::AndIOp>(value, index(-unit));
  Value count = createOrFold<arith::DivUIOp>(value, index(unit));
  return mul(count, unit);
}

Value Emitter::max(Value a, Value b) {
  Value larger = arith::CmpFOp::create(*this, arith::CmpFPredicate::OGT, a, b);
  return arith::SelectOp::create(*this, larger, a, b);
}

Value Emitter::min(Value a, Value b) {
  Value smaller = arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, a, b);
  return arith::SelectOp::create(*this, smaller, a, b);
}

Value Emitter::fma(Value a, Value b, Value c) {
  if (isa<VectorType>(a.getType()))
    return vector::FMAOp::create(*this, a, b, c);
  return arith::AddFOp::create(*this, arith::MulFOp::create(*this, a, b), c);
}

Value Emitter::splat(Value scalar) {
  return vector::BroadcastOp::create(*this, vec(scalar.getType()), scalar);
}

Value Emitter::dim(Value memref, int64_t dimension) {
  return createOrFold<memref::DimOp>(memref, dimension);
}

Value Emitter::load(Value memref, ValueRange at) {
  return memref::LoadOp::create(*this, memref, at);
}

void Emitter::store(Value value, Value memref, ValueRange at) {
  memref::StoreOp::create(*this, value, memref, at);
}

Value Emitter::loadVector(Value memref, ValueRange at) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return vector::LoadOp::create(*this, vec(element), memref, at);
}

void Emitter::storeVector(Value vector, Value memref, ValueRange at) {
  vector::StoreOp::create(*this, vector, memref, at);
}

Value Emitter::loadMasked(Value memref, ValueRange at, Value mask) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  Value zero = arith::ConstantOp::create(*this, getZeroAttr(vec(element)));
  return vector::MaskedLoadOp::create(*this, vec(element), memref, at, mask, zero);
}

void Emitter::storeMasked(Value vector, Value memref, ValueRange at, Value mask) {
  vector::MaskedStoreOp::create(*this, memref, at, mask, vector);
}

Value Emitter::maskBelow(Value count) {
  VectorType type = vec(getI1Type());
  if (std::optional<int64_t> constant = getConstantIntValue(count)) {
    SmallVector<bool> bits;
    for (unsigned i = 0; i < target.lanes; ++i)
      bits.push_back(i < *constant);
    return arith::ConstantOp::create(*this, DenseElementsAttr::get(type, ArrayRef<bool>(bits)));
  }
  return vector::CreateMaskOp::create(*this, type, count);
}

Value Emitter::convert(Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = VectorType::get(vector.getShape(), element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(*this, type, value);
  return arith::TruncFOp::create(*this, type, value);
}

SmallVector<Value> Emitter::loop(Value lower, Value upper, int64_t step, ValueRange inits,
                                 LoopBody body) {
  std::optional<int64_t> low = getConstantIntValue(lower), high = getConstantIntValue(upper);
  if (low && high && *low >= *high)
    return SmallVector<Value>(inits);
  if (low && high && *low + step >= *high)
    return body(lower, inits);
  auto forOp = scf::ForOp::create(*this, lower, upper, index(step), inits);
  InsertionGuard guard(*this);
  setInsertionPointToStart(forOp.getBody());
  SmallVector<Value> results = body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (!inits.empty())
    scf::YieldOp::create(*this, results);
  return SmallVector<Value>(forOp.getResults());
}

void Emitter::loop(Value lower, Value upper, int64_t step, function_ref<void(Value)> body) {
  loop(lower, upper, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}
