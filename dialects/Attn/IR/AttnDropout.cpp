//===- AttnDropout.cpp - the factor of dropout ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Philox4x32-7 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) as scalar
// arithmetic. One call gives eight numbers of 16 bits, for the rows and the keys whose positions
// differ in bit 3, and for the keys that differ in bit 0. A thread of a GPU has just these of a
// tile of a product with rows as its rows, and four of them where keys are its rows.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnDropout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <algorithm>
#include <array>
#include <cmath>

using namespace mlir;
using namespace attn;

namespace {
constexpr int kRounds = 7;
/// The bit of a position that is 8 for the second row, and the second eight columns, of a thread.
constexpr uint32_t kFar = 8;
/// How many values a number has.
constexpr int kValues = 1 << 16;
constexpr uint32_t kMultipliers[2] = {0xD2511F53, 0xCD9E8D57};
constexpr uint32_t kIncrements[2] = {0x9E3779B9, 0xBB67AE85};

struct PhiloxBuilder : ImplicitLocOpBuilder {
  PhiloxBuilder(OpBuilder &builder, Location loc) : ImplicitLocOpBuilder(loc, builder) {}

  Value i32(uint32_t value) {
    return arith::ConstantOp::create(*this, getI32IntegerAttr(int32_t(value)));
  }
  Value i64(uint64_t value) {
    return arith::ConstantOp::create(*this, getI64IntegerAttr(int64_t(value)));
  }
  Value toI32(Value index) { return arith::IndexCastOp::create(*this, getI32Type(), index); }
  Value low(Value wide) { return arith::TruncIOp::create(*this, getI32Type(), wide); }
  Value high(Value wide) { return low(arith::ShRUIOp::create(*this, wide, i64(32))); }
  Value bitAnd(Value word, uint32_t bits) { return arith::AndIOp::create(*this, word, i32(bits)); }
  Value exclusiveOr(Value a, Value b) { return arith::XOrIOp::create(*this, a, b); }
  Value isFar(Value word) {
    return arith::CmpIOp::create(*this, arith::CmpIPredicate::ne, bitAnd(word, kFar), i32(0));
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(*this, condition, a, b);
  }

  /// Both halves of a product. Room 4 knows no op of two results, and every target has the
  /// instruction for this form.
  std::pair<Value, Value> multiply(Value word, uint32_t multiplier) {
    Value wide = arith::ExtUIOp::create(*this, getI64Type(), word);
    wide = arith::MulIOp::create(*this, wide, i64(multiplier));
    return {high(wide), low(wide)};
  }

  /// The two words of a seed.
  std::array<Value, 2> readKey(Value seed) {
    Value zero = arith::ConstantIndexOp::create(*this, 0);
    Value number = tensor::ExtractOp::create(*this, seed, zero);
    Type i64Type = getI64Type();
    if (number.getType().isIndex())
      number = arith::IndexCastOp::create(*this, i64Type, number);
    else if (number.getType().getIntOrFloatBitWidth() < 64)
      number = arith::ExtSIOp::create(*this, i64Type, number);
    else if (number.getType() != i64Type)
      number = arith::TruncIOp::create(*this, i64Type, number);
    return {low(number), high(number)};
  }

  std::array<Value, 4> philox(std::array<Value, 4> counter, std::array<Value, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
      auto [high0, low0] = multiply(counter[0], kMultipliers[0]);
      auto [high1, low1] = multiply(counter[2], kMultipliers[1]);
      counter = {exclusiveOr(exclusiveOr(high1, counter[1]), key[0]), low1,
                 exclusiveOr(exclusiveOr(high0, counter[3]), key[1]), low0};
      for (int i = 0; i < 2; ++i)
        key[i] = arith::AddIOp::create(*this, key[i], i32(kIncrements[i]));
    }
    return counter;
  }
};
} // namespace

Value attn::buildDropout(OpBuilder &builder, Location loc, DropoutAttr dropout, const Position &at,
                         Value seed) {
  PhiloxBuilder b(builder, loc);
  double p = dropout.getP().getValueAsDouble();
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  if (p == 0 || p == 1)
    return number(p == 0 ? 1 : 0);
  double least = std::min(std::round(p * kValues), kValues - 1.0);
  Value m = b.toI32(at.m), n = b.toI32(at.n);
  std::array<Value, 4> words =
      b.philox({b.bitAnd(n, ~(kFar | 1)), b.bitAnd(m, ~kFar), b.toI32(at.h), b.toI32(at.b)},
               b.readKey(seed));
  Value isFarKey = b.isFar(n);
  Value word = b.select(b.isFar(m), b.select(isFarKey, words[3], words[2]),
                        b.select(isFarKey, words[1], words[0]));
  Value half = arith::MulIOp::create(b, b.bitAnd(n, 1), b.i32(16));
  Value drawn = b.bitAnd(arith::ShRUIOp::create(b, word, half), kValues - 1);
  Value isDropped =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, drawn, b.i32(uint32_t(least)));
  return b.select(isDropped, number(0), number(1 / (1 - least / kValues)));
}
