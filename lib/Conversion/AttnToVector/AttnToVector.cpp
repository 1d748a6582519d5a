//===- AttnToVector.cpp - convert-attn-to-vector ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/MoveRows.h"
#include "lib/Conversion/AttnToVector/Passes.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Arith/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/IR/ValueBoundsOpInterfaceImpl.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTOVECTORPASS
#include "lib/Conversion/AttnToVector/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// Steps need static D and Dv, and buffers by now.
static LogicalResult checkStep(OnlineAttentionOp op) {
  if (failed(checkBuffers(op)))
    return failure();
  for (auto [name, value] : {std::pair<StringRef, Value>{"query", op.getQuery()},
                             {"key", op.getKey()},
                             {"value", op.getValue()},
                             {"acc", op.getAcc()}})
    if (failed(checkColumns(op, name, value)))
      return failure();
  return success(succeeded(checkContiguous(op, "row_max", op.getRowMax())) &&
                 succeeded(checkContiguous(op, "row_sum", op.getRowSum())));
}

/// The bytes that a thread's stack surely has.
static constexpr int64_t kStackBytes = 4 << 20;

/// Reports a block whose buffers are too large for a stack.
static LogicalResult checkStack(scf::ForallOp forall) {
  int64_t bytes = 0;
  for (auto alloca : forall.getBody()->getOps<memref::AllocaOp>()) {
    MemRefType type = alloca.getType();
    if (type.hasStaticShape() && type.getElementType().isIntOrFloat())
      bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  if (bytes <= kStackBytes)
    return success();
  return forall.emitOpError("expected the buffers of a block to take at most ")
         << kStackBytes << " bytes of stack, got " << bytes << "; smaller tiles take less";
}

namespace {
struct ConvertAttnToVectorPass
    : RoomPass<attn::impl::ConvertAttnToVectorPassBase<ConvertAttnToVectorPass>, Room::Buffers,
               Room::Vectors> {
  using RoomPass::RoomPass;

  void getDependentDialects(DialectRegistry &registry) const override {
    RoomPass::getDependentDialects(registry);
    affine::registerValueBoundsOpInterfaceExternalModels(registry);
    arith::registerValueBoundsOpInterfaceExternalModels(registry);
    scf::registerValueBoundsOpInterfaceExternalModels(registry);
  }

  LogicalResult transform() override {
    if (lanes != 16 && lanes != 8 && lanes != 4) {
      getOperation()->emitError("expected 16, 8 or 4 lanes, got ") << lanes.getValue();
      return failure();
    }
    VectorTarget target{lanes, bf16Dot};
    Shared shared;
    SmallVector<Operation *> ops;
    getOperation()->walk([&](Operation *op) {
      if (isa<OnlineAttentionOp, NormalizeOp, MergeOp, AppendOp, RotaryOp, GradRowsOp,
              GradDeltaStepOp, GradQueryStepOp, GradKeyValueStepOp, GradDeltaEndOp, GradFusedStepOp,
              GradCapturedStepOp, GradEndOp, linalg::FillOp, linalg::GenericOp, memref::CopyOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      LogicalResult result =
          TypeSwitch<Operation *, LogicalResult>(op)
              .Case([&](OnlineAttentionOp step) {
                return succeeded(checkStep(step)) ? lowerStep(step, target, shared) : failure();
              })
              .Case<GradDeltaStepOp, GradQueryStepOp, GradKeyValueStepOp, GradFusedStepOp,
                    GradCapturedStepOp>([&](auto step) {
                return succeeded(checkBuffers(step)) ? lowerGradStep(step, target, shared)
                                                     : failure();
              })
              .Case([&](GradRowsOp rows) { return lowerGradRows(rows, target); })
              .Case([&](GradDeltaEndOp end) { return lowerGradDeltaEnd(end, target); })
              .Case([&](GradEndOp end) { return lowerGradEnd(end, target); })
              .Case([&](NormalizeOp normalize) { return lowerNormalize(normalize, target); })
              .Case([&](MergeOp merge) { return lowerMerge(merge, target); })
              .Case([&](AppendOp append) { return lowerAppend(append, target); })
              .Case([&](RotaryOp rotary) { return lowerRotary(rotary, target); })
              .Case([&](linalg::FillOp fill) { return lowerFill(fill, target); })
              .Case([&](linalg::GenericOp generic) { return lowerGeneric(generic); })
              .Case([&](memref::CopyOp copy) { return lowerCopy(copy, target); })
              .Default(failure());
      if (failed(result))
        return failure();
    }
    shared.functions.finish();
    WalkResult stacks = getOperation()->walk([](scf::ForallOp forall) {
      return succeeded(checkStack(forall)) ? WalkResult::advance() : WalkResult::interrupt();
    });
    return failure(stacks.wasInterrupted());
  }
};
} // namespace
