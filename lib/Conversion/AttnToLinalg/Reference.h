//===- Reference.h - definitions as loops over whole tensors --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOLINALG_REFERENCE_H
#define ATTN_LIB_CONVERSION_ATTNTOLINALG_REFERENCE_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// Builds the definition of one op, in the arithmetic type `real`.
struct Reference : mlir::ImplicitLocOpBuilder {
  using Body = llvm::function_ref<mlir::Value(Reference &, mlir::ValueRange)>;
  using Projections = llvm::ArrayRef<llvm::SmallVector<int64_t>>;

  Reference(mlir::Location loc, mlir::OpBuilder &builder, mlir::FloatType real)
      : ImplicitLocOpBuilder(loc, builder), real(real) {}

  mlir::FloatType real;

  mlir::Value number(double value);
  mlir::Value lowest();
  /// The float in the arithmetic type, which may be narrower: gradients take logarithms of f64.
  mlir::Value toReal(mlir::Value x);
  /// A natural logarithm in base 2 (s17): its product with kF32Log2e, rounded to its own type.
  mlir::Value toRoundedBase2(mlir::Value logarithm);
  mlir::Value isLowest(mlir::Value x);
  mlir::Value isZero(mlir::Value x);
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value index(unsigned dim);
  mlir::Value position(unsigned dim, mlir::OpFoldResult origin);

  /// A tensor of the given sizes filled with `value`.
  mlir::Value filled(llvm::ArrayRef<mlir::OpFoldResult> sizes, mlir::Value value);

  /// out = body(ins..., out), looping over the dimensions of `iterators`; maps are projections, one
  /// per operand.
  mlir::Value loop(mlir::ValueRange ins, mlir::Value out, Projections projections,
                   llvm::ArrayRef<mlir::utils::IteratorType> iterators, Body body);

  /// The tensor with another float element type.
  mlir::Value convert(mlir::Value tensor, mlir::Type element);
};

/// s1 to s3 of an op: the beginning of its definition.
struct ScoreReference {
  ScoreReference(Reference &b, ScoredOpInterface op);

  /// Head h reads key head h / (H / Hkv) = h * Hkv / H.
  mlir::Value keyHead(Reference &r, mlir::Value head);
  /// The dot products (B, H, M, N) of rows (B, H, M, _) and keys (B, Hkv, N, _).
  mlir::Value products(Reference &b, mlir::Value rows, mlir::Value keys);
  /// The global positions in a loop over (B, H, M, N).
  llvm::SmallVector<mlir::Value> positions(Reference &r);
  /// T from the product of query and key, in such a loop: -inf where the mask drops it.
  mlir::Value score(Reference &r, mlir::Value product);
  /// s15: the factors F (B, H, M, N) of weights, from the products of query and key; null where
  /// they are 1.
  mlir::Value factors(Reference &b, mlir::Value products);
  /// F * `by`; `by` itself without factors.
  mlir::Value multiply(Reference &b, mlir::Value factors, mlir::Value by);

  ScoredOpInterface op;
  llvm::SmallVector<mlir::OpFoldResult> origin;
  mlir::Value heads, keyHeads, scale;
  /// Sizes.
  llvm::SmallVector<mlir::OpFoldResult> bhmn, bhm;
};

/// The result of attn.paged, attn.ragged, attn.place or attn.scaled, in its elements.
mlir::Value defineView(Reference &b, mlir::Operation *op);

/// The result of attn.append or attn.rotary, in its elements.
mlir::Value defineMovedRows(Reference &b, mlir::Operation *op);

/// The results of the gradients' ops, in the arithmetic type.
llvm::SmallVector<mlir::Value> defineAttentionGrad(Reference &b, AttentionGradOp op);
llvm::SmallVector<mlir::Value> defineRowDelta(Reference &b, RowDeltaOp op);
llvm::SmallVector<mlir::Value> defineGradDelta(Reference &b, AttentionGradDeltaOp op);
llvm::SmallVector<mlir::Value> defineGradQuery(Reference &b, AttentionGradQueryOp op);
llvm::SmallVector<mlir::Value> defineGradKeyValue(Reference &b, AttentionGradKeyValueOp op);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOLINALG_REFERENCE_H
