//===- TensorOps.cpp - tensors and their slices -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Evaluator.h"

using namespace llvm;
using namespace mlir;

namespace attn {

Expected<TensorRef> Evaluator::allocate(Operation *op, mlir::Type type, ArrayRef<int64_t> shape,
                                        bool hasData) {
  bool isFloat = isFloatElement(type);
  Expected<TensorRef> tensor = DenseTensor::create(shape, isFloat, hasData);
  if (!tensor)
    return makeOpError(op, tensor.takeError());
  return tensor;
}

Expected<bool> Evaluator::executeTensorOp(Operation *op, Frame &frame) {
  if (auto empty = dyn_cast<tensor::EmptyOp>(op)) {
    Expected<Indices> sizes = getIndices(op, empty.getMixedSizes(), frame);
    if (!sizes)
      return sizes.takeError();
    bool hasData = !options.countOnly || !isFloatElement(empty.getType());
    Expected<TensorRef> tensor = allocate(op, empty.getType(), *sizes, hasData);
    return tensor ? done(set(op, empty, *tensor, frame)) : tensor.takeError();
  }
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    Expected<int64_t> index = getIndex(op, dim.getIndex(), frame);
    if (!index)
      return index.takeError();
    ArrayRef<int64_t> shape = getTensor(dim.getSource(), frame)->getShape();
    if (*index < 0 || *index >= int64_t(shape.size()))
      return makeOpError(op, "expected a dimension of the tensor, got " + Twine(*index));
    return done(set(op, dim, RuntimeValue::integer(shape[*index]), frame));
  }
  if (auto cast = dyn_cast<tensor::CastOp>(op))
    return done(set(op, cast, getTensor(cast.getSource(), frame), frame));
  if (auto extractOp = dyn_cast<tensor::ExtractOp>(op))
    return done(extract(extractOp, frame));
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
    return done(extractSlice(slice, frame));
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    Expected<Slice> slice = getSlice(insert, frame);
    if (!slice)
      return slice.takeError();
    auto copy = std::make_shared<DenseTensor>(*getTensor(insert.getDest(), frame));
    if (Error error = insertSlice(op, insert.getSource(), copy, *slice, frame))
      return std::move(error);
    return done(set(op, insert, copy, frame));
  }
  if (auto insertOp = dyn_cast<tensor::InsertOp>(op))
    return done(insert(insertOp, frame));
  if (auto list = dyn_cast<tensor::FromElementsOp>(op)) {
    bool isKnown = none_of(list.getElements(), [&](mlir::Value element) {
      return frame.find(element)->second.isUnknown();
    });
    Expected<TensorRef> tensor = allocate(op, list.getType(), list.getType().getShape(), isKnown);
    if (!tensor)
      return tensor.takeError();
    if (isKnown)
      for (auto [i, element] : enumerate(list.getElements()))
        (*tensor)->data()[i] = frame.find(element)->second.getScalar();
    return done(set(op, list, *tensor, frame));
  }
  // The linalg.generic around it has set its value.
  if (isa<linalg::IndexOp>(op))
    return true;
  if (auto fillOp = dyn_cast<linalg::FillOp>(op))
    return done(fill(fillOp, frame));
  if (auto genericOp = dyn_cast<linalg::GenericOp>(op))
    return done(generic(genericOp, frame));
  return false;
}

/// The element of a tensor at the values of some indices; each is checked.
Expected<int64_t> Evaluator::getPosition(Operation *op, const DenseTensor &tensor,
                                         OperandRange indices, Frame &frame) {
  Expected<Indices> values = getIndices(op, getAsOpFoldResult(indices), frame);
  if (!values)
    return values.takeError();
  int64_t position = 0;
  for (auto [dim, index, extent] : enumerate(*values, tensor.getShape())) {
    if (index < 0 || index >= extent)
      return makeOpError(op, "expected an index below " + Twine(extent) + " in dimension " +
                                 Twine(dim) + ", got " + Twine(index));
    position = position * extent + index;
  }
  return position;
}

Error Evaluator::extract(tensor::ExtractOp op, Frame &frame) {
  const DenseTensor &tensor = *getTensor(op.getTensor(), frame);
  Expected<int64_t> position = getPosition(op, tensor, op.getIndices(), frame);
  if (!position)
    return position.takeError();
  RuntimeValue value;
  if (tensor.hasData())
    value = tensor.data()[*position];
  return set(op, op, value, frame);
}

/// A copy each time: enough for the few elements to which gradients are added one by one.
Error Evaluator::insert(tensor::InsertOp op, Frame &frame) {
  auto copy = std::make_shared<DenseTensor>(*getTensor(op.getDest(), frame));
  Expected<int64_t> position = getPosition(op, *copy, op.getIndices(), frame);
  if (!position)
    return position.takeError();
  Expected<Lane> lane = getLane(op, op.getScalar(), frame);
  if (!lane)
    return lane.takeError();
  if (!copy->hasData())
    return makeOpError(op, "expected a tensor with data, got a shape only");
  copy->data()[*position] = *lane;
  return set(op, op, copy, frame);
}

Expected<Slice> Evaluator::getSlice(OffsetSizeAndStrideOpInterface op, Frame &frame) {
  Expected<Indices> offsets = getIndices(op, op.getMixedOffsets(), frame);
  Expected<Indices> sizes = getIndices(op, op.getMixedSizes(), frame);
  Expected<Indices> strides = getIndices(op, op.getMixedStrides(), frame);
  if (!offsets || !sizes || !strides)
    return joinErrors(joinErrors(offsets.takeError(), sizes.takeError()), strides.takeError());
  return Slice{std::move(*offsets), std::move(*sizes), std::move(*strides)};
}

Error Evaluator::extractSlice(tensor::ExtractSliceOp op, Frame &frame) {
  Expected<Slice> slice = getSlice(op, frame);
  if (!slice)
    return slice.takeError();
  const DenseTensor &source = *getTensor(op.getSource(), frame);
  if (Error error = slice->check(source.getShape()))
    return makeOpError(op, std::move(error));
  Indices shape;
  SmallBitVector dropped = op.getDroppedDims();
  for (auto [dim, size] : enumerate(slice->sizes))
    if (!dropped.test(dim))
      shape.push_back(size);
  Expected<TensorRef> result = allocate(op, op.getType(), shape, source.hasData());
  if (!result)
    return result.takeError();
  if (source.hasData()) {
    Lane *to = (*result)->data();
    slice->forEachRun(source.getShape(), [&](int64_t first, int64_t step, int64_t length) {
      const Lane *from = source.data() + first;
      for (int64_t i = 0; i < length; ++i)
        *to++ = from[i * step];
    });
  }
  return set(op, op, *result, frame);
}

/// Writes into `into`, which is nobody else's.
Error Evaluator::insertSlice(Operation *op, mlir::Value source, const TensorRef &into,
                             const Slice &slice, Frame &frame) {
  const DenseTensor &tensor = *getTensor(source, frame);
  if (Error error = slice.check(into->getShape()))
    return makeOpError(op, std::move(error));
  auto isLong = [](int64_t extent) { return extent != 1; };
  if (!equal(make_filter_range(slice.sizes, isLong), make_filter_range(tensor.getShape(), isLong)))
    return makeOpError(op, "expected a source of the slice's sizes " + formatShape(slice.sizes) +
                               ", got " + formatShape(tensor.getShape()));
  if (!into->hasData())
    return Error::success();
  if (!tensor.hasData())
    return makeOpError(op, "expected a source with data, got a shape only");
  const Lane *from = tensor.data();
  slice.forEachRun(into->getShape(), [&](int64_t first, int64_t step, int64_t length) {
    Lane *to = into->data() + first;
    for (int64_t i = 0; i < length; ++i)
      to[i * step] = *from++;
  });
  return Error::success();
}

Error Evaluator::fill(linalg::FillOp op, Frame &frame) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op.getOutputs()[0].getType()))
    return makeOpError(op, "expected a tensor to fill");
  const DenseTensor &out = *getTensor(op.getOutputs()[0], frame);
  const RuntimeValue &value = frame.find(op.getInputs()[0])->second;
  if (value.isTensor())
    return makeOpError(op, "expected a number to fill with, got a tensor");
  bool hasData = out.hasData() && value.isScalar();
  Expected<TensorRef> result = allocate(op, op.getResult(0).getType(), out.getShape(), hasData);
  if (!result)
    return result.takeError();
  if (hasData)
    std::fill_n((*result)->data(), (*result)->size(), value.getScalar());
  return set(op, op.getResult(0), *result, frame);
}

/// One iteration after the other, through the interpreter: slow, and enough for what surrounds
/// attention. In one piece, for the iterations read all that is gathered of the operands.
Error Evaluator::generic(linalg::GenericOp op, Frame &frame) {
  Values outs;
  SmallVector<const DenseTensor *> operands;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  Indices extents(op.getNumLoops(), -1);
  for (OpOperand &operand : op->getOpOperands()) {
    const RuntimeValue &value = frame.find(operand.get())->second;
    AffineMap map = maps[operand.getOperandNumber()];
    if (!value.isTensor() || !map.isProjectedPermutation(/*allowZeroInResults=*/true))
      return makeOpError(op, "expected operands that are tensors, indexed by loop indices");
    TensorRef tensor = value.getTensor();
    if (!tensor->hasData())
      return makeOpError(op, "expected tensors with data, got a shape only");
    if (op.isDpsInit(&operand)) {
      tensor = std::make_shared<DenseTensor>(*tensor);
      outs.push_back(tensor);
    }
    operands.push_back(tensor.get());
    for (auto [expr, extent] : zip_equal(map.getResults(), tensor->getShape()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        int64_t &known = extents[dim.getPosition()];
        if (known >= 0 && known != extent)
          return makeOpError(op, "expected one extent for loop " + Twine(dim.getPosition()) +
                                     ", got " + Twine(known) + " and " + Twine(extent));
        known = extent;
      }
  }
  Block &body = op.getRegion().front();
  Indices index(extents.size(), 0);
  bool isEmpty = is_contained(extents, 0);
  while (!isEmpty) {
    SmallVector<int64_t, 4> positions;
    Values arguments;
    for (auto [tensor, map] : zip_equal(operands, maps)) {
      int64_t position = 0;
      for (auto [expr, extent] : zip_equal(map.getResults(), tensor->getShape())) {
        auto dim = dyn_cast<AffineDimExpr>(expr);
        position = position * extent + (dim ? index[dim.getPosition()] : 0);
      }
      positions.push_back(position);
      arguments.push_back(tensor->data()[position]);
    }
    for (auto indexOp : body.getOps<linalg::IndexOp>())
      frame[indexOp] = RuntimeValue::integer(index[indexOp.getDim()]);
    Expected<Values> results = runBlock(body, arguments, frame);
    if (!results)
      return results.takeError();
    size_t firstOut = operands.size() - outs.size();
    for (auto [i, value] : enumerate(*results)) {
      if (!value.isScalar())
        return makeOpError(op, "expected a number, got one that depends on a tensor without data");
      outs[i].getTensor()->data()[positions[firstOut + i]] = value.getScalar();
    }
    size_t dim = index.size();
    while (dim > 0 && ++index[dim - 1] == extents[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      break;
  }
  return setResults(op, outs, frame);
}

} // namespace attn
