//===- Ways.cpp - functions for some calls ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/Ways.h"
#include "lib/Transforms/Attn/Schedule.h"

using namespace mlir;
using namespace attn;

func::FuncOp attn::addWay(func::FuncOp function, StringRef suffix, ArrayAttr when,
                          SymbolTable &symbols) {
  func::FuncOp copy = function.clone();
  copy.setName((function.getName() + suffix).str());
  copy->setAttr(kWhenAttrName, when);
  symbols.insert(copy, function->getIterator());
  return copy;
}
