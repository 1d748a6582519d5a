//===- ExpandVariants.cpp - attn-expand-variants -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace attn {
#define GEN_PASS_DEF_EXPANDVARIANTSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
struct ExpandVariantsPass : RoomPass<attn::impl::ExpandVariantsPassBase<ExpandVariantsPass>,
                                     Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    getOperation()->walk([&](ScoredOpInterface op) { expandVariants(rewriter, op); });
    return success();
  }
};
} // namespace
