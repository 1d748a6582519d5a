//===- Chains.cpp - steps that hand late ops on --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Chains.h"

using namespace mlir;
using namespace attn::tile;

/// The value of a carried result for the steps after this one.
static Value getOutput(LateOps &late, const LateOps::Carried &carried) {
  return late.loop ? Value(late.loop.getResult(carried.index)) : carried.result;
}

/// Whether two lists of late ops differ in nothing but the values from outside.
static bool areAlike(const LateOps &a, const LateOps &b) {
  if (a.ops.size() != b.ops.size() || a.carried.size() != b.carried.size())
    return false;
  DenseMap<Value, Value> made;
  for (auto [one, other] : llvm::zip_equal(a.ops, b.ops)) {
    if (one->getName() != other->getName() || one->getNumRegions() > 0 ||
        one->getAttrDictionary() != other->getAttrDictionary() ||
        one->getResultTypes() != other->getResultTypes() ||
        one->getOperandTypes() != other->getOperandTypes())
      return false;
    for (auto [x, y] : llvm::zip_equal(one->getOperands(), other->getOperands())) {
      bool isMade = llvm::is_contained(a.ops, x.getDefiningOp());
      if (isMade ? made.lookup(x) != y : llvm::is_contained(b.ops, y.getDefiningOp()))
        return false;
      if (!isMade && x != y && !isHandedOn(x.getType()))
        return false;
    }
    for (auto [x, y] : llvm::zip_equal(one->getResults(), other->getResults()))
      made[x] = y;
  }
  return llvm::all_of(llvm::zip_equal(a.carried, b.carried), [&](auto pair) {
    return made.lookup(std::get<0>(pair).result) == std::get<1>(pair).result;
  });
}

/// Whether only late ops of a step on its own read a value, and the next loop, which carries it
/// once.
static bool isReadBy(Value value, LateOps &late, LateOps &next) {
  return llvm::count(next.loop.getInitArgs(), value) <= 1 &&
         llvm::all_of(value.getUses(), [&](OpOperand &use) {
           return use.getOwner() == next.loop ||
                  (!late.loop && llvm::is_contained(late.ops, use.getOwner()));
         });
}

/// Whether `next` can do what `late` leaves.
static bool handsOn(LateOps &late, LateOps &next) {
  if (late.carried.empty() || !areAlike(late, next))
    return false;
  for (auto [from, to] : llvm::zip_equal(late.carried, next.carried)) {
    Value output = getOutput(late, from);
    Value init = next.loop.getInitArgs()[to.index];
    if (output != init || !isReadBy(output, late, next))
      return false;
  }
  // A result of late ops of a step on its own is not there yet for other readers.
  for (Operation *op : late.loop ? ArrayRef<Operation *>() : late.ops)
    if (!llvm::all_of(op->getResults(), [&](Value made) { return isReadBy(made, late, next); }))
      return false;
  Operation *begin = late.loop ? late.loop->getNextNode() : late.ops.front();
  return !touchSameMemory(late.ops, begin, next.loop);
}

/// The loop after `late` that takes its first carried result.
static scf::ForOp getNextLoop(LateOps &late) {
  if (late.carried.empty())
    return {};
  Value output = getOutput(late, late.carried.front());
  auto next = output.hasOneUse() ? dyn_cast<scf::ForOp>(*output.user_begin()) : scf::ForOp();
  return next && next->getBlock() == late.loop->getBlock() ? next : scf::ForOp();
}

FailureOr<SmallVector<LateOps>> attn::tile::findChain(scf::ForOp loop, Misfit &misfit) {
  FailureOr<LateOps> late = findLateOps(loop, misfit);
  if (failed(late))
    return failure();
  SmallVector<LateOps> chain;
  SmallVector<Value> inits;
  for (const LateOps::Carried &carried : late->carried)
    inits.push_back(loop.getInitArgs()[carried.index]);
  LateOps before = findLateOpsBefore(loop, inits);
  if (!before.ops.empty() && handsOn(before, *late))
    chain.push_back(before);
  chain.push_back(*late);
  while (scf::ForOp next = getNextLoop(chain.back())) {
    late = findLateOps(next, misfit);
    if (failed(late))
      return failure();
    if (late->ops.empty() || !handsOn(chain.back(), *late))
      break;
    chain.push_back(*late);
  }
  return chain;
}
