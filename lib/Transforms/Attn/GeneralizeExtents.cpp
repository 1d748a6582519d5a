//===- GeneralizeExtents.cpp - attn-generalize-extents --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_GENERALIZEEXTENTSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The tensors of a function: its arguments, and what attentions and assumptions make of them. What
/// something else makes keeps its type, and so does what is assumed of it.
static llvm::SetVector<Value> getTensors(func::FuncOp function) {
  llvm::SetVector<Value> tensors;
  auto append = [&](ValueRange values) {
    for (Value value : values)
      if (isa<RankedTensorType>(value.getType()))
        tensors.insert(value);
  };
  append(function.getArguments());
  function.walk([&](Operation *op) {
    auto assumption = dyn_cast<AssumeOp>(op);
    auto paged = dyn_cast<PagedOp>(op);
    if (isa<ScoredOpInterface>(op) || (assumption && tensors.contains(assumption.getSource())) ||
        (paged && tensors.contains(paged.getPool()) && tensors.contains(paged.getTable())))
      append(op->getResults());
  });
  return tensors;
}

/// Whether nothing depends on the tensor's extents as its type states them.
static bool isFree(Value tensor) {
  return llvm::all_of(tensor.getUsers(),
                      llvm::IsaPred<ScoredOpInterface, AssumeOp, ContributeOp, PagedOp,
                                    tensor::DimOp, tensor::ExtractOp, func::ReturnOp>);
}

/// Queries, keys, values, outputs and their gradients: the columns are a kernel's, not a call's.
static DenseSet<Value> getMatrices(func::FuncOp function) {
  DenseSet<Value> matrices;
  function.walk([&](ScoredOpInterface op) { matrices.insert_range(op.getMatrices()); });
  function.walk([&](PagedOp op) { matrices.insert(op.getPool()); });
  return matrices;
}

static void generalize(func::FuncOp function) {
  llvm::SetVector<Value> tensors = getTensors(function);
  if (!llvm::all_of(tensors, isFree))
    return;
  DenseSet<Value> matrices = getMatrices(function);
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    SmallVector<int64_t> shape(type.getRank(), ShapedType::kDynamic);
    if (matrices.contains(tensor))
      shape.back() = type.getShape().back();
    if (llvm::any_of(tensor.getUsers(), [&](Operation *user) {
          auto paged = dyn_cast<PagedOp>(user);
          return paged && paged.getPool() == tensor;
        }))
      shape[1] = type.getShape()[1];
    tensor.setType(type.clone(shape));
  }
  Operation *end = function.getBody().front().getTerminator();
  function.setType(FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(),
                                     end->getOperandTypes()));
}

namespace {
struct GeneralizeExtentsPass
    : RoomPass<attn::impl::GeneralizeExtentsPassBase<GeneralizeExtentsPass>, Room::Problem,
               Room::Problem> {
  LogicalResult transform() override {
    // What is called keeps the types that its calls have.
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        generalize(function);
    return success();
  }
};
} // namespace
