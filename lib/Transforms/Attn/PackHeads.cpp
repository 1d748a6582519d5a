//===- PackHeads.cpp - heads as rows ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Decoding has a few rows a head, and each head of a group would read the same keys again. Here the
// heads of a group become rows of one head: row m * slots + j of key head k is row m of head
// k * group + j. That is another attention, of a view, with regions that find their head and row
// in the row. Later rooms see no difference but the view.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/PackHeads.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

bool attn::canPackHeads(AttentionOp op) {
  if (op.getVariantsAttr() || !isa<func::FuncOp>(op->getParentOp()))
    return false;
  if (op.getSink() && (!isa<BlockArgument>(op.getSink()) || op.getSink().getType().getRank() != 1))
    return false;
  Value query = op.getQuery(), key = op.getKey();
  auto hasMemory = [](Value value) {
    return isa<BlockArgument>(value) || isa<PagedOp, RaggedOp>(value.getDefiningOp());
  };
  auto isReturned = [](Value result) {
    auto place = result.hasOneUse() ? dyn_cast<PlaceOp>(*result.user_begin()) : PlaceOp();
    Value returned = place ? place.getResult() : result;
    return returned.hasOneUse() && isa<func::ReturnOp>(*returned.user_begin());
  };
  return hasMemory(query) && hasMemory(key) && query != key && query != op.getValue() &&
         llvm::all_of(op->getResults(), isReturned) &&
         llvm::all_of(query.getUsers(),
                      [&](Operation *user) { return user == op || isa<tensor::DimOp>(user); });
}

/// Lets a region find head and row, of which `first` is the former's place, in the packed row.
static void unpackPositions(OpBuilder &builder, Region &region, unsigned first, Value group,
                            int64_t slots) {
  if (region.empty())
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&region.front());
  Location loc = region.getLoc();
  Value keyHead = region.getArgument(first), packed = region.getArgument(first + 1);
  if (keyHead.use_empty() && packed.use_empty())
    return;
  SmallVector<OpOperand *> heads, rows;
  for (OpOperand &use : keyHead.getUses())
    heads.push_back(&use);
  for (OpOperand &use : packed.getUses())
    rows.push_back(&use);
  Value count = arith::ConstantIndexOp::create(builder, loc, slots);
  if (!rows.empty()) {
    Value row = arith::DivUIOp::create(builder, loc, packed, count);
    for (OpOperand *use : rows)
      use->set(row);
  }
  if (heads.empty())
    return;
  // A slot without a head reads what the last head does.
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  Value last = arith::SubIOp::create(builder, loc, group, one);
  Value slot = arith::MinUIOp::create(builder, loc,
                                      arith::RemUIOp::create(builder, loc, packed, count), last);
  Value head = arith::AddIOp::create(builder, loc,
                                     arith::MulIOp::create(builder, loc, keyHead, group), slot);
  for (OpOperand *use : heads)
    use->set(head);
}

void attn::packHeads(AttentionOp op, int64_t slots) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Value query = op.getQuery(), key = op.getKey();
  auto pack = [&](Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = cast<RankedTensorType>(key.getType()).getDimSize(1);
    if (!ShapedType::isDynamic(shape[2]))
      shape[2] *= slots;
    return type.clone(shape);
  };
  Value rows = PackHeadsOp::create(builder, loc, pack(query), query, key, slots);
  Value heads = tensor::DimOp::create(builder, loc, query, 1),
        keyHeads = tensor::DimOp::create(builder, loc, key, 1);
  Value group = arith::DivUIOp::create(builder, loc, heads, keyHeads);
  if (Value sink = op.getSink()) {
    ArrayRef<int64_t> packed = cast<RankedTensorType>(rows.getType()).getShape();
    Type type = RankedTensorType::get(packed.slice(1, 2), builder.getF32Type());
    op.getSinkMutable().assign(
        PackSinkOp::create(builder, loc, type, sink, query, key, slots).getResult());
  }
  op.getQueryMutable().assign(rows);
  unpackPositions(builder, op.getScore(), 2, group, slots);
  unpackPositions(builder, op.getMask(), 1, group, slots);
  builder.setInsertionPointAfter(op);
  for (Value result : op->getResults()) {
    Type type = result.getType();
    result.setType(pack(result));
    auto unpack = UnpackHeadsOp::create(builder, loc, type, result, query, slots);
    result.replaceAllUsesExcept(unpack, unpack);
  }
}
