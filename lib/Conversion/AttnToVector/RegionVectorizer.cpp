//===- RegionVectorizer.cpp - functions of scores, a register of lanes at a time -----===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/RegionVectorizer.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

RegionVectorizer::RegionVectorizer(Emitter &b, Region &region, ArrayRef<Value> origin,
                                   bool lanesAreRows)
    : b(b), region(region) {
  // (score, (gradient,)) b, h, m, n
  ArrayRef<BlockArgument> arguments = region.getArguments();
  ArrayRef<BlockArgument> positions = arguments.take_back(4);
  mapping.map(positions[0], origin[0]);
  mapping.map(positions[1], origin[1]);
  laneArgument = positions[lanesAreRows ? 2 : 3];
  runningArgument = positions[lanesAreRows ? 3 : 2];
  dependences[laneArgument] = {Stage::Lanes, true};
  dependences[runningArgument] = {Stage::Running, false};
  for (Value value : arguments.drop_back(4))
    dependences[value] = {Stage::Running, true};
  for (Operation &op : region.front().without_terminator()) {
    Dependence result;
    for (Value operand : op.getOperands()) {
      Dependence dependence = getDependence(operand);
      result.stage = std::max(result.stage, dependence.stage);
      result.isVector |= dependence.isVector;
    }
    for (Value value : op.getResults())
      dependences[value] = result;
  }
}

RegionVectorizer::Dependence RegionVectorizer::getDependence(Value value) const {
  return dependences.lookup(value);
}

void RegionVectorizer::emitStage(Stage stage) {
  for (Operation &op : region.front().without_terminator()) {
    if (auto contribution = dyn_cast<ContributeOp>(op)) {
      if (stage == Stage::Running)
        contribute(contribution, getVector(contribution.getAddend()),
                   llvm::map_to_vector(contribution.getIndices(), [&](Value index) {
                     return mapping.lookupOrDefault(index);
                   }));
      continue;
    }
    Dependence dependence = getDependence(op.getResult(0));
    if (dependence.stage == stage)
      emitOp(&op, dependence.isVector);
  }
}

void RegionVectorizer::emitInvariant() { emitStage(Stage::Step); }

void RegionVectorizer::beginLanes(Value positions, Value mask) {
  laneMask = mask;
  mapping.map(laneArgument, positions);
  emitStage(Stage::Lanes);
}

Value RegionVectorizer::emitAt(Value position, ArrayRef<Value> values) {
  mapping.map(runningArgument, position);
  for (auto [argument, value] : llvm::zip_equal(region.getArguments().drop_back(4), values))
    mapping.map(argument, value);
  emitStage(Stage::Running);
  return getVector(cast<YieldOp>(region.front().getTerminator()).getResult());
}

Value RegionVectorizer::getFactor() {
  Value factor = attn::getFactor(region);
  return factor ? getVector(factor) : Value();
}

/// The emitted form of a value of the region, broadcast if it is a scalar.
Value RegionVectorizer::getVector(Value value) {
  Value emitted = mapping.lookupOrDefault(value);
  return isa<VectorType>(emitted.getType()) ? emitted : b.splat(emitted);
}

void RegionVectorizer::emitOp(Operation *op, bool isVector) {
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    Value memref = mapping.lookupOrDefault(load.getMemRef());
    SmallVector<Value> indices;
    for (auto [dim, index] : llvm::enumerate(load.getIndices())) {
      Value emitted = mapping.lookupOrDefault(index);
      bool isBounded = mayBeOutside(index, load.getMemRef(), dim);
      indices.push_back(isBounded ? keepInside(b, memref, dim, emitted) : emitted);
    }
    mapping.map(load.getResult(), isVector
                                      ? emitGather(memref, indices, load.getType())
                                      : memref::LoadOp::create(b, memref, indices).getResult());
    return;
  }
  if (!isVector) {
    b.clone(*op, mapping);
    return;
  }
  OperationState state(op->getLoc(), op->getName());
  for (Value operand : op->getOperands())
    state.operands.push_back(getVector(operand));
  for (Type type : op->getResultTypes())
    state.types.push_back(b.vec(type));
  state.attributes = op->getDiscardableAttrDictionary();
  state.propertiesAttr = op->getPropertiesAsAttribute();
  mapping.map(op->getResults(), b.create(state)->getResults());
}

Value attn::keepInside(Emitter &b, Value memref, int64_t dim, Value index) {
  auto toLanes = [&](Value bound) {
    return isa<VectorType>(index.getType()) ? b.splat(bound) : bound;
  };
  Value size = b.createOrFold<memref::DimOp>(memref, dim);
  Value last = b.createOrFold<arith::SubIOp>(size, b.index(1));
  Value upper = b.createOrFold<arith::MinSIOp>(index, toLanes(last));
  return b.createOrFold<arith::MaxSIOp>(upper, toLanes(b.index(0)));
}

/// Elements of any strided buffer, gathered by their distances from the first. Lanes without a row
/// read nothing: their positions may lie outside the buffer. Floats of 16 bits travel as integers,
/// because processors that lack them would have them widened and narrowed on the way.
Value RegionVectorizer::emitGather(Value memref, ValueRange indices, Type element) {
  auto metadata = memref::ExtractStridedMetadataOp::create(b, memref);
  Value distance;
  Value base = metadata.getOffset();
  for (auto [index, stride] : llvm::zip_equal(indices, metadata.getStrides())) {
    if (!isa<VectorType>(index.getType())) {
      base = b.add(base, b.createOrFold<arith::MulIOp>(index, stride));
      continue;
    }
    Value scaled = arith::MulIOp::create(b, index, b.splat(stride));
    distance = distance ? Value(arith::AddIOp::create(b, distance, scaled)) : scaled;
  }
  distance = arith::AddIOp::create(b, distance, b.splat(base));

  Type i64 = b.getI64Type(), stored = element;
  if (element.isIndex())
    stored = i64;
  else if (element.isInteger(1))
    stored = b.getI8Type();
  else if (element.isF16() || element.isBF16())
    stored = b.getI16Type();
  auto pointerType = LLVM::LLVMPointerType::get(b.getContext());
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(b, memref);
  Value integer = arith::IndexCastOp::create(b, i64, address);
  Value pointer = LLVM::IntToPtrOp::create(b, pointerType, integer);
  Value offsets = arith::IndexCastOp::create(b, b.vec(i64), distance);
  Value pointers = LLVM::GEPOp::create(b, b.vec(pointerType), stored, pointer,
                                       ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(offsets)});
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(stored)));
  Value gathered = LLVM::masked_gather::create(
      b, b.vec(stored), pointers, laneMask, ValueRange{none},
      b.getI32IntegerAttr(llvm::divideCeil(stored.getIntOrFloatBitWidth(), 8)));
  if (stored == element)
    return gathered;
  if (element.isIndex())
    return arith::IndexCastOp::create(b, b.vec(element), gathered);
  if (element.isInteger(1))
    return arith::TruncIOp::create(b, b.vec(element), gathered);
  return arith::BitcastOp::create(b, b.vec(element), gathered);
}
