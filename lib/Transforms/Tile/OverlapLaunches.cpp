//===- OverlapLaunches.cpp - tile-overlap-launches ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stream starts a kernel when the one before it has ended and its memory is there. Of kernels
// that take a few microseconds (a merge of split keys, a search, numbers of rows) that gap is as
// long as they are. The driver can start the blocks of a kernel while the last ones of its
// predecessor run, if the kernel itself waits for the memory.
//
// The first kernel of a way stays as it is: what stands before it in the stream is the caller's.
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"

namespace attn::tile {
#define GEN_PASS_DEF_OVERLAPLAUNCHESPASS
#include "lib/Transforms/Tile/Passes.h.inc"
} // namespace attn::tile

using namespace mlir;
using namespace attn;
using namespace attn::plan;
using namespace attn::tile;

namespace {
struct OverlapLaunchesPass
    : RoomPass<attn::tile::impl::OverlapLaunchesPassBase<OverlapLaunchesPass>, within(Room::Async),
               within(Room::Async)> {
  LogicalResult transform() override {
    if (!getMachine(getOperation()).overlapsLaunches)
      return success();
    func::FuncOp before;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      auto attribute = kernel->getAttrOfType<KernelAttr>(TileDialect::kKernelAttrName);
      if (!attribute)
        continue;
      bool follows = before && before->getAttr(PlanDialect::kWayAttrName) ==
                                   kernel->getAttr(PlanDialect::kWayAttrName);
      if (follows) {
        kernel->setAttr(TileDialect::kKernelAttrName, attribute.withProgrammatic());
        remark::passed(kernel.getLoc(),
                       remark::RemarkOpts::name("overlap-launches").category("attn"))
            << ("'" + kernel.getName() + "' starts while '" + before.getName() + "' ends").str();
      }
      before = kernel;
    }
    return success();
  }
};
} // namespace
