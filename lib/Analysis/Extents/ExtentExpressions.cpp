//===- ExtentExpressions.cpp - extents as arithmetic on arguments -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Extents/ExtentFinder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;

namespace attn {

using TermKind = ExtentTerm::Kind;
using RuleKind = ExtentRule::Kind;

static std::optional<TermKind> getKind(mlir::Operation *op) {
  return TypeSwitch<mlir::Operation *, std::optional<TermKind>>(op)
      .Case([](mlir::arith::AddIOp) { return TermKind::Add; })
      .Case([](mlir::arith::SubIOp) { return TermKind::Sub; })
      .Case([](mlir::arith::MulIOp) { return TermKind::Mul; })
      .Case([](mlir::arith::DivSIOp) { return TermKind::Div; })
      .Case([](mlir::arith::FloorDivSIOp) { return TermKind::FloorDiv; })
      .Case([](mlir::arith::CeilDivSIOp) { return TermKind::CeilDiv; })
      .Case([](mlir::arith::RemSIOp) { return TermKind::Rem; })
      .Case([](mlir::arith::MinSIOp) { return TermKind::Min; })
      .Case([](mlir::arith::MaxSIOp) { return TermKind::Max; })
      .Default([](mlir::Operation *) { return std::nullopt; });
}

std::optional<Extent> ExtentFinder::getExtent(mlir::OpFoldResult value) {
  if (std::optional<int64_t> constant = mlir::getConstantIntValue(value))
    return makeConstant(*constant);
  return getExtent(cast<mlir::Value>(value));
}

std::optional<Extent> ExtentFinder::getExtent(mlir::Value value, unsigned depth) {
  if (auto found = expressions.find(value); found != expressions.end())
    return found->second;
  std::optional<Extent> extent = computeExtent(value, depth);
  expressions[value] = extent;
  return extent;
}

std::optional<Extent> ExtentFinder::computeExtent(mlir::Value value, unsigned depth) {
  if (std::optional<int64_t> constant = mlir::getConstantIntValue(value))
    return makeConstant(*constant);
  // Other integers may be narrower than the arithmetic here.
  if (!value.getType().isIndex())
    return std::nullopt;
  if (auto argument = dyn_cast<mlir::BlockArgument>(value)) {
    if (argument.getOwner() != &function.getBody().front())
      return std::nullopt;
    return makeExtent(extents.values[argument.getArgNumber()].front().group);
  }
  mlir::Operation *op = value.getDefiningOp();
  if (auto dim = dyn_cast<mlir::tensor::DimOp>(op)) {
    const Groups &source = getGroups(dim.getSource());
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index || *index < 0 || *index >= int64_t(source.size()))
      return std::nullopt;
    return makeExtent(source[*index]);
  }
  std::optional<TermKind> kind = getKind(op);
  // An expression that uses its parts over and over would grow without bound.
  constexpr unsigned kMaxDepth = 32, kMaxTerms = 64;
  if (!kind || depth > kMaxDepth)
    return std::nullopt;
  std::optional<Extent> left = getExtent(op->getOperand(0), depth + 1),
                        right = getExtent(op->getOperand(1), depth + 1);
  if (!left || !right || left->size() + right->size() > kMaxTerms)
    return std::nullopt;
  left->append(*right);
  left->push_back({*kind, 0});
  return left;
}

void ExtentFinder::define(mlir::Operation *op, unsigned group, mlir::OpFoldResult value) {
  std::optional<Extent> extent = getExtent(value);
  if (!extent)
    return setUnknown(op, "expected extents and offsets that are sums, products and quotients of "
                          "arguments and their extents");
  if (std::optional<unsigned> same = getGroup(*extent))
    join(group, *same);
  else
    require(RuleKind::Equal, makeExtent(group), std::move(*extent));
}

} // namespace attn
