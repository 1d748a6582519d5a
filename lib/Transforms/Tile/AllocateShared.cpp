//===- AllocateShared.cpp - tile-allocate-shared -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace attn::tile {
#define GEN_PASS_DEF_ALLOCATESHAREDPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn::tile;

namespace {
struct AllocateSharedPass
    : KernelPass<attn::tile::impl::AllocateSharedPassBase<AllocateSharedPass>,
                 attn::within(attn::Room::Async), attn::within(attn::Room::Async)> {
  LogicalResult transformKernel(func::FuncOp kernel) override {
    int64_t end = 0, step = attn::plan::getMachine(kernel).stageBytes;
    auto place = [&](auto op, int64_t alignment, int64_t bytes) {
      if (!op.getOffset())
        op.setOffset(llvm::alignTo(end, alignment));
      end = std::max<int64_t>(end, *op.getOffset() + bytes);
    };
    kernel.walk([&](AllocSharedOp op) {
      place(op, step, cast<SharedType>(op.getType()).getSizeInBytes());
    });
    kernel.walk(
        [&](BarrierInitOp op) { place(op, 8, cast<BarrierType>(op.getType()).getSizeInBytes()); });
    int64_t most = getMostSharedBytes(kernel);
    if (end <= most)
      return success();
    return kernel.emitOpError("expected at most ") << most << " bytes of shared memory, got " << end
                                                   << " (smaller blocks or fewer stages need less)";
  }
};
} // namespace
