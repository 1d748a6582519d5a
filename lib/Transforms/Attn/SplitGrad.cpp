//===- SplitGrad.cpp - attn-split-grad --------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/GradSteps.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {
#define GEN_PASS_DEF_SPLITGRADPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;

/// The delta of captured tensors: a score that reads one of them multiplies its error by what may
/// be large. Those that no read moves with have no use for it.
static Value emitDelta(ImplicitLocOpBuilder &b, AttentionGradOp op, RowDeltaOp rows) {
  if (op.getWrt().empty() || op.getGrad().empty() || op.getGrad().getOps<ContributeOp>().empty())
    return rows.getDelta();
  auto pass = AttentionGradDeltaOp::create(b, rows.getDelta().getType(), op.getQuery(), op.getKey(),
                                           op.getValue(), op.getDOutput(), rows.getNegLse2(),
                                           rows.getDelta(), rows.getNegLow2(), op.getDLse(),
                                           op.getScale(), op.getSink(), op.getOrigin());
  pass->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  IRMapping mapping;
  op.getScore().cloneInto(&pass.getScore(), mapping);
  op.getMask().cloneInto(&pass.getMask(), mapping);
  return pass;
}

/// The gradient of the queries, or that of the captured tensor `wrt`.
static AttentionGradQueryOp emitQuery(ImplicitLocOpBuilder &b, AttentionGradOp op, RowDeltaOp rows,
                                      Value delta, Value wrt = {}, Value wrtGradient = {}) {
  SmallVector<Value> only;
  SmallVector<Type> type;
  if (wrt) {
    only.push_back(wrt);
    type.push_back(wrtGradient.getType());
  }
  auto pass =
      AttentionGradQueryOp::create(b, wrt ? Type() : op.getDQuery().getType(), type, op.getQuery(),
                                   op.getKey(), op.getValue(), op.getDOutput(), rows.getNegLse2(),
                                   delta, rows.getNegLow2(), op.getScale(), op.getOrigin(), only);
  copyRegions(op, pass);
  pass.walk([&](ContributeOp contribution) {
    if (contribution.getTensor() != wrt)
      contribution.erase();
  });
  return pass;
}

static AttentionGradKeyValueOp emitKeyValue(ImplicitLocOpBuilder &b, AttentionGradOp op,
                                            RowDeltaOp rows) {
  auto pass = AttentionGradKeyValueOp::create(
      b, op.getDKey() ? op.getDKey().getType() : Type(),
      op.getDValue() ? op.getDValue().getType() : Type(), TypeRange(), op.getQuery(), op.getKey(),
      op.getValue(), op.getDOutput(), rows.getNegLse2(), rows.getDelta(), rows.getNegLow2(),
      op.getScale(), op.getOrigin(), /*wrt=*/ValueRange());
  copyRegions(op, pass);
  // Others make the gradients of captured tensors.
  pass.walk([](ContributeOp contribution) { contribution.erase(); });
  return pass;
}

/// g9: - sum over b and m of exp(sink - lse) * delta
static Value emitSink(ImplicitLocOpBuilder &b, AttentionGradOp op, RowDeltaOp rows) {
  if (!op.getDSink())
    return {};
  // Shares are f32, their sum is what is wanted.
  Type f32 = b.getF32Type(),
       real = cast<RankedTensorType>(op.getDSink().getType()).getElementType();
  auto constant = [](ImplicitLocOpBuilder &b, double value) -> Value {
    return arith::ConstantOp::create(b, b.getF32FloatAttr(value));
  };
  OpFoldResult heads = tensor::getMixedSize(b, b.getLoc(), op.getSink(), 0);
  Value empty = tensor::EmptyOp::create(b, ArrayRef(heads), real);
  Value zero = arith::ConstantOp::create(b, b.getFloatAttr(real, 0));
  Value zeros = linalg::FillOp::create(b, zero, empty).getResult(0);
  AffineMap all = b.getMultiDimIdentityMap(3), head = AffineMap::get(3, 0, b.getAffineDimExpr(1));
  auto body = [&](OpBuilder &builder, Location loc, ValueRange args) {
    ImplicitLocOpBuilder r(loc, builder);
    Value lse = args[0];
    if (lse.getType() != f32)
      lse = arith::TruncFOp::create(r, f32, lse);
    Value share = math::ExpOp::create(r, arith::SubFOp::create(r, args[2], lse));
    // A sink of +inf is the whole sum, though inf - inf is none; one of -inf is nothing of it.
    constexpr float infinity = std::numeric_limits<float>::infinity();
    auto isEqual = [&](Value a, Value c) -> Value {
      return arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, a, c);
    };
    share = arith::SelectOp::create(r, isEqual(args[2], lse), constant(r, 1), share);
    share =
        arith::SelectOp::create(r, isEqual(args[2], constant(r, -infinity)), constant(r, 0), share);
    Value term = arith::MulFOp::create(r, share, args[1]);
    if (real != f32)
      term = arith::ExtFOp::create(r, real, term);
    linalg::YieldOp::create(r, arith::SubFOp::create(r, args[3], term).getResult());
  };
  Value sum = linalg::GenericOp::create(b, TypeRange{zeros.getType()},
                                        ValueRange{op.getLse(), rows.getDelta(), op.getSink()},
                                        zeros, ArrayRef{all, all, head, head},
                                        ArrayRef{It::reduction, It::parallel, It::reduction}, body)
                  .getResult(0);
  return sum;
}

static LogicalResult checkRegions(AttentionGradOp op) {
  if (op.getVariantsAttr())
    return op.emitOpError("expected score and mask regions, got variants (attn-expand-variants "
                          "turns them into regions)");
  if (!op.getScore().empty() && op.getGrad().empty())
    return op.emitOpError("expected a grad region beside the score region, got none "
                          "(attn-derive-score writes it)");
  return success();
}

/// `number` is what both passes are marked with in the fused form.
static void splitInTwoPasses(AttentionGradOp op, std::optional<int64_t> number) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto shape = cast<RankedTensorType>(op.getLse().getType()).clone(b.getF32Type());
  auto rows =
      RowDeltaOp::create(b, shape, shape, op.getLseLow() ? Type(shape) : Type(), op.getOutput(),
                         op.getDOutput(), op.getLse(), op.getLseLow(), op.getDLse());
  rows->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (!op.getScore().empty() && !op.getLseLow())
    rows->setAttr(kRoundsUpAttrName, b.getUnitAttr());
  auto queryPass =
      op.getDQuery() ? emitQuery(b, op, rows, rows.getDelta()) : AttentionGradQueryOp();
  auto keyPass =
      op.getDKey() || op.getDValue() ? emitKeyValue(b, op, rows) : AttentionGradKeyValueOp();
  Value query = queryPass ? queryPass.getDQuery() : Value();
  Value key = keyPass ? keyPass.getDKey() : Value(),
        value = keyPass ? keyPass.getDValue() : Value();
  if (number && query && key && value)
    for (Operation *pass : {queryPass.getOperation(), keyPass.getOperation()})
      pass->setAttr(kFusedAttrName, b.getI64IntegerAttr(*number));
  Value sink = emitSink(b, op, rows);
  auto replace = [&](Value old, Value gradient) {
    if (!old)
      return;
    if (old.getType() != gradient.getType())
      gradient = tensor::CastOp::create(b, old.getType(), gradient);
    old.replaceAllUsesWith(gradient);
  };
  for (auto [old, gradient] : {std::pair<Value, Value>{op.getDQuery(), query},
                               {op.getDKey(), key},
                               {op.getDValue(), value},
                               {op.getDSink(), sink}})
    replace(old, gradient);
  // Which parts of a gradient blocks can own differs among tensors, so each has its own pass.
  Value delta = emitDelta(b, op, rows);
  for (auto [tensor, gradient] : llvm::zip_equal(op.getWrt(), op.getDWrt()))
    replace(gradient, emitQuery(b, op, rows, delta, tensor, gradient).getDWrt()[0]);
  op.erase();
}

namespace {
struct SplitGradPass
    : RoomPass<attn::impl::SplitGradPassBase<SplitGradPass>, Room::Problem, Room::Problem> {
  using RoomPass::RoomPass;
  LogicalResult transform() override {
    if (form != "two-pass" && form != "fused")
      return getOperation()->emitError("expected form two-pass or fused, got '") << form << "'";
    SmallVector<AttentionGradOp> ops;
    getOperation()->walk([&](AttentionGradOp op) { ops.push_back(op); });
    for (auto [number, op] : llvm::enumerate(ops)) {
      if (failed(checkRegions(op)))
        return failure();
      splitInTwoPasses(op, form == "fused" ? std::optional<int64_t>(number) : std::nullopt);
    }
    return success();
  }
};
} // namespace
