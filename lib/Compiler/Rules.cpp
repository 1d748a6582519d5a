//===- Rules.cpp - what calls must look like, made and told -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Function.h"
#include "lib/Plan/DataTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace attn {

/// Names results by their letters; that of attention is "output".
static std::string getResultName(size_t index, ArrayRef<ExtentDim> dims) {
  if (dims.size() == 4 && dims.back().letter == Letter::Dv)
    return "output";
  if (dims.size() == 3 && dims.back().letter == Letter::M)
    return "lse";
  return ("result " + Twine(index)).str();
}

CallRules makeRules(const KernelSignature &signature, ArrayRef<std::string> names,
                    const FunctionExtents &extents) {
  CallRules rules;
  rules.name = signature.name;
  rules.numArguments = signature.arguments.size();
  rules.numGroups = extents.numGroups;
  rules.extents = extents.rules;
  rules.batches = extents.batches;
  for (auto [index, rule] : enumerate(extents.values)) {
    bool isResult = index >= rules.numArguments;
    size_t position = isResult ? index - rules.numArguments : index;
    const ValueType &type = isResult ? signature.results[position] : signature.arguments[position];
    std::string name = isResult ? getResultName(position, rule) : names[position];
    rules.values.push_back(
        {name, getDataType(type.kind), type.isScalar, isResult, false, type.shape, rule});
  }
  return rules;
}

FunctionInfo describe(const CallRules &rules) {
  FunctionInfo info;
  info.name = rules.name;
  for (const CallRules::Value &value : rules.values) {
    ValueInfo told{
        value.name, value.type, value.isScalar, {value.shape.begin(), value.shape.end()}, {}};
    for (const ExtentDim &dim : value.dims)
      if (!value.isScalar)
        told.letters.push_back(getName(dim.letter).str());
    (value.isResult ? info.results : info.arguments).push_back(std::move(told));
  }
  return info;
}

} // namespace attn
