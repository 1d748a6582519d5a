//===- BlockSlices.cpp - sizes, slices and elements of a kernel's arguments ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A slice of an argument, or of a view of one, is a memref and a position. Nothing is read until an
// op needs it. Views tell sizes that are not the argument's.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Tile/IR/TileOps.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

LogicalResult BlockConverter::convertDim(tensor::DimOp op) {
  if (const ArgumentSlice *slice = findSlice(op.getSource()); slice && op.getConstantIndex()) {
    mapping.map(op.getResult(), slice->sizes[*op.getConstantIndex()]);
    return success();
  }
  bool isOfView = isa_and_nonnull<PackHeadsOp, PagedOp, RaggedOp>(op.getSource().getDefiningOp());
  if (isOfView && op.getConstantIndex()) {
    std::optional<ArgumentSize> of = findArgumentSize(op.getSource(), *op.getConstantIndex());
    Value source = of ? lookup(op, of->argument) : Value();
    if (!source)
      return of ? failure() : op.emitOpError("expected a size of a view of an argument");
    Value size =
        memref::DimOp::create(builder, source, arith::ConstantIndexOp::create(builder, of->dim));
    if (of->less != 0)
      size =
          arith::SubIOp::create(builder, size, arith::ConstantIndexOp::create(builder, of->less));
    if (of->multiplier != 1)
      size = arith::MulIOp::create(builder, size,
                                   arith::ConstantIndexOp::create(builder, of->multiplier));
    mapping.map(op.getResult(), size);
    return success();
  }
  Value memref = lookup(op, op.getSource()), index = memref ? lookup(op, op.getIndex()) : Value();
  if (!index)
    return failure();
  if (!isa<MemRefType>(memref.getType()))
    return op.emitOpError("expected a size of an argument, got one of a tile ") << memref.getType();
  mapping.map(op.getResult(), memref::DimOp::create(builder, memref, index).getResult());
  return success();
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

const ArgumentSlice *BlockConverter::findSlice(Value value) const {
  auto it = slices.find(value);
  return it == slices.end() ? nullptr : &it->second;
}

Lie attn::getLie(const ArgumentSlice &slice) {
  auto argument = dyn_cast<BlockArgument>(slice.memref);
  auto kernel =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()) : func::FuncOp();
  if (!kernel)
    return Lie::InOrder;
  unsigned number = argument.getArgNumber();
  if (kernel.getArgAttr(number, plan::PlanDialect::kPagedAttrName))
    return Lie::InPages;
  return kernel.getArgAttr(number, plan::PlanDialect::kRaggedAttrName) ? Lie::InSequences
                                                                       : Lie::InOrder;
}

const RowNumbers *BlockConverter::findRowNumbers(Value memref) const {
  const RowNumbers *numbers =
      llvm::find_if(rowNumbers, [&](const RowNumbers &each) { return each.memref == memref; });
  return numbers == rowNumbers.end() ? nullptr : numbers;
}

/// A slice is all of the last dimensions that it keeps, at one place of those before.
template <typename OpT> static LogicalResult checkSlice(OpT op) {
  if (!op.hasUnitStride())
    return op.emitOpError("expected a slice with strides of 1");
  llvm::SmallBitVector dropped = op.getDroppedDims();
  if (int(dropped.count()) != dropped.find_last() + 1)
    return op.emitOpError("expected a slice that drops leading dimensions only");
  return success();
}

/// The sinks of packed rows, each of its head: slots without one have the last head's.
LogicalResult BlockConverter::convertSinks(tensor::ExtractSliceOp op, PackSinkOp pack) {
  // Keys may lie in the pages of an argument.
  std::optional<ArgumentSize> keyHeads = findArgumentSize(pack.getKey(), 1);
  Value sinks = lookup(op, pack.getResult()),
        key = keyHeads ? lookup(op, keyHeads->argument) : Value();
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets();
  Value keyHead = lookup(op, offsets[0]), first = lookup(op, offsets[1]);
  RankedTensorType tile = getTileType(op, op.getResult());
  if (!sinks || !key || !keyHead || !first || !tile)
    return failure();
  ArrayRef<int64_t> shape = tile.getShape();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, value);
  };
  Value group =
      arith::DivUIOp::create(builder, memref::DimOp::create(builder, sinks, constant(0)),
                             memref::DimOp::create(builder, key, constant(keyHeads->dim)));
  Value last = arith::SubIOp::create(builder, group, constant(1));
  Value slot = tile::CoordOp::create(builder, tile.clone(builder.getIndexType()), 0, first);
  slot = arith::RemUIOp::create(builder, slot, builder.splat(constant(pack.getSlots()), shape));
  slot = arith::MinUIOp::create(builder, slot, builder.splat(last, shape));
  Value begin = arith::MulIOp::create(builder, keyHead, group);
  Value head = arith::AddIOp::create(builder, slot, builder.splat(begin, shape));
  mapping.map(op.getResult(), tile::GatherOp::create(builder, tile, sinks, head).getResult());
  return success();
}

/// A slice of an argument starts an ArgumentSlice; a slice of a slice moves its position.
LogicalResult BlockConverter::convertSlice(tensor::ExtractSliceOp op) {
  if (failed(checkSlice(op)))
    return failure();
  if (auto pack = op.getSource().getDefiningOp<PackSinkOp>())
    return convertSinks(op, pack);
  ArgumentSlice slice;
  SmallVector<OpFoldResult> offsets = op.getMixedOffsets();
  if (auto parent = slices.find(op.getSource()); parent != slices.end()) {
    slice = parent->second;
    size_t kept = slice.position.size() - offsets.size();
    for (auto [i, offset] : llvm::enumerate(offsets)) {
      Value value = lookup(op, offset);
      if (!value)
        return failure();
      slice.position[kept + i] =
          builder.createOrFold<arith::AddIOp>(slice.position[kept + i], value);
    }
  } else {
    slice.memref = lookup(op, op.getSource());
    if (slice.memref && !isa<MemRefType>(slice.memref.getType()))
      return op.emitOpError("expected a slice of an argument, got one of a tile ")
             << slice.memref.getType();
    for (OpFoldResult offset : offsets) {
      slice.position.push_back(slice.memref ? lookup(op, offset) : Value());
      if (!slice.position.back())
        return failure();
    }
  }
  slice.sizes.clear();
  SmallVector<OpFoldResult> sizes = op.getMixedSizes();
  for (OpFoldResult size : ArrayRef<OpFoldResult>(sizes).take_back(op.getType().getRank())) {
    slice.sizes.push_back(lookup(op, size));
    if (!slice.sizes.back())
      return failure();
  }
  slices[op.getResult()] = slice;
  if (captured && op.getSource() == grid.getRegionIterArgs().front())
    captured->part = slice;
  return success();
}

/// Checks that a value which an op stored through its destination is in place.
LogicalResult BlockConverter::checkStored(tensor::ParallelInsertSliceOp op, Value memref,
                                          const ArgumentSlice &slice) {
  bool isInPlace = slice.memref == memref;
  for (auto [offset, position] : llvm::zip(op.getMixedOffsets(), slice.position))
    isInPlace = isInPlace && isEqualConstantIntOrValue(lookup(op, offset), position);
  return isInPlace ? success() : op.emitOpError("expected to insert a tile, or what is in place");
}

/// A tile is stored whole, so what is inserted has its rows.
static LogicalResult checkStoredRows(tensor::ParallelInsertSliceOp op, Value tile) {
  auto stored = dyn_cast<RankedTensorType>(tile.getType());
  if (!stored)
    return op.emitOpError("expected a tile to insert, got ") << tile.getType();
  RankedTensorType type = op.getSourceType();
  int64_t rows = stored.getDimSize(0), dim = type.getRank() - stored.getRank();
  if (dim < 0 || (!type.isDynamicDim(dim) && type.getDimSize(dim) != rows))
    return op.emitOpError("expected to insert the ") << rows << " rows of a tile, got " << type;
  return success();
}

/// Numbers, one after the other.
LogicalResult BlockConverter::storeNumbers(tensor::ParallelInsertSliceOp op, Value memref,
                                           tensor::FromElementsOp numbers) {
  SmallVector<Value> position;
  for (OpFoldResult offset : op.getMixedOffsets())
    position.push_back(lookup(op, offset));
  if (!memref || llvm::is_contained(position, Value()))
    return failure();
  Value first = position.back();
  for (auto [place, number] : llvm::enumerate(numbers.getElements())) {
    Value element = lookup(op, number);
    if (!element)
      return failure();
    position.back() =
        builder.createOrFold<arith::AddIOp>(first, arith::ConstantIndexOp::create(builder, place));
    memref::StoreOp::create(builder, element, memref, position);
  }
  return success();
}

LogicalResult BlockConverter::convertInsert(tensor::ParallelInsertSliceOp op) {
  auto argument = dyn_cast<BlockArgument>(op.getDest());
  if (!argument || argument.getOwner() != grid.getBody())
    return op.emitOpError("expected an insertion into a result of the grid");
  if (failed(checkSlice(op)))
    return failure();
  Value memref = lookup(op, argument);
  if (captured)
    return failure(failed(checkStored(op, memref, captured->part)) ||
                   failed(addRows(*this, getUnadded(op.getSource()))));
  if (const ArgumentSlice *stored = findSlice(op.getSource()))
    return checkStored(op, memref, *stored);
  if (auto numbers = op.getSource().getDefiningOp<tensor::FromElementsOp>())
    return storeNumbers(op, memref, numbers);
  Value tile = lookup(op, op.getSource());
  if (!tile || failed(checkStoredRows(op, tile)))
    return failure();
  SmallVector<Value> position;
  for (OpFoldResult offset : op.getMixedOffsets()) {
    position.push_back(lookup(op, offset));
    if (!position.back())
      return failure();
  }
  if (const RowNumbers *numbers = findRowNumbers(memref))
    tile = negateIf(builder, numbers->isNegated, tile);
  tile::StoreOp::create(builder, tile, memref, position);
  return success();
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

LogicalResult BlockConverter::convertExtract(tensor::ExtractOp op) {
  SmallVector<Value> indices;
  for (Value index : op.getIndices())
    indices.push_back(lookup(op, index));
  Value memref;
  if (const ArgumentSlice *slice = findSlice(op.getTensor())) {
    memref = slice->memref;
    size_t kept = slice->position.size() - indices.size();
    for (auto [i, index] : llvm::enumerate(indices))
      if (index)
        index = builder.createOrFold<arith::AddIOp>(slice->position[kept + i], index);
    indices.insert(indices.begin(), slice->position.begin(), slice->position.begin() + kept);
  } else {
    memref = lookup(op, op.getTensor());
  }
  if (!memref || llvm::is_contained(indices, Value()))
    return failure();
  if (!isa<MemRefType>(memref.getType()))
    return op.emitOpError("expected an element of an argument, got one of a tile ")
           << memref.getType();
  mapping.map(op.getResult(), memref::LoadOp::create(builder, memref, indices).getResult());
  return success();
}
