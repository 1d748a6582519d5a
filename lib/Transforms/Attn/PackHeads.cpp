//===- PackHeads.cpp - attn-pack-heads -----------------------------------------------------===//
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
// A call decides: a group may have more heads than slots, and many rows fill tiles without it. So
// the function gets a copy, for calls with few rows and groups that fit.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "lib/Transforms/Attn/Ways.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {
#define GEN_PASS_DEF_PACKHEADSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// The most packed rows: two tiles of one consumer, the second of which finds keys and values in
/// the cache.
static constexpr int64_t kMostRows = 128;

/// The attention of a function that is nothing else, or null: query and keys are arguments, the
/// former read once, and results are returned. A sink would be one for each row.
static AttentionOp findAttention(func::FuncOp function) {
  auto attentions = llvm::to_vector(function.getOps<AttentionOp>());
  if (attentions.size() != 1 || attentions[0].getSink() || attentions[0].getVariantsAttr())
    return {};
  AttentionOp op = attentions[0];
  auto query = dyn_cast<BlockArgument>(op.getQuery()), key = dyn_cast<BlockArgument>(op.getKey());
  auto isReturned = [](Value result) {
    return result.hasOneUse() && isa<func::ReturnOp>(*result.user_begin());
  };
  bool isAlone = query && key && query != key && query != op.getValue() &&
                 llvm::all_of(op->getResults(), isReturned) &&
                 llvm::all_of(query.getUsers(), [&](Operation *user) {
                   return user == op || isa<tensor::DimOp>(user);
                 });
  return isAlone ? op : AttentionOp();
}

/// The calls that the copy is for: few rows, groups of at most so many heads.
static ArrayAttr getCalls(AttentionOp op, int64_t slots) {
  MLIRContext *context = op.getContext();
  int64_t query = cast<BlockArgument>(op.getQuery()).getArgNumber(),
          key = cast<BlockArgument>(op.getKey()).getArgNumber();
  auto keyHeads = plan::ExtentAttr::get(context, key, /*dim=*/1, /*divisor=*/1,
                                        /*multiplier=*/1, /*unit=*/1);
  return ArrayAttr::get(
      context, {plan::RangeAttr::get(context, query, /*dim=*/2, /*least=*/0, kMostRows / slots,
                                     plan::ExtentAttr(), plan::PartsAttr()),
                plan::RangeAttr::get(context, query, /*dim=*/1, /*least=*/0, slots, keyHeads,
                                     plan::PartsAttr())});
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

static void packHeads(AttentionOp op, int64_t slots) {
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

namespace {
struct PackHeadsPass
    : RoomPass<attn::impl::PackHeadsPassBase<PackHeadsPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;

  LogicalResult pack(func::FuncOp function, SymbolTable &symbols) {
    AttentionOp op = findAttention(function);
    auto written = op ? op->getAttrOfType<IntegerAttr>(kPackAttrName) : IntegerAttr();
    int64_t count = written ? written.getInt() : slots.getValue();
    if (!op || !count)
      return success();
    func::FuncOp way = addWay(function, "_packed", getCalls(op, count), symbols);
    AttentionOp packed = way ? findAttention(way) : AttentionOp();
    if (packed)
      packed->removeAttr(kPackAttrName);
    // The schedule that is written at the op is the packed one's.
    if (packed && packed != op) {
      op->removeAttr(kScheduleAttrName);
      op->removeAttr(kPackAttrName);
    }
    if (packed)
      packHeads(packed, count);
    return success();
  }

  LogicalResult transform() override {
    if (slots != 0 && (slots < 2 || slots > 64 || !llvm::isPowerOf2_64(slots)))
      return getOperation().emitError("expected slots of 0, 2, 4, 8, 16, 32 or 64, got ")
             << slots.getValue();
    SymbolTable symbols(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!function.isExternal() && failed(pack(function, symbols)))
        return failure();
    return success();
  }
};
} // namespace
