//===- DeriveScore.cpp - attn-derive-score ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A score region is a straight line of scalars, so its adjoint is one walk backwards with a map
// from values to adjoints: no tape, no control flow.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Adjoints.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn {
#define GEN_PASS_DEF_DERIVESCOREPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

/// A tensor seen through casts, which forget extents only.
static Value skipCasts(Value tensor) {
  while (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    tensor = cast.getSource();
  return tensor;
}

namespace {
/// Writes the grad region of one op.
class Deriver {
public:
  Deriver(AttentionGradOp op) : op(op), builder(op.getContext()) {}

  LogicalResult run();

private:
  bool cloneFromWrt(Value value, IRMapping &mapping);
  void cloneScore();
  void findMoving();
  LogicalResult checkFactor();
  LogicalResult emit(Operation *scalar);
  void contribute(tensor::ExtractOp read, Value adjoint);
  void add(Value value, Value adjoint);
  Value getAdjoint(Location loc, Value value);
  void eraseDead();
  /// The tensor of `wrt` that is read, or null.
  Value findWrt(tensor::ExtractOp read);
  void remarkUnread();

  AttentionGradOp op;
  OpBuilder builder;
  Block *block = nullptr;
  /// The ops of the score, computed again.
  SmallVector<Operation *> scalars;
  Value result, factor;
  /// What the score S or a tensor in `wrt` moves.
  DenseSet<Value> moving;
  DenseMap<Value, Value> adjoints;
  DenseSet<Value> contributed;
};
} // namespace

/// Clones what computes `value` in front of the op from a tensor in `wrt`: a read that stands
/// there, where CSE finds a twin of one in the region, is one of the score's too.
bool Deriver::cloneFromWrt(Value value, IRMapping &mapping) {
  if (mapping.contains(value))
    return mapping.lookup(value).getParentBlock() == block;
  Operation *scalar = value.getDefiningOp();
  bool isInFront = scalar && !op->isAncestor(scalar);
  auto read = isInFront ? dyn_cast<tensor::ExtractOp>(scalar) : tensor::ExtractOp();
  bool isCloned = read && findWrt(read);
  if (isInFront && isa<arith::ArithDialect, math::MathDialect>(scalar->getDialect()))
    for (Value operand : scalar->getOperands())
      isCloned |= cloneFromWrt(operand, mapping);
  // What is not cloned stands for itself from now on.
  if (isCloned)
    scalars.push_back(builder.clone(*scalar, mapping));
  else
    mapping.map(value, value);
  return isCloned;
}

void Deriver::cloneScore() {
  Location loc = op.getLoc();
  Type index = builder.getIndexType(), f32 = builder.getF32Type();
  SmallVector<Location> locs(6, loc);
  block = builder.createBlock(&op.getGrad(), {}, {f32, f32, index, index, index, index}, locs);
  IRMapping mapping;
  Block &score = op.getScore().front();
  mapping.map(score.getArgument(0), block->getArgument(0));
  mapping.map(score.getArguments().drop_front(), block->getArguments().drop_front(2));
  for (Operation &scalar : score)
    for (Value operand : scalar.getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        cloneFromWrt(operand, mapping);
  for (Operation &scalar : score.without_terminator())
    scalars.push_back(builder.clone(scalar, mapping));
  auto yield = cast<YieldOp>(score.getTerminator());
  result = mapping.lookupOrDefault(yield.getResult());
  if (yield.getFactor())
    factor = mapping.lookupOrDefault(yield.getFactor());
}

Value Deriver::findWrt(tensor::ExtractOp read) {
  for (Value tensor : op.getWrt())
    if (skipCasts(tensor) == skipCasts(read.getTensor()))
      return tensor;
  return {};
}

/// Integers move too where their bits are those of a float that does; it takes a cast back to reach
/// the result, and casts of bits have no adjoint.
void Deriver::findMoving() {
  moving.insert(block->getArgument(0));
  for (Operation *scalar : scalars) {
    auto read = dyn_cast<tensor::ExtractOp>(scalar);
    bool isMoving =
        read ? bool(findWrt(read))
             : !stopsDerivatives(scalar) && llvm::any_of(scalar->getOperands(), [&](Value operand) {
                 return moving.contains(operand);
               });
    if (isMoving)
      moving.insert_range(scalar->getResults());
  }
}

/// g13: nothing is derived through the factor of a weight.
LogicalResult Deriver::checkFactor() {
  if (!factor || !moving.contains(factor))
    return success();
  Operation *yield = op.getScore().front().getTerminator();
  InFlightDiagnostic diag =
      yield->emitOpError("expected a factor that moves neither with the score nor with a tensor in "
                         "wrt, got one that does");
  diag.attachNote(op.getLoc()) << "tensors that the factor reads have no gradient: leave them out "
                                  "of wrt";
  return diag;
}

void Deriver::add(Value value, Value adjoint) {
  if (!adjoint || !moving.contains(value))
    return;
  Location loc = adjoint.getLoc();
  if (isa<FloatType>(value.getType()))
    adjoint = convertToAdjoint(builder, loc, adjoint, value.getType());
  Value &sum = adjoints[value];
  sum = sum ? arith::AddFOp::create(builder, loc, sum, adjoint).getResult() : adjoint;
}

/// Zero for a result that nothing reads.
Value Deriver::getAdjoint(Location loc, Value value) {
  if (Value known = adjoints.lookup(value))
    return known;
  FloatType type = getAdjointType(value.getType());
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, 0.0));
}

void Deriver::contribute(tensor::ExtractOp read, Value adjoint) {
  Value tensor = findWrt(read);
  ContributeOp::create(builder, read.getLoc(), adjoint, tensor, read.getIndices());
  contributed.insert(tensor);
}

LogicalResult Deriver::emit(Operation *scalar) {
  if (llvm::none_of(scalar->getResults(), [&](Value value) { return adjoints.contains(value); }))
    return success();
  if (auto read = dyn_cast<tensor::ExtractOp>(scalar)) {
    contribute(read, adjoints.lookup(read));
    return success();
  }
  auto given = llvm::map_to_vector(
      scalar->getResults(), [&](Value value) { return getAdjoint(scalar->getLoc(), value); });
  std::optional<SmallVector<Value>> gains = emitAdjoints(builder, scalar, given);
  if (!gains) {
    InFlightDiagnostic diag =
        scalar->emitOpError("expected an op with a derivative between the score and the result, "
                            "got one without");
    diag.attachNote(op.getLoc()) << "a grad region written by hand is taken instead";
    return diag;
  }
  for (auto [operand, gain] : llvm::zip_equal(scalar->getOperands(), *gains))
    add(operand, gain);
  return success();
}

void Deriver::eraseDead() {
  for (Operation &inner : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&inner))
      inner.erase();
}

void Deriver::remarkUnread() {
  for (auto [i, tensor] : llvm::enumerate(op.getWrt()))
    if (!contributed.contains(tensor))
      remark::missed(op.getLoc(), remark::RemarkOpts::name("derive-score").category("attn"))
          << ("no score moves with tensor " + Twine(i) + " of wrt: its gradient is zeros").str();
}

LogicalResult Deriver::run() {
  OpBuilder::InsertionGuard guard(builder);
  cloneScore();
  findMoving();
  if (failed(checkFactor()))
    return failure();
  add(result, block->getArgument(1));
  for (Operation *scalar : llvm::reverse(scalars))
    if (failed(emit(scalar)))
      return failure();
  YieldOp::create(builder, op.getLoc(), getAdjoint(op.getLoc(), block->getArgument(0)),
                  /*factor=*/Value());
  eraseDead();
  remarkUnread();
  return success();
}

namespace {
struct DeriveScorePass
    : RoomPass<attn::impl::DeriveScorePassBase<DeriveScorePass>, Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    WalkResult walk = getOperation()->walk([](AttentionGradOp op) {
      if (op.getVariantsAttr()) {
        op.emitOpError("expected score and mask regions, got variants (attn-expand-variants turns "
                       "them into regions)");
        return WalkResult::interrupt();
      }
      if (op.getScore().empty() || !op.getGrad().empty())
        return WalkResult::advance();
      return failed(Deriver(op).run()) ? WalkResult::interrupt() : WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }
};
} // namespace
