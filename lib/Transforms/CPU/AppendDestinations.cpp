//===- AppendDestinations.cpp - attn-cpu-append-destinations ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_CPUAPPENDDESTINATIONSPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// A buffer of any strides but the last.
static MemRefType getDestinationType(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

/// Gives each user but one of the op's result a copy of the op.
static void unshare(Operation *op) {
  SmallVector<OpOperand *> uses;
  for (OpOperand &use : op->getUses())
    uses.push_back(&use);
  for (OpOperand *use : ArrayRef(uses).drop_front(uses.empty() ? 0 : 1)) {
    OpBuilder b(op);
    use->set(b.clone(*op)->getResult(0));
  }
}

/// Two users of one tensor.empty would want it at two places, and so would two sums that start from
/// one constant: a destination that holds it may be overwritten by the one before the other is
/// read.
static void unshareBeginnings(func::FuncOp func) {
  func.walk([](linalg::FillOp fill) {
    if (fill->getNumResults() == 1)
      unshare(fill);
  });
  func.walk([](tensor::EmptyOp empty) { unshare(empty); });
}

static void appendDestinations(func::FuncOp func) {
  auto terminator = cast<func::ReturnOp>(func.getBody().front().getTerminator());
  OpBuilder b(terminator);
  SmallVector<Value> kept;
  SmallVector<Type> keptTypes;
  for (Value result : terminator.getOperands()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type) {
      kept.push_back(result);
      keptTypes.push_back(result.getType());
      continue;
    }
    unsigned position = func.getNumArguments();
    (void)func.insertArgument(position, getDestinationType(type), DictionaryAttr(), func.getLoc());
    bufferization::MaterializeInDestinationOp::create(b, result.getLoc(), Type(), result,
                                                      func.getArgument(position), /*restrict=*/true,
                                                      /*writable=*/true);
  }
  terminator.getOperandsMutable().assign(kept);
  func.setType(FunctionType::get(func.getContext(), func.getArgumentTypes(), keptTypes));
  func.removeResAttrsAttr();
}

namespace {
struct CPUAppendDestinationsPass
    : RoomPass<attn::impl::CPUAppendDestinationsPassBase<CPUAppendDestinationsPass>, Room::Online,
               Room::Online> {
  LogicalResult transform() override {
    WalkResult calls = getOperation()->walk([](func::CallOp call) {
      call.emitOpError("expected functions that do not call each other");
      return WalkResult::interrupt();
    });
    if (calls.wasInterrupted())
      return failure();
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      unshareBeginnings(func);
      appendDestinations(func);
    }
    return success();
  }
};
} // namespace
