//===- CapturedSteps.cpp - the gradient of a captured tensor as steps -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// An element is a sum over all rows and keys that read it, in one order for every number of
// threads. So a block owns a part of the gradient: what is read at one batch, one head or one tile
// of rows, where every read has that coordinate itself as an index. Over other coordinates it
// loops.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/GradSteps.h"
#include "lib/Transforms/Attn/OneHead.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/TileStep.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <array>

using namespace mlir;
using namespace attn;

using OFRs = SmallVector<OpFoldResult>;

namespace {
/// For each of b, h and m the dimension of the tensor that it alone is the index of.
using Owned = std::array<std::optional<unsigned>, 3>;

class CapturedSteps {
public:
  CapturedSteps(RewriterBase &rewriter, AttentionGradQueryOp op, int64_t blockRows)
      : rewriter(rewriter), op(op), loc(op.getLoc()), blockRows(blockRows) {}
  void run();

private:
  void findOwned();
  scf::ForallOp emitGrid(Value zeros);
  /// Loops over the coordinates from `next` on that the block does not own, then the step.
  Value emitLoops(unsigned next, Value sum);
  Value emitStep(Value sum);
  /// (count, columns) of one batch and head, or (count).
  Value slice(Value source, Value head, OpFoldResult first, OpFoldResult count);

  RewriterBase &rewriter;
  AttentionGradQueryOp op;
  Location loc;
  int64_t blockRows;
  Owned owned;
  /// B, H and M, and the batch, head and first row of the step, of this op's.
  OFRs extents;
  SmallVector<Value> at;
  /// The part of the block in the gradient.
  OFRs offsets, sizes;
};
} // namespace

void CapturedSteps::findOwned() {
  SmallVector<ContributeOp> contributions(op.getGrad().getOps<ContributeOp>());
  auto rank = cast<RankedTensorType>(op.getWrt()[0].getType()).getRank();
  // (score, gradient, b, h, m, n)
  for (unsigned coordinate = 0; coordinate < owned.size(); ++coordinate)
    for (int64_t dim = 0; dim < rank && !owned[coordinate]; ++dim)
      if (llvm::all_of(contributions, [&](ContributeOp contribution) {
            return contribution.getIndices()[dim] == op.getGrad().getArgument(2 + coordinate);
          }))
        owned[coordinate] = dim;
}

/// One over (B, H, M tiles), of which only those count that are owned.
scf::ForallOp CapturedSteps::emitGrid(Value zeros) {
  OFRs first(3, rewriter.getIndexAttr(0)), counts, steps;
  for (auto [coordinate, dim] : llvm::enumerate(owned)) {
    counts.push_back(dim ? extents[coordinate] : OpFoldResult(rewriter.getIndexAttr(1)));
    steps.push_back(rewriter.getIndexAttr(dim && coordinate == 2 ? blockRows : 1));
  }
  SmallVector<Attribute> mapping;
  for (gpu::MappingId id : {gpu::MappingId::DimZ, gpu::MappingId::DimY, gpu::MappingId::DimX})
    mapping.push_back(gpu::GPUBlockMappingAttr::get(rewriter.getContext(), id));
  return scf::ForallOp::create(rewriter, loc, first, counts, steps, ValueRange(zeros),
                               rewriter.getArrayAttr(mapping));
}

Value CapturedSteps::slice(Value source, Value head, OpFoldResult first, OpFoldResult count) {
  auto type = cast<RankedTensorType>(source.getType());
  // The type of the slice and its size say the same.
  if (std::optional<int64_t> constant = getConstantIntValue(count))
    count = rewriter.getIndexAttr(*constant);
  OFRs offsets = {at[0], head, first},
       sizes = {rewriter.getIndexAttr(1), rewriter.getIndexAttr(1), count},
       strides(type.getRank(), rewriter.getIndexAttr(1));
  SmallVector<int64_t> shape = {getConstantIntValue(count).value_or(ShapedType::kDynamic)};
  if (type.getRank() == 4) {
    offsets.push_back(rewriter.getIndexAttr(0));
    sizes.push_back(rewriter.getIndexAttr(type.getDimSize(3)));
    shape.push_back(type.getDimSize(3));
  }
  return tensor::ExtractSliceOp::create(rewriter, loc,
                                        RankedTensorType::get(shape, type.getElementType()), source,
                                        offsets, sizes, strides);
}

Value CapturedSteps::emitStep(Value sum) {
  AffineExpr head, heads, keyHeads;
  bindSymbols(rewriter.getContext(), head, heads, keyHeads);
  Value keyHead = getValueOrCreateConstantIndexOp(
      rewriter, loc,
      affine::makeComposedFoldedAffineApply(
          rewriter, loc, head.floorDiv(heads.floorDiv(keyHeads)),
          {at[1], extents[1], tensor::getMixedSize(rewriter, loc, op.getKey(), 1)}));
  OpFoldResult rows = emitTileSize(rewriter, loc, blockRows, at[2], extents[2]);
  OpFoldResult keys = tensor::getMixedSize(rewriter, loc, op.getKey(), 2);
  auto ofRows = [&](Value source) { return slice(source, at[1], at[2], rows); };
  auto ofKeys = [&](Value source) {
    return slice(source, keyHead, rewriter.getIndexAttr(0), keys);
  };
  SmallVector<Value> origin;
  for (auto [position, local] : llvm::zip(op.getMixedOrigin(), at))
    origin.push_back(rewriter.createOrFold<arith::AddIOp>(
        loc, getValueOrCreateConstantIndexOp(rewriter, loc, position), local));
  origin.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, op.getMixedOrigin()[3]));
  Value query = ofRows(op.getQuery()), key = ofKeys(op.getKey()), value = ofKeys(op.getValue());
  Value gradient = ofRows(op.getDOutput()), negLse2 = ofRows(op.getNegLse2()),
        delta = ofRows(op.getDelta()),
        negLow2 = op.getNegLow2() ? ofRows(op.getNegLow2()) : Value();
  auto step = GradCapturedStepOp::create(rewriter, loc, TypeRange(sum.getType()), query, key, value,
                                         gradient, negLse2, delta, negLow2, emitScale(rewriter, op),
                                         origin, sum);
  takeRegions(rewriter, op, step, step.getScore(), op.getNegLow2());
  // Indices become those within the part.
  OpBuilder::InsertionGuard guard(rewriter);
  for (auto contribution : step.getGrad().getOps<ContributeOp>()) {
    rewriter.setInsertionPoint(contribution);
    for (auto [index, offset] : llvm::zip_equal(contribution.getIndicesMutable(), offsets))
      if (auto first = dyn_cast<Value>(offset))
        index.set(arith::SubIOp::create(rewriter, loc, index.get(), first));
  }
  return step->getResult(0);
}

Value CapturedSteps::emitLoops(unsigned next, Value sum) {
  while (next < owned.size() && owned[next])
    ++next;
  if (next == owned.size())
    return emitStep(sum);
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  Value step = arith::ConstantIndexOp::create(rewriter, loc, next == 2 ? blockRows : 1);
  Value end = getValueOrCreateConstantIndexOp(rewriter, loc, extents[next]);
  auto loop = scf::ForOp::create(rewriter, loc, zero, end, step, ValueRange(sum));
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(loop.getBody());
  at[next] = loop.getInductionVar();
  scf::YieldOp::create(rewriter, loc, emitLoops(next + 1, loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

void CapturedSteps::run() {
  rewriter.setInsertionPoint(op);
  Value tensor = op.getWrt()[0], gradient = op.getDWrt()[0];
  sizes = tensor::getMixedSizes(rewriter, loc, tensor);
  Value result = emitFill(rewriter, loc, sizes, 0);
  // Without elements there is nothing to add to, and no slice.
  bool isEmpty = llvm::is_contained(cast<RankedTensorType>(tensor.getType()).getShape(), 0);
  if (!isEmpty && !op.getGrad().getOps<ContributeOp>().empty()) {
    findOwned();
    extents = tensor::getMixedSizes(rewriter, loc, op.getQuery());
    extents.pop_back();
    OFRs position = op.getMixedOrigin();
    scf::ForallOp grid = emitGrid(result);
    result = grid.getResult(0);
    rewriter.setInsertionPointToStart(grid.getBody());
    at = grid.getInductionVars();
    offsets.assign(sizes.size(), rewriter.getIndexAttr(0));
    for (auto [coordinate, dim] : llvm::enumerate(owned)) {
      if (!dim)
        continue;
      offsets[*dim] = rewriter.createOrFold<arith::AddIOp>(
          loc, getValueOrCreateConstantIndexOp(rewriter, loc, position[coordinate]),
          at[coordinate]);
      sizes[*dim] = coordinate < 2 ? OpFoldResult(rewriter.getIndexAttr(1))
                                   : emitTileSize(rewriter, loc, blockRows, at[2], extents[2]);
    }
    OFRs strides(sizes.size(), rewriter.getIndexAttr(1));
    Value part = tensor::ExtractSliceOp::create(rewriter, loc, grid.getRegionIterArgs()[0], offsets,
                                                sizes, strides);
    Value sum = emitLoops(0, part);
    rewriter.setInsertionPointToStart(grid.getTerminator().getBody());
    tensor::ParallelInsertSliceOp::create(rewriter, loc, sum, grid.getRegionIterArgs()[0], offsets,
                                          sizes, strides);
    rewriter.setInsertionPointAfter(grid);
  }
  if (result.getType() != gradient.getType())
    result = tensor::CastOp::create(rewriter, loc, gradient.getType(), result);
  rewriter.replaceOp(op, result);
}

LogicalResult attn::makeCapturedSteps(RewriterBase &rewriter, AttentionGradQueryOp op) {
  FailureOr<ScheduleAttr> schedule = getSchedule(op);
  if (failed(schedule))
    return failure();
  // attn-split-grad makes a pass for each.
  if (op.getDWrt().size() != 1 || op.getDQuery())
    return op.emitOpError("expected one gradient of a captured tensor and no other, got ")
           << op->getNumResults();
  CapturedSteps(rewriter, op, (*schedule)->blockM).run();
  return success();
}
