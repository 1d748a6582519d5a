//===- FindExtents.cpp - the extents that a function relies on --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/Extents/ExtentFinder.h"
#include "lib/Analysis/Extents/FindBatches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;

namespace attn {

using TermKind = ExtentTerm::Kind;
using RuleKind = ExtentRule::Kind;

const ExtentFinder::Groups &ExtentFinder::getGroups(mlir::Value value) {
  auto [found, isNew] = groups.try_emplace(value);
  auto type = dyn_cast<mlir::RankedTensorType>(value.getType());
  if (!isNew || !type)
    return found->second;
  // A call's extents are compared with the types of arguments before anything else.
  bool isArgument = isa<mlir::BlockArgument>(value);
  for (int64_t extent : type.getShape()) {
    unsigned group = addGroup();
    found->second.push_back(group);
    if (!mlir::ShapedType::isDynamic(extent) && !isArgument)
      require(RuleKind::Equal, makeExtent(group), makeConstant(extent));
  }
  return found->second;
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

/// `whole` holds [offset, offset + size * stride).
void ExtentFinder::requireWithin(mlir::Operation *op, unsigned whole, mlir::OpFoldResult offset,
                                 mlir::OpFoldResult size, mlir::OpFoldResult stride) {
  std::optional<Extent> begin = getExtent(offset), count = getExtent(size);
  std::optional<int64_t> step = mlir::getConstantIntValue(stride);
  if (!begin || !count || !step || *step < 1)
    return setUnknown(op, "expected extents and offsets that are sums, products and quotients of "
                          "arguments and their extents, and constant steps from 1 on");
  require(RuleKind::AtLeast, *begin, makeConstant(0));
  require(RuleKind::AtLeast, *count, makeConstant(0));
  // offset + (size - 1) * stride + 1
  Extent end = std::move(*count);
  if (*step != 1)
    end.append({{TermKind::Constant, 1},
                {TermKind::Sub, 0},
                {TermKind::Constant, *step},
                {TermKind::Mul, 0},
                {TermKind::Constant, 1},
                {TermKind::Add, 0}});
  if (*begin != makeConstant(0)) {
    end.append(*begin);
    end.push_back({TermKind::Add, 0});
  }
  require(RuleKind::AtLeast, makeExtent(whole), std::move(end));
}

void ExtentFinder::visitSlice(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole,
                              mlir::Value part, const SmallBitVector &dropped) {
  Groups outer = getGroups(whole), inner = getGroups(part);
  SmallVector<mlir::OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
                                  strides = op.getMixedStrides();
  size_t next = 0;
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (!dropped.test(dim) && next < inner.size())
      define(op, inner[next++], sizes[dim]);
    requireWithin(op, outer[dim], offsets[dim], sizes[dim], strides[dim]);
  }
}

void ExtentFinder::visit(mlir::linalg::LinalgOp op) {
  SmallVector<std::optional<unsigned>> loops(op.getNumLoops());
  for (mlir::OpOperand &operand : op->getOpOperands()) {
    if (!isa<mlir::RankedTensorType>(operand.get().getType()))
      continue;
    Groups dims = getGroups(operand.get());
    for (auto [dim, index] : zip(dims, op.getMatchingIndexingMap(&operand).getResults())) {
      auto loop = dyn_cast<mlir::AffineDimExpr>(index);
      if (!loop)
        return setUnknown(op, "expected indexing maps of dimensions alone");
      std::optional<unsigned> &group = loops[loop.getPosition()];
      if (group)
        join(*group, dim);
      group = dim;
    }
  }
  for (auto [init, result] : zip(op.getDpsInits(), op->getResults()))
    join(init, result);
}

void ExtentFinder::visit(mlir::tensor::ExtractOp op) {
  mlir::OpFoldResult one = mlir::OpBuilder(op).getIndexAttr(1);
  for (auto [group, index] : zip(Groups(getGroups(op.getTensor())), op.getIndices()))
    requireWithin(op, group, index, one, one);
}

void ExtentFinder::visit(mlir::func::ReturnOp op) {
  for (auto [index, value] : enumerate(op.getOperands())) {
    ExtentDims &dims = extents.values[function.getNumArguments() + index];
    if (!isa<mlir::RankedTensorType>(value.getType()))
      continue;
    for (auto [dim, group] : zip(dims, Groups(getGroups(value))))
      join(dim.group, group);
    if (auto place = value.getDefiningOp<PlaceOp>()) {
      value = place.getSource();
      auto gradient = value.getDefiningOp<AttentionGradOp>();
      bool isOfKeys = gradient && value != gradient.getDQuery();
      setLetters(&dims, {Letter::T, isOfKeys ? Letter::Hkv : Letter::H,
                         gradient && value != gradient.getDValue() ? Letter::D : Letter::Dv});
      setLetters(&dims, {Letter::T, Letter::H});
    }
    auto attention = value.getDefiningOp<AttentionOp>();
    if (attention && value == attention.getOutput())
      setLetters(&dims, {Letter::B, Letter::H, Letter::M, Letter::Dv});
    else if (attention)
      setLetters(&dims, {Letter::B, Letter::H, Letter::M});
  }
}

void ExtentFinder::visit(mlir::Operation *op) {
  auto isTensor = [](mlir::Type type) { return isa<mlir::TensorType>(type); };
  TypeSwitch<mlir::Operation *>(op)
      .Case<AttentionOp, AttentionGradOp, MergeOp, PagedOp, RaggedOp, PlaceOp, ScaledOp,
            mlir::tensor::ExtractOp, mlir::linalg::LinalgOp, mlir::func::ReturnOp>(
          [&](auto op) { visit(op); })
      .Case<AppendOp, RotaryOp>([&](auto op) { visitMoved(op, *MovedRows::find(op)); })
      .Case<mlir::tensor::CastOp, AssumeOp>(
          [&](auto op) { join(op->getOperand(0), op->getResult(0)); })
      .Case([&](mlir::tensor::EmptyOp op) {
        for (auto [group, size] : zip(Groups(getGroups(op)), op.getMixedSizes()))
          define(op, group, size);
      })
      .Case([&](mlir::tensor::ExtractSliceOp op) {
        visitSlice(op, op.getSource(), op.getResult(), op.getDroppedDims());
      })
      .Case([&](mlir::tensor::InsertSliceOp op) {
        visitSlice(op, op.getDest(), op.getSource(), op.getDroppedDims());
        join(op.getDest(), op.getResult());
      })
      .Case([](mlir::tensor::DimOp) {})
      .Default([&](mlir::Operation *op) {
        if (none_of(op->getOperandTypes(), isTensor) && none_of(op->getResultTypes(), isTensor) &&
            op->getNumRegions() == 0)
          return;
        if (!op->hasTrait<mlir::OpTrait::Elementwise>() && !isa<mlir::arith::ConstantOp>(op))
          return setUnknown(op, "expected ops whose extents are known: attention, merge, casts, "
                                "slices, linalg and elementwise ops");
        for (mlir::Value operand : op->getOperands())
          if (isTensor(operand.getType()))
            join(operand, op->getResult(0));
      });
}

//===----------------------------------------------------------------------------------------===//
// Arguments and groups
//===----------------------------------------------------------------------------------------===//

ExtentDims *ExtentFinder::findArgument(mlir::Value value) {
  if (auto scaled = value.getDefiningOp<ScaledOp>())
    value = scaled.getSource();
  std::optional<unsigned> number = findArgumentNumber(function, value);
  return number ? &extents.values[*number] : nullptr;
}

/// Numbers the groups from 0 on.
void ExtentFinder::useLeaders() {
  SmallVector<std::optional<unsigned>> numbers(numGroups);
  auto rename = [&](auto &group) {
    std::optional<unsigned> &number = numbers[classes.findLeader(group)];
    if (!number)
      number = extents.numGroups++;
    group = *number;
  };
  for (ExtentDims &dims : extents.values)
    for (ExtentDim &dim : dims)
      rename(dim.group);
  for (ExtentRule &rule : extents.rules)
    for (Extent *extent : {&rule.left, &rule.right})
      for (ExtentTerm &term : *extent)
        if (term.kind == TermKind::Group)
          rename(term.value);
  for (auto &letters : extents.attentions)
    for (unsigned &group : letters)
      rename(group);
}

/// Without what is true of itself, of constants, or by the types of arguments and results, which a
/// call's tensors are compared with.
void ExtentFinder::dropKnownRules() {
  SmallVector<std::optional<int64_t>> statics(extents.numGroups);
  auto types = concat<const mlir::Type>(function.getArgumentTypes(), function.getResultTypes());
  for (auto [type, dims] : zip(types, extents.values))
    if (auto tensor = dyn_cast<mlir::RankedTensorType>(type))
      for (auto [dim, extent] : zip_equal(dims, tensor.getShape()))
        if (!mlir::ShapedType::isDynamic(extent))
          statics[dim.group] = extent;
  SmallVector<ExtentRule> kept;
  for (ExtentRule &rule : extents.rules) {
    bool isKnown = rule.left == rule.right || is_contained(kept, rule);
    std::optional<unsigned> group = getGroup(rule.left);
    if (rule.right.size() == 1 && rule.right[0].kind == TermKind::Constant) {
      int64_t right = rule.right[0].value;
      if (rule.kind == RuleKind::Equal)
        isKnown |= group && statics[*group] == right;
      else if (rule.left.size() == 1 && rule.left[0].kind == TermKind::Constant)
        isKnown |= rule.kind == RuleKind::AtLeast && rule.left[0].value >= right;
    }
    if (!isKnown)
      kept.push_back(std::move(rule));
  }
  extents.rules = std::move(kept);
}

//===----------------------------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------------------------===//

FunctionExtents ExtentFinder::run() {
  extents.values.resize(function.getNumArguments() + function.getNumResults());
  if (function.isExternal())
    return std::move(extents);
  for (mlir::BlockArgument argument : function.getArguments()) {
    ExtentDims &dims = extents.values[argument.getArgNumber()];
    for (unsigned group : getGroups(argument))
      dims.push_back({Letter::None, group});
    if (argument.getType().isIndex())
      dims.push_back({Letter::None, addGroup()});
  }
  for (auto [index, type] : enumerate(function.getResultTypes()))
    if (auto tensor = dyn_cast<mlir::RankedTensorType>(type))
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
        extents.values[function.getNumArguments() + index].push_back({Letter::None, addGroup()});
  for (mlir::Operation &op : function.getBody().front())
    visit(&op);
  if (!function.getBody().hasOneBlock())
    setUnknown(function, "expected a function of one block");
  for (const Read &read : reads)
    if (ExtentDim &dim = (*read.dims)[read.dim]; dim.letter == Letter::None)
      dim.letter = read.letter;
  useLeaders();
  if (!extents.unknown)
    extents.batches = findBatches(function, extents);
  dropKnownRules();
  return std::move(extents);
}

FunctionExtents findExtents(mlir::func::FuncOp function) { return ExtentFinder(function).run(); }

} // namespace attn
