//===- Emitter.h - writes loops over vectors ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_EMITTER_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_EMITTER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace attn {

/// The vector unit that code is written for.
struct VectorTarget {
  /// f32 elements of a register.
  unsigned lanes = 16;
  /// Dot products of bf16 pairs.
  bool bf16Dot = false;

  /// Accumulators of a register tile; the rest holds the operands.
  unsigned accumulators() const { return lanes == 16 ? 24 : 12; }
};

/// A builder that knows the vector unit and writes the few idioms that all kernels share.
class Emitter : public mlir::ImplicitLocOpBuilder {
public:
  Emitter(mlir::Location loc, mlir::OpBuilder &builder, const VectorTarget &target)
      : ImplicitLocOpBuilder(loc, builder), target(target) {}

  const VectorTarget target;

  mlir::VectorType vec(mlir::Type element) {
    return mlir::VectorType::get({int64_t(target.lanes)}, element);
  }
  mlir::VectorType f32Vec() { return vec(getF32Type()); }

  mlir::Value index(int64_t value);
  mlir::Value f32(double value);
  /// A constant of `type`, a float or a vector of floats.
  mlir::Value floatLike(mlir::Type type, double value);
  /// A constant of `type`, an integer or a vector of integers.
  mlir::Value intLike(mlir::Type type, int64_t value);

  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b);
  /// value rounded up to a multiple of `unit`, a power of two; value is not negative.
  mlir::Value alignUp(mlir::Value value, int64_t unit);
  /// value rounded down to a multiple of `unit`; value is not negative.
  mlir::Value alignDown(mlir::Value value, int64_t unit);

  /// The larger of two; `b` if either is NaN. One instruction where IEEE's maximum takes three.
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value min(mlir::Value a, mlir::Value b);
  /// a * b + c, fused where the machine fuses; scalars or vectors of f32.
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value splat(mlir::Value scalar);

  mlir::Value dim(mlir::Value memref, int64_t dimension);
  mlir::Value load(mlir::Value memref, mlir::ValueRange at);
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange at);
  /// One register from the last dimension, of the memref's element type.
  mlir::Value loadVector(mlir::Value memref, mlir::ValueRange at);
  void storeVector(mlir::Value vector, mlir::Value memref, mlir::ValueRange at);
  /// The lanes below `count` only; the others read as zero and write nothing.
  mlir::Value loadMasked(mlir::Value memref, mlir::ValueRange at, mlir::Value mask);
  void storeMasked(mlir::Value vector, mlir::Value memref, mlir::ValueRange at, mlir::Value mask);
  /// The lanes below `count`, which may be negative or more than there are.
  mlir::Value maskBelow(mlir::Value count);

  /// A conversion between float types, scalar or vector; none if they agree.
  mlir::Value convert(mlir::Value value, mlir::Type element);

  using LoopBody =
      llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  /// for (i = lower; i < upper; i += step): no loop where it is known to run once or never.
  llvm::SmallVector<mlir::Value> loop(mlir::Value lower, mlir::Value upper, int64_t step,
                                      mlir::ValueRange inits, LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_EMITTER_H
