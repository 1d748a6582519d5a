//===- Step.cpp - one step of the online softmax, tile by tile ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace attn;

/// Of a tile; buffers of it must fit a stack.
static constexpr int64_t kMaxRows = int64_t(1) << 20;

FailureOr<Extent> attn::getBoundedExtent(Emitter &b, Operation *op, StringRef name, Value memref) {
  OpFoldResult size = getStatedSize(memref, 0);
  if (std::optional<int64_t> constant = size ? getConstantIntValue(size) : std::nullopt)
    return Extent{b.index(*constant), *constant, true};
  FailureOr<int64_t> bound = failure();
  if (auto value = dyn_cast_or_null<Value>(size))
    bound = ValueBoundsConstraintSet::computeConstantBound(
        presburger::BoundType::UB, ValueBoundsConstraintSet::Variable(value), nullptr,
        /*closedUB=*/true);
  // A bound that no tile has is none: sums of it would wrap.
  if (failed(bound) || *bound > kMaxRows)
    return op->emitOpError(
               "expected a bounded tile: no constant is known to be at least the number of ")
           << name << " in " << memref.getType();
  return Extent{b.dim(memref, 0), std::max<int64_t>(*bound, 1), false};
}

Block *Scratch::getBlock(Operation *user) {
  if (auto forall = user->getParentOfType<scf::ForallOp>())
    return forall.getBody();
  return &user->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
}

Value Scratch::get(Operation *user, StringRef name, ArrayRef<int64_t> shape) {
  Block *block = getBlock(user);
  std::string key = name.str();
  for (int64_t size : shape)
    key += "x" + std::to_string(size);
  Value &buffer = buffers[block][key];
  if (!buffer) {
    auto b = OpBuilder::atBlockBegin(block);
    buffer = memref::AllocaOp::create(b, user->getLoc(), MemRefType::get(shape, b.getF32Type()),
                                      b.getI64IntegerAttr(64));
  }
  return buffer;
}

Value attn::emitDot(Emitter &b, WordKind kind, Value x, Value y, Value acc) {
  if (kind == WordKind::F32)
    return b.fma(x, y, acc);
  auto pairs = VectorType::get({2 * int64_t(b.target.lanes)}, b.getBF16Type());
  Value px = vector::BitCastOp::create(b, pairs, x), py = vector::BitCastOp::create(b, pairs, y);
  std::string name = "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(32 * b.target.lanes);
  return LLVM::CallIntrinsicOp::create(b, acc.getType(), b.getStringAttr(name),
                                       ValueRange{acc, px, py})
      .getResult(0);
}

LogicalResult attn::lowerStep(OnlineAttentionOp op, const VectorTarget &target, Shared &shared) {
  Scratch &scratch = shared.scratch;
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Step step;
  step.op = op;
  FailureOr<Extent> rows = getBoundedExtent(b, op, "rows", op.getQuery());
  FailureOr<Extent> keys = getBoundedExtent(b, op, "keys", op.getKey());
  if (failed(rows) || failed(keys))
    return failure();
  auto isEmpty = [](Extent extent) { return extent.isStatic && extent.bound == 0; };
  if (isEmpty(*rows) || isEmpty(*keys)) {
    op.erase();
    return success();
  }
  step.rows = *rows;
  step.keys = *keys;
  step.paddedRows = b.alignUp(step.rows.value, target.lanes);
  step.rowStride = llvm::alignTo(step.rows.bound, target.lanes);
  step.query = shared.packer.get(op, op.getQuery(), step.rows, /*mayPair=*/true, target, scratch);
  step.kind = step.query.kind;
  emitKeyPacking(b, step, scratch);
  // A pair of keys needs a second row, also past an odd number of keys.
  step.scores =
      scratch.get(op, "scores", {int64_t(llvm::alignTo(step.keys.bound, 2)), step.rowStride});
  if (getFactor(op.getScore()))
    step.factors =
        scratch.get(op, "factors", {int64_t(llvm::alignTo(step.keys.bound, 2)), step.rowStride});
  step.rowScratch = scratch.get(op, "rows", {step.rowStride});
  ScoreProduct scores = {
      step.query, step.paddedRows, step.rowStride, step.key,
      step.keys,  op.getScale(),   step.scores,    step.hasRegions() ? Value() : step.rowScratch};
  callScores(b, scores, shared.functions);
  if (!op.getMask().empty() || mayDropKeys(op.getScore()))
    step.kept = scratch.get(op, "kept", {step.keys.bound});
  if (step.hasRegions())
    emitScoreRegions(b, step);
  emitValuePacking(b, step, scratch);
  emitSoftmax(b, step);
  bool isScratch = step.value != op.getValue();
  callSums(b,
           {.kind = step.kind,
            .weights = step.scores,
            .terms = step.keys,
            .acc = op.getAcc(),
            .rows = step.rows,
            .columns = step.valueDim(),
            .matrix = step.value,
            .isScratch = isScratch,
            // Scratch has zeros for keys that no row keeps.
            .kept = isScratch ? Value() : step.kept,
            .factor = step.rowScratch},
           shared.functions);
  op.erase();
  return success();
}
