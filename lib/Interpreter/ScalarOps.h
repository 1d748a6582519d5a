//===- ScalarOps.h - arith and math on many elements at once ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_INTERPRETER_SCALAROPS_H
#define ATTN_LIB_INTERPRETER_SCALAROPS_H

#include "lib/Interpreter/Value.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// One arith or math op, ready to run. The same code runs the ops of a function one value at a
/// time, ops of a mask region a row at a time, and ops on tensors a tensor at a time. The code is
/// found once, and an element takes about a nanosecond.
struct ScalarOp {
  /// Returns why the op is undefined for these operands, or null.
  using Function = const char *(*)(const ScalarOp &op, Lane *result, const Lane *const *operands,
                                   int64_t count);

  Function function = nullptr;
  /// 64 less the width of the operands and of the result, for integers.
  unsigned operandShift = 0, resultShift = 0;

  const char *run(Lane *result, const Lane *const *operands, int64_t count) const {
    return function(*this, result, operands, count);
  }
};

/// The op with one result in the scalar arith and math ops, except constants; an error names an op
/// that is not supported.
llvm::Expected<ScalarOp> compileScalarOp(mlir::Operation *op);
/// The same for one of an op's results, of which math.sincos has two.
llvm::Expected<ScalarOp> compileScalarResult(mlir::OpResult result);

/// The value of a constant. With `exactConstants`, f32 log2(e) is the number that it approximates:
/// the passes write it into the IR when they change the base of the exponential.
llvm::Expected<RuntimeValue> evaluateConstant(mlir::Attribute value, bool exactConstants);

/// An error at the location of an op: `file.mlir:3:7: 'arith.divsi': what`.
llvm::Error makeOpError(mlir::Operation *op, const llvm::Twine &what);
/// The same around an error that knows no location.
llvm::Error makeOpError(mlir::Operation *op, llvm::Error error);

} // namespace attn

#endif // ATTN_LIB_INTERPRETER_SCALAROPS_H
