//===- AttnBufferization.cpp - attn ops on buffers -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace attn;

/// The op again, on buffers: destinations are updated in place and stand for the results.
static LogicalResult bufferizeDestinationOp(RewriterBase &rewriter, DestinationStyleOpInterface op,
                                            const BufferizationOptions &options,
                                            const BufferizationState &state) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (!isa<TensorType>(operand.getType())) {
      operands.push_back(operand);
      continue;
    }
    FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
    if (failed(buffer))
      return failure();
    operands.push_back(*buffer);
  }
  SmallVector<Value> results;
  for (OpOperand &init : op.getDpsInitsMutable())
    results.push_back(operands[init.getOperandNumber()]);

  OperationState bufferized(op->getLoc(), op->getName());
  bufferized.addOperands(operands);
  bufferized.addAttributes(op->getDiscardableAttrDictionary().getValue());
  bufferized.propertiesAttr = op->getPropertiesAsAttribute();
  for (Region &region : op->getRegions())
    bufferized.addRegion()->takeBody(region);
  rewriter.create(bufferized);
  replaceOpWithBufferizedValues(rewriter, op, results);
  return success();
}

namespace {
template <typename OpT, bool readsInits>
struct DestinationOpModel
    : DstBufferizableOpInterfaceExternalModel<DestinationOpModel<OpT, readsInits>, OpT> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return readsInits || !cast<DestinationStyleOpInterface>(op).isDpsInit(&operand);
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    return bufferizeDestinationOp(rewriter, cast<DestinationStyleOpInterface>(op), options, state);
  }
};

// External models give methods of the interface by their names.
// NOLINTBEGIN(bugprone-derived-method-shadowing-base-method)
/// The facts were used; on buffers `assume` is its operand.
struct AssumeModel : BufferizableOpInterface::ExternalModel<AssumeModel, AssumeOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *op, OpOperand &, const AnalysisState &) const {
    return {{op->getResult(0), BufferRelation::Equivalent}};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    FailureOr<Value> buffer = getBuffer(rewriter, cast<AssumeOp>(op).getSource(), options, state);
    if (failed(buffer))
      return failure();
    replaceOpWithBufferizedValues(rewriter, op, *buffer);
    return success();
  }
};

/// A contribution names a tensor and touches none.
struct ContributeModel : BufferizableOpInterface::ExternalModel<ContributeModel, ContributeOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto contribution = cast<ContributeOp>(op);
    FailureOr<Value> buffer = getBuffer(rewriter, contribution.getTensor(), options, state);
    if (failed(buffer))
      return failure();
    rewriter.replaceOpWithNewOp<ContributeOp>(op, contribution.getAddend(), *buffer,
                                              contribution.getIndices());
    return success();
  }
};
// NOLINTEND(bugprone-derived-method-shadowing-base-method)
} // namespace

void attn::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    OnlineAttentionOp::attachInterface<DestinationOpModel<OnlineAttentionOp, true>>(*context);
    NormalizeOp::attachInterface<DestinationOpModel<NormalizeOp, false>>(*context);
    MergeOp::attachInterface<DestinationOpModel<MergeOp, false>>(*context);
    // Rows of no slot keep what they are.
    AppendOp::attachInterface<DestinationOpModel<AppendOp, true>>(*context);
    RotaryOp::attachInterface<DestinationOpModel<RotaryOp, false>>(*context);
    GradRowsOp::attachInterface<DestinationOpModel<GradRowsOp, false>>(*context);
    GradQueryStepOp::attachInterface<DestinationOpModel<GradQueryStepOp, true>>(*context);
    GradKeyValueStepOp::attachInterface<DestinationOpModel<GradKeyValueStepOp, true>>(*context);
    GradCapturedStepOp::attachInterface<DestinationOpModel<GradCapturedStepOp, true>>(*context);
    GradDeltaStepOp::attachInterface<DestinationOpModel<GradDeltaStepOp, true>>(*context);
    GradDeltaEndOp::attachInterface<DestinationOpModel<GradDeltaEndOp, false>>(*context);
    ContributeOp::attachInterface<ContributeModel>(*context);
    GradEndOp::attachInterface<DestinationOpModel<GradEndOp, false>>(*context);
    AssumeOp::attachInterface<AssumeModel>(*context);
  });
}
