//===- AttnGradStepOps.cpp - gradients of attention, a tile at a time -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints are numbered as in AttnVerifiers.cpp.
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVerifiers.h"

using namespace mlir;
using namespace attn;

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

static MutableOperandRange getLastOperands(Operation *op, unsigned count) {
  return MutableOperandRange(op, op->getNumOperands() - count, count);
}

MutableOperandRange GradRowsOp::getDpsInitsMutable() {
  return getLastOperands(*this, getNegLow2() ? 3 : 2);
}
MutableOperandRange GradQueryStepOp::getDpsInitsMutable() { return getLastOperands(*this, 1); }
MutableOperandRange GradKeyValueStepOp::getDpsInitsMutable() { return getLastOperands(*this, 2); }
MutableOperandRange GradFusedStepOp::getDpsInitsMutable() { return getLastOperands(*this, 3); }
MutableOperandRange GradCapturedStepOp::getDpsInitsMutable() { return getLastOperands(*this, 1); }
MutableOperandRange GradDeltaStepOp::getDpsInitsMutable() { return getLastOperands(*this, 2); }
MutableOperandRange GradDeltaEndOp::getDpsInitsMutable() { return getLastOperands(*this, 1); }
MutableOperandRange GradEndOp::getDpsInitsMutable() { return getLastOperands(*this, 1); }

void GradRowsOp::getEffects(Effects &effects) { getBufferEffects(*this, false, effects); }
void GradQueryStepOp::getEffects(Effects &effects) { getBufferEffects(*this, true, effects); }
void GradKeyValueStepOp::getEffects(Effects &effects) { getBufferEffects(*this, true, effects); }
void GradFusedStepOp::getEffects(Effects &effects) { getBufferEffects(*this, true, effects); }
void GradCapturedStepOp::getEffects(Effects &effects) { getBufferEffects(*this, true, effects); }
void GradDeltaStepOp::getEffects(Effects &effects) { getBufferEffects(*this, true, effects); }
void GradDeltaEndOp::getEffects(Effects &effects) { getBufferEffects(*this, false, effects); }
void GradEndOp::getEffects(Effects &effects) { getBufferEffects(*this, false, effects); }

using Shapes = ReifiedRankedShapedTypeDims;

LogicalResult GradRowsOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradQueryStepOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradKeyValueStepOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradFusedStepOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradCapturedStepOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradDeltaStepOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradDeltaEndOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}
LogicalResult GradEndOp::reifyResultShapes(OpBuilder &builder, Shapes &shapes) {
  return reifyInits(*this, builder, shapes);
}

void GradQueryStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}
void GradKeyValueStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}
void GradFusedStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}
void GradCapturedStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}
void GradDeltaStepOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}

SmallVector<OpFoldResult> GradQueryStepOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}
SmallVector<OpFoldResult> GradKeyValueStepOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}
SmallVector<OpFoldResult> GradFusedStepOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}
SmallVector<OpFoldResult> GradCapturedStepOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}
SmallVector<OpFoldResult> GradDeltaStepOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}

unsigned GradQueryStepOp::getRunningPosition() { return 3; }
unsigned GradCapturedStepOp::getRunningPosition() { return 3; }
Value GradCapturedStepOp::getFixed() { return getQuery(); }
unsigned GradDeltaStepOp::getRunningPosition() { return 3; }
Value GradDeltaStepOp::getFixed() { return getQuery(); }
unsigned GradKeyValueStepOp::getRunningPosition() { return 2; }
unsigned GradFusedStepOp::getRunningPosition() { return 2; }
Value GradQueryStepOp::getFixed() { return getQuery(); }
Value GradKeyValueStepOp::getFixed() { return getKey(); }
Value GradFusedStepOp::getFixed() { return getKey(); }

SmallVector<OpOperand *> GradQueryStepOp::getRunningMutable() {
  return {&getKeyMutable(), &getValueMutable()};
}
SmallVector<OpOperand *> GradCapturedStepOp::getRunningMutable() {
  return {&getKeyMutable(), &getValueMutable()};
}
SmallVector<OpOperand *> GradDeltaStepOp::getRunningMutable() {
  return {&getKeyMutable(), &getValueMutable()};
}
/// The operands that run with the rows.
template <typename OpT> static SmallVector<OpOperand *> getRunningRows(OpT op) {
  SmallVector<OpOperand *> rows = {&op.getQueryMutable(), &op.getDOutputMutable(),
                                   &op.getNegLse2Mutable(), &op.getDeltaMutable()};
  for (OpOperand &low : op.getNegLow2Mutable())
    rows.push_back(&low);
  return rows;
}

SmallVector<OpOperand *> GradKeyValueStepOp::getRunningMutable() { return getRunningRows(*this); }
SmallVector<OpOperand *> GradFusedStepOp::getRunningMutable() {
  SmallVector<OpOperand *> rows = getRunningRows(*this);
  rows.push_back(&getAccQueryMutable());
  return rows;
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

namespace {
/// An operand and what its dimensions are called.
struct Named {
  StringRef name;
  Value value;
  ArrayRef<StringRef> dims;
};
} // namespace

/// Every operand has its dimensions, and those of one name agree.
static LogicalResult verifyShapes(Operation *op, ArrayRef<Named> operands) {
  llvm::StringMap<std::pair<StringRef, int64_t>> sizes;
  for (const Named &operand : operands) {
    auto type = cast<ShapedType>(operand.value.getType());
    if (failed(checkRank(op, operand.name, type, operand.dims.size(),
                         ("(" + llvm::join(operand.dims, ", ") + ")"))))
      return failure();
    for (auto [dim, size] : llvm::zip_equal(operand.dims, type.getShape())) {
      auto [known, isNew] = sizes.try_emplace(dim, operand.name, size);
      if (!isNew && failed(checkExtent(op, dim, known->second.first, known->second.second,
                                       operand.name, size)))
        return failure();
      if (size == 0 && dim.starts_with("D"))
        return op->emitOpError("expected ") << dim << " above 0, got " << type;
    }
  }
  return success();
}

static bool isF32(Type type) { return type.isF32(); }

static LogicalResult verifyElements(Operation *op, ArrayRef<Named> storage, ArrayRef<Named> f32) {
  for (const Named &operand : storage)
    if (failed(checkElement(op, operand.name, operand.value.getType(), isStorageFloat,
                            "f16, bf16 or f32")))
      return failure();
  for (const Named &operand : f32)
    if (failed(checkElement(op, operand.name, operand.value.getType(), isF32, "f32")))
      return failure();
  return success();
}

static constexpr StringRef kMD[] = {"M", "D"}, kND[] = {"N", "D"}, kNDv[] = {"N", "Dv"},
                           kMDv[] = {"M", "Dv"}, kM[] = {"M"}, kXY[] = {"X", "Y"};

/// Checks the operands that both steps read, and the sums that they add to.
template <typename OpT> static LogicalResult verifyStep(OpT op, ArrayRef<Named> sums) {
  SmallVector<Named> storage = {{"query", op.getQuery(), kMD},
                                {"key", op.getKey(), kND},
                                {"value", op.getValue(), kNDv},
                                {"d_output", op.getDOutput(), kMDv}};
  SmallVector<Named> f32 = {{"neg_lse2", op.getNegLse2(), kM}, {"delta", op.getDelta(), kM}};
  if (op.getNegLow2())
    f32.push_back({"neg_low2", op.getNegLow2(), kM});
  llvm::append_range(f32, sums);
  SmallVector<Named> all = storage;
  llvm::append_range(all, f32);
  // grad_step_c1: query (M, D), key (N, D), value (N, Dv) and d_output (M, Dv) of f16, bf16 or f32;
  // neg_lse2 (M), delta (M), neg_low2 (M) and the sums of f32
  // grad_step_c2: the shapes agree, D and Dv are above 0
  if (failed(verifyShapes(op, all)) || failed(verifyElements(op, storage, f32)) ||
      failed(verifyOrigin(op, op.getOrigin())))
    return failure();
  return verifyDestinations(op);
}

LogicalResult GradQueryStepOp::verify() { return verifyStep(*this, {{"acc", getAcc(), kMD}}); }

LogicalResult GradKeyValueStepOp::verify() {
  return verifyStep(*this, {{"acc_key", getAccKey(), kND}, {"acc_value", getAccValue(), kNDv}});
}

LogicalResult GradFusedStepOp::verify() {
  // grad_fused_step_c1: the operands are buffers
  if (isa<TensorType>(getQuery().getType()))
    return emitOpError("expected buffers, got ") << getQuery().getType();
  return verifyStep(*this, {{"acc_query", getAccQuery(), kMD},
                            {"acc_key", getAccKey(), kND},
                            {"acc_value", getAccValue(), kNDv}});
}

LogicalResult GradCapturedStepOp::verify() {
  // grad_captured_step_c1: the sum is of f32
  if (failed(checkElement(*this, "sum", getSum().getType(), isF32, "f32")))
    return failure();
  return verifyStep(*this, {});
}

LogicalResult GradDeltaStepOp::verify() {
  // grad_delta_step_c1: the grad region is empty
  if (!getGrad().empty())
    return emitOpError("expected no grad region, got one");
  return verifyStep(*this, {{"weight", getWeight(), kM}, {"residual", getResidual(), kM}});
}

template <typename OpT> static LogicalResult verifyStepRegions(OpT op) {
  return failure(failed(verifyScoreAndMask(op, op.getScore(), op.getMask())) ||
                 failed(verifyGradRegion(op, op.getGrad())));
}

LogicalResult GradQueryStepOp::verifyRegions() { return verifyStepRegions(*this); }
LogicalResult GradKeyValueStepOp::verifyRegions() { return verifyStepRegions(*this); }
LogicalResult GradFusedStepOp::verifyRegions() { return verifyStepRegions(*this); }
LogicalResult GradCapturedStepOp::verifyRegions() { return verifyStepRegions(*this); }
LogicalResult GradDeltaStepOp::verifyRegions() { return verifyStepRegions(*this); }

LogicalResult GradDeltaEndOp::verify() {
  SmallVector<Named> all = {{"weight", getWeight(), kM},
                            {"residual", getResidual(), kM},
                            {"neg_lse2", getNegLse2(), kM},
                            {"delta", getDelta(), kM},
                            {"output", getOutput(), kM}};
  if (getDLse())
    all.push_back({"d_lse", getDLse(), kM});
  // grad_delta_end_c1: weight, residual, neg_lse2, delta, d_lse and output are (M) of f32
  if (failed(verifyShapes(*this, all)) || failed(verifyElements(*this, {}, all)))
    return failure();
  return verifyDestinations(*this);
}

LogicalResult GradRowsOp::verify() {
  SmallVector<Named> storage = {{"output", getOutput(), kMDv}, {"d_output", getDOutput(), kMDv}};
  SmallVector<Named> f32 = {
      {"lse", getLse(), kM}, {"neg_lse2", getNegLse2(), kM}, {"delta", getDelta(), kM}};
  for (auto [name, value] : {std::pair<StringRef, Value>{"lse_low", getLseLow()},
                             {"d_lse", getDLse()},
                             {"neg_low2", getNegLow2()}})
    if (value)
      f32.push_back({name, value, kM});
  SmallVector<Named> all = storage;
  llvm::append_range(all, f32);
  // grad_rows_c1: output and d_output (M, Dv) of f16, bf16 or f32; lse, lse_low, d_lse, neg_lse2,
  // delta and neg_low2 (M) of f32; the shapes agree, Dv is above 0
  if (failed(verifyShapes(*this, all)) || failed(verifyElements(*this, storage, f32)))
    return failure();
  // grad_rows_c2: there is a neg_low2 where there is an lse_low
  if (bool(getLseLow()) != bool(getNegLow2()))
    return emitOpError("expected neg_low2 beside lse_low and not without, got ")
           << (getLseLow() ? "lse_low" : "neg_low2") << " alone";
  return verifyDestinations(*this);
}

LogicalResult GradEndOp::verify() {
  // grad_end_c1: acc (X, Y) of f32, output (X, Y) of f16, bf16 or f32
  if (failed(verifyShapes(*this, {{"acc", getAcc(), kXY}, {"output", getOutput(), kXY}})) ||
      failed(verifyElements(*this, {{"output", getOutput(), kXY}}, {{"acc", getAcc(), kXY}})))
    return failure();
  return verifyDestinations(*this);
}
