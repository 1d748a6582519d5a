//===- FillCopy.cpp - constants and copies a register at a time, and other loops ----===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn;

/// A loop over every dimension but the last of `type`, then registers and single elements of the
/// last.
static void forRegisters(Emitter &b, Value memref, bool isContiguous,
                         function_ref<void(ValueRange)> vector,
                         function_ref<void(ValueRange)> scalar) {
  auto type = cast<MemRefType>(memref.getType());
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> at;
  for (int64_t i = 0; i + 1 < type.getRank(); ++i) {
    auto forOp = scf::ForOp::create(b, b.index(0), b.dim(memref, i), b.index(1));
    at.push_back(forOp.getInductionVar());
    b.setInsertionPointToStart(forOp.getBody());
  }
  if (type.getRank() == 0)
    return scalar(at);
  Value size = b.dim(memref, type.getRank() - 1);
  Value whole = isContiguous ? b.alignDown(size, b.target.lanes) : b.index(0);
  at.push_back(Value());
  b.loop(b.index(0), whole, b.target.lanes, [&](Value column) {
    at.back() = column;
    vector(at);
  });
  b.loop(whole, size, 1, [&](Value column) {
    at.back() = column;
    scalar(at);
  });
}

static bool isContiguous(Value memref) {
  return cast<MemRefType>(memref.getType()).isLastDimUnitStride();
}

LogicalResult attn::lowerFill(linalg::FillOp op, const VectorTarget &target) {
  if (!op.hasPureBufferSemantics())
    return op.emitOpError("expected a buffer, got ") << op.getOutputs()[0].getType();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  Value memref = op.getOutputs()[0], value = op.getInputs()[0];
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  if (value.getType() != element)
    return op.emitOpError("expected a value of the buffer's elements ")
           << element << ", got " << value.getType();
  forRegisters(
      b, memref, isContiguous(memref),
      [&](ValueRange at) { b.storeVector(b.splat(value), memref, at); },
      [&](ValueRange at) { b.store(value, memref, at); });
  op.erase();
  return success();
}

LogicalResult attn::lowerCopy(memref::CopyOp op, const VectorTarget &target) {
  Value source = op.getSource(), dest = op.getTarget();
  if (!isa<MemRefType>(source.getType()) || !isa<MemRefType>(dest.getType()))
    return success();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  forRegisters(
      b, dest, isContiguous(source) && isContiguous(dest),
      [&](ValueRange at) { b.storeVector(b.loadVector(source, at), dest, at); },
      [&](ValueRange at) { b.store(b.load(source, at), dest, at); });
  op.erase();
  return success();
}

LogicalResult attn::lowerGeneric(linalg::GenericOp op) {
  if (!op.hasPureBufferSemantics())
    return op.emitOpError("expected buffers, got tensors");
  IRRewriter rewriter(op);
  [[maybe_unused]] FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  assert(succeeded(loops) && "an op on buffers becomes loops");
  rewriter.eraseOp(op);
  return success();
}
