//===- ViewsToLinalg.cpp - the definitions of views ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Views as whole tensors, in their own elements. Undefined elements (s19)
// are NaN, so that each leak shows.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Conversion/AttnToLinalg/Reference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;
using OFRs = SmallVector<OpFoldResult>;

template <typename View> static OFRs emitSizes(Reference &b, View view) {
  OFRs sizes;
  for (int64_t dim = 0; dim < view.getType().getRank(); ++dim)
    sizes.push_back(emitSize(b, b.getLoc(), view, dim));
  return sizes;
}

static Value emitUndefined(Reference &b, Type tensor) {
  auto element = cast<FloatType>(getElementTypeOrSelf(tensor));
  return arith::ConstantOp::create(
      b, b.getFloatAttr(element, APFloat::getNaN(element.getFloatSemantics())));
}

/// s18.
static Value definePaged(Reference &b, PagedOp op) {
  constexpr int64_t B = 0, H = 1, N = 2, D = 3;
  auto index = [](Reference &r, int64_t value) -> Value {
    return arith::ConstantIndexOp::create(r, value);
  };
  Value pages = tensor::DimOp::create(b, op.getPool(), 0);
  return b.loop(
      {}, b.filled(emitSizes(b, op), emitUndefined(b, op.getType())), {{B, H, N, D}},
      SmallVector<It>(4, It::parallel), [&](Reference &r, ValueRange args) -> Value {
        Value size = index(r, op.getPageSize());
        Value entry = tensor::ExtractOp::create(
            r, op.getTable(), ValueRange{r.index(B), arith::DivUIOp::create(r, r.index(N), size)});
        Value page = arith::IndexCastOp::create(r, r.getIndexType(), entry);
        Value isPage = arith::CmpIOp::create(r, arith::CmpIPredicate::ult, page, pages);
        Value element = tensor::ExtractOp::create(
            r, op.getPool(),
            ValueRange{r.select(isPage, page, index(r, 0)),
                       arith::RemUIOp::create(r, r.index(N), size), r.index(H), r.index(D)});
        return r.select(isPage, element, args[0]);
      });
}

/// s20.
static Value defineRagged(Reference &b, RaggedOp op) {
  constexpr int64_t B = 0, H = 1, M = 2, D = 3;
  int64_t rank = op.getType().getRank();
  return b.loop({}, b.filled(emitSizes(b, op), emitUndefined(b, op.getType())),
                {llvm::to_vector(llvm::seq<int64_t>(rank))}, SmallVector<It>(rank, It::parallel),
                [&](Reference &r, ValueRange args) -> Value {
                  Sequence sequence = emitSequence(r, r.getLoc(), op, r.index(B));
                  Value isRow = arith::CmpIOp::create(r, arith::CmpIPredicate::slt, r.index(M),
                                                      sequence.rows);
                  Value row = arith::AddIOp::create(r, sequence.begin, r.index(M));
                  Value first = arith::ConstantIndexOp::create(r, 0);
                  SmallVector<Value> at = {r.select(isRow, row, first), r.index(H)};
                  if (rank > D)
                    at.push_back(r.index(D));
                  Value element = tensor::ExtractOp::create(r, op.getRows(), at);
                  return r.select(isRow, element, args[0]);
                });
}

/// s21: sequence by sequence.
static Value definePlace(Reference &b, PlaceOp op) {
  Location loc = b.getLoc();
  OFRs source = tensor::getMixedSizes(b, loc, op.getSource()),
       dest = tensor::getMixedSizes(b, loc, op.getDest());
  int64_t rank = dest.size();
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  auto loop = scf::ForOp::create(b, arith::ConstantIndexOp::create(b, 0),
                                 getValueOrCreateConstantIndexOp(b, loc, source[0]),
                                 arith::ConstantIndexOp::create(b, 1), ValueRange{op.getDest()});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Value batch = loop.getInductionVar();
  Sequence sequence = emitSequence(b, loc, op.getOffsets(), dest[0], source[2], batch);
  // (H, rows, ...) of the source become (rows, H, ...).
  OFRs from(rank + 1, zero), sizes = source, to(rank, zero);
  from[0] = batch;
  sizes[0] = one;
  sizes[2] = sequence.rows;
  to[0] = sequence.begin;
  auto whole = cast<RankedTensorType>(op.getSource().getType());
  SmallVector<int64_t> shape(whole.getShape().drop_front());
  shape[1] = ShapedType::kDynamic;
  Value rows = tensor::ExtractSliceOp::create(b, whole.clone(shape), op.getSource(), from, sizes,
                                              OFRs(rank + 1, one));
  OFRs placed(sizes.begin() + 1, sizes.end());
  std::swap(placed[0], placed[1]);
  Value empty = tensor::EmptyOp::create(b, placed, whole.getElementType());
  SmallVector<int64_t> read = llvm::to_vector(llvm::seq<int64_t>(rank)), write = read;
  std::swap(read[0], read[1]);
  Value part = b.loop(rows, empty, {read, write}, SmallVector<It>(rank, It::parallel),
                      [](Reference &, ValueRange args) { return args[0]; });
  Value next = tensor::InsertSliceOp::create(b, part, loop.getRegionIterArgs()[0], to, placed,
                                             OFRs(rank, one));
  scf::YieldOp::create(b, next);
  return loop.getResult(0);
}

/// s26.
static Value defineScaled(Reference &b, ScaledOp op) {
  constexpr int64_t B = 0, H = 1, R = 2;
  Location loc = b.getLoc();
  SmallVector<int64_t> all = {0, 1, 2, 3};
  auto scales = cast<RankedTensorType>(op.getScale().getType());
  Value group;
  if (scales.getRank() > 0)
    group = arith::DivUIOp::create(b, tensor::DimOp::create(b, op.getSource(), 1).getResult(),
                                   tensor::DimOp::create(b, op.getScale(), 1).getResult());
  Type element = op.getType().getElementType();
  Value empty = tensor::EmptyOp::create(b, tensor::getMixedSizes(b, loc, op.getSource()), element);
  return b.loop(op.getSource(), empty, {all, all}, SmallVector<It>(4, It::parallel),
                [&](Reference &r, ValueRange args) -> Value {
                  SmallVector<Value> at;
                  if (group)
                    at = {scales.getDimSize(0) == 1
                              ? arith::ConstantIndexOp::create(r, 0).getResult()
                              : r.index(B),
                          arith::DivUIOp::create(r, r.index(H), group)};
                  if (op.getBlock())
                    at.push_back(arith::DivUIOp::create(
                        r, r.index(R), arith::ConstantIndexOp::create(r, *op.getBlock())));
                  Value scale = r.toReal(tensor::ExtractOp::create(r, op.getScale(), at));
                  Value number = arith::MulFOp::create(r, r.toReal(args[0]), scale);
                  return arith::TruncFOp::create(r, element, number);
                });
}

Value attn::defineView(Reference &b, Operation *op) {
  if (auto paged = dyn_cast<PagedOp>(op))
    return definePaged(b, paged);
  if (auto ragged = dyn_cast<RaggedOp>(op))
    return defineRagged(b, ragged);
  if (auto scaled = dyn_cast<ScaledOp>(op))
    return defineScaled(b, scaled);
  return definePlace(b, cast<PlaceOp>(op));
}
