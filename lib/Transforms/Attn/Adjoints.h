//===- Adjoints.h - the derivative of each scalar op ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_ADJOINTS_H
#define ATTN_LIB_TRANSFORMS_ATTN_ADJOINTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// The type in which adjoints of a float are summed: its own, but at least f32.
mlir::FloatType getAdjointType(mlir::Type type);

/// A float in its adjoint type; `value` if it has that type already.
mlir::Value convertToAdjoint(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                             mlir::Type type);

/// Ops whose results do not move with their operands, or jump: floor, comparisons, casts to
/// integers. Their derivative is 0 wherever they have one.
bool stopsDerivatives(mlir::Operation *op);

/// Emits, at the insertion point, what each operand's adjoint gains from the adjoints of the
/// results, in the results' adjoint type; null for operands that are no floats. Nothing for an op
/// that has no row in the table. The op stays where it is: the code uses its operands and results.
/// Ops that nobody needs are left for dead code elimination.
std::optional<llvm::SmallVector<mlir::Value>>
emitAdjoints(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange resultAdjoints);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_ADJOINTS_H
