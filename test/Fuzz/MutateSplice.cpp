//===- MutateSplice.cpp - parts of other programs ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "test/Fuzz/Mutator.h"

using namespace mlir;

namespace attn::fuzz {

/// Gives everything that `values` stand for a value visible before `at`.
static bool mapValues(ValueRange values, Operation *at, IRMapping &mapping, Rng &rng) {
  for (Value value : values) {
    if (mapping.contains(value))
      continue;
    Value here = getValue(at, value.getType(), rng);
    if (!here)
      return false;
    mapping.map(value, here);
  }
  return true;
}

static bool mapOperands(Operation *op, Operation *at, IRMapping &mapping, Rng &rng) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return mapValues(op->getOperands(), at, mapping, rng) &&
         mapValues(captured.getArrayRef(), at, mapping, rng);
}

bool spliceOp(Subject &subject) {
  Operation *op = subject.rng.pick(subject.rng.pick(subject.corpus.programs).ops);
  Operation *at = subject.pickOp();
  if (op->hasTrait<OpTrait::IsTerminator>() || isa<FunctionOpInterface>(op) ||
      isa<ModuleOp>(at->getParentOp()))
    return false;
  IRMapping mapping;
  if (!mapOperands(op, at, mapping, subject.rng))
    return false;
  Operation *copy = op->clone(mapping);
  at->getBlock()->getOperations().insert(at->getIterator(), copy);
  // What comes after reads its results, as far as the types allow.
  for (Value result : copy->getResults())
    for (Operation *later = at; later; later = later->getNextNode())
      for (OpOperand &operand : later->getOpOperands())
        if (operand.get().getType() == result.getType() && subject.rng.oneIn(3))
          operand.set(result);
  return true;
}

/// The body of an op of the same name.
bool spliceRegion(Subject &subject) {
  Operation *at = subject.pickOp();
  if (at->getNumRegions() == 0 || isa<FunctionOpInterface>(at))
    return false;
  SmallVector<Operation *> donors;
  for (int tries = 0; tries < 24; ++tries)
    for (Operation *op : subject.rng.pick(subject.corpus.programs).ops)
      if (op->getName() == at->getName() && op->getNumRegions() == at->getNumRegions())
        donors.push_back(op);
  if (donors.empty())
    return false;
  unsigned index = subject.rng.below(at->getNumRegions());
  Region &from = subject.rng.pick(donors)->getRegion(index), &to = at->getRegion(index);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(from, captured);
  IRMapping mapping;
  if (!mapValues(captured.getArrayRef(), at, mapping, subject.rng))
    return false;
  to.dropAllReferences();
  to.getBlocks().clear();
  from.cloneInto(&to, mapping);
  return true;
}

bool spliceFunction(Subject &subject) {
  SmallVector<func::FuncOp> functions(
      subject.rng.pick(subject.corpus.programs).module.get().getOps<func::FuncOp>());
  if (functions.empty())
    return false;
  func::FuncOp copy = subject.rng.pick(functions).clone();
  std::string name = copy.getName().str();
  while (subject.module.lookupSymbol(name))
    name += "_";
  copy.setName(name);
  Block *body = subject.module.getBody();
  body->getOperations().insert(subject.rng.oneIn(2) ? body->begin() : body->end(), copy);
  return true;
}

} // namespace attn::fuzz
