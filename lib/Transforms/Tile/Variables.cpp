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

SmallVector<Value> Variables::get(ArrayRef<unsigned> indices) const {
  return llvm::map_to_vector(indices, [&](unsigned index) { return current[index]; });
}

void Variables::set(ArrayRef<unsigned> indices, ValueRange values) {
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
  return TypeSwitch<Operation *, FailureOr<Operation *>>(op)
      .Case<scf::ForOp>([&](scf::ForOp loop) { return runFor(loop, enter, leave); })
      .Case<scf::IfOp>([&](scf::IfOp branch) { return runIf(branch, enter, leave); })
      .Case<scf::WhileOp>([&](scf::WhileOp loop) { return runWhile(loop, enter, leave); })
      .Default([](Operation *other) {
        return other->emitOpError(
            "expected scf.for, scf.if or scf.while around ops that fill or release a place");
      });
}

static void appendOperands(Operation *op, ValueRange values) {
  op->insertOperands(op->getNumOperands(), values);
}

FailureOr<Operation *> Variables::runFor(scf::ForOp loop, Enter enter, Leave leave) {
  SmallVector<unsigned> indices = changes.lookup(loop);
  SmallVector<Value> inits(loop.getInitArgs());
  llvm::append_range(inits, get(indices));
  rewriter.setInsertionPoint(loop);
  auto longer = scf::ForOp::create(rewriter, loop.getLoc(), loop.getLowerBound(),
                                   loop.getUpperBound(), loop.getStep(), inits,
                                   /*bodyBuilder=*/nullptr, loop.getUnsignedCmp());
  longer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  unsigned count = loop.getNumResults();
  longer.getRegion().takeBody(loop.getRegion());
  Block &body = *longer.getBody();
  for (Value init : ValueRange(inits).drop_front(count))
    body.addArgument(init.getType(), init.getLoc());
  set(indices, longer.getRegionIterArgs().drop_front(count));
  if (failed(run(body, enter, leave)))
    return failure();
  appendOperands(body.getTerminator(), get(indices));
  rewriter.replaceAllUsesWith(loop.getResults(), longer.getResults().take_front(count));
  set(indices, longer.getResults().drop_front(count));
  return longer.getOperation();
}

FailureOr<Operation *> Variables::runIf(scf::IfOp branch, Enter enter, Leave leave) {
  SmallVector<unsigned> indices = changes.lookup(branch);
  SmallVector<Value> values = get(indices);
  SmallVector<Type> types(branch.getResultTypes());
  llvm::append_range(types, ValueRange(values).getTypes());
  bool hasElse = !branch.getElseRegion().empty();
  rewriter.setInsertionPoint(branch);
  auto wider = scf::IfOp::create(rewriter, branch.getLoc(), types, branch.getCondition(),
                                 /*withElseRegion=*/hasElse || !indices.empty());
  wider->setDiscardableAttrs(branch->getDiscardableAttrDictionary());
  unsigned count = branch.getNumResults();
  wider.getThenRegion().takeBody(branch.getThenRegion());
  if (hasElse)
    wider.getElseRegion().takeBody(branch.getElseRegion());
  for (Region *region : {&wider.getThenRegion(), &wider.getElseRegion()}) {
    if (region->empty())
      continue;
    Block &block = region->front();
    set(indices, values);
    if (!block.mightHaveTerminator()) {
      // A branch that was not there.
      rewriter.setInsertionPointToEnd(&block);
      scf::YieldOp::create(rewriter, branch.getLoc(), get(indices));
      continue;
    }
    if (failed(run(block, enter, leave)))
      return failure();
    appendOperands(block.getTerminator(), get(indices));
  }
  rewriter.replaceAllUsesWith(branch.getResults(), wider.getResults().take_front(count));
  set(indices, wider.getResults().drop_front(count));
  return wider.getOperation();
}

FailureOr<Operation *> Variables::runWhile(scf::WhileOp loop, Enter enter, Leave leave) {
  SmallVector<unsigned> indices = changes.lookup(loop);
  SmallVector<Value> values = get(indices), inits(loop.getInits());
  llvm::append_range(inits, values);
  SmallVector<Type> types(loop.getResultTypes());
  llvm::append_range(types, ValueRange(values).getTypes());
  rewriter.setInsertionPoint(loop);
  auto longer = scf::WhileOp::create(rewriter, loop.getLoc(), types, inits,
                                     /*beforeBuilder=*/nullptr, /*afterBuilder=*/nullptr);
  longer->setDiscardableAttrs(loop->getDiscardableAttrDictionary());
  longer.getBefore().takeBody(loop.getBefore());
  longer.getAfter().takeBody(loop.getAfter());
  for (Region *region : {&longer.getBefore(), &longer.getAfter()}) {
    Block &block = region->front();
    SmallVector<Value> arguments;
    for (Value value : values)
      arguments.push_back(block.addArgument(value.getType(), value.getLoc()));
    set(indices, arguments);
    if (failed(run(block, enter, leave)))
      return failure();
    appendOperands(block.getTerminator(), get(indices));
  }
  unsigned count = loop.getNumResults();
  rewriter.replaceAllUsesWith(loop.getResults(), longer.getResults().take_front(count));
  set(indices, longer.getResults().drop_front(count));
  return longer.getOperation();
}
