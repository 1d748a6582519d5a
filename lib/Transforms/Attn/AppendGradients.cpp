//===- AppendGradients.cpp - attn-append-gradients --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace attn {
#define GEN_PASS_DEF_APPENDGRADIENTSPASS
#include "lib/Transforms/Attn/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static Type getElement(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

/// Tensors of floats that scores read: by a region, or by a variant.
static SmallVector<Value> findReadFloats(AttentionOp op) {
  llvm::SetVector<Value> tensors;
  op.getScore().walk([&](tensor::ExtractOp read) {
    if (isa<FloatType>(read.getType()))
      tensors.insert(read.getTensor());
  });
  for (auto [rule, capture] : llvm::zip_equal(getCaptureRules(op), op.getCaptures()))
    if (rule.isFloat)
      tensors.insert(capture);
  // Wider ones have no gradient.
  return llvm::filter_to_vector(
      tensors, [](Value tensor) { return getElement(tensor).getIntOrFloatBitWidth() <= 32; });
}

/// Whether a region or a variant changes scores, by what may be large.
static bool hasScore(AttentionOp op) {
  auto changesScores = [](Attribute variant) {
    return isa<SoftcapAttr, AlibiAttr, RelativeBiasAttr>(variant);
  };
  ArrayAttr variants = op.getVariantsAttr();
  return !op.getScore().empty() || (variants && llvm::any_of(variants, changesScores));
}

/// The same op with a log-sum-exp, of both parts where scores may be large.
static AttentionOp withLse(OpBuilder &builder, AttentionOp op) {
  bool hasLow = op.getLseLow() || hasScore(op);
  if (op.getLse() && bool(op.getLseLow()) == hasLow)
    return op;
  SmallVector<int64_t> rows(op.getOutput().getType().getShape().drop_back());
  Type lse =
      op.getLse() ? op.getLse().getType() : Type(RankedTensorType::get(rows, builder.getF32Type()));
  auto wide = AttentionOp::create(builder, op.getLoc(), op.getOutput().getType(), lse,
                                  hasLow ? lse : Type(), op.getQuery(), op.getKey(), op.getValue(),
                                  op.getScale(), op.getSink(), op.getOrigin(), op.getCaptures(),
                                  op.getVariantsAttr());
  wide->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip_equal(op->getRegions(), wide->getRegions()))
    to.takeBody(from);
  for (auto [from, to] : llvm::zip(op->getResults(), wide->getResults()))
    from.replaceAllUsesWith(to);
  op.erase();
  return wide;
}

/// Gradients are operands and results of an op, whose extents are bounded (extent_c1).
static LogicalResult checkExtents(AttentionOp op, ArrayRef<Value> wrt) {
  constexpr int64_t most = int64_t(1) << 30;
  for (Value tensor : wrt) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (llvm::any_of(type.getShape(), [](int64_t extent) { return extent > most; }))
      return op.emitOpError("expected captured tensors with extents of at most ")
             << most << " where their gradients are wanted, got " << type;
  }
  return success();
}

static FailureOr<AttentionGradOp> emitGradient(OpBuilder &builder, AttentionOp op,
                                               Value outputGradient, Value lseGradient) {
  for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()})
    if (tensor.getDefiningOp<RaggedOp>())
      return op.emitOpError("expected no rows of sequences (attn.ragged) where gradients are "
                            "appended: write attn.attention_grad, which takes its output and "
                            "log-sum-exp as views too");
  if (op.getSink() && op.getSink().getType().getRank() != 1)
    return op.emitOpError("expected a sink of (H) where its gradient is wanted, got ")
           << op.getSink().getType();
  SmallVector<Value> wrt = findReadFloats(op);
  if (failed(checkExtents(op, wrt)))
    return failure();
  Type f32 = builder.getF32Type();
  auto wide = [&](Value tensor) -> Type {
    return cast<RankedTensorType>(tensor.getType()).clone(f32);
  };
  auto gradient = AttentionGradOp::create(
      builder, op.getLoc(), op.getQuery().getType(), op.getKey().getType(), op.getValue().getType(),
      op.getSink() ? wide(op.getSink()) : Type(), llvm::map_to_vector(wrt, wide), op.getQuery(),
      op.getKey(), op.getValue(), op.getOutput(), op.getLse(), outputGradient, op.getLseLow(),
      lseGradient, op.getScale(), op.getSink(), op.getOrigin(), op.getCaptures(), wrt,
      op.getVariantsAttr());
  IRMapping mapping;
  op.getScore().cloneInto(&gradient.getScore(), mapping);
  op.getMask().cloneInto(&gradient.getMask(), mapping);
  return gradient;
}

static SmallVector<StringRef> getNames(AttentionGradOp op) {
  SmallVector<StringRef> names = {"d_query", "d_key", "d_value"};
  if (op.getDSink())
    names.push_back("d_sink");
  names.append(op.getDWrt().size(), "d_wrt");
  return names;
}

/// An argument for the gradient of a result; null for a value that the function does not return.
static FailureOr<Value> addArgument(func::FuncOp function, Value result, StringRef name) {
  if (!result || result.use_empty())
    return Value();
  if (!llvm::all_of(result.getUsers(), llvm::IsaPred<func::ReturnOp>))
    return result.getDefiningOp()->emitOpError("expected results that only the function returns, "
                                               "got one with another use");
  unsigned index = function.getNumArguments();
  if (failed(function.insertArgument(index, result.getType(), {}, result.getLoc())))
    return failure();
  function.setArgAttr(index, "attn.name", StringAttr::get(function.getContext(), name));
  return Value(function.getArgument(index));
}

static LogicalResult appendGradients(func::FuncOp function) {
  SmallVector<AttentionOp> ops(function.getOps<AttentionOp>());
  auto end = cast<func::ReturnOp>(function.getBody().front().getTerminator());
  OpBuilder builder(end);
  unsigned numResults = end.getNumOperands();
  SmallVector<StringRef> names;
  for (AttentionOp plain : ops) {
    OpBuilder before(plain);
    AttentionOp op = withLse(before, plain);
    FailureOr<Value> outputGradient = addArgument(function, op.getOutput(), "d_output"),
                     lseGradient = addArgument(function, op.getLse(), "d_lse");
    if (failed(outputGradient) || failed(lseGradient))
      return failure();
    if (!*outputGradient)
      return op.emitOpError("expected an output that the function returns, got one without uses");
    FailureOr<AttentionGradOp> gradient = emitGradient(builder, op, *outputGradient, *lseGradient);
    if (failed(gradient))
      return failure();
    end.getOperandsMutable().append((*gradient)->getResults());
    llvm::append_range(names, getNames(*gradient));
  }
  function.setType(
      builder.getFunctionType(function.getBody().getArgumentTypes(), end.getOperandTypes()));
  for (auto [i, name] : llvm::enumerate(names))
    function.setResultAttr(numResults + i, "attn.name", builder.getStringAttr(name));
  return success();
}

namespace {
struct AppendGradientsPass : RoomPass<attn::impl::AppendGradientsPassBase<AppendGradientsPass>,
                                      Room::Problem, Room::Problem> {
  LogicalResult transform() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      // Callers pass what the function takes now.
      if (!function.isExternal() && SymbolTable::symbolKnownUseEmpty(function, getOperation()))
        if (failed(appendGradients(function)))
          return failure();
    return success();
  }
};
} // namespace
