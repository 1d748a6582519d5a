//===- Interpreter.cpp - runs the IR of rooms 1 to 3 without code generation ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "lib/Interpreter/Evaluator.h"

using namespace llvm;

namespace attn {

Expected<InterpreterCounts> Evaluator::finish() {
  if (prover) {
    Expected<MaskProof> proof = prover->finish();
    if (!proof)
      return proof.takeError();
    counts.proof = std::move(*proof);
  }
  return counts;
}

Expected<InterpreterResult> interpret(mlir::func::FuncOp function, ArrayRef<RuntimeValue> arguments,
                                      const InterpreterOptions &options) {
  Evaluator evaluator(options);
  Expected<std::vector<RuntimeValue>> values = evaluator.call(function, arguments);
  if (!values)
    return values.takeError();
  Expected<InterpreterCounts> counts = evaluator.finish();
  if (!counts)
    return counts.takeError();
  return InterpreterResult{std::move(*values), std::move(*counts)};
}

Expected<RuntimeValue> makeShapeOnly(mlir::Type type, ArrayRef<int64_t> shape) {
  if (!isa<mlir::RankedTensorType>(type))
    return RuntimeValue();
  Expected<TensorRef> tensor = DenseTensor::create(shape, isFloatElement(type), /*hasData=*/false);
  if (!tensor)
    return tensor.takeError();
  return RuntimeValue(std::move(*tensor));
}

} // namespace attn
