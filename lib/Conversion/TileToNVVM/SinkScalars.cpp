//===- SinkScalars.cpp - compute each element when it is needed -----------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops on tiles become one op for each register, one tile op after the other: a score function with
// ten values would keep ten tiles in registers. Element by element it keeps one tile and ten
// scalars. Only numbers move: bits of masks live in few registers, their positions in many.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

/// Moves every scalar op of the block to just before the first op that uses it.
static void sinkScalars(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
        op.getNumOperands() == 0 || !op.getResult(0).getType().isF32() || !isPure(&op))
      continue;
    Operation *first = nullptr;
    for (Operation *user : op.getUsers())
      if (Operation *inBlock = block.findAncestorOpInBlock(*user);
          inBlock && (!first || inBlock->isBeforeInBlock(first)))
        first = inBlock;
    if (first && first != op.getNextNode())
      op.moveBefore(first);
  }
}

void attn::tile::sinkScalars(Operation *function) {
  function->walk([](Block *block) { ::sinkScalars(*block); });
}
