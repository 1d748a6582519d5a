//===- HoldStages.cpp - what keeps a wait behind exponentials ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   before   wait for S;  give K back;  maxima;  weights;  wait for O += P V;  give back V
//   after    wait for S;  maxima;  weight;  give K back;  weights;  wait for O += P V;  give back V
//
// The product of values is in flight during maxima and weights, and the wait for it stands after
// them. ptxas moves the wait up past all ops that touch no memory, to the middle of the maxima, and
// then no exponential overlaps with the product. It does not move the wait past an arrival. So the
// arrival that gives the stage of K back, which could come at once, depends on the first weight:
// ptxas leaves two fifths of the exponentials before the wait.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

/// A thread has so many rows of a tile, and an exponential for each of them in front of its
/// weights: by what sums are scaled.
static constexpr unsigned kRows = 2;

static bool isWait(Operation *op) {
  auto text = dyn_cast<LLVM::InlineAsmOp>(op);
  return text && text.getAsmString().starts_with("wgmma.wait_group");
}

/// An arrival, under the condition of who arrives.
static bool isRelease(scf::IfOp branch) {
  return branch.getNumResults() == 0 && !branch.elseBlock() &&
         llvm::any_of(*branch.thenBlock(), llvm::IsaPred<NVVM::MBarrierArriveOp>);
}

/// The exponentials between an op and the wait after it, of one block; none where an op between
/// them does more than to compute or to exchange registers.
static SmallVector<Operation *> collectExponentials(Operation *release) {
  SmallVector<Operation *> found;
  for (Operation *op = release->getNextNode(); op; op = op->getNextNode()) {
    if (isWait(op))
      return found;
    if (isa<math::Exp2Op>(op))
      found.push_back(op);
    else if (!isMemoryEffectFree(op) && !isa<NVVM::ShflOp, NVVM::VoteSyncOp>(op))
      break;
  }
  return {};
}

/// The arrival, after an exponential and dependent on it: a weight is never below -1, which neither
/// LLVM nor ptxas knows.
static void arriveBehind(scf::IfOp release, Operation *exponential) {
  Block *block = release.thenBlock();
  auto arrival = *block->getOps<NVVM::MBarrierArriveOp>().begin();
  OpBuilder b(release->getContext());
  b.setInsertionPointAfter(exponential);
  for (Operation &op : llvm::make_early_inc_range(block->without_terminator()))
    if (&op != arrival) {
      op.remove();
      b.insert(&op);
    }
  (void)emitAsm(b, arrival.getLoc(),
                "{ .reg .pred behind; setp.geu.and.f32 behind, $1, 0fBF800000, $2; "
                "@behind mbarrier.arrive.shared.b64 _, [$0]; }",
                "l,f,b", {arrival.getAddr(), exponential->getResult(0), release.getCondition()},
                {});
  release->erase();
}

void attn::tile::holdStages(Operation *function) {
  SmallVector<scf::IfOp> releases;
  function->walk([&](scf::IfOp branch) {
    if (isRelease(branch) && branch->getParentOfType<scf::ForOp>())
      releases.push_back(branch);
  });
  for (scf::IfOp release : releases) {
    SmallVector<Operation *> exponentials = collectExponentials(release);
    if (exponentials.size() > kRows)
      arriveBehind(release, exponentials[kRows]);
  }
}
