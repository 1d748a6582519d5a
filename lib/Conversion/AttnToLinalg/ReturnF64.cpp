//===- ReturnF64.cpp - attn-return-f64 ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Rooms/RoomPass.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_RETURNF64PASS
#include "lib/Conversion/AttnToLinalg/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The place of a result in what a function returns, which nothing else reads or has made.
static PlaceOp findPlace(OpOperand &use) {
  auto place = dyn_cast<PlaceOp>(use.getOwner());
  auto dest = place ? place.getDest().getDefiningOp<tensor::EmptyOp>() : tensor::EmptyOp();
  bool isAlone = dest && &use == &place.getSourceMutable() && dest->hasOneUse() &&
                 llvm::all_of(place->getUsers(), llvm::IsaPred<func::ReturnOp>);
  return isAlone ? place : PlaceOp();
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

static void setElement(Value value, Type element) {
  value.setType(cast<RankedTensorType>(value.getType()).clone(element));
  for (OpOperand &use : value.getUses())
    if (PlaceOp place = findPlace(use)) {
      setElement(place.getDest(), element);
      setElement(place.getResult(), element);
    }
}

namespace {
struct ReturnF64Pass
    : RoomPass<attn::impl::ReturnF64PassBase<ReturnF64Pass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    Type f64 = Float64Type::get(&getContext());
    getOperation()->walk([&](ScoredOpInterface op) {
      // A caller would still expect the old type.
      auto func = op->getParentOfType<func::FuncOp>();
      if (!func || !SymbolTable::symbolKnownUseEmpty(func, getOperation()))
        return;
      for (Value result : op->getResults())
        if (llvm::all_of(result.getUses(), takesF64))
          setElement(result, f64);
    });
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
