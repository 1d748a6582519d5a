//===- FindBatches.cpp - whether batches are independent of each other ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Extents/FindBatches.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnVariants.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace llvm;

namespace attn {

std::optional<unsigned> findArgumentNumber(mlir::func::FuncOp function, mlir::Value value) {
  while (isa_and_nonnull<mlir::tensor::CastOp, AssumeOp>(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto argument = dyn_cast<mlir::BlockArgument>(value);
  if (!argument || argument.getOwner() != &function.getBody().front())
    return std::nullopt;
  return argument.getArgNumber();
}

static mlir::Value getBatch(mlir::Region &region) {
  return region.empty() ? mlir::Value() : region.getArgument(region.getNumArguments() - 4);
}

/// Adds the dimensions of arguments that the op reads at its batch. False when it does anything
/// else with the number.
static bool addBatchReads(mlir::func::FuncOp function, AttentionOp op,
                          MutableArrayRef<SmallBitVector> dims) {
  for (auto [rule, capture] : zip_equal(getCaptureRules(op), op.getCaptures()))
    for (auto [dim, letter] : enumerate(rule.dims))
      if (letter == 'B') {
        std::optional<unsigned> argument = findArgumentNumber(function, capture);
        if (!argument)
          return false;
        dims[*argument].set(dim);
      }
  for (mlir::Region *region : {&op.getScore(), &op.getMask()}) {
    mlir::Value batch = getBatch(*region);
    if (!batch)
      continue;
    for (mlir::OpOperand &use : batch.getUses()) {
      auto extract = dyn_cast<mlir::tensor::ExtractOp>(use.getOwner());
      std::optional<unsigned> argument =
          extract ? findArgumentNumber(function, extract.getTensor()) : std::nullopt;
      if (!argument)
        return false;
      dims[*argument].set(use.getOperandNumber() - 1);
    }
  }
  return true;
}

/// Whether every read of a batch's dimension is at the batch.
static bool readsAreOfBatch(mlir::func::FuncOp function, AttentionOp op,
                            ArrayRef<SmallBitVector> dims) {
  for (mlir::Region *region : {&op.getScore(), &op.getMask()}) {
    mlir::WalkResult result = region->walk([&](mlir::tensor::ExtractOp extract) {
      std::optional<unsigned> argument = findArgumentNumber(function, extract.getTensor());
      for (auto [dim, index] : enumerate(extract.getIndices()))
        if (!argument || (dims[*argument].test(dim) && index != getBatch(*region)))
          return mlir::WalkResult::interrupt();
      return mlir::WalkResult::advance();
    });
    if (result.wasInterrupted())
      return false;
  }
  return true;
}

/// Whether a size is the same for some of the batches: that of another dimension of an argument.
static bool isOfAllBatches(mlir::func::FuncOp function, mlir::tensor::DimOp op,
                           ArrayRef<SmallBitVector> dims) {
  std::optional<unsigned> argument = findArgumentNumber(function, op.getSource());
  std::optional<int64_t> dim = op.getConstantIndex();
  return argument && dim && *dim >= 0 && *dim < int64_t(dims[*argument].size()) &&
         !dims[*argument].test(*dim);
}

SmallVector<BatchDim> findBatches(mlir::func::FuncOp function, const FunctionExtents &extents) {
  if (extents.attentions.empty())
    return {};
  unsigned group = extents.attentions.front()[size_t(Letter::B)];
  for (const auto &letters : extents.attentions)
    for (auto [letter, other] : enumerate(letters))
      if ((other == group) != (Letter(letter) == Letter::B))
        return {};
  SmallVector<SmallBitVector> dims;
  for (const ExtentDims &value : extents.values) {
    SmallBitVector &isBatch = dims.emplace_back(value.size());
    for (auto [dim, extent] : enumerate(value))
      isBatch[dim] = extent.group == group;
  }
  auto attentions = function.getOps<AttentionOp>();
  for (mlir::Operation &op : function.getBody().front())
    if (auto dim = dyn_cast<mlir::tensor::DimOp>(op)) {
      if (!isOfAllBatches(function, dim, dims))
        return {};
    } else if (!isa<AttentionOp, PagedOp, mlir::tensor::CastOp, AssumeOp, mlir::func::ReturnOp,
                    mlir::arith::ConstantOp>(op))
      return {};
  for (AttentionOp op : attentions)
    if (!op.getOrigin().empty() || !readsOwn(op, /*position=*/0) ||
        !addBatchReads(function, op, dims))
      return {};
  for (AttentionOp op : attentions)
    if (!readsAreOfBatch(function, op, dims))
      return {};
  if (any_of(dims, [](const SmallBitVector &value) { return value.count() > 1; }))
    return {};
  SmallVector<BatchDim> batches;
  for (auto [value, isBatch] : enumerate(dims))
    if (isBatch.any())
      batches.push_back(
          {static_cast<unsigned>(value), static_cast<unsigned>(isBatch.find_first())});
  return batches;
}

} // namespace attn
