//===- AttnGradVerifiers.cpp - constraints of the gradients' ops, by number -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As AttnVerifiers.cpp: each check names its constraint in dialects/Attn/README.md.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVerifiers.h"

using namespace mlir;
using namespace attn;

/// The gradient, unless nobody wants it, is like what it is a gradient of.
static LogicalResult verifyGradient(Operation *op, StringRef name, Value gradient,
                                    StringRef sourceName, Value source) {
  if (!gradient)
    return success();
  auto type = cast<RankedTensorType>(gradient.getType()),
       sourceType = cast<RankedTensorType>(source.getType());
  // attention_grad_c2: d_query, d_key and d_value have the shapes of query, key and value, and
  // their elements, f32 or f64
  Type element = sourceType.getElementType();
  if (type.getElementType() != element && !isF32OrF64(type.getElementType()))
    return op->emitOpError("expected ") << name << " elements of type " << element
                                        << ", f32 or f64, got " << type.getElementType();
  if (failed(verifyCompatibleShape(type, sourceType)))
    return op->emitOpError("expected ") << name << " of the shape of " << sourceName << ", got "
                                        << type << " and " << sourceType;
  return success();
}

static LogicalResult verifyWrt(Operation *op, OperandRange wrt, ResultRange gradients) {
  // attention_grad_c4: the tensors in wrt are different ones, of f16, bf16 or f32
  for (auto [i, tensor] : llvm::enumerate(wrt)) {
    if (failed(checkElement(op, "wrt", tensor.getType(), isStorageFloat, "f16, bf16 or f32")))
      return failure();
    if (llvm::is_contained(wrt.take_front(i), tensor))
      return op->emitOpError("expected different tensors in wrt, got number ")
             << i << " a second time";
  }
  // attention_grad_c5: d_wrt are as many as wrt, of their shapes, in f32 or f64
  if (wrt.size() != gradients.size())
    return op->emitOpError("expected ")
           << wrt.size() << " gradients of tensors in wrt, got " << gradients.size();
  for (auto [tensor, gradient] : llvm::zip_equal(wrt, gradients)) {
    if (failed(checkElement(op, "d_wrt", gradient.getType(), isF32OrF64, "f32 or f64")))
      return failure();
    if (failed(verifyCompatibleShape(tensor.getType(), gradient.getType())))
      return op->emitOpError("expected d_wrt of the shape of wrt, got ")
             << gradient.getType() << " and " << tensor.getType();
  }
  // attention_grad_c1: some gradient is wanted
  if (op->getNumResults() == 0)
    return op->emitOpError("expected a gradient that is wanted, got none");
  return success();
}

/// Where the sequences of a view begin, or null.
static Value getOffsets(Value tensor) {
  auto view = tensor.getDefiningOp<RaggedOp>();
  return view ? view.getOffsets() : Value();
}

static LogicalResult verifySequences(AttentionGradOp op) {
  Value rows = getOffsets(op.getQuery()), keys = getOffsets(op.getKey());
  // attention_grad_c6: rows of sequences have no d_sink and no d_wrt, which are sums over all rows
  if ((rows || keys) && (op.getDSink() || !op.getDWrt().empty()))
    return op.emitOpError("expected no d_sink and no d_wrt beside attn.ragged: write the sequences "
                          "as documents (#attn.document) of one batch, which have them");
  // attention_grad_c7: output, lse and their gradients are of the query's sequences, value is of
  // the key's
  for (Value tensor : {Value(op.getOutput()), Value(op.getDOutput()), Value(op.getLse()),
                       Value(op.getLseLow()), Value(op.getDLse())})
    if (tensor && getOffsets(tensor) != rows)
      return op.emitOpError("expected output, lse and their gradients to be rows of the sequences "
                            "that query is of, got ")
             << tensor.getType() << " of others";
  if (getOffsets(op.getValue()) != keys)
    return op.emitOpError("expected value to be rows of the sequences that key is of");
  return success();
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyScoredOp(*this)) ||
      failed(verifyLikeOutput(*this, "output", getOutput().getType())) ||
      failed(verifyLikeOutput(*this, "d_output", getDOutput().getType())) ||
      failed(verifyLikeLse(*this, "lse", getLse().getType())) ||
      (getLseLow() && failed(verifyLikeLse(*this, "lse_low", getLseLow().getType()))) ||
      (getDLse() && failed(verifyLikeLse(*this, "d_lse", getDLse().getType()))) ||
      failed(verifyGradient(*this, "d_query", getDQuery(), "query", getQuery())) ||
      failed(verifyGradient(*this, "d_key", getDKey(), "key", getKey())) ||
      failed(verifyGradient(*this, "d_value", getDValue(), "value", getValue())))
    return failure();
  // attention_grad_c3: d_sink is (H) of f32 or f64, where there is a sink
  if (Value gradient = getDSink()) {
    if (!getSink())
      return emitOpError("expected a sink beside d_sink, got none");
    auto type = cast<RankedTensorType>(gradient.getType());
    if (failed(checkRank(*this, "d_sink", type, 1, "(H)")) ||
        failed(checkElement(*this, "d_sink", type, isF32OrF64, "f32 or f64")) ||
        failed(checkExtent(*this, "H", "query", getQuery().getType().getDimSize(1), "d_sink",
                           type.getDimSize(0))))
      return failure();
  }
  if (failed(verifyWrt(*this, getWrt(), getDWrt())))
    return failure();
  if (failed(verifySequences(*this)))
    return failure();
  return verifySameExtents(*this, {{"query", getQuery(), "BHMD"},
                                   {"key", getKey(), "BGND"},
                                   {"value", getValue(), "BGNV"},
                                   {"output", getOutput(), "BHMV"},
                                   {"d_output", getDOutput(), "BHMV"},
                                   {"lse", getLse(), "BHM"},
                                   {"lse_low", getLseLow(), "BHM"},
                                   {"d_lse", getDLse(), "BHM"},
                                   {"sink", getSink(), "H"},
                                   {"d_query", getDQuery(), "BHMD"},
                                   {"d_key", getDKey(), "BGND"},
                                   {"d_value", getDValue(), "BGNV"},
                                   {"d_sink", getDSink(), "H"}});
}

LogicalResult AttentionGradOp::verifyRegions() {
  return failure(failed(verifyScoreAndMask(*this, getScore(), getMask())) ||
                 failed(verifyGradRegion(*this, getGrad())));
}

LogicalResult ContributeOp::verify() {
  Operation *parent = (*this)->getParentOp();
  // contribute_c1: it stands in a grad region
  if ((*this)->getParentRegion() != &parent->getRegions().back())
    return emitOpError("expected to stand in a grad region, got a region before it");
  // contribute_c4: in attn.grad_captured_step it has an index for each dimension of the sum
  if (auto step = dyn_cast<GradCapturedStepOp>(parent)) {
    auto type = cast<ShapedType>(step.getSum().getType());
    if (int64_t(getIndices().size()) != type.getRank())
      return emitOpError("expected ") << type.getRank() << " indices into the sum of " << type
                                      << ", got " << getIndices().size();
    return success();
  }
  // contribute_c2: it names a tensor of its op's wrt
  OperandRange wrt = isa<AttentionGradOp>(parent) ? cast<AttentionGradOp>(parent).getWrt()
                     : isa<AttentionGradQueryOp>(parent)
                         ? cast<AttentionGradQueryOp>(parent).getWrt()
                         : cast<AttentionGradKeyValueOp>(parent).getWrt();
  if (!llvm::is_contained(wrt, getTensor())) {
    InFlightDiagnostic diag = emitOpError("expected a tensor in wrt, got another one");
    diag.attachNote(parent->getLoc()) << "the op with wrt";
    return diag;
  }
  // contribute_c3: it has an index for each dimension
  auto type = cast<ShapedType>(getTensor().getType());
  if (int64_t(getIndices().size()) != type.getRank())
    return emitOpError("expected ")
           << type.getRank() << " indices into " << type << ", got " << getIndices().size();
  return success();
}

//===----------------------------------------------------------------------===//
// In two passes
//===----------------------------------------------------------------------===//

LogicalResult RowDeltaOp::verify() {
  RankedTensorType o = getOutput().getType(), gradient = getDOutput().getType();
  // row_delta_c1: output and d_output are (B, H, M, Dv) of f16, bf16, f32 or f64
  auto isFloat = [](Type type) { return isStorageFloat(type) || type.isF64(); };
  for (auto [name, type] :
       {std::pair<StringRef, RankedTensorType>{"output", o}, {"d_output", gradient}})
    if (failed(checkRank(*this, name, type, 4, "(B, H, M, Dv)")) ||
        failed(checkElement(*this, name, type, isFloat, "f16, bf16, f32 or f64")))
      return failure();
  constexpr StringLiteral dims[] = {"B", "H", "M", "Dv"};
  for (auto [i, dim] : llvm::enumerate(dims))
    if (failed(
            checkExtent(*this, dim, "output", o.getDimSize(i), "d_output", gradient.getDimSize(i))))
      return failure();
  // row_delta_c2: lse, lse_low, d_lse, neg_lse2, delta and neg_low2 are (B, H, M) of f32 or f64
  for (auto [name, value] : {std::pair<StringRef, Value>{"lse", getLse()},
                             {"lse_low", getLseLow()},
                             {"d_lse", getDLse()},
                             {"neg_lse2", getNegLse2()},
                             {"delta", getDelta()},
                             {"neg_low2", getNegLow2()}}) {
    if (!value)
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    if (failed(checkRank(*this, name, type, 3, "(B, H, M)")) ||
        failed(checkElement(*this, name, type, isF32OrF64, "f32 or f64")))
      return failure();
    for (auto [i, dim] : llvm::enumerate(ArrayRef(dims).drop_back()))
      if (failed(checkExtent(*this, dim, "output", o.getDimSize(i), name, type.getDimSize(i))))
        return failure();
  }
  // row_delta_c3: there is a neg_low2 where there is an lse_low
  if (bool(getLseLow()) != bool(getNegLow2()))
    return emitOpError("expected neg_low2 beside lse_low and not without, got ")
           << (getLseLow() ? "lse_low" : "neg_low2") << " alone";
  return verifySameExtents(*this, {{"output", getOutput(), "BHMV"},
                                   {"d_output", getDOutput(), "BHMV"},
                                   {"lse", getLse(), "BHM"},
                                   {"lse_low", getLseLow(), "BHM"},
                                   {"d_lse", getDLse(), "BHM"},
                                   {"neg_lse2", getNegLse2(), "BHM"},
                                   {"delta", getDelta(), "BHM"},
                                   {"neg_low2", getNegLow2(), "BHM"}});
}

LogicalResult AttentionGradDeltaOp::verify() {
  if (failed(verifyScoredOp(*this)) ||
      failed(verifyLikeOutput(*this, "d_output", getDOutput().getType())))
    return failure();
  for (auto [name, value] : {std::pair<StringRef, Value>{"neg_lse2", getNegLse2()},
                             {"delta", getDelta()},
                             {"neg_low2", getNegLow2()},
                             {"d_lse", getDLse()},
                             {"exact_delta", getExactDelta()}})
    if (value && failed(verifyLikeLse(*this, name, value.getType())))
      return failure();
  return verifySameExtents(*this, {{"query", getQuery(), "BHMD"},
                                   {"key", getKey(), "BGND"},
                                   {"value", getValue(), "BGNV"},
                                   {"d_output", getDOutput(), "BHMV"},
                                   {"neg_lse2", getNegLse2(), "BHM"},
                                   {"delta", getDelta(), "BHM"},
                                   {"neg_low2", getNegLow2(), "BHM"},
                                   {"d_lse", getDLse(), "BHM"},
                                   {"sink", getSink(), "H"},
                                   {"exact_delta", getExactDelta(), "BHM"}});
}

LogicalResult AttentionGradDeltaOp::verifyRegions() {
  return verifyScoreAndMask(*this, getScore(), getMask());
}

/// Checks the parts that both passes have.
template <typename OpT>
static LogicalResult verifySplitGrad(OpT op, Value dQuery, Value dKey, Value dValue) {
  if (failed(verifyScoredOp(op)) ||
      failed(verifyLikeOutput(op, "d_output", op.getDOutput().getType())) ||
      failed(verifyLikeLse(op, "neg_lse2", op.getNegLse2().getType())) ||
      failed(verifyLikeLse(op, "delta", op.getDelta().getType())) ||
      (op.getNegLow2() && failed(verifyLikeLse(op, "neg_low2", op.getNegLow2().getType()))) ||
      failed(verifyWrt(op, op.getWrt(), op.getDWrt())) ||
      failed(verifyGradient(op, "d_query", dQuery, "query", op.getQuery())) ||
      failed(verifyGradient(op, "d_key", dKey, "key", op.getKey())) ||
      failed(verifyGradient(op, "d_value", dValue, "value", op.getValue())))
    return failure();
  return verifySameExtents(op, {{"query", op.getQuery(), "BHMD"},
                                {"key", op.getKey(), "BGND"},
                                {"value", op.getValue(), "BGNV"},
                                {"d_output", op.getDOutput(), "BHMV"},
                                {"neg_lse2", op.getNegLse2(), "BHM"},
                                {"delta", op.getDelta(), "BHM"},
                                {"neg_low2", op.getNegLow2(), "BHM"},
                                {"d_query", dQuery, "BHMD"},
                                {"d_key", dKey, "BGND"},
                                {"d_value", dValue, "BGNV"}});
}

LogicalResult AttentionGradQueryOp::verify() {
  return verifySplitGrad(*this, getDQuery(), /*dKey=*/Value(), /*dValue=*/Value());
}

LogicalResult AttentionGradQueryOp::verifyRegions() {
  return failure(failed(verifyScoreAndMask(*this, getScore(), getMask())) ||
                 failed(verifyGradRegion(*this, getGrad())));
}

LogicalResult AttentionGradKeyValueOp::verify() {
  return verifySplitGrad(*this, /*dQuery=*/Value(), getDKey(), getDValue());
}

LogicalResult AttentionGradKeyValueOp::verifyRegions() {
  return failure(failed(verifyScoreAndMask(*this, getScore(), getMask())) ||
                 failed(verifyGradRegion(*this, getGrad())));
}
