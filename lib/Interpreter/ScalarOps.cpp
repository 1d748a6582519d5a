//===- ScalarOps.cpp - arith and math on many elements at once --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace llvm;
using namespace mlir;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// Loops over elements
//===----------------------------------------------------------------------------------------===//

template <auto F>
static const char *real1(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = F(in[0][i].f);
  return nullptr;
}

template <auto F>
static const char *real2(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = F(in[0][i].f, in[1][i].f);
  return nullptr;
}

/// Whether something holds of a number.
template <auto F>
static const char *classify(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = -int64_t(F(in[0][i].f));
  return nullptr;
}

template <auto F>
static const char *compareReal(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = -int64_t(F(in[0][i].f, in[1][i].f));
  return nullptr;
}

template <auto F>
static const char *compareInt(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = -int64_t(F(in[0][i].i, in[1][i].i));
  return nullptr;
}

static int64_t signExtend(uint64_t value, unsigned shift) {
  return int64_t(value << shift) >> shift;
}

/// On the 64-bit patterns, wrapped to the width of the result.
template <auto F>
static const char *int2(const ScalarOp &op, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = signExtend(F(uint64_t(in[0][i].i), uint64_t(in[1][i].i)), op.resultShift);
  return nullptr;
}

template <auto F>
static const char *signed2(const ScalarOp & /*op*/, Lane *out, const Lane *const *in,
                           int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = F(in[0][i].i, in[1][i].i);
  return nullptr;
}

/// Of integers of more than 64 bits, which sums of captured numbers are (decision 0046), as far as
/// 64 hold them. F says whether they do not.
template <auto F>
static const char *checked2(const ScalarOp & /*op*/, Lane *out, const Lane *const *in,
                            int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (F(in[0][i].i, in[1][i].i, &out[i].i))
      return "expected numbers whose sums and products fit 64 bits";
  return nullptr;
}

/// On zero-extended operands.
template <auto F>
static const char *unsigned2(const ScalarOp &op, Lane *out, const Lane *const *in, int64_t count) {
  unsigned shift = op.operandShift;
  for (int64_t i = 0; i < count; ++i)
    out[i].i = signExtend(
        F(uint64_t(in[0][i].i) << shift >> shift, uint64_t(in[1][i].i) << shift >> shift), shift);
  return nullptr;
}

template <auto F>
static const char *divideSigned(const ScalarOp &op, Lane *out, const Lane *const *in,
                                int64_t count) {
  int64_t lowest = std::numeric_limits<int64_t>::min() >> op.operandShift;
  for (int64_t i = 0; i < count; ++i) {
    int64_t a = in[0][i].i, b = in[1][i].i;
    if (b == 0)
      return "division by zero";
    if (a == lowest && b == -1)
      return "the quotient does not fit";
    out[i].i = F(a, b);
  }
  return nullptr;
}

template <auto F>
static const char *divideUnsigned(const ScalarOp &op, Lane *out, const Lane *const *in,
                                  int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (in[1][i].i == 0)
      return "division by zero";
  return unsigned2<F>(op, out, in, count);
}

/// A shift by the width or more is poison; it becomes 0, since a select may still drop it.
template <auto F>
static const char *shiftBits(const ScalarOp &op, Lane *out, const Lane *const *in, int64_t count) {
  unsigned width = 64 - op.operandShift;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t amount = in[1][i].i;
    out[i].i =
        amount < width ? signExtend(F(in[0][i].i, amount, op.operandShift), op.resultShift) : 0;
  }
  return nullptr;
}

static const char *copy(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  std::copy_n(in[0], count, out);
  return nullptr;
}

static const char *castSigned(const ScalarOp &op, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i = signExtend(in[0][i].i, op.resultShift);
  return nullptr;
}

static const char *castUnsigned(const ScalarOp &op, Lane *out, const Lane *const *in,
                                int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].i =
        signExtend(uint64_t(in[0][i].i) << op.operandShift >> op.operandShift, op.resultShift);
  return nullptr;
}

static const char *signedToReal(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = double(in[0][i].i);
  return nullptr;
}

static const char *unsignedToReal(const ScalarOp &op, Lane *out, const Lane *const *in,
                                  int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = double(uint64_t(in[0][i].i) << op.operandShift >> op.operandShift);
  return nullptr;
}

/// Out of range is poison; it becomes 0.
template <bool IsSigned>
static const char *realToInt(const ScalarOp &op, Lane *out, const Lane *const *in, int64_t count) {
  int width = 64 - int(op.resultShift);
  double high = std::ldexp(1.0, IsSigned ? width - 1 : width), low = IsSigned ? -high : 0.0;
  for (int64_t i = 0; i < count; ++i) {
    double x = std::trunc(in[0][i].f);
    bool fits = x >= low && x < high; // False for NaN.
    uint64_t bits = !fits ? 0 : x < 0 ? uint64_t(int64_t(x)) : uint64_t(x);
    out[i].i = signExtend(bits, op.resultShift);
  }
  return nullptr;
}

static const char *selectLanes(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i] = in[0][i].i ? in[1][i] : in[2][i];
  return nullptr;
}

static const char *fma3(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = std::fma(in[0][i].f, in[1][i].f, in[2][i].f);
  return nullptr;
}

static const char *clampReal(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    double x = in[0][i].f, low = in[1][i].f, high = in[2][i].f;
    out[i].f = std::isnan(x) ? x : std::min(std::max(x, low), high);
  }
  return nullptr;
}

static const char *powInt(const ScalarOp &, Lane *out, const Lane *const *in, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    out[i].f = std::pow(in[0][i].f, double(in[1][i].i));
  return nullptr;
}

//===----------------------------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------------------------===//

using Function = ScalarOp::Function;
using D = double;
using I = int64_t;
using U = uint64_t;

static Function getCompareInt(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  // Sign extension keeps the unsigned order too: it moves the upper half up.
  switch (predicate) {
  case P::eq:
    return compareInt<[](I a, I b) { return a == b; }>;
  case P::ne:
    return compareInt<[](I a, I b) { return a != b; }>;
  case P::slt:
    return compareInt<[](I a, I b) { return a < b; }>;
  case P::sle:
    return compareInt<[](I a, I b) { return a <= b; }>;
  case P::sgt:
    return compareInt<[](I a, I b) { return a > b; }>;
  case P::sge:
    return compareInt<[](I a, I b) { return a >= b; }>;
  case P::ult:
    return compareInt<[](I a, I b) { return U(a) < U(b); }>;
  case P::ule:
    return compareInt<[](I a, I b) { return U(a) <= U(b); }>;
  case P::ugt:
    return compareInt<[](I a, I b) { return U(a) > U(b); }>;
  case P::uge:
    return compareInt<[](I a, I b) { return U(a) >= U(b); }>;
  }
  return nullptr;
}

static Function getCompareReal(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return compareReal<[](D, D) { return false; }>;
  case P::OEQ:
    return compareReal<[](D a, D b) { return a == b; }>;
  case P::OGT:
    return compareReal<[](D a, D b) { return a > b; }>;
  case P::OGE:
    return compareReal<[](D a, D b) { return a >= b; }>;
  case P::OLT:
    return compareReal<[](D a, D b) { return a < b; }>;
  case P::OLE:
    return compareReal<[](D a, D b) { return a <= b; }>;
  case P::ONE:
    return compareReal<[](D a, D b) { return a < b || a > b; }>;
  case P::ORD:
    return compareReal<[](D a, D b) { return !std::isunordered(a, b); }>;
  case P::UEQ:
    return compareReal<[](D a, D b) { return !(a < b || a > b); }>;
  case P::UGT:
    return compareReal<[](D a, D b) { return !(a <= b); }>;
  case P::UGE:
    return compareReal<[](D a, D b) { return !(a < b); }>;
  case P::ULT:
    return compareReal<[](D a, D b) { return !(a >= b); }>;
  case P::ULE:
    return compareReal<[](D a, D b) { return !(a > b); }>;
  case P::UNE:
    return compareReal<[](D a, D b) { return a != b; }>;
  case P::UNO:
    return compareReal<[](D a, D b) { return std::isunordered(a, b); }>;
  case P::AlwaysTrue:
    return compareReal<[](D, D) { return true; }>;
  }
  return nullptr;
}

/// Of sine and cosine, one.
static Function getSincosFunction(unsigned result) {
  return result == 0 ? real1<[](D a) { return std::sin(a); }>
                     : real1<[](D a) { return std::cos(a); }>;
}

/// A table, one line for each op.
static Function getRealFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case<arith::AddFOp>([](auto) { return real2<[](D a, D b) { return a + b; }>; })
      .Case<arith::SubFOp>([](auto) { return real2<[](D a, D b) { return a - b; }>; })
      .Case<arith::MulFOp>([](auto) { return real2<[](D a, D b) { return a * b; }>; })
      .Case<arith::DivFOp>([](auto) { return real2<[](D a, D b) { return a / b; }>; })
      .Case<arith::RemFOp>([](auto) { return real2<[](D a, D b) { return std::fmod(a, b); }>; })
      .Case<arith::MaximumFOp>([](auto) {
        return real2<[](D a, D b) {
          return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b);
        }>;
      })
      .Case<arith::MinimumFOp>([](auto) {
        return real2<[](D a, D b) {
          return std::isnan(a) || std::isnan(b) ? a + b : std::fmin(a, b);
        }>;
      })
      .Case<arith::MaxNumFOp>([](auto) { return real2<[](D a, D b) { return std::fmax(a, b); }>; })
      .Case<arith::MinNumFOp>([](auto) { return real2<[](D a, D b) { return std::fmin(a, b); }>; })
      .Case<arith::NegFOp>([](auto) { return real1<[](D a) { return -a; }>; })
      .Case<arith::ExtFOp, arith::TruncFOp>([](auto) { return copy; })
      .Case<arith::SIToFPOp>([](auto) { return signedToReal; })
      .Case<arith::UIToFPOp>([](auto) { return unsignedToReal; })
      .Case<arith::CmpFOp>([](auto cmp) { return getCompareReal(cmp.getPredicate()); })
      .Case<math::AbsFOp>([](auto) { return real1<[](D a) { return std::fabs(a); }>; })
      .Case<math::AcosOp>([](auto) { return real1<[](D a) { return std::acos(a); }>; })
      .Case<math::AcoshOp>([](auto) { return real1<[](D a) { return std::acosh(a); }>; })
      .Case<math::AsinOp>([](auto) { return real1<[](D a) { return std::asin(a); }>; })
      .Case<math::AsinhOp>([](auto) { return real1<[](D a) { return std::asinh(a); }>; })
      .Case<math::AtanhOp>([](auto) { return real1<[](D a) { return std::atanh(a); }>; })
      .Case<math::ClampFOp>([](auto) { return clampReal; })
      .Case<math::IsFiniteOp>([](auto) { return classify<[](D a) { return std::isfinite(a); }>; })
      .Case<math::IsInfOp>([](auto) { return classify<[](D a) { return std::isinf(a); }>; })
      .Case<math::IsNaNOp>([](auto) { return classify<[](D a) { return std::isnan(a); }>; })
      .Case<math::AtanOp>([](auto) { return real1<[](D a) { return std::atan(a); }>; })
      .Case<math::Atan2Op>([](auto) { return real2<[](D a, D b) { return std::atan2(a, b); }>; })
      .Case<math::CbrtOp>([](auto) { return real1<[](D a) { return std::cbrt(a); }>; })
      .Case<math::CeilOp>([](auto) { return real1<[](D a) { return std::ceil(a); }>; })
      .Case<math::CopySignOp>(
          [](auto) { return real2<[](D a, D b) { return std::copysign(a, b); }>; })
      .Case<math::CosOp>([](auto) { return real1<[](D a) { return std::cos(a); }>; })
      .Case<math::CoshOp>([](auto) { return real1<[](D a) { return std::cosh(a); }>; })
      .Case<math::ErfOp>([](auto) { return real1<[](D a) { return std::erf(a); }>; })
      .Case<math::ErfcOp>([](auto) { return real1<[](D a) { return std::erfc(a); }>; })
      .Case<math::ExpOp>([](auto) { return real1<[](D a) { return std::exp(a); }>; })
      .Case<math::Exp2Op>([](auto) { return real1<[](D a) { return std::exp2(a); }>; })
      .Case<math::ExpM1Op>([](auto) { return real1<[](D a) { return std::expm1(a); }>; })
      .Case<math::FloorOp>([](auto) { return real1<[](D a) { return std::floor(a); }>; })
      .Case<math::FmaOp>([](auto) { return fma3; })
      .Case<math::FPowIOp>([](auto) { return powInt; })
      .Case<math::LogOp>([](auto) { return real1<[](D a) { return std::log(a); }>; })
      .Case<math::Log10Op>([](auto) { return real1<[](D a) { return std::log10(a); }>; })
      .Case<math::Log1pOp>([](auto) { return real1<[](D a) { return std::log1p(a); }>; })
      .Case<math::Log2Op>([](auto) { return real1<[](D a) { return std::log2(a); }>; })
      .Case<math::PowFOp>([](auto) { return real2<[](D a, D b) { return std::pow(a, b); }>; })
      .Case<math::RoundOp>([](auto) { return real1<[](D a) { return std::round(a); }>; })
      .Case<math::RoundEvenOp>([](auto) { return real1<[](D a) { return std::nearbyint(a); }>; })
      .Case<math::RsqrtOp>([](auto) { return real1<[](D a) { return 1 / std::sqrt(a); }>; })
      .Case<math::SinOp>([](auto) { return real1<[](D a) { return std::sin(a); }>; })
      .Case<math::SinhOp>([](auto) { return real1<[](D a) { return std::sinh(a); }>; })
      .Case<math::SqrtOp>([](auto) { return real1<[](D a) { return std::sqrt(a); }>; })
      .Case<math::TanOp>([](auto) { return real1<[](D a) { return std::tan(a); }>; })
      .Case<math::TanhOp>([](auto) { return real1<[](D a) { return std::tanh(a); }>; })
      .Case<math::TruncOp>([](auto) { return real1<[](D a) { return std::trunc(a); }>; })
      .Default([](Operation *) -> Function { return nullptr; });
}

static I floorDivide(I a, I b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static I ceilDivide(I a, I b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }

static Function getIntFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case<arith::AddIOp>([](auto) { return int2<[](U a, U b) { return a + b; }>; })
      .Case<arith::SubIOp>([](auto) { return int2<[](U a, U b) { return a - b; }>; })
      .Case<arith::MulIOp>([](auto) { return int2<[](U a, U b) { return a * b; }>; })
      .Case<arith::AndIOp>([](auto) { return int2<[](U a, U b) { return a & b; }>; })
      .Case<arith::OrIOp>([](auto) { return int2<[](U a, U b) { return a | b; }>; })
      .Case<arith::XOrIOp>([](auto) { return int2<[](U a, U b) { return a ^ b; }>; })
      .Case<arith::MaxSIOp>([](auto) { return signed2<[](I a, I b) { return std::max(a, b); }>; })
      .Case<arith::MinSIOp>([](auto) { return signed2<[](I a, I b) { return std::min(a, b); }>; })
      .Case<arith::MaxUIOp>([](auto) { return unsigned2<[](U a, U b) { return std::max(a, b); }>; })
      .Case<arith::MinUIOp>([](auto) { return unsigned2<[](U a, U b) { return std::min(a, b); }>; })
      .Case<arith::DivSIOp>([](auto) { return divideSigned<[](I a, I b) { return a / b; }>; })
      .Case<arith::RemSIOp>([](auto) { return divideSigned<[](I a, I b) { return a % b; }>; })
      .Case<arith::FloorDivSIOp>([](auto) { return divideSigned<floorDivide>; })
      .Case<arith::CeilDivSIOp>([](auto) { return divideSigned<ceilDivide>; })
      .Case<arith::DivUIOp>([](auto) { return divideUnsigned<[](U a, U b) { return a / b; }>; })
      .Case<arith::RemUIOp>([](auto) { return divideUnsigned<[](U a, U b) { return a % b; }>; })
      .Case<arith::CeilDivUIOp>(
          [](auto) { return divideUnsigned<[](U a, U b) { return a / b + (a % b != 0); }>; })
      .Case<arith::ShLIOp>(
          [](auto) { return shiftBits<[](I a, U by, unsigned) { return U(a) << by; }>; })
      .Case<arith::ShRSIOp>(
          [](auto) { return shiftBits<[](I a, U by, unsigned) { return U(a >> by); }>; })
      .Case<arith::ShRUIOp>([](auto) {
        return shiftBits<[](I a, U by, unsigned shift) { return U(a) << shift >> shift >> by; }>;
      })
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>([](auto) { return castSigned; })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([](auto) { return castUnsigned; })
      .Case<arith::FPToSIOp>([](auto) { return realToInt<true>; })
      .Case<arith::FPToUIOp>([](auto) { return realToInt<false>; })
      .Case<arith::CmpIOp>([](auto cmp) { return getCompareInt(cmp.getPredicate()); })
      .Case<arith::SelectOp>([](auto) { return selectLanes; })
      .Case<math::AbsIOp>([](auto) -> Function {
        return [](const ScalarOp &o, Lane *out, const Lane *const *in,
                  int64_t count) -> const char * {
          for (int64_t i = 0; i < count; ++i)
            out[i].i = signExtend(in[0][i].i < 0 ? -U(in[0][i].i) : U(in[0][i].i), o.resultShift);
          return nullptr;
        };
      })
      .Default([](Operation *) -> Function { return nullptr; });
}

/// Of numbers with a sign, of more than 64 bits: what bounds of masks do with them. Null for other
/// ops, whose bits beyond 64 count.
static Function getWideFunction(Operation *op) {
  return llvm::TypeSwitch<Operation *, Function>(op)
      .Case<arith::AddIOp>([](auto) {
        return checked2<[](I a, I b, I *c) { return __builtin_add_overflow(a, b, c); }>;
      })
      .Case<arith::SubIOp>([](auto) {
        return checked2<[](I a, I b, I *c) { return __builtin_sub_overflow(a, b, c); }>;
      })
      .Case<arith::MulIOp>([](auto) {
        return checked2<[](I a, I b, I *c) { return __builtin_mul_overflow(a, b, c); }>;
      })
      .Case<arith::ShRSIOp>([](auto) {
        return checked2<[](I a, I by, I *c) {
          *c = a >> std::clamp<I>(by, 0, 63);
          return false;
        }>;
      })
      .Case<arith::CmpIOp>([](arith::CmpIOp cmp) -> Function {
        bool isUnsigned = llvm::is_contained({arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                              arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge},
                                             cmp.getPredicate());
        return isUnsigned ? nullptr : getIntFunction(cmp);
      })
      .Case<arith::MaxSIOp, arith::MinSIOp, arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp,
            arith::SelectOp>([](Operation *known) { return getIntFunction(known); })
      .Default([](Operation *) -> Function { return nullptr; });
}

//===----------------------------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------------------------===//

static constexpr unsigned kMostBits = 128;

static bool isWide(mlir::Type type) {
  auto integer = dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  return integer && integer.getWidth() > 64;
}

/// 64 less the width, 0 for floats and for wide integers; nothing for types that do not fit.
static std::optional<unsigned> getShift(mlir::Type type) {
  mlir::Type element = getElementTypeOrSelf(type);
  if (element.isIndex() || isa<FloatType>(element))
    return 0;
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.getWidth() < 1 || integer.getWidth() > kMostBits)
    return std::nullopt;
  return integer.getWidth() > 64 ? 0 : 64 - integer.getWidth();
}

Error makeOpError(Operation *op, const Twine &what) {
  std::string text;
  raw_string_ostream stream(text);
  if (auto loc = op->getLoc()->findInstanceOf<FileLineColLoc>())
    stream << loc.getFilename().getValue() << ':' << loc.getLine() << ':' << loc.getColumn()
           << ": ";
  stream << '\'' << op->getName() << "': " << what;
  return createStringError(text);
}

Error makeOpError(Operation *op, Error error) {
  return makeOpError(op, toString(std::move(error)));
}

Expected<ScalarOp> compileScalarOp(Operation *op) {
  if (op->getNumResults() != 1)
    return makeOpError(op, "expected an op that the interpreter knows");
  return compileScalarResult(op->getResult(0));
}

Expected<ScalarOp> compileScalarResult(OpResult output) {
  Operation *op = output.getOwner();
  ScalarOp compiled;
  bool isSincos = isa<math::SincosOp>(op);
  compiled.function = isSincos ? getSincosFunction(output.getResultNumber()) : getRealFunction(op);
  if (!compiled.function)
    compiled.function = isWide(output.getType()) || llvm::any_of(op->getOperandTypes(), isWide)
                            ? getWideFunction(op)
                            : getIntFunction(op);
  if (!compiled.function || (op->getNumResults() != 1 && !isSincos))
    return makeOpError(op, "expected an op that the interpreter knows");
  std::optional<unsigned> result = getShift(output.getType());
  // The condition of a select says nothing about the others.
  std::optional<unsigned> operand = getShift(op->getOperands().back().getType());
  if (!result || !operand)
    return makeOpError(op, "expected floats, indices and integers of at most 128 bits");
  compiled.resultShift = *result;
  compiled.operandShift = *operand;
  return compiled;
}

static Lane toLane(const APFloat &value, bool exactConstants) {
  APFloat wide = value;
  bool losesInfo = false;
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  double number = wide.convertToDouble();
  constexpr double log2e = 1.4426950408889634074;
  if (exactConstants && &value.getSemantics() == &APFloat::IEEEsingle() &&
      number == double(float(log2e)))
    number = log2e;
  return {.f = number};
}

Expected<RuntimeValue> evaluateConstant(Attribute value, bool exactConstants) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return RuntimeValue(toLane(number.getValue(), exactConstants));
  if (auto number = dyn_cast<IntegerAttr>(value);
      number && getShift(number.getType()) && number.getValue().getSignificantBits() <= 64)
    return RuntimeValue::integer(number.getValue().getSExtValue());
  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense || !getShift(dense.getElementType()) || isWide(dense.getElementType()))
    return createStringError(
        "expected a constant of floats, indices or integers of at most 64 bits");
  bool isFloat = isFloatElement(dense.getType());
  Expected<TensorRef> tensor = DenseTensor::create(dense.getType().getShape(), isFloat);
  if (!tensor)
    return tensor.takeError();
  Lane *lane = (*tensor)->data();
  if (isFloat)
    for (const APFloat &element : dense.getValues<APFloat>())
      *lane++ = toLane(element, exactConstants);
  else
    for (const APInt &element : dense.getValues<APInt>())
      (lane++)->i = element.getSExtValue();
  return RuntimeValue(*tensor);
}

} // namespace attn
