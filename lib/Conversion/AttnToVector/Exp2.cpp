//===- Exp2.cpp - powers of two -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Exp2.h"

using namespace mlir;
using namespace attn;

// x = n + f with n an integer and |f| <= 1/2. Adding 1.5 * 2^23 leaves n in the low mantissa bits,
// from where a shift puts it onto the exponent of 2^f. At the lower clamp, x = -127 gives f = 0,
// 2^f = 1 and an exponent field of 0: zero itself. The polynomials are minimax in relative error on
// [-1/2, 1/2] with the constant term held at 1.
static constexpr double kRound = 12582912.0;

Value attn::emitExp2(Emitter &b, Value x, Exp2Precision precision) {
  static constexpr double full[] = {0.6931470036506653, 0.24022242426872253, 0.05550733581185341,
                                    0.009671512991189957, 0.001326472731307149};
  static constexpr double half[] = {0.6931241750717163, 0.24024099111557007, 0.055906426161527634,
                                    0.009582852944731712};
  ArrayRef<double> coefficients =
      precision == Exp2Precision::Full ? ArrayRef<double>(full) : ArrayRef<double>(half);
  Type type = x.getType();
  Type bits = b.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    bits = VectorType::get(vector.getShape(), bits);

  x = b.max(b.floatLike(type, -127.0), x);
  Value round = b.floatLike(type, kRound);
  Value shifted = arith::AddFOp::create(b, x, round);
  Value n = arith::SubFOp::create(b, shifted, round);
  Value f = arith::SubFOp::create(b, x, n);
  Value power = b.floatLike(type, coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back()))
    power = b.fma(power, f, b.floatLike(type, coefficient));
  power = b.fma(power, f, b.floatLike(type, 1.0));
  Value exponent =
      arith::ShLIOp::create(b, arith::BitcastOp::create(b, bits, shifted), b.intLike(bits, 23));
  Value sum = arith::AddIOp::create(b, arith::BitcastOp::create(b, bits, power), exponent);
  return arith::BitcastOp::create(b, type, sum);
}
