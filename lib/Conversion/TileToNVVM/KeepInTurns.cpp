//===- KeepInTurns.cpp - what a loop around loops computes in each turn ---===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks that stay begin and end a tile of rows in each turn of their loop: positions of columns,
// addresses of rows, bounds. Most of that is the same in each turn, and LLVM would compute it once,
// in front, where it takes registers from the tiles of the loops inside: a few too many, and ptxas
// spills. Values that those loops read have to live together with their tiles all the same. The
// other values cost some instructions in a turn, where they are read. ptxas moves values for which
// it has registers.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

/// The values of this loop that the loops inside read, and the values that these are computed from.
static SetVector<Operation *> collectReadInside(scf::ForOp loop) {
  SetVector<Operation *> read;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.filter = [&](Operation *op) { return loop->isProperAncestor(op); };
  loop->walk([&](scf::ForOp inner) {
    if (inner == loop)
      return;
    SetVector<Value> values;
    getUsedValuesDefinedAbove(inner.getRegion(), values);
    values.insert_range(inner->getOperands().take_front(inner.getNumControlOperands()));
    for (Value value : values)
      (void)getBackwardSlice(value, &read, options);
  });
  return read;
}

void attn::tile::keepInTurns(Operation *function) {
  MLIRContext *context = function->getContext();
  auto stays = LLVM::LoopLICMAttr::get(context, /*disable=*/BoolAttr::get(context, true),
                                       /*versioningDisable=*/BoolAttr());
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, /*disableNonforced=*/{}, /*vectorize=*/{}, /*interleave=*/{}, /*unroll=*/{},
      /*unrollAndJam=*/{}, stays, /*distribute=*/{}, /*pipeline=*/{}, /*peeled=*/{},
      /*unswitch=*/{}, /*mustProgress=*/{}, /*isVectorized=*/{}, /*startLoc=*/{}, /*endLoc=*/{},
      /*parallelAccesses=*/{});
  SetVector<scf::ForOp> around;
  function->walk([&](scf::ForOp loop) {
    if (auto parent = loop->getParentOfType<scf::ForOp>())
      around.insert(parent);
  });
  for (scf::ForOp loop : around) {
    SetVector<Operation *> read = collectReadInside(loop);
    moveLoopInvariantCode(
        {&loop.getRegion()},
        [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
        [&](Operation *op, Region *) {
          return read.contains(op) && isPure(op) && op->getNumRegions() == 0;
        },
        [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
    // Control flow hands it to the branch back, where LLVM looks for it.
    loop->setAttr("loop_annotation", annotation);
  }
}
