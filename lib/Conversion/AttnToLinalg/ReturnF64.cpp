//===- ReturnF64.cpp - attn-return-f64 ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_RETURNF64PASS
#include "lib/Conversion/AttnToLinalg/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The place of a result in what a function returns, which begins as nothing or as one number.
static PlaceOp findPlace(OpOperand &use) {
  auto place = dyn_cast<PlaceOp>(use.getOwner());
  if (!place || &use != &place.getSourceMutable() || !place.getDest().hasOneUse() ||
      !llvm::all_of(place->getUsers(), llvm::IsaPred<func::ReturnOp>))
    return {};
  Value dest = place.getDest();
  if (auto fill = dest.getDefiningOp<linalg::FillOp>())
    dest = fill.getOutputs()[0];
  return dest.getDefiningOp<tensor::EmptyOp>() ? place : PlaceOp();
}

/// Whether a result may become f64 where it is used: a function returns it, or gradients start from
/// it.
static bool takesF64(OpOperand &use) {
  if (findPlace(use))
    return true;
  if (auto gradient = dyn_cast<AttentionGradOp>(use.getOwner()))
    return &use == &gradient.getOutputMutable() || &use == &gradient.getLseMutable();
  return isa<func::ReturnOp>(use.getOwner());
}

/// Gives what is placed a place of f64.
static void widenPlace(PlaceOp place) {
  OpBuilder b(place);
  Location loc = place.getLoc();
  Type f64 = b.getF64Type();
  Value dest = place.getDest();
  auto fill = dest.getDefiningOp<linalg::FillOp>();
  Value from = fill ? fill.getOutputs()[0] : dest;
  Value wide =
      tensor::EmptyOp::create(b, loc, from.getDefiningOp<tensor::EmptyOp>().getMixedSizes(), f64);
  if (fill) {
    Value number = arith::ExtFOp::create(b, loc, f64, fill.getInputs()[0]);
    wide = linalg::FillOp::create(b, loc, number, wide).getResult(0);
  }
  place.getDestMutable().assign(wide);
  place.getResult().setType(cast<RankedTensorType>(wide.getType()));
}

static void widen(Value value) {
  value.setType(
      cast<RankedTensorType>(value.getType()).clone(Float64Type::get(value.getContext())));
  for (OpOperand &use : value.getUses())
    if (PlaceOp place = findPlace(use))
      widenPlace(place);
}

/// Leaves out that scaled elements are rounded, as implementations do (s26): they are f32 where
/// all that read them take that, and have results of f64.
static void leaveRoundingOut(ScaledOp op) {
  llvm::SetVector<Operation *> views;
  views.insert(op);
  // All operands of an attention have one type, so that a view has that of others.
  for (unsigned i = 0; i < views.size(); ++i)
    for (Operation *user : views[i]->getUsers()) {
      if (isa<tensor::DimOp>(user))
        continue;
      auto attention = dyn_cast<AttentionOp>(user);
      if (!attention || !attention.getOutput().getType().getElementType().isF64())
        return;
      for (Value operand : {attention.getQuery(), attention.getKey(), attention.getValue()}) {
        auto view = operand.getDefiningOp<ScaledOp>();
        if (!view)
          return;
        views.insert(view);
      }
    }
  for (Operation *view : views) {
    auto type = cast<RankedTensorType>(view->getResult(0).getType());
    view->getResult(0).setType(type.clone(Float32Type::get(op.getContext())));
  }
}

namespace {
struct ReturnF64Pass
    : RoomPass<attn::impl::ReturnF64PassBase<ReturnF64Pass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    getOperation()->walk([&](ScoredOpInterface op) {
      // A caller would still expect the old type.
      auto func = op->getParentOfType<func::FuncOp>();
      if (!func || !SymbolTable::symbolKnownUseEmpty(func, getOperation()))
        return;
      for (Value result : op->getResults())
        if (llvm::all_of(result.getUses(), takesF64))
          widen(result);
    });
    getOperation()->walk(leaveRoundingOut);
    getOperation()->walk([&](func::ReturnOp ret) {
      auto func = ret->getParentOfType<func::FuncOp>();
      if (func)
        func.setType(
            FunctionType::get(&getContext(), func.getArgumentTypes(), ret.getOperandTypes()));
    });
    return success();
  }
};
} // namespace
