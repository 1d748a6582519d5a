//===- Ways.cpp - functions for some calls ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Ways.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Transforms/Attn/Schedule.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The size of an argument that a range is about, where types say it. Parts are the device's to
/// say.
static std::optional<int64_t> getSize(func::FuncOp function, plan::RangeAttr range) {
  if (range.getParts())
    return std::nullopt;
  auto getDim = [&](int64_t argument, int64_t dim) {
    return cast<ShapedType>(function.getArgument(argument).getType()).getDimSize(dim);
  };
  int64_t size = getDim(range.getArgument(), range.getDim());
  if (ShapedType::isDynamic(size))
    return std::nullopt;
  plan::ExtentAttr per = range.getPer();
  if (!per)
    return size;
  int64_t unit = getDim(per.getArgument(), per.getDim());
  if (ShapedType::isDynamic(unit))
    return std::nullopt;
  unit = llvm::divideCeil(unit * per.getMultiplier(), per.getDivisor()) * per.getUnit();
  return llvm::divideCeil(size, std::max<int64_t>(unit, 1));
}

func::FuncOp attn::addWay(func::FuncOp function, StringRef suffix, ArrayAttr when,
                          SymbolTable &symbols) {
  bool areAll = true;
  for (auto range : when.getAsRange<plan::RangeAttr>()) {
    std::optional<int64_t> size = getSize(function, range);
    areAll &= size.has_value();
    if (size && (*size < range.getLeast() || *size > range.getMost()))
      return {};
  }
  if (areAll)
    return function;
  func::FuncOp copy = function.clone();
  copy.setName((function.getName() + suffix).str());
  copy->setAttr(plan::PlanDialect::kWhenAttrName, when);
  symbols.insert(copy, function->getIterator());
  return copy;
}
