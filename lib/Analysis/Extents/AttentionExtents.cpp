//===- AttentionExtents.cpp - what attention, its gradients and merging rely on ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Analysis/Extents/ExtentFinder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace llvm;

namespace attn {

using TermKind = ExtentTerm::Kind;
using RuleKind = ExtentRule::Kind;

static constexpr Letter kPositions[] = {Letter::B, Letter::H, Letter::M, Letter::N};

/// The operands that attention and its gradients share.
void ExtentFinder::visitScores(ScoredOpInterface op) {
  Groups query = getGroups(op.getQuery()), key = getGroups(op.getKey()),
         value = getGroups(op.getValue());
  for (auto [a, b] :
       {std::pair(query[0], key[0]), std::pair(query[0], value[0]), std::pair(key[1], value[1]),
        std::pair(key[2], value[2]), std::pair(query[3], key[3])})
    join(a, b);
  if (op.getSink())
    join(Groups(ArrayRef(query).slice(1, op.getSink().getType().getRank())),
         getGroups(op.getSink()));
  require(RuleKind::Multiple, makeExtent(query[1]), makeExtent(key[1]));
  extents.attentions.push_back({query[0], query[1], key[1], query[2], key[2], query[3], value[3]});

  setLetters(findArgument(op.getQuery()), {Letter::B, Letter::H, Letter::M, Letter::D});
  setLetters(findArgument(op.getKey()), {Letter::B, Letter::Hkv, Letter::N, Letter::D});
  setLetters(findArgument(op.getValue()), {Letter::B, Letter::Hkv, Letter::N, Letter::Dv});
  if (op.getSink())
    setLetters(findArgument(op.getSink()),
               ArrayRef(kPositions).slice(1, op.getSink().getType().getRank()));
  for (mlir::Region *region : {&op.getScore(), &op.getMask()})
    visitReads(op, *region);
  // Tables of positions have the op's own extents; what is read there is of the whole.
  PositionsAttr positions = findPositions(op);
  size_t numPlaces = positions ? getCaptureRules(positions)->size() : 0;
  for (auto [number, rule, capture] : enumerate(getCaptureRules(op), op.getCaptures()))
    for (auto [dim, name] : enumerate(rule.dims)) {
      // M and N of a whole.
      if (name == '2')
        require(RuleKind::AtLeast, makeExtent(getGroups(capture)[dim]), makeConstant(2));
      for (auto [position, letter] : enumerate(kPositions))
        if (StringRef(&name, 1) == getName(letter) &&
            (number < numPlaces || readsOwn(op, position)))
          requireRead(op, capture, dim, position);
    }
}

void ExtentFinder::visit(AttentionOp op) {
  visitScores(op);
  Groups query = getGroups(op.getQuery()), value = getGroups(op.getValue());
  join({query[0], query[1], query[2], value[3]}, getGroups(op.getOutput()));
  for (mlir::Value rows : {op.getLse(), op.getLseLow()})
    if (rows)
      join({query[0], query[1], query[2]}, getGroups(rows));
}

/// The extents of a tensor hold for its gradient.
void ExtentFinder::visit(AttentionGradOp op) {
  visitScores(op);
  Groups query = getGroups(op.getQuery()), value = getGroups(op.getValue()),
         output = {query[0], query[1], query[2], value[3]}, lse = {query[0], query[1], query[2]};
  for (mlir::Value like : {op.getOutput(), op.getDOutput()}) {
    join(output, getGroups(like));
    setLetters(findArgument(like), {Letter::B, Letter::H, Letter::M, Letter::Dv});
  }
  for (mlir::Value like : {op.getLse(), op.getLseLow(), op.getDLse()})
    if (like) {
      join(lse, getGroups(like));
      setLetters(findArgument(like), {Letter::B, Letter::H, Letter::M});
    }
  for (auto [gradient, source] :
       {std::pair<mlir::Value, mlir::Value>{op.getDQuery(), op.getQuery()},
        {op.getDKey(), op.getKey()},
        {op.getDValue(), op.getValue()},
        {op.getDSink(), op.getSink()}})
    if (gradient)
      join(gradient, source);
  for (auto [gradient, source] : zip_equal(op.getDWrt(), op.getWrt()))
    join(gradient, source);
}

/// A dimension that is read at the positions b, h, m or n of an op, or `shift` places after them.
void ExtentFinder::requireRead(ScoredOpInterface op, mlir::Value tensor, size_t dim,
                               size_t position, int64_t shift) {
  const auto &letters = extents.attentions.back();
  unsigned group = getGroups(tensor)[dim];
  Letter letter = kPositions[position];
  Extent end = makeExtent(letters[size_t(letter)]);
  if (!op.getOrigin().empty()) {
    // As for any computed index, it is the caller who knows where else positions may begin.
    std::optional<Extent> origin = getExtent(op.getOrigin()[position]);
    if (!origin)
      return;
    require(RuleKind::AtLeast, *origin, makeConstant(0));
    end.append(*origin);
    end.push_back({TermKind::Add, 0});
    letter = Letter::None;
  }
  if (shift != 0) {
    end.append({{TermKind::Constant, shift}, {TermKind::Add, 0}});
    letter = Letter::None;
  }
  require(RuleKind::AtLeast, makeExtent(group), std::move(end), letter);
  ExtentDims *dims = shift == 0 ? findArgument(tensor) : nullptr;
  if (dims)
    reads.push_back({dims, dim, kPositions[position]});
}

/// The argument that an index is, or the one a constant number of places before it.
static std::pair<mlir::BlockArgument, int64_t> findPosition(mlir::Value index) {
  constexpr int64_t kMostPlaces = int64_t(1) << 62;
  int64_t shift = 0;
  while (mlir::Operation *op = index.getDefiningOp()) {
    if (!isa<mlir::arith::AddIOp, mlir::arith::SubIOp>(op) || !index.getType().isIndex())
      return {};
    bool isFirst = isa<mlir::arith::AddIOp>(op) && mlir::getConstantIntValue(op->getOperand(0));
    std::optional<int64_t> places = mlir::getConstantIntValue(op->getOperand(isFirst ? 0 : 1));
    if (!places || *places < -kMostPlaces || *places > kMostPlaces)
      return {};
    shift += isa<mlir::arith::SubIOp>(op) ? -*places : *places;
    if (shift < -kMostPlaces || shift > kMostPlaces)
      return {};
    index = op->getOperand(isFirst ? 1 : 0);
  }
  return {cast<mlir::BlockArgument>(index), shift};
}

/// A tensor read at [%h, %n + 2] has at least H rows and N + 2 columns: the region's last four
/// arguments are the positions.
void ExtentFinder::visitReads(ScoredOpInterface op, mlir::Region &region) {
  if (region.empty())
    return;
  unsigned first = region.getNumArguments() - 4;
  region.walk([&](mlir::tensor::ExtractOp extract) {
    for (auto [dim, operand] : enumerate(extract.getIndicesMutable())) {
      mlir::Value index = operand.get();
      auto [argument, shift] = findPosition(index);
      bool isPosition =
          argument && argument.getOwner() == &region.front() && argument.getArgNumber() >= first;
      if (isPosition && !isOwnIndex(operand) && !readsOwn(op, argument.getArgNumber() - first))
        continue;
      if (isPosition && shift >= 0)
        requireRead(op, extract.getTensor(), dim, argument.getArgNumber() - first, shift);
      else if (std::optional<Extent> extent = getExtent(index))
        requireWithin(extract, getGroups(extract.getTensor())[dim], index,
                      mlir::OpBuilder(extract).getIndexAttr(1),
                      mlir::OpBuilder(extract).getIndexAttr(1));
    }
  });
}

void ExtentFinder::visit(MergeOp op) {
  Groups partial = getGroups(op.getPartial()), logarithms = getGroups(op.getPartialLse()),
         output = getGroups(op.getOutput());
  // Of buffers nothing is known here.
  if (partial.empty())
    return setUnknown(op, "expected tensors");
  join(logarithms, partial);
  if (op.getPartialLow())
    join(getGroups(op.getPartialLow()), partial);
  join(Groups(drop_begin(partial)), output);
  for (mlir::Value rows : {op.getLse(), op.getLseLow()})
    if (rows)
      join(output, getGroups(rows));
  for (auto [init, result] : zip(op.getDpsInits(), op->getResults()))
    join(init, result);
}

} // namespace attn
