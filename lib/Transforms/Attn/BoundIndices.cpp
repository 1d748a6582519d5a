//===- BoundIndices.cpp - attn-bound-indices ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A GPU computes positions in 32 bits. A window of 2^63 - 1 keys, which says that there is none,
// would be one of -1 there, one of 2^40 a window of 0, and the sum of 2^31 - 1 and a position is
// negative.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_BOUNDINDICESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr unsigned kIndexBits = 32;
/// Beyond all positions, with room for their sums.
static constexpr int64_t kLimit = int64_t(1) << 30;

/// Whether the number may be too large for what is done with it as an index. An element's place is
/// inside its tensor.
static bool mayBeTooLarge(arith::IndexCastOp cast) {
  auto type = dyn_cast<IntegerType>(cast.getIn().getType());
  if (!type || !cast.getType().isIndex() || type.getWidth() < kIndexBits)
    return false;
  bool fits = type.getWidth() == kIndexBits;
  return llvm::any_of(cast->getUsers(), [&](Operation *user) {
    return !isa<tensor::ExtractOp>(user) && !(fits && isa<arith::CmpIOp>(user));
  });
}

static void bound(arith::IndexCastOp cast) {
  OpBuilder builder(cast);
  Location loc = cast.getLoc();
  Value number = cast.getIn();
  auto end = [&](int64_t c) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(number.getType(), c));
  };
  number = arith::MaxSIOp::create(builder, loc, number, end(-kLimit));
  number = arith::MinSIOp::create(builder, loc, number, end(kLimit));
  cast.getInMutable().assign(number);
}

static void bound(arith::ConstantIndexOp constant) {
  int64_t bounded = std::clamp(constant.value(), -kLimit, kLimit);
  constant.setValueAttr(IntegerAttr::get(constant.getType(), bounded));
}

namespace {
struct BoundIndicesPass
    : RoomPass<attn::impl::BoundIndicesPassBase<BoundIndicesPass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    getOperation()->walk([](Operation *op) {
      if (auto constant = dyn_cast<arith::ConstantIndexOp>(op))
        bound(constant);
      else if (auto cast = dyn_cast<arith::IndexCastOp>(op); cast && mayBeTooLarge(cast))
        bound(cast);
    });
    return success();
  }
};
} // namespace
