//===- OneHead.cpp - tensors of one batch and one head ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Attn/OneHead.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

using namespace mlir;
using namespace attn;

Value attn::dropFirst(OpBuilder &builder, Location loc, Value value, unsigned count) {
  auto type = cast<RankedTensorType>(value.getType());
  auto reduced = RankedTensorType::get(type.getShape().drop_front(count), type.getElementType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(type.getRank(), builder.getIndexAttr(1));
  if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
      slice && slice.getSourceType().getRank() == type.getRank())
    return tensor::ExtractSliceOp::create(builder, loc, reduced, slice.getSource(),
                                          slice.getMixedOffsets(), slice.getMixedSizes(),
                                          slice.getMixedStrides());
  return tensor::ExtractSliceOp::create(builder, loc, reduced, value, offsets, sizes, strides);
}

Value attn::dropBatchAndHead(OpBuilder &builder, Location loc, Value value) {
  return dropFirst(builder, loc, value, 2);
}

void attn::replaceReduced(RewriterBase &rewriter, Value result, Value reduced) {
  for (OpOperand &use : llvm::make_early_inc_range(result.getUses()))
    if (auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(use.getOwner());
        insert && insert.getSource() == result) {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPoint(insert);
      rewriter.replaceOpWithNewOp<tensor::ParallelInsertSliceOp>(
          insert, reduced, insert.getDest(), insert.getMixedOffsets(), insert.getMixedSizes(),
          insert.getMixedStrides());
    }
  if (result.use_empty())
    return;
  Location loc = reduced.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, reduced);
  sizes.insert(sizes.begin(), 2, rewriter.getIndexAttr(1));
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0)),
      strides(sizes.size(), rewriter.getIndexAttr(1));
  Value empty = tensor::EmptyOp::create(rewriter, loc, sizes,
                                        cast<RankedTensorType>(result.getType()).getElementType());
  Value full =
      tensor::InsertSliceOp::create(rewriter, loc, reduced, empty, offsets, sizes, strides);
  if (full.getType() != result.getType())
    full = tensor::CastOp::create(rewriter, loc, result.getType(), full);
  rewriter.replaceAllUsesWith(result, full);
}

OpFoldResult attn::getRows(OpBuilder &builder, Location loc, Value tensor) {
  if (auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>())
    return slice.getMixedSizes()[getRowsDim(slice)];
  return tensor::getMixedSize(builder, loc, tensor, 0);
}

unsigned attn::getRowsDim(tensor::ExtractSliceOp slice) {
  return slice.getDroppedDims().find_first_unset();
}

Value attn::emitFill(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
                     float constant) {
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  Value scalar = arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(constant));
  return linalg::FillOp::create(builder, loc, scalar, empty).getResult(0);
}
