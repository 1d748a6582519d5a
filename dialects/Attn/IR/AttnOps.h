//===- AttnOps.h - operations of the attn dialect ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNOPS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNOPS_H

#include "dialects/Attn/IR/AttnDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace attn {
// The upstream PartialReductionOpInterface declares its methods with unqualified names.
using llvm::SmallVector;
using mlir::Location;
using mlir::MergeResult;
using mlir::ReductionTilingStrategy;
using mlir::TilingResult;
using mlir::Value;
using mlir::ValueRange;

/// The position of an op's first element; zeros when it is not said.
SmallVector<mlir::OpFoldResult> getOriginOrZeros(mlir::OperandRange origin,
                                                 mlir::MLIRContext *context);
} // namespace attn

#include "dialects/Attn/IR/AttnInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnOps.h.inc"

namespace attn {
/// Whether a score or mask region, which may be empty, reads captured tensors.
bool readsTensors(mlir::Region &region);

/// Folds of attn.attention_grad alone.
void populateGradFolds(mlir::RewritePatternSet &patterns);
} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNOPS_H
