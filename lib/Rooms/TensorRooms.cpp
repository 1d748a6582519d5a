//===- TensorRooms.cpp - rooms 1 to 3: attention on tensors -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/Predicates.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

static std::string print(Type type) { return llvm::formatv("{0}", type).str(); }

/// An attn op on buffers, or a buffer that is more than the place of a result.
static Complaint refuseBuffers(Operation *op) {
  if (isa<AttnDialect>(op->getDialect()) &&
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>))
    return "expected tensors, got buffers";
  if (isa<bufferization::BufferizationDialect>(op->getDialect()) &&
      !isa<bufferization::MaterializeInDestinationOp>(op))
    return "expected tensors, got an op that makes buffers";
  return refuseKernel(op);
}

static Complaint refuseRunningState(Operation *op) {
  if (isa<OnlineAttentionOp, NormalizeOp>(op))
    return "expected attn.attention, got a part of the online softmax";
  return {};
}

Complaint attn::refuseInProblem(Operation *op) {
  Complaint complaint = refuseRunningState(op);
  return complaint.empty() ? refuseBuffers(op) : complaint;
}

Complaint attn::refuseInGrid(Operation *op) { return refuseInProblem(op); }

/// The tensor that a grid of blocks divides, and the name of its heads; null: any op may be whole.
static std::pair<Value, StringRef> getDivided(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return {attention.getQuery(), "(B, H, M tiles)"};
  if (auto rows = dyn_cast<RowDeltaOp>(op))
    return {rows.getOutput(), "(B, H, M tiles)"};
  if (auto delta = dyn_cast<AttentionGradDeltaOp>(op))
    return {delta.getQuery(), "(B, H, M tiles)"};
  if (auto query = dyn_cast<AttentionGradQueryOp>(op); query && query.getWrt().empty())
    return {query.getQuery(), "(B, H, M tiles)"};
  if (auto keys = dyn_cast<AttentionGradKeyValueOp>(op))
    return {keys.getKey(), "(B, Hkv, N tiles)"};
  return {};
}

Complaint attn::demandOfGrid(Operation *op) {
  auto [divided, dims] = getDivided(op);
  if (!divided)
    return {};
  if (auto attention = dyn_cast<AttentionOp>(op); attention && attention.getVariantsAttr())
    return "expected score and mask regions, got variants";
  auto type = cast<RankedTensorType>(divided.getType());
  if (auto scored = dyn_cast<ScoredOpInterface>(op))
    for (RankedTensorType operand :
         {scored.getQuery().getType(), scored.getKey().getType(), scored.getValue().getType()})
      if (llvm::is_contained(operand.getShape(), 0))
        return "expected static extents above 0, got " + print(operand);
  if (type.getDimSize(0) != 1 || type.getDimSize(1) != 1)
    return "expected one batch and one head, got " + print(type);
  auto forall = op->getParentOfType<scf::ForallOp>();
  std::string expected =
      "expected it inside an scf.forall over " + dims.str() + " mapped to blocks";
  if (!forall)
    return expected + ", got none";
  if (forall.getRank() != 3)
    return expected + ", got one over " + std::to_string(forall.getRank()) + " dimensions";
  if (!forall.getMapping())
    return expected + ", got one that is not mapped";
  return {};
}

Complaint attn::refuseInOnline(Operation *op) {
  if (isa<AttentionOp>(op))
    return "expected attn.online_attention, got attention over all keys at once";
  if (isa<ScoredOpInterface, RowDeltaOp>(op))
    return "expected steps over tiles, got gradients over all rows and keys at once";
  return refuseBuffers(op);
}

Complaint attn::refuseTensors(Operation *op) {
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isa<TensorType>(type))
        return "expected buffers, got " + print(type);
  return refuseKernel(op);
}
