//===- CheckBuffers.cpp - what every op on buffers needs -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

/// A buffer with one column says of its columns only by chance how far apart they are: a slice of
/// one row and one column has the strides of other dimensions of extent 1. The view says 1.
static Value getContiguousColumn(Operation *op, Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || !type.hasStaticShape() || type.getRank() == 0 || type.getShape().back() != 1 ||
      type.isLastDimUnitStride())
    return memref;
  OpBuilder b(op);
  b.setInsertionPointAfterValue(memref);
  auto data = memref::ExtractStridedMetadataOp::create(b, op->getLoc(), memref);
  SmallVector<OpFoldResult> sizes, strides(data.getStrides().drop_back());
  for (int64_t size : type.getShape())
    sizes.push_back(b.getIndexAttr(size));
  strides.push_back(b.getIndexAttr(1));
  SmallVector<int64_t> staticStrides(type.getRank(), ShapedType::kDynamic);
  staticStrides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, staticStrides);
  return memref::ReinterpretCastOp::create(
      b, op->getLoc(),
      MemRefType::get(type.getShape(), type.getElementType(), layout, type.getMemorySpace()),
      data.getBaseBuffer(), OpFoldResult(data.getOffset()), sizes, strides);
}

LogicalResult attn::checkBuffers(DestinationStyleOpInterface op) {
  if (!op->getParentOfType<FunctionOpInterface>())
    return op->emitOpError("expected it inside of a function");
  for (OpOperand &operand : op->getOpOperands())
    operand.set(getContiguousColumn(op, operand.get()));
  return success();
}
