//===- RowNumbers.cpp - what kernels of a gradient say of rows --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/RowNumbers.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

bool attn::hasRowNumbers(scf::ForallOp grid) {
  return llvm::any_of(*grid.getBody(), llvm::IsaPred<GradRowsOp>);
}

bool attn::areNegated(Value numbers) {
  return llvm::all_of(numbers.getUses(), [](OpOperand &use) {
    return llvm::TypeSwitch<Operation *, bool>(use.getOwner())
        .Case([](tensor::ExtractSliceOp slice) { return areNegated(slice); })
        .Case<GradQueryStepOp, GradCapturedStepOp, GradKeyValueStepOp, GradDeltaStepOp,
              GradDeltaEndOp>([&](auto step) { return &use == &step.getDeltaMutable(); })
        .Default([](Operation *op) { return isa<linalg::GenericOp, tensor::DimOp>(op); });
  });
}

Value attn::negateIf(TileBuilder &b, bool isNegated, Value numbers) {
  return isNegated ? arith::NegFOp::create(b, numbers).getResult() : numbers;
}
