//===- Mutator.cpp - changes the structure of a program ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Mutator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attn::fuzz {

Subject::Subject(ModuleOp module, const Corpus &corpus, Rng &rng, ParseWatcher watch)
    : module(module), corpus(corpus), rng(rng), watch(watch) {
  module.getBody()->walk([&](Operation *op) { ops.push_back(op); });
}

static Value makeConstant(OpBuilder &builder, Location loc, Type type, Rng &rng) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isIntOrIndexOrFloat())
    return Value();
  TypedAttr scalar;
  if (auto floating = dyn_cast<FloatType>(element))
    scalar = builder.getFloatAttr(floating, rng.oneIn(2) ? 1.0 : -0.5);
  else if (element.isSignlessInteger() || element.isIndex())
    scalar = builder.getIntegerAttr(element, rng.below(2));
  else
    return Value();
  if (auto shaped = dyn_cast<ShapedType>(type))
    scalar = DenseElementsAttr::get(shaped, Attribute(scalar));
  return arith::ConstantOp::create(builder, loc, scalar);
}

static Value makeValue(Operation *op, Type type, Rng &rng) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || isa<VectorType>(type))
    return makeConstant(builder, loc, type, rng);
  if (!shaped.hasRank())
    return Value();
  if (isa<RankedTensorType>(type) && shaped.hasStaticShape() && rng.oneIn(2))
    return makeConstant(builder, loc, type, rng);
  SmallVector<Value> extents;
  for (size_t i = 0; i < shaped.getNumDynamicDims(); ++i)
    extents.push_back(getValue(op, builder.getIndexType(), rng));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return tensor::EmptyOp::create(builder, loc, tensor, extents);
  if (auto buffer = dyn_cast<MemRefType>(type); buffer && buffer.getLayout().isIdentity())
    return memref::AllocOp::create(builder, loc, buffer, extents);
  return Value();
}

Value getValue(Operation *op, Type type, Rng &rng) {
  SmallVector<Value> visible;
  for (Operation *at = op; at && at->getBlock(); at = at->getParentOp()) {
    for (Operation &before : *at->getBlock()) {
      if (&before == at)
        break;
      llvm::copy_if(before.getResults(), std::back_inserter(visible),
                    [&](Value value) { return value.getType() == type; });
    }
    // Of the blocks of a region, only the entry is certain to be passed.
    llvm::copy_if(at->getParentRegion()->getArguments(), std::back_inserter(visible),
                  [&](Value value) { return value.getType() == type; });
    if (!at->getParentOp() || at->getParentOp()->hasTrait<OpTrait::IsIsolatedFromAbove>())
      break;
  }
  if (!visible.empty() && !rng.oneIn(8))
    return rng.pick(visible);
  if (Value made = makeValue(op, type, rng))
    return made;
  return visible.empty() ? Value() : rng.pick(visible);
}

bool breaksUpstream(ModuleOp module) {
  WalkResult walk = module.walk([](Operation *op) {
    // A pattern of the gpu dialect (SimplifyDimOfAllocOp) looks up the extent of any constant
    // dimension that is below the rank.
    auto dim = dyn_cast<memref::DimOp>(op);
    std::optional<int64_t> dimension = dim ? dim.getConstantIndex() : std::nullopt;
    // Without reductions, what is printed of attributes is read as the first of them.
    bool isUnread = isa<scf::ReduceOp>(op) && op->getNumRegions() == 0 &&
                    !op->getDiscardableAttrDictionary().empty();
    return (dimension && *dimension < 0) || isUnread ? WalkResult::interrupt()
                                                     : WalkResult::advance();
  });
  return walk.wasInterrupted();
}

bool mutate(ModuleOp module, const Corpus &corpus, Rng &rng, ParseWatcher watch) {
  using Change = bool (*)(Subject &);
  // As often as they stand here: what keeps IR valid and reaches far stands several times.
  static constexpr Change kChanges[] = {
      replaceOperand,  replaceOperand, replaceOperand, eraseAnyOp,      eraseAnyOp,
      duplicateOp,     moveOp,         wrapOp,         insertScalarOp,  insertScalarOp,
      insertScalarOp,  changeSymbol,   addArgument,    changeAttribute, changeAttribute,
      changeAttribute, takeAttribute,  changeConstant, changeConstant,  changeConstant,
      changeExtent,    changeExtent,   changeExtent,   changeElement,   changeElement,
      changeType,      spliceOp,       spliceOp,       spliceRegion,    spliceRegion,
      spliceFunction};
  Subject subject(module, corpus, rng, watch);
  for (int tries = 0; tries < 8 && !subject.ops.empty(); ++tries)
    if (kChanges[rng.below(std::size(kChanges))](subject))
      return true;
  return false;
}

} // namespace attn::fuzz
