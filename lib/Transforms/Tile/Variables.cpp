//===- Variables.cpp - values that ops change, through loops and branches ----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Variables.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

unsigned Variables::add(Value initial) {
  current.push_back(initial);
  return current.size() - 1;
}

void Variables::addChange(unsigned index, Operation *op) {
  for (Operation *around = op->getParentOp(); around; around = around->getParentOp()) {
    SmallVector<unsigned> &indices = changes[around];
    // In order, so that what is carried does not depend on where it changes first.
    unsigned *place = llvm::lower_bound(indices, index);
    if (place == indices.end() || *place != index)
      indices.insert(place, index);
  }
}

SmallVector<Value> Variables::get(Indices indices) const {
  return llvm::map_to_vector(indices, [&](unsigned index) { return current[index]; });
}

void Variables::set(Indices indices, ValueRange values) {
  for (auto [index, value] : llvm::zip_equal(indices, values))
    current[index] = value;
}

LogicalResult Variables::run(Block &block, Enter enter, Leave leave) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    enter(&op);
    FailureOr<Operation *> now = runRegions(&op, enter, leave);
    if (failed(now))
      return failure();
    leave(&op, *now);
    if (*now != &op)
      rewriter.eraseOp(&op);
  }
  return success();
}

FailureOr<Operation *> Variables::runRegions(Operation *op, Enter enter, Leave leave) {
  if (!changes.contains(op)) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (failed(run(block, enter, leave)))
          return failure();
    return op;
  }
  SmallVector<unsigned> indices = changes.lookup(op);
  rewriter.setInsertionPoint(op);
  return TypeSwitch<Operation *, FailureOr<Operation *>>(op)
      .Case([&](scf::ForOp loop) { return runFor(loop, indices, enter, leave); })
      .Case([&](scf::IfOp branch) { return runIf(branch, indices, enter, leave); })
      .Case([&](scf::WhileOp loop) { return runWhile(loop, indices, enter, leave); })
      .Default([](Operation *other) {
        return other->emitOpError(
            "expected scf.for, scf.if or scf.while around ops that fill or release a place");
      });
}

LogicalResult Variables::runBlock(Block &block, Indices indices, ValueRange values, Enter enter,
                                  Leave leave) {
  set(indices, values);
  if (failed(run(block, enter, leave)))
    return failure();
  Operation *terminator = block.getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), get(indices));
  return success();
}

Operation *Variables::replace(Operation *op, Operation *wider, Indices indices) {
  wider->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  unsigned count = op->getNumResults();
  rewriter.replaceAllUsesWith(op->getResults(), wider->getResults().take_front(count));
  set(indices, wider->getResults().drop_front(count));
  return wider;
}

static SmallVector<Value> concatenate(ValueRange values, ValueRange more) {
  SmallVector<Value> all(values);
  llvm::append_range(all, more);
  return all;
}

static SmallVector<Value> addArguments(Block &block, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) -> Value {
    return block.addArgument(value.getType(), value.getLoc());
  });
}

FailureOr<Operation *> Variables::runFor(scf::ForOp loop, Indices indices, Enter enter,
                                         Leave leave) {
  SmallVector<Value> values = get(indices);
  auto longer =
      scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(), loop.getUpperBound(),
                         loop.getStep(), concatenate(loop.getInitArgs(), values),
                         /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  longer.getRegion().takeBody(loop.getRegion());
  Block &body = *longer.getBody();
  if (failed(runBlock(body, indices, addArguments(body, values), enter, leave)))
    return failure();
  return replace(loop, longer, indices);
}

FailureOr<Operation *> Variables::runIf(scf::IfOp branch, Indices indices, Enter enter,
                                        Leave leave) {
  SmallVector<Value> values = get(indices);
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, ValueRange(values).getTypes());
  auto wider = scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(),
                                 /*withElseRegion=*/true);
  wider.getThenRegion().takeBody(branch.getThenRegion());
  if (branch.getElseRegion().empty()) {
    rewriter.setInsertionPointToEnd(wider.elseBlock());
    scf::YieldOp::create(rewriter, branch.getLoc());
  } else {
    wider.getElseRegion().takeBody(branch.getElseRegion());
  }
  for (Block *block : {wider.thenBlock(), wider.elseBlock()})
    if (failed(runBlock(*block, indices, values, enter, leave)))
      return failure();
  return replace(branch, wider, indices);
}

FailureOr<Operation *> Variables::runWhile(scf::WhileOp loop, Indices indices, Enter enter,
                                           Leave leave) {
  SmallVector<Value> values = get(indices);
  SmallVector<Type> types(loop.getResultTypes());
  llvm::append_range(types, ValueRange(values).getTypes());
  auto longer =
      scf::WhileOp::create(rewriter, loop.getLoc(), types, concatenate(loop.getInits(), values),
                           /*beforeBuilder=*/nullptr, /*afterBuilder=*/nullptr);
  longer.getBefore().takeBody(loop.getBefore());
  longer.getAfter().takeBody(loop.getAfter());
  for (Block *block : {longer.getBeforeBody(), longer.getAfterBody()})
    if (failed(runBlock(*block, indices, addArguments(*block, values), enter, leave)))
      return failure();
  return replace(loop, longer, indices);
}
