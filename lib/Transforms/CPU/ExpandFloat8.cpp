//===- ExpandFloat8.cpp - attn-cpu-expand-float8 ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <cmath>

namespace attn {
#define GEN_PASS_DEF_CPUEXPANDFLOAT8PASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// Where the bits of a format are in an f32 that has its exponent and mantissa.
struct Format {
  /// From the byte to the f32.
  int64_t shift;
  /// By which that is too small: the difference of both biases.
  int exponent;
  /// The first magnitude that is no finite number.
  int64_t end;
};
} // namespace

static std::optional<Format> getFormat(Type element) {
  if (isa<Float8E4M3FNType>(element))
    return Format{/*shift=*/20, /*exponent=*/127 - 7, /*end=*/0x7f};
  if (isa<Float8E5M2Type>(element))
    return Format{/*shift=*/21, /*exponent=*/127 - 15, /*end=*/0x7c};
  return std::nullopt;
}

/// `like` with other elements.
static Type withElement(Type like, Type element) {
  auto shaped = dyn_cast<ShapedType>(like);
  return shaped ? Type(shaped.clone(element)) : element;
}

static Value emitInteger(ImplicitLocOpBuilder &b, Type type, int64_t value) {
  TypedAttr attr = b.getIntegerAttr(getElementTypeOrSelf(type), value);
  if (auto shaped = dyn_cast<ShapedType>(type))
    attr = DenseElementsAttr::get(shaped, Attribute(attr));
  return arith::ConstantOp::create(b, attr);
}

static void expand(arith::ExtFOp op, const Format &format) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type from = op.getIn().getType(), i32 = withElement(from, b.getI32Type()),
       f32 = withElement(from, b.getF32Type());
  Value byte = arith::BitcastOp::create(b, withElement(from, b.getI8Type()), op.getIn());
  Value word = arith::ExtUIOp::create(b, i32, byte);
  Value magnitude = arith::AndIOp::create(b, word, emitInteger(b, i32, 0x7f));
  Value sign = arith::ShLIOp::create(b, arith::AndIOp::create(b, word, emitInteger(b, i32, 0x80)),
                                     emitInteger(b, i32, 24));
  Value bits = arith::ShLIOp::create(b, magnitude, emitInteger(b, i32, format.shift));
  bits = arith::OrIOp::create(b, bits, sign);
  TypedAttr factor = b.getF32FloatAttr(std::ldexp(1.0f, format.exponent));
  if (auto shaped = dyn_cast<ShapedType>(f32))
    factor = DenseElementsAttr::get(shaped, Attribute(factor));
  Value number = arith::MulFOp::create(b, arith::BitcastOp::create(b, f32, bits),
                                       arith::ConstantOp::create(b, factor));
  // Infinities and NaN keep their mantissas: all of e4m3's one pattern is NaN's.
  Value special = arith::OrIOp::create(b, bits, emitInteger(b, i32, 0x7f800000));
  Value isSpecial = arith::CmpIOp::create(b, arith::CmpIPredicate::uge, magnitude,
                                          emitInteger(b, i32, format.end));
  Value result =
      arith::SelectOp::create(b, isSpecial, arith::BitcastOp::create(b, f32, special), number);
  if (op.getType() != f32)
    result = arith::ExtFOp::create(b, op.getType(), result);
  op.replaceAllUsesWith(result);
  op.erase();
}

namespace {
struct CPUExpandFloat8Pass : attn::impl::CPUExpandFloat8PassBase<CPUExpandFloat8Pass> {
  void runOnOperation() override {
    getOperation()->walk([](arith::ExtFOp op) {
      if (std::optional<Format> format = getFormat(getElementTypeOrSelf(op.getIn().getType())))
        expand(op, *format);
    });
  }
};
} // namespace
