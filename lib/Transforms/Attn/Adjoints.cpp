//===- Adjoints.cpp - the derivative of each scalar op ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// One table: `dy` is the adjoint of the result `y`; each row lists what the operands' adjoints
// gain. At kinks it follows PyTorch, which is what people compare with. Rows with `guard` have a
// factor that is infinite for some finite operands; where dy is 0 they give 0 instead of NaN, so
// elements that a mask drops or an exponential rounds to 0 stay without influence.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Adjoints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

FloatType attn::getAdjointType(Type type) {
  auto own = cast<FloatType>(type);
  return own.getWidth() < 32 ? Float32Type::get(type.getContext()) : own;
}

Value attn::convertToAdjoint(OpBuilder &builder, Location loc, Value value, Type type) {
  unsigned from = value.getType().getIntOrFloatBitWidth();
  FloatType to = getAdjointType(type);
  if (from < to.getWidth())
    return arith::ExtFOp::create(builder, loc, to, value);
  if (from > to.getWidth())
    return arith::TruncFOp::create(builder, loc, to, value);
  return value;
}

//===----------------------------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------------------------===//

using P = arith::CmpFPredicate;

namespace {
/// A number that operators make ops of; null for what is none.
struct Real {
  Value value;
  ImplicitLocOpBuilder *builder = nullptr;

  Real() = default;
  Real(Value value, ImplicitLocOpBuilder &builder) : value(value), builder(&builder) {}
  Real constant(double number) const {
    FloatAttr attribute = builder->getFloatAttr(value.getType(), number);
    return {arith::ConstantOp::create(*builder, attribute), *builder};
  }
};
} // namespace

template <typename OpT> static Real apply(Real x) {
  return {OpT::create(*x.builder, x.value), *x.builder};
}
template <typename OpT> static Real apply(Real a, Real b) {
  return {OpT::create(*a.builder, a.value, b.value), *a.builder};
}
static Real operator+(Real a, Real b) { return apply<arith::AddFOp>(a, b); }
static Real operator-(Real a, Real b) { return apply<arith::SubFOp>(a, b); }
static Real operator*(Real a, Real b) { return apply<arith::MulFOp>(a, b); }
static Real operator/(Real a, Real b) { return apply<arith::DivFOp>(a, b); }
static Real operator-(Real a) { return apply<arith::NegFOp>(a); }
static Real operator+(Real a, double b) { return a + a.constant(b); }
static Real operator-(Real a, double b) { return a - a.constant(b); }
static Real operator-(double a, Real b) { return b.constant(a) - b; }
static Real operator*(Real a, double b) { return a * a.constant(b); }
static Real operator/(double a, Real b) { return b.constant(a) / b; }

static Value compare(P predicate, Real a, Real b) {
  return arith::CmpFOp::create(*a.builder, predicate, a.value, b.value);
}
static Value compare(P predicate, Real a, double b) { return compare(predicate, a, a.constant(b)); }
static Value either(Value a, Value b, Real of) { return arith::OrIOp::create(*of.builder, a, b); }
static Value both(Value a, Value b, Real of) { return arith::AndIOp::create(*of.builder, a, b); }
static Real select(Value condition, Real a, Real b) {
  return {arith::SelectOp::create(*a.builder, condition, a.value, b.value), *a.builder};
}
static Real select(Value condition, Real a, double b) {
  return select(condition, a, a.constant(b));
}
static Real select(Value condition, double a, Real b) {
  return select(condition, b.constant(a), b);
}

/// 0 where dy is 0, whatever the factor.
static Real guard(Real dy, Real adjoint) { return select(compare(P::OEQ, dy, 0.0), 0.0, adjoint); }

static Real rsqrt(Real x) { return apply<math::RsqrtOp>(x); }

//===----------------------------------------------------------------------------------------===//
// Rows of more than a line
//===----------------------------------------------------------------------------------------===//

using Adjoints = SmallVector<Real>;

/// The share of operand `a` where `wins` says that it is the result: half where they are equal.
/// `maximumf` is NaN where one operand is, and both get the adjoint; `maxnumf` is the other one.
static Real shareOfWinner(Real dy, Real a, Real b, P wins, P loses, bool isNum) {
  Value isTie = compare(P::OEQ, a, b);
  if (isNum) {
    Value isChosen = either(compare(wins, a, b), compare(P::UNO, b, b), dy);
    return select(isTie, dy * 0.5, select(isChosen, dy, 0.0));
  }
  return select(isTie, dy * 0.5, select(compare(loses, a, b), 0.0, dy));
}

static Adjoints chooseMax(Real dy, Real a, Real b, bool isNum) {
  return {shareOfWinner(dy, a, b, P::OGT, P::OLT, isNum),
          shareOfWinner(dy, b, a, P::OGT, P::OLT, isNum)};
}

static Adjoints chooseMin(Real dy, Real a, Real b, bool isNum) {
  return {shareOfWinner(dy, a, b, P::OLT, P::OGT, isNum),
          shareOfWinner(dy, b, a, P::OLT, P::OGT, isNum)};
}

/// The ends belong to x; the upper bound is the result where the bounds are the wrong way round.
static Adjoints clamp(Real dy, Real x, Real low, Real high) {
  Value isOver = either(compare(P::OGT, x, high), compare(P::OGT, low, high), dy);
  Value isUnder = compare(P::OLT, x, low);
  return {select(either(isOver, isUnder, dy), 0.0, dy),
          select(isOver, 0.0, select(isUnder, dy, 0.0)), select(isOver, dy, 0.0)};
}

static Adjoints absolute(Real dy, Real x) {
  return {select(compare(P::OGT, x, 0.0), dy, select(compare(P::OLT, x, 0.0), -dy, 0.0))};
}

/// |x| with a sign: 0 at 0, like the absolute value.
static Adjoints copySign(Real dy, Real x, Real sign) {
  Real one = x.constant(1.0);
  Real factor = apply<math::CopySignOp>(one, x) * apply<math::CopySignOp>(one, sign);
  return {select(compare(P::OEQ, x, 0.0), 0.0, dy * factor), Real()};
}

static Adjoints divide(Real dy, Real y, Real b) {
  Real quotient = guard(dy, dy / b);
  return {quotient, guard(dy, -(quotient * y))};
}

static Adjoints power(Real dy, Real y, Real x, Real p) {
  Real slope = select(compare(P::OEQ, p, 0.0), 0.0, p * apply<math::PowFOp>(x, p - 1.0));
  Value isZero = both(compare(P::OEQ, x, 0.0), compare(P::OGE, p, 0.0), dy);
  Real growth = select(isZero, 0.0, y * apply<math::LogOp>(x));
  return {guard(dy, dy * slope), guard(dy, dy * growth)};
}

static Adjoints integerPower(Real dy, Real x, Value exponent) {
  ImplicitLocOpBuilder &b = *x.builder;
  auto integer = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(exponent.getType(), value));
  };
  Value less = arith::SubIOp::create(b, exponent, integer(1));
  Real factor(arith::SIToFPOp::create(b, x.value.getType(), exponent), b);
  Real lower(math::FPowIOp::create(b, x.value, less), b);
  Value isNone = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, exponent, integer(0));
  return {guard(dy, select(isNone, 0.0, dy * factor * lower)), Real()};
}

static Adjoints arcTangent2(Real dy, Real a, Real b) {
  Real scaled = dy / (a * a + b * b);
  return {guard(dy, scaled * b), guard(dy, -(scaled * a))};
}

//===----------------------------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------------------------===//

namespace {
/// An op with its operands and first result in the adjoint type, made when first asked for.
struct Row {
  ImplicitLocOpBuilder &builder;
  Operation *op;

  Real widen(Value value) const {
    return {convertToAdjoint(builder, builder.getLoc(), value, op->getResult(0).getType()),
            builder};
  }
  Real x() const { return widen(op->getOperand(0)); }
  Real x(unsigned i) const { return widen(op->getOperand(i)); }
  Real y() const { return widen(op->getResult(0)); }
};
} // namespace

/// What is an identity, a sum or a choice.
static std::optional<Adjoints> emitLinear(const Row &r, Real dy) {
  using Result = std::optional<Adjoints>;
  // clang-format off
  return llvm::TypeSwitch<Operation *, Result>(r.op)
      .Case<arith::AddFOp>([&](auto) { return Adjoints{dy, dy}; })
      .Case<arith::SubFOp>([&](auto) { return Adjoints{dy, -dy}; })
      .Case<arith::NegFOp>([&](auto) { return Adjoints{-dy}; })
      .Case<arith::MulFOp>([&](auto) { return Adjoints{dy * r.x(1), dy * r.x(0)}; })
      .Case<math::FmaOp>([&](auto) { return Adjoints{dy * r.x(1), dy * r.x(0), dy}; })
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto) { return Adjoints{dy}; })
      .Case<arith::DivFOp>([&](auto) { return divide(dy, r.y(), r.x(1)); })
      .Case<arith::RemFOp>([&](auto) {
        return Adjoints{dy, guard(dy, -(dy * apply<math::TruncOp>(r.x(0) / r.x(1))))}; })
      .Case<arith::MaximumFOp>([&](auto) { return chooseMax(dy, r.x(0), r.x(1), false); })
      .Case<arith::MinimumFOp>([&](auto) { return chooseMin(dy, r.x(0), r.x(1), false); })
      .Case<arith::MaxNumFOp>([&](auto) { return chooseMax(dy, r.x(0), r.x(1), true); })
      .Case<arith::MinNumFOp>([&](auto) { return chooseMin(dy, r.x(0), r.x(1), true); })
      .Case<math::ClampFOp>([&](auto) { return clamp(dy, r.x(0), r.x(1), r.x(2)); })
      .Case<arith::SelectOp>([&](arith::SelectOp op) {
        return Adjoints{Real(), select(op.getCondition(), dy, 0.0),
                        select(op.getCondition(), 0.0, dy)}; })
      .Case<math::AbsFOp>([&](auto) { return absolute(dy, r.x()); })
      .Case<math::CopySignOp>([&](auto) { return copySign(dy, r.x(0), r.x(1)); })
      .Default([](Operation *) -> Result { return std::nullopt; });
  // clang-format on
}

/// Powers and logarithms.
static std::optional<Adjoints> emitPower(const Row &r, Real dy) {
  using Result = std::optional<Adjoints>;
  using llvm::numbers::ln10, llvm::numbers::ln2;
  // clang-format off
  return llvm::TypeSwitch<Operation *, Result>(r.op)
      .Case<math::ExpOp>([&](auto) { return Adjoints{dy * r.y()}; })
      .Case<math::Exp2Op>([&](auto) { return Adjoints{dy * (r.y() * ln2)}; })
      .Case<math::ExpM1Op>([&](auto) { return Adjoints{dy * (r.y() + 1.0)}; })
      .Case<math::LogOp>([&](auto) { return Adjoints{guard(dy, dy / r.x())}; })
      .Case<math::Log2Op>([&](auto) { return Adjoints{guard(dy, dy / (r.x() * ln2))}; })
      .Case<math::Log10Op>([&](auto) { return Adjoints{guard(dy, dy / (r.x() * ln10))}; })
      .Case<math::Log1pOp>([&](auto) { return Adjoints{guard(dy, dy / (r.x() + 1.0))}; })
      .Case<math::SqrtOp>([&](auto) { return Adjoints{guard(dy, dy * (0.5 / r.y()))}; })
      .Case<math::RsqrtOp>([&](auto) {
        return Adjoints{guard(dy, dy * (r.y() * r.y() * r.y() * -0.5))}; })
      .Case<math::CbrtOp>([&](auto) { return Adjoints{guard(dy, dy / (r.y() * r.y() * 3.0))}; })
      .Case<math::PowFOp>([&](auto) { return power(dy, r.y(), r.x(0), r.x(1)); })
      .Case<math::FPowIOp>([&](math::FPowIOp op) {
        return integerPower(dy, r.x(), op.getRhs()); })
      .Case<math::ErfOp>([&](auto) {
        Real x = r.x();
        return Adjoints{dy * (apply<math::ExpOp>(-(x * x)) * (2 * llvm::numbers::inv_sqrtpi))}; })
      .Case<math::ErfcOp>([&](auto) {
        Real x = r.x();
        return Adjoints{dy * (apply<math::ExpOp>(-(x * x)) * (-2 * llvm::numbers::inv_sqrtpi))}; })
      .Default([](Operation *) -> Result { return std::nullopt; });
  // clang-format on
}

/// Circular and hyperbolic functions.
static std::optional<Adjoints> emitTrigonometric(const Row &r, Real dy) {
  using Result = std::optional<Adjoints>;
  // clang-format off
  return llvm::TypeSwitch<Operation *, Result>(r.op)
      .Case<math::SinOp>([&](auto) { return Adjoints{dy * apply<math::CosOp>(r.x())}; })
      .Case<math::CosOp>([&](auto) { return Adjoints{-(dy * apply<math::SinOp>(r.x()))}; })
      .Case<math::TanOp>([&](auto) { return Adjoints{dy * (r.y() * r.y() + 1.0)}; })
      .Case<math::AsinOp>([&](auto) {
        return Adjoints{guard(dy, dy * rsqrt((1.0 - r.x()) * (r.x() + 1.0)))}; })
      .Case<math::AcosOp>([&](auto) {
        return Adjoints{guard(dy, -(dy * rsqrt((1.0 - r.x()) * (r.x() + 1.0))))}; })
      .Case<math::AtanOp>([&](auto) { return Adjoints{dy / (r.x() * r.x() + 1.0)}; })
      .Case<math::Atan2Op>([&](auto) { return arcTangent2(dy, r.x(0), r.x(1)); })
      .Case<math::SinhOp>([&](auto) { return Adjoints{dy * apply<math::CoshOp>(r.x())}; })
      .Case<math::CoshOp>([&](auto) { return Adjoints{dy * apply<math::SinhOp>(r.x())}; })
      .Case<math::TanhOp>([&](auto) { return Adjoints{dy * (1.0 - r.y() * r.y())}; })
      .Case<math::AsinhOp>([&](auto) {
        return Adjoints{dy * rsqrt(r.x() * r.x() + 1.0)}; })
      .Case<math::AcoshOp>([&](auto) {
        return Adjoints{guard(dy, dy * rsqrt((r.x() - 1.0) * (r.x() + 1.0)))}; })
      .Case<math::AtanhOp>([&](auto) {
        return Adjoints{guard(dy, dy / ((1.0 - r.x()) * (r.x() + 1.0)))}; })
      .Default([](Operation *) -> Result { return std::nullopt; });
  // clang-format on
}

bool attn::stopsDerivatives(Operation *op) {
  return isa<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp, math::TruncOp,
             math::IsNaNOp, math::IsInfOp, math::IsFiniteOp, math::IsNormalOp, arith::CmpFOp,
             arith::CmpIOp, arith::FPToSIOp, arith::FPToUIOp>(op);
}

std::optional<SmallVector<Value>> attn::emitAdjoints(OpBuilder &builder, Operation *op,
                                                     ValueRange resultAdjoints) {
  ImplicitLocOpBuilder b(op->getLoc(), builder);
  Row row{b, op};
  Real dy(resultAdjoints.front(), b);
  std::optional<Adjoints> adjoints;
  if (auto sincos = dyn_cast<math::SincosOp>(op))
    adjoints = Adjoints{dy * row.widen(sincos.getCos()) -
                        Real(resultAdjoints.back(), b) * row.widen(sincos.getSin())};
  for (auto emit : {emitLinear, emitPower, emitTrigonometric})
    if (!adjoints)
      adjoints = emit(row, dy);
  if (!adjoints)
    return std::nullopt;
  return llvm::map_to_vector(*adjoints, [](Real adjoint) { return adjoint.value; });
}
