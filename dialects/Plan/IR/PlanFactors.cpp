//===- PlanFactors.cpp - what attributes say, as the plan has it ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanFactors.h"
#include "dialects/Plan/IR/PlanDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::plan;

SizeFactor attn::plan::toFactor(Attribute factor) {
  if (auto extent = dyn_cast<ExtentAttr>(factor))
    return {int(extent.getArgument()),     unsigned(extent.getDim()),
            unsigned(extent.getDivisor()), unsigned(extent.getMultiplier()),
            unsigned(extent.getUnit()),    {},
            unsigned(extent.getLess())};
  if (auto parts = dyn_cast<PartsAttr>(factor)) {
    SizeFactor result{parts.getSlots() ? SizeFactor::kSlots : SizeFactor::kParts,
                      unsigned(parts.getMost())};
    result.of.push_back(toFactor(parts.getKeys()));
    for (Attribute block : parts.getBlocks())
      result.of.push_back(toFactor(block));
    return result;
  }
  if (auto multiprocessors = dyn_cast<MultiprocessorsAttr>(factor))
    return {SizeFactor::kMultiprocessors, unsigned(multiprocessors.getBlocks())};
  return {SizeFactor::kConstant, unsigned(cast<IntegerAttr>(factor).getInt())};
}

static ExtentRange toRange(RangeAttr range) {
  SizeFactor size = range.getParts() ? toFactor(range.getParts())
                    : range.getDevice()
                        ? SizeFactor{SizeFactor::kMemoryRate}
                        : SizeFactor{int(range.getArgument()), unsigned(range.getDim())};
  return {size, range.getLeast(), range.getMost(),
          range.getPer() ? toFactor(range.getPer()) : SizeFactor()};
}

WayPlan attn::plan::getWay(Operation *function) {
  WayPlan way;
  if (auto name = function->getAttrOfType<StringAttr>(PlanDialect::kWayAttrName))
    way.name = name.str();
  if (auto conditions = function->getAttrOfType<ArrayAttr>(PlanDialect::kWhenAttrName))
    for (auto ranges : conditions.getAsRange<ArrayAttr>()) {
      std::vector<ExtentRange> &condition = way.when.emplace_back();
      for (auto range : ranges.getAsRange<RangeAttr>())
        condition.push_back(toRange(range));
    }
  return way;
}
