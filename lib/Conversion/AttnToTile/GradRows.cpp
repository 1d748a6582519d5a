//===- GradRows.cpp - gradients a row at a time, on tiles -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The rows of a slice from memory, as f32.
static Value loadWide(TileBuilder &b, const ArgumentSlice &slice, ArrayRef<int64_t> shape) {
  Type element = cast<MemRefType>(slice.memref.getType()).getElementType();
  Value tile = b.load(slice, shape);
  if (element.isF32())
    return tile;
  return arith::ExtFOp::create(b, RankedTensorType::get(shape, b.getF32Type()), tile);
}

/// `negLse2` where it is small, and larger by what rounding may take where it is not.
static Value emitRoundedUp(TileBuilder &b, Value negLse2) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(negLse2.getType()).getShape();
  Value size = math::AbsFOp::create(b, negLse2);
  Value isLarge =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, size, b.constant(kLargeLse2, shape));
  // An infinite one stays that.
  Value finite =
      arith::MinimumFOp::create(b, size, b.constant(std::numeric_limits<float>::max(), shape));
  Value more = math::FmaOp::create(b, finite, b.constant(kLse2Rounding, shape), negLse2);
  return arith::SelectOp::create(b, isLarge, more, negLse2);
}

/// After the end of a sequence are rows of the next one: numbers with which they add nothing.
static void dropOtherRows(TileBuilder &b, Value count, MutableArrayRef<Value> numbers) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(numbers.front().getType()).getShape();
  auto positions = RankedTensorType::get(shape, b.getIndexType());
  Value row = tile::CoordOp::create(b, positions, 0, arith::ConstantIndexOp::create(b, 0));
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, row, b.splat(count, shape));
  for (auto [i, number] : llvm::enumerate(numbers))
    number = arith::SelectOp::create(b, exists, number, b.constant(i == 0 ? kLowest : 0.0, shape));
}

LogicalResult attn::convertGradRows(BlockConverter &block, GradRowsOp op) {
  TileBuilder &b = block.builder;
  if (!isa<scf::ForallOp>(op->getParentOp()))
    return op.emitOpError("expected it in the grid itself, got it in '")
           << op->getParentOp()->getName() << "'";
  const ArgumentSlice *output = block.findSlice(op.getOutput()),
                      *gradient = block.findSlice(op.getDOutput()),
                      *lse = block.findSlice(op.getLse()),
                      *low = op.getLseLow() ? block.findSlice(op.getLseLow()) : nullptr,
                      *lseGradient = op.getDLse() ? block.findSlice(op.getDLse()) : nullptr;
  if (!output || !gradient || !lse || (op.getLseLow() && !low) || (op.getDLse() && !lseGradient))
    return op.emitOpError("expected operands that are slices of the kernel's arguments");
  auto type = cast<ShapedType>(op.getOutput().getType());
  if (type.isDynamicDim(1))
    return op.emitOpError("expected a static Dv, got ") << type;
  int64_t columns = type.getDimSize(1);
  int64_t rowShape[] = {block.rows}, shape[] = {block.rows, columns};
  auto row = RankedTensorType::get(rowShape, b.getF32Type());

  // Nothing waits for these stores; after the loads they would take the registers of the loads.
  bool isOfSequences = getLie(*output) == Lie::InSequences;
  for (auto [sum, running] : block.zeroed)
    startQuerySum(b, sum, running, gradient->position, block.rows,
                  isOfSequences ? output->sizes.front() : Value());
  Value product =
      arith::MulFOp::create(b, loadWide(b, *gradient, shape), loadWide(b, *output, shape));
  Value delta = tile::ReduceOp::create(b, row, tile::Combiner::Add, product, /*init=*/Value());
  if (lseGradient)
    delta = arith::SubFOp::create(b, delta, b.load(*lseGradient, rowShape));
  Value logSum = b.load(*lse, rowShape);
  Value scaled = arith::MulFOp::create(b, logSum, b.constant(-llvm::numbers::log2e, rowShape));
  if (op->hasAttr(kRoundsUpAttrName))
    scaled = emitRoundedUp(b, scaled);
  if (low)
    scaled = arith::NegFOp::create(b, toBase2(b, logSum));
  Value lowest = b.constant(kLowest, rowShape);
  Value negLse2 = arith::SelectOp::create(b, b.isEqual(logSum, kLowest), lowest, scaled);
  SmallVector<Value> results = {negLse2, delta};
  if (low)
    results.push_back(arith::NegFOp::create(b, b.load(*low, rowShape)));
  if (isOfSequences)
    dropOtherRows(b, output->sizes.front(), results);
  block.mapping.map(op->getResults(), ValueRange(results));
  return success();
}

LogicalResult attn::convertGradEnd(BlockConverter &block, GradEndOp op) {
  TileBuilder &b = block.builder;
  Value sum = block.lookupInRegisters(op, op.getAcc());
  Value scale = op.getScale() ? block.lookup(op, op.getScale()) : Value();
  if (!sum || (op.getScale() && !scale))
    return failure();
  if (scale)
    sum = arith::MulFOp::create(b, sum, b.splat(scale, cast<ShapedType>(sum.getType()).getShape()));
  Type element = cast<ShapedType>(op.getOutput().getType()).getElementType();
  block.mapping.map(op->getResult(0), b.narrow(sum, element));
  return success();
}
