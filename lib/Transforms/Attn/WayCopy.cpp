//===- WayCopy.cpp - a function for some of the calls of another ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/WayCopy.h"
#include "dialects/Plan/IR/PlanDialect.h"

using namespace mlir;
using namespace attn;

func::FuncOp attn::copyFor(func::FuncOp function, StringRef base, StringRef way,
                           ArrayRef<Attribute> conditions, SymbolTable &symbols) {
  MLIRContext *context = function.getContext();
  func::FuncOp copy = function.clone();
  std::string suffix = way.str();
  llvm::replace(suffix, '-', '_');
  copy.setName((base + "_" + suffix).str());
  copy->setAttr(plan::PlanDialect::kWhenAttrName, ArrayAttr::get(context, conditions));
  copy->setAttr(plan::PlanDialect::kWayAttrName, StringAttr::get(context, way));
  symbols.insert(copy, function->getIterator());
  return copy;
}
