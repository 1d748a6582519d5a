//===- LateInputs.cpp - what late ops take from outside ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Tile/LateInputs.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

SmallVector<Value> attn::tile::getInputs(const LateOps &late) {
  SmallVector<Value> values;
  auto add = [&](Value value) {
    values.push_back(llvm::is_contained(late.ops, value.getDefiningOp()) ? Value() : value);
  };
  for (Operation *op : late.ops) {
    llvm::for_each(op->getOperands(), add);
    llvm::for_each(getCaptured(op), add);
  }
  return values;
}

/// The position of an op's first operand there.
static size_t getFirstPosition(const LateOps &late, Operation *op) {
  size_t position = 0;
  for (Operation *before : late.ops) {
    if (before == op)
      break;
    position += before->getNumOperands() + getCaptured(before).size();
  }
  return position;
}

LateInputs::LateInputs(ArrayRef<LateOps> steps) {
  find(steps);
  lendCarried(steps);
  unsigned count = 0;
  for (LateInput &input : inputs)
    if (!input.common && !input.lent)
      input.added = count++;
}

void LateInputs::find(ArrayRef<LateOps> steps) {
  SmallVector<SmallVector<Value>> values = llvm::map_to_vector(steps, getInputs);
  size_t count = values.front().size();
  numberAt.resize(count);
  auto isSame = [&](size_t a, size_t b) {
    return llvm::all_of(values, [&](ArrayRef<Value> ofStep) { return ofStep[a] == ofStep[b]; });
  };
  // Tiles are handed on before numbers.
  for (bool isTile : {true, false})
    for (size_t i = 0; i < count; ++i) {
      Value value = values.front()[i];
      if (!value || isa<RankedTensorType>(value.getType()) != isTile)
        continue;
      auto *known =
          llvm::find_if(inputs, [&](LateInput &input) { return isSame(input.position, i); });
      numberAt[i] = known - inputs.begin();
      if (known != inputs.end())
        continue;
      bool isCommon = llvm::all_of(llvm::zip_equal(steps, values), [&](auto pair) {
        auto [step, ofStep] = pair;
        scf::ForOp loop = step.loop;
        return ofStep[i] == value && (!loop || loop.isDefinedOutsideOfLoop(value));
      });
      inputs.push_back({value.getType(), i, isCommon ? value : Value(), {}, {}});
    }
}

/// The value from which a carried result starts takes its place: the result of the turn before, or
/// an operand of the op that makes the result (accumulators are the last operands).
void LateInputs::lendCarried(ArrayRef<LateOps> steps) {
  SmallVector<Value> values = getInputs(steps.back());
  scf::ForOp loop = steps.back().loop;
  for (auto [index, carried] : llvm::enumerate(steps.back().carried))
    for (LateInput &input : inputs)
      if (values[input.position] == loop.getRegionIterArg(carried.index))
        input.lent = index;
  for (auto [index, carried] : llvm::enumerate(steps.front().carried)) {
    if (findLent(index))
      continue;
    Operation *maker = carried.result.getDefiningOp();
    size_t position = getFirstPosition(steps.front(), maker);
    for (size_t i = position + maker->getNumOperands(); i-- > position;) {
      LateInput *input = numberAt[i] ? &inputs[*numberAt[i]] : nullptr;
      if (input && input->type == carried.result.getType() && !input->common && !input->lent) {
        input->lent = index;
        break;
      }
    }
  }
}

std::optional<unsigned> LateInputs::findLent(size_t index) const {
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.lent == index)
      return number;
  return std::nullopt;
}
