//===- Rules.cpp - what calls must look like, made, told and kept -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Function.h"
#include "lib/Runtime/DataTypes.h"
#include "lib/Target/PTX/CheckNesting.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace attn {

/// Names results by their letters; that of attention is "output".
static std::string getResultName(size_t index, ArrayRef<DimRule> dims) {
  if (dims.size() == 4 && dims.back().letter == Letter::Dv)
    return "output";
  if (dims.size() == 3 && dims.back().letter == Letter::M)
    return "lse";
  return ("result " + Twine(index)).str();
}

CallRules makeRules(const KernelSignature &signature, ArrayRef<std::string> names,
                    ArrayRef<DimRules> dims) {
  CallRules rules;
  rules.name = signature.name;
  rules.numArguments = signature.arguments.size();
  for (auto [index, rule] : enumerate(dims)) {
    bool isResult = index >= rules.numArguments;
    size_t position = isResult ? index - rules.numArguments : index;
    const ValueType &type = isResult ? signature.results[position] : signature.arguments[position];
    std::string name = isResult ? getResultName(position, rule) : names[position];
    rules.values.push_back(
        {name, getDataType(type.kind), type.isScalar, isResult, type.shape, rule});
  }
  return rules;
}

FunctionInfo describe(const CallRules &rules) {
  FunctionInfo info;
  info.name = rules.name;
  for (const CallRules::Value &value : rules.values) {
    ValueInfo told{
        value.name, value.type, value.isScalar, {value.shape.begin(), value.shape.end()}, {}};
    for (const DimRule &dim : value.dims)
      told.letters.push_back(getName(dim.letter).str());
    (value.isResult ? info.results : info.arguments).push_back(std::move(told));
  }
  return info;
}

//===----------------------------------------------------------------------------------------===//
// In a plan
//===----------------------------------------------------------------------------------------===//

static constexpr StringLiteral kFunctionKey = "function";
/// Before the letter of a dimension that may be larger.
static constexpr StringLiteral kAtLeast = ">=";

static json::Value toJSON(const CallRules::Value &value) {
  json::Array letters;
  for (const DimRule &dim : value.dims)
    letters.push_back((Twine(dim.isAtLeast ? kAtLeast : "") + getName(dim.letter)).str());
  return json::Object{{"name", value.name},
                      {"type", getName(value.type)},
                      {"scalar", value.isScalar},
                      {"result", value.isResult},
                      {"shape", json::Array(value.shape)},
                      {"letters", std::move(letters)},
                      {"alignment", value.alignment}};
}

Expected<std::string> addRules(StringRef plan, const CallRules &rules) {
  Expected<json::Value> root = json::parse(plan);
  if (!root)
    return root.takeError();
  json::Object *object = root->getAsObject();
  if (!object)
    return createStringError("expected a kernel plan, got JSON of another kind");
  json::Array values;
  for (const CallRules::Value &value : rules.values)
    values.push_back(toJSON(value));
  (*object)[kFunctionKey] = json::Object{{"name", rules.name}, {"values", std::move(values)}};
  return formatv("{0:2}\n", *root).str();
}

static bool readDim(StringRef name, DimRule &dim) {
  dim.isAtLeast = name.consume_front(kAtLeast);
  for (size_t letter = 0; letter <= kNumLetters; ++letter)
    if (name == getName(Letter(letter))) {
      dim.letter = Letter(letter);
      return true;
    }
  return false;
}

static bool readValue(const json::Value &from, CallRules::Value &value, json::Path path) {
  json::ObjectMapper mapper(from, path);
  std::string type;
  std::vector<int64_t> shape;
  std::vector<std::string> letters;
  if (!mapper || !mapper.map("name", value.name) || !mapper.map("type", type) ||
      !mapper.map("scalar", value.isScalar) || !mapper.map("result", value.isResult) ||
      !mapper.map("shape", shape) || !mapper.map("letters", letters) ||
      !mapper.map("alignment", value.alignment))
    return false;
  std::optional<DataType> known = findDataType(type);
  if (!known || letters.size() != shape.size()) {
    path.report("expected an element type, and a letter for each dimension");
    return false;
  }
  value.type = *known;
  value.shape.assign(shape.begin(), shape.end());
  for (const std::string &letter : letters)
    if (!readDim(letter, value.dims.emplace_back())) {
      path.field("letters").report("expected B, H, Hkv, M, N, D, Dv or nothing");
      return false;
    }
  return true;
}

Expected<CallRules> readRules(StringRef plan) {
  if (Error error = checkNesting(plan))
    return std::move(error);
  Expected<json::Value> value = json::parse(plan);
  if (!value)
    return value.takeError();
  json::Path::Root root("kernel plan");
  const json::Object *object = value->getAsObject();
  const json::Object *function = object ? object->getObject(kFunctionKey) : nullptr;
  const json::Array *values = function ? function->getArray("values") : nullptr;
  std::optional<StringRef> name = function ? function->getString("name") : std::nullopt;
  if (!values || !name)
    return createStringError("expected a kernel plan with a function, got one without");
  CallRules rules;
  rules.name = name->str();
  for (const json::Value &from : *values) {
    if (!readValue(from, rules.values.emplace_back(), json::Path(root)))
      return root.getError();
    rules.numArguments += !rules.values.back().isResult;
  }
  return rules;
}

} // namespace attn
