//===- FoldScales.cpp - attn-fold-scales ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A score is a sum of products of a query's elements and a key's, and one row of either has one
// scale. So scales of rows multiply scores, and scales of values multiply weights:
//
//   score(s, b, h, m, n)  ->  score(s * q_scale[b, h / g, m / block] * k_scale[...], b, h, m, n),
//                             v_scale[b, h / g, n / block] * factor
//
// What is read at positions of one head alone is one number for a block of threads.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {
#define GEN_PASS_DEF_FOLDSCALESPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

namespace {
/// A scaled operand, and which argument of the region its rows are.
struct Operand {
  ScaledOp view;
  unsigned row;
  /// The query heads that read one scale; null: all.
  Value group;
};

class Folder {
public:
  explicit Folder(AttentionOp op) : op(op), b(op.getLoc(), op) {}

  LogicalResult run();

private:
  Operand makeOperand(ScaledOp view, bool isQuery);
  /// A position in a region, from where the op's own elements begin.
  Value emitPosition(unsigned argument);
  Value emitScale(Operand &operand);
  Block &getScore();

  AttentionOp op;
  ImplicitLocOpBuilder b;
};
} // namespace

/// The arguments of a score region.
static constexpr unsigned kScore = 0, kBatch = 1, kHead = 2, kRow = 3, kKey = 4;

/// What is the same in all turns stands in front of the op.
Operand Folder::makeOperand(ScaledOp view, bool isQuery) {
  Operand operand{view, isQuery ? kRow : kKey, Value()};
  auto type = cast<RankedTensorType>(view.getScale().getType());
  if (type.getRank() == 0 || type.getDimSize(1) == 1)
    return operand;
  Value heads = tensor::DimOp::create(b, op.getQuery(), 1),
        scales = tensor::DimOp::create(b, view.getScale(), 1);
  Value one = arith::ConstantIndexOp::create(b, 1);
  // No extent of a call is 0, but a program may be run on any.
  Value group = arith::DivUIOp::create(b, heads, arith::MaxSIOp::create(b, scales, one));
  operand.group = arith::MaxSIOp::create(b, group, one);
  return operand;
}

Block &Folder::getScore() {
  Region &score = op.getScore();
  if (!score.empty())
    return score.front();
  Type f32 = b.getF32Type(), index = b.getIndexType();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(&score, score.end(), {f32, index, index, index, index},
                               SmallVector<Location>(5, op.getLoc()));
  YieldOp::create(b, block->getArgument(kScore), Value());
  return *block;
}

Value Folder::emitPosition(unsigned argument) {
  Value position = op.getScore().front().getArgument(argument);
  if (op.getOrigin().empty())
    return position;
  return arith::SubIOp::create(b, position, op.getOrigin()[argument - kBatch]);
}

Value Folder::emitScale(Operand &operand) {
  auto type = cast<RankedTensorType>(operand.view.getScale().getType());
  SmallVector<Value> at;
  if (type.getRank() > 0) {
    at.push_back(type.getDimSize(0) == 1 ? arith::ConstantIndexOp::create(b, 0).getResult()
                                         : emitPosition(kBatch));
    at.push_back(operand.group
                     ? arith::DivUIOp::create(b, emitPosition(kHead), operand.group).getResult()
                     : arith::ConstantIndexOp::create(b, 0).getResult());
  }
  if (std::optional<uint64_t> block = operand.view.getBlock())
    at.push_back(arith::DivUIOp::create(b, emitPosition(operand.row),
                                        arith::ConstantIndexOp::create(b, int64_t(*block))));
  return tensor::ExtractOp::create(b, operand.view.getScale(), at);
}

LogicalResult Folder::run() {
  auto query = op.getQuery().getDefiningOp<ScaledOp>(), key = op.getKey().getDefiningOp<ScaledOp>(),
       value = op.getValue().getDefiningOp<ScaledOp>();
  if (!query && !key && !value)
    return success();
  if (!query || !key || !value)
    return op.emitOpError("expected query, key and value that are all scaled, or none, got ")
           << (query ? "a scaled query" : "a query that is not");
  for (ScaledOp other : {key, value})
    if (getElementTypeOrSelf(query.getSource()) != getElementTypeOrSelf(other.getSource()))
      return op.emitOpError("expected scaled elements of one type, got ")
             << query.getSource().getType() << " and " << other.getSource().getType();
  Operand rows = makeOperand(query, /*isQuery=*/true), keys = makeOperand(key, false),
          values = makeOperand(value, false);
  Block &score = getScore();
  auto yield = cast<YieldOp>(score.getTerminator());
  b.setInsertionPointToStart(&score);
  Value scale = arith::MulFOp::create(b, emitScale(rows), emitScale(keys));
  auto scaled = arith::MulFOp::create(b, score.getArgument(kScore), scale);
  score.getArgument(kScore).replaceAllUsesExcept(scaled, scaled);
  b.setInsertionPoint(yield);
  Value factor = emitScale(values);
  if (yield.getFactor())
    factor = arith::MulFOp::create(b, yield.getFactor(), factor);
  YieldOp::create(b, yield.getResult(), factor);
  yield.erase();
  op.getQueryMutable().assign(query.getSource());
  op.getKeyMutable().assign(key.getSource());
  op.getValueMutable().assign(value.getSource());
  return success();
}

/// What still reads a view asks for its sizes.
static LogicalResult erase(ScaledOp view) {
  for (Operation *user : llvm::make_early_inc_range(view->getUsers())) {
    if (auto dim = dyn_cast<tensor::DimOp>(user)) {
      dim.getSourceMutable().assign(view.getSource());
      continue;
    }
    if (isa<ScoredOpInterface>(user))
      return user->emitOpError("has no scaled operands: gradients are of elements of 16 bits or "
                               "more, got ")
             << view.getSource().getType();
    return view.emitOpError("expected attention and sizes as its users, got '")
           << user->getName() << "'";
  }
  view.erase();
  return success();
}

namespace {
struct FoldScalesPass
    : RoomPass<attn::impl::FoldScalesPassBase<FoldScalesPass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    IRRewriter rewriter(&getContext());
    WalkResult folded = getOperation()->walk([&](AttentionOp op) {
      // Scales are read at the op's own positions, whatever regions mean.
      if (findPositions(op) && op.getQuery().getDefiningOp<ScaledOp>())
        expandVariants(rewriter, op);
      return WalkResult(Folder(op).run());
    });
    if (folded.wasInterrupted())
      return failure();
    SmallVector<ScaledOp> views;
    getOperation()->walk([&](ScaledOp view) { views.push_back(view); });
    return success(llvm::all_of(views, [](ScaledOp view) { return succeeded(erase(view)); }));
  }
};
} // namespace
