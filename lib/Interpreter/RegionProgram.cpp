//===- RegionProgram.cpp - a score, mask or grad region, ready to run on rows -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/RegionProgram.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace llvm;
using namespace mlir;

namespace attn {

unsigned RegionProgram::getSlot(mlir::Value value) {
  auto [known, isNew] = slots.try_emplace(value, stages.size());
  if (!isNew)
    return known->second;
  stages.push_back(Stage::Once);
  if (value.getParentRegion() != region)
    captures.push_back({value, /*isTensor=*/false, known->second});
  return known->second;
}

unsigned RegionProgram::getTensor(mlir::Value value) {
  for (const Capture &capture : captures)
    if (capture.value == value)
      return capture.index;
  captures.push_back({value, /*isTensor=*/true, unsigned(tensors.size())});
  tensors.push_back(nullptr);
  return captures.back().index;
}

SmallBitVector RegionProgram::findClamped(mlir::Value tensor, mlir::ValueRange indices) {
  SmallBitVector clamped(indices.size());
  for (auto [dim, index] : enumerate(indices))
    clamped[dim] = mayBeOutside(index, tensor, dim);
  return clamped;
}

Expected<RegionProgram::Instruction> RegionProgram::compileContribution(ContributeOp op) {
  Instruction instruction;
  instruction.op = op;
  instruction.kind = Kind::Contribute;
  // Once for each key, even if it is the same for all.
  instruction.stage = Stage::Key;
  if (op.getTensor().getParentRegion() == region)
    return makeOpError(op, "expected a captured tensor");
  instruction.tensor = getTensor(op.getTensor());
  instruction.operands.push_back(getSlot(op.getAddend()));
  instruction.clamped = findClamped(op.getTensor(), op.getIndices());
  for (mlir::Value index : op.getIndices())
    instruction.operands.push_back(getSlot(index));
  return instruction;
}

Expected<RegionProgram::Instruction> RegionProgram::compileOp(Operation &op, unsigned result) {
  Instruction instruction;
  instruction.op = &op;
  mlir::OperandRange operands = op.getOperands();
  if (isa<tensor::ExtractOp, tensor::DimOp>(op)) {
    instruction.kind = isa<tensor::DimOp>(op) ? Kind::Dim : Kind::Extract;
    if (operands[0].getParentRegion() == region)
      return makeOpError(&op, "expected a captured tensor");
    instruction.tensor = getTensor(operands[0]);
    operands = operands.drop_front();
    if (isa<tensor::ExtractOp>(op))
      instruction.clamped = findClamped(op.getOperand(0), operands);
  } else {
    Expected<ScalarOp> scalar = compileScalarResult(op.getResult(result));
    if (!scalar)
      return scalar.takeError();
    if (!op.getResult(result).getType().isIntOrIndexOrFloat())
      return makeOpError(&op, "expected a scalar op");
    instruction.scalar = *scalar;
  }
  for (mlir::Value operand : operands) {
    unsigned slot = getSlot(operand);
    instruction.operands.push_back(slot);
    instruction.stage = std::max(instruction.stage, stages[slot]);
  }
  instruction.result = getSlot(op.getResult(result));
  stages[instruction.result] = instruction.stage;
  return instruction;
}

Expected<RegionProgram> RegionProgram::compile(Region &region, bool exactConstants) {
  RegionProgram program;
  program.region = &region;
  ArrayRef<BlockArgument> arguments = region.getArguments();
  for (auto [slot, argument] : zip_equal(program.positions, arguments.take_back(4)))
    slot = program.getSlot(argument);
  program.stages[2] = Stage::Row, program.stages[3] = Stage::Key;
  // A call is about one row, so b and h change with it.
  program.stages[0] = program.stages[1] = Stage::Row;
  if (arguments.size() >= 5) {
    program.score = program.getSlot(arguments[0]);
    program.stages[*program.score] = Stage::Key;
  }
  if (arguments.size() == 6) {
    program.gradient = program.getSlot(arguments[1]);
    program.stages[*program.gradient] = Stage::Key;
  }
  for (Operation &op : region.front().without_terminator()) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      Expected<RuntimeValue> value = evaluateConstant(constant.getValue(), exactConstants);
      if (!value)
        return makeOpError(&op, value.takeError());
      if (!value->isScalar())
        return makeOpError(&op, "expected a scalar constant");
      program.constants.push_back({program.getSlot(constant), value->getScalar()});
      continue;
    }
    auto contribution = dyn_cast<ContributeOp>(op);
    if (op.getNumResults() == 0 && !contribution)
      return makeOpError(&op, "expected an op that the interpreter knows");
    for (unsigned result = 0; result < std::max(op.getNumResults(), 1u); ++result) {
      Expected<Instruction> instruction =
          contribution ? program.compileContribution(contribution) : program.compileOp(op, result);
      if (!instruction)
        return instruction.takeError();
      program.instructions.push_back(std::move(*instruction));
    }
  }
  auto yield = cast<YieldOp>(region.front().getTerminator());
  program.yielded = program.getSlot(yield.getResult());
  if (yield.getFactor())
    program.factor = program.getSlot(yield.getFactor());
  program.storage.resize(program.stages.size() * width);
  return program;
}

Error RegionProgram::bind(LookupFn lookup) {
  sums.clear();
  for (auto [slot, value] : constants)
    broadcast(slot, value);
  for (const Capture &capture : captures) {
    const RuntimeValue *value = lookup(capture.value);
    if (!value || value->isUnknown())
      return makeOpError(region->getParentOp(),
                         "expected the values that its regions capture, got one without data");
    if (capture.isTensor)
      tensors[capture.index] = value->getTensor();
    else
      broadcast(capture.index, value->getScalar());
  }
  return runStage(Stage::Once, /*count=*/1);
}

void RegionProgram::addContributionsInto(mlir::Value captured, TensorRef into) {
  sums[getTensor(captured)] = std::move(into);
}

/// The element of a tensor that the lane's indices name; each is checked or clamped.
Expected<int64_t> RegionProgram::getPosition(const Instruction &instruction,
                                             const DenseTensor &tensor, ArrayRef<unsigned> indices,
                                             int64_t lane) {
  int64_t position = 0;
  for (auto [dim, slot] : enumerate(indices)) {
    int64_t index = lanesOf(slot)[lane].i, extent = tensor.getShape()[dim];
    if (instruction.clamped[dim])
      index = std::max<int64_t>(std::min(index, extent - 1), 0);
    if (index < 0 || index >= extent)
      return makeOpError(instruction.op, "expected an index below " + Twine(extent) +
                                             " in dimension " + Twine(dim) + ", got " +
                                             Twine(index));
    position = position * extent + index;
  }
  return position;
}

Error RegionProgram::extract(const Instruction &instruction, int64_t count) {
  const DenseTensor &tensor = *tensors[instruction.tensor];
  if (!tensor.hasData())
    return makeOpError(instruction.op, "expected a tensor with data, got a shape only");
  Lane *result = lanesOf(instruction.result);
  for (int64_t i = 0; i < count; ++i) {
    Expected<int64_t> position = getPosition(instruction, tensor, instruction.operands, i);
    if (!position)
      return position.takeError();
    result[i] = tensor.data()[*position];
  }
  return Error::success();
}

Error RegionProgram::contribute(const Instruction &instruction, int64_t count) {
  auto sum = sums.find(instruction.tensor);
  if (sum == sums.end())
    return Error::success();
  DenseTensor &tensor = *sum->second;
  const Lane *addends = lanesOf(instruction.operands.front());
  for (int64_t i = 0; i < count; ++i) {
    Expected<int64_t> position =
        getPosition(instruction, tensor, ArrayRef(instruction.operands).drop_front(), i);
    if (!position)
      return position.takeError();
    if (weights[i].f != 0)
      tensor.data()[*position].f += addends[i].f;
  }
  return Error::success();
}

Error RegionProgram::runStage(Stage stage, int64_t count) {
  SmallVector<const Lane *, 4> operands;
  for (const Instruction &instruction : instructions) {
    if (instruction.stage != stage)
      continue;
    Lane *result = lanesOf(instruction.result);
    if (instruction.kind == Kind::Scalar) {
      operands.clear();
      for (unsigned slot : instruction.operands)
        operands.push_back(lanesOf(slot));
      if (const char *why = instruction.scalar.run(result, operands.data(), count))
        return makeOpError(instruction.op, Twine("undefined: ") + why);
    } else if (instruction.kind == Kind::Extract) {
      if (Error error = extract(instruction, count))
        return error;
    } else if (instruction.kind == Kind::Contribute) {
      if (Error error = contribute(instruction, count))
        return error;
    } else {
      const DenseTensor &tensor = *tensors[instruction.tensor];
      int64_t dim = lanesOf(instruction.operands[0])[0].i;
      if (dim < 0 || dim >= int64_t(tensor.getShape().size()))
        return makeOpError(instruction.op, "expected a dimension of the tensor, got " + Twine(dim));
      for (int64_t i = 0; i < count; ++i)
        result[i].i = tensor.getShape()[dim];
    }
    // Later stages read every lane of what an earlier one computed.
    if (stage != Stage::Key)
      broadcast(instruction.result, result[0]);
  }
  return Error::success();
}

Error RegionProgram::run(int64_t b, int64_t h, int64_t m, int64_t n, int64_t count, Lane *lanes,
                         std::optional<Gradients> gradients, Lane *factors) {
  int64_t row[] = {b, h, m};
  for (auto [i, position] : enumerate(row))
    broadcast(positions[i], {.i = position});
  if (Error error = runStage(Stage::Row, /*count=*/1))
    return error;
  for (int64_t begin = 0; begin < count; begin += width) {
    int64_t size = std::min(width, count - begin);
    Lane *keys = lanesOf(positions[3]);
    for (int64_t i = 0; i < size; ++i)
      keys[i].i = n + begin + i;
    if (score)
      std::copy_n(lanes + begin, size, lanesOf(*score));
    if (gradients) {
      std::copy_n(gradients->lanes + begin, size, lanesOf(*gradient));
      weights = gradients->weights + begin;
    }
    if (Error error = runStage(Stage::Key, size))
      return error;
    std::copy_n(lanesOf(yielded), size, lanes + begin);
    if (factor && factors)
      std::copy_n(lanesOf(*factor), size, factors + begin);
  }
  return Error::success();
}

} // namespace attn
