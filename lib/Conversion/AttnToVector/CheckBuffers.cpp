//===- CheckBuffers.cpp - what every op on buffers needs -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

OpFoldResult attn::getStatedSize(Value memref, int64_t dimension) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type)
    return OpFoldResult();
  if (!type.isDynamicDim(dimension))
    return IntegerAttr::get(IndexType::get(memref.getContext()), type.getDimSize(dimension));
  Operation *def = memref.getDefiningOp();
  if (auto cast = dyn_cast_or_null<memref::CastOp>(def))
    return getStatedSize(cast.getSource(), dimension);
  if (auto view = dyn_cast_or_null<memref::ReinterpretCastOp>(def))
    return view.getMixedSizes()[dimension];
  if (auto alloc = dyn_cast_or_null<memref::AllocOp>(def))
    return alloc.getMixedSizes()[dimension];
  if (auto alloca = dyn_cast_or_null<memref::AllocaOp>(def))
    return alloca.getMixedSizes()[dimension];
  auto subview = dyn_cast_or_null<memref::SubViewOp>(def);
  if (!subview)
    return OpFoldResult();
  llvm::SmallBitVector dropped = subview.getDroppedDims();
  for (auto [i, size] : llvm::enumerate(subview.getMixedSizes()))
    if (!dropped.test(i) && dimension-- == 0)
      return size;
  return OpFoldResult();
}

/// A buffer with one column says of its columns only by chance how far apart they are: a slice of
/// one row and one column has the strides of other dimensions of extent 1. The view says 1.
static Value getContiguousColumn(Operation *op, Value memref) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (!type || type.getRank() == 0 || type.getShape().back() != 1 || type.isLastDimUnitStride())
    return memref;
  OpBuilder b(op);
  b.setInsertionPointAfterValue(memref);
  auto data = memref::ExtractStridedMetadataOp::create(b, op->getLoc(), memref);
  SmallVector<OpFoldResult> sizes, strides(data.getStrides().drop_back());
  // The sizes of the metadata have no bound; those that were stated do.
  for (int64_t i = 0; i < type.getRank(); ++i) {
    OpFoldResult stated = attn::getStatedSize(memref, i);
    sizes.push_back(stated ? stated : OpFoldResult(data.getSizes()[i]));
  }
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
  if (auto around = op->getParentOfType<linalg::LinalgOp>())
    return op->emitOpError("expected it outside of '") << around->getName() << "'";
  for (OpOperand &operand : op->getOpOperands())
    operand.set(getContiguousColumn(op, operand.get()));
  return success();
}

LogicalResult attn::checkContiguous(Operation *op, StringRef name, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.isLastDimUnitStride())
    return success();
  return op->emitOpError("expected a contiguous last dimension of ") << name << ", got " << type;
}

LogicalResult attn::checkColumns(Operation *op, StringRef name, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.isDynamicDim(type.getRank() - 1))
    return op->emitOpError("expected a static last dimension of ") << name << ", got " << type;
  return checkContiguous(op, name, memref);
}
