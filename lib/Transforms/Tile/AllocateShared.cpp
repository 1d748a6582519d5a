//===- AllocateShared.cpp - tile-allocate-shared -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Transforms/Tile/KernelPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "llvm/Support/MathExtras.h"
#include <tuple>

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
    int64_t end = 0, step = attn::plan::getMachine(kernel).stageBytes,
            most = getMostSharedBytes(kernel);
    auto place = [&](auto op, int64_t &end, int64_t alignment, int64_t bytes) {
      if (!op.getOffset())
        op.setOffset(llvm::alignTo(end, alignment));
      end = std::max<int64_t>(end, *op.getOffset() + bytes);
    };
    // The widest gap between places, which begins where a small one ends.
    int64_t gap = 0, gapBytes = 0;
    kernel.walk([&](AllocSharedOp op) {
      int64_t before = end;
      place(op, end, step, cast<SharedType>(op.getType()).getSizeInBytes());
      if (int64_t bytes = int64_t(*op.getOffset()) - before; bytes > gapBytes)
        std::tie(gap, gapBytes) = std::pair(before, bytes);
    });
    int64_t barrierBytes = 0;
    kernel.walk([&](BarrierInitOp op) {
      barrierBytes += cast<BarrierType>(op.getType()).getSizeInBytes();
    });
    kernel.walk([&](AllocTensorOp) { barrierBytes += kColumnsBytes; });
    // Barriers follow the places, unless the block is full.
    bool isFull = end + barrierBytes > most && barrierBytes <= gapBytes;
    int64_t &barriers = isFull ? gap : end;
    kernel.walk([&](BarrierInitOp op) {
      place(op, barriers, 8, cast<BarrierType>(op.getType()).getSizeInBytes());
    });
    kernel.walk([&](AllocTensorOp op) { place(op, barriers, kColumnsBytes, kColumnsBytes); });
    if (end <= most)
      return success();
    return kernel.emitOpError("expected at most ") << most << " bytes of shared memory, got " << end
                                                   << " (smaller blocks or fewer stages need less)";
  }
};
} // namespace
