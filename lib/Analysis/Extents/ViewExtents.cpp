//===- ViewExtents.cpp - what views and moved rows rely on ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Extents/ExtentFinder.h"

using namespace llvm;

namespace attn {

using TermKind = ExtentTerm::Kind;
using RuleKind = ExtentRule::Kind;

/// Whether a view is of values alone, which have columns of their own.
static bool isValue(mlir::Operation *view) {
  return llvm::none_of(view->getUsers(), [&](mlir::Operation *user) {
    auto scored = dyn_cast<ScoredOpInterface>(user);
    return (isa<ScaledOp>(user) && !isValue(user)) ||
           (scored &&
            (scored.getKey() == view->getResult(0) || scored.getQuery() == view->getResult(0)));
  });
}

void ExtentFinder::visit(PagedOp op) {
  Groups pool = getGroups(op.getPool()), table = getGroups(op.getTable()), view = getGroups(op);
  join(view[0], table[0]);
  join(view[1], pool[2]);
  join(view[3], pool[3]);
  Extent keys = makeExtent(table[1]);
  keys.append({{TermKind::Constant, op.getPageSize()}, {TermKind::Mul, 0}});
  require(RuleKind::Equal, makeExtent(view[2]), std::move(keys));
  // s19: where entries are, so is a page that their place in memory can be.
  Extent least = makeExtent(table[1]);
  least.append({{TermKind::Constant, 1}, {TermKind::Min, 0}});
  require(RuleKind::AtLeast, makeExtent(pool[0]), std::move(least), Letter::Np);
  setLetters(findArgument(op.getTable()), {Letter::B, Letter::C});
  setLetters(findArgument(op.getPool()),
             {Letter::Np, Letter::P, Letter::Hkv, isValue(op) ? Letter::Dv : Letter::D});
}

/// There is an offset more than there are sequences.
void ExtentFinder::joinOffsets(unsigned batches, mlir::Value offsets) {
  unsigned group = getGroups(offsets)[0];
  Extent one = makeConstant(1), fewer = makeExtent(group), more = makeExtent(batches);
  fewer.append({one[0], {TermKind::Sub, 0}});
  more.append({one[0], {TermKind::Add, 0}});
  require(RuleKind::AtLeast, makeExtent(group), std::move(one));
  // Either may tell the other.
  require(RuleKind::Equal, makeExtent(batches), std::move(fewer));
  require(RuleKind::Equal, makeExtent(group), std::move(more));
}

void ExtentFinder::visit(RaggedOp op) {
  Groups rows = getGroups(op.getRows()), view = getGroups(op);
  join(view[1], rows[1]);
  join(Groups(drop_begin(view, 3)), Groups(drop_begin(rows, 2)));
  joinOffsets(view[0], op.getOffsets());
  // s20: the same offsets are of as many rows.
  join(totals.try_emplace(op.getOffsets(), rows[0]).first->second, rows[0]);
  define(op, view[2], op.getUpTo());
  // s20: a row that is not there has a place all the same.
  Extent least = makeExtent(view[2]);
  least.append({{TermKind::Constant, 1}, {TermKind::Min, 0}});
  require(RuleKind::AtLeast, makeExtent(rows[0]), std::move(least), Letter::T);
  bool isOfQueries = llvm::any_of(op->getUsers(), [&](mlir::Operation *user) {
    auto scored = dyn_cast<ScoredOpInterface>(user);
    return scored && scored.getKey() != op.getResult() && scored.getValue() != op.getResult();
  });
  const Letter letters[] = {Letter::T, isOfQueries ? Letter::H : Letter::Hkv,
                            isValue(op) ? Letter::Dv : Letter::D};
  setLetters(findArgument(op.getRows()), ArrayRef(letters).take_front(rows.size()));
  // The most rows have the letter of the size that they are.
  auto dim = op.getUpTo().getDefiningOp<mlir::tensor::DimOp>();
  ExtentDims *dims = dim ? findArgument(dim.getSource()) : findArgument(op.getUpTo());
  size_t index = dim ? dim.getConstantIndex().value_or(-1) : 0;
  if (dims && index < dims->size() && (*dims)[index].letter == Letter::None)
    (*dims)[index].letter = isOfQueries ? Letter::M : Letter::N;
}

void ExtentFinder::visit(PlaceOp op) {
  Groups source = getGroups(op.getSource()), dest = getGroups(op.getDest());
  joinOffsets(source[0], op.getOffsets());
  join(source[1], dest[1]);
  join(Groups(drop_begin(source, 3)), Groups(drop_begin(dest, 2)));
  join(op.getDest(), op.getResult());
}

void ExtentFinder::visitMoved(mlir::Operation *op, const MovedRows &rows) {
  Groups source = getGroups(rows.source), dest = getGroups(rows.dest);
  if (source.empty())
    return setUnknown(op, "expected tensors");
  bool hasPages = bool(rows.slots);
  join(Groups(drop_begin(source, hasPages)), Groups(drop_begin(dest, hasPages ? 2 : 0)));
  for (mlir::Value numbers : {rows.slots, rows.positions})
    if (numbers)
      join(source[0], getGroups(numbers)[0]);
  if (rows.cos) {
    join(rows.cos, rows.sin);
    // s28: a position beyond the tables reads their nearest line.
    require(RuleKind::AtLeast, makeExtent(getGroups(rows.cos)[0]), makeConstant(1));
  }
  join(rows.dest, op->getResult(0));
  setLetters(findArgument(rows.source), {Letter::T, hasPages ? Letter::Hkv : Letter::H, Letter::D});
}

/// A scale for each head that is read, or for fewer, and for each block of rows.
void ExtentFinder::visit(ScaledOp op) {
  Groups source = getGroups(op.getSource()), scale = getGroups(op.getScale());
  join(op.getSource(), op.getResult());
  auto type = cast<mlir::RankedTensorType>(op.getScale().getType());
  if (scale.empty())
    return;
  if (type.getDimSize(0) != 1)
    join(source[0], scale[0]);
  require(RuleKind::Multiple, makeExtent(source[1]), makeExtent(scale[1]));
  SmallVector<Letter, 3> letters = {Letter::B, Letter::Hkv};
  if (op.getBlock()) {
    Extent blocks = makeExtent(source[2]);
    blocks.append({{TermKind::Constant, int64_t(*op.getBlock())}, {TermKind::CeilDiv, 0}});
    require(RuleKind::Equal, makeExtent(scale[2]), std::move(blocks));
    letters.push_back(Letter::None);
  }
  setLetters(findArgument(op.getScale()), letters);
}

} // namespace attn
