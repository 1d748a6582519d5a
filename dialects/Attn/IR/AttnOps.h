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
/// The tensor that the value is all of, or a slice of.
mlir::Value getWhole(mlir::Value value);

/// Whether a score or mask region, which may be empty, reads captured tensors.
bool readsTensors(mlir::Region &region);

/// Whether it reads elements whose indices depend on the row or the key: not by head or batch
/// alone, nor by their distance.
bool readsByPosition(mlir::Region &region);

/// Indices of the region that are a distance of the row and the key: their difference, with what is
/// the same for all of them, and between bounds.
llvm::DenseSet<mlir::Value> findDistances(mlir::Region &region);

/// Whether the index of a read, or of what its adjoint adds to, may lie outside of the dimension,
/// so that both go to the nearest element (s13). Positions are inside of what they index, and 0 is;
/// a constant is if it is below a static extent; max(min(x, last), 0) and min(max(x, 0), last) are.
bool mayBeOutside(mlir::Value index, mlir::Value tensor, int64_t dim);

/// The ops of the region that one of the values it yields is made of.
llvm::DenseSet<mlir::Operation *> findOrigins(mlir::Region &region, unsigned yielded);

/// The factor of the weight that a score region yields; null where it is 1. The region may be
/// empty.
mlir::Value getFactor(mlir::Region &score);

/// Lets the op called `name`, of destination style and with regions that may be empty, absorb
/// tensor.cast producers that say less than their source.
void populateCastFold(mlir::RewritePatternSet &patterns, llvm::StringRef name);

/// On tensors an op of destination style is pure; on buffers it reads all operands that are buffers
/// and writes the destinations. Running state is read as well.
void getBufferEffects(
    mlir::DestinationStyleOpInterface op, bool readsInits,
    llvm::SmallVectorImpl<mlir::SideEffects::EffectInstance<mlir::MemoryEffects::Effect>> &effects);

/// The results have the shapes of the destinations.
llvm::LogicalResult reifyInits(mlir::DestinationStyleOpInterface op, mlir::OpBuilder &builder,
                               mlir::ReifiedRankedShapedTypeDims &shapes);

/// Folds of attn.attention_grad alone.
void populateGradFolds(mlir::RewritePatternSet &patterns);
} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNOPS_H
