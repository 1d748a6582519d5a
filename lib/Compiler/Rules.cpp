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

//===----------------------------------------------------------------------------------------===//
// In a plan
//===----------------------------------------------------------------------------------------===//

static constexpr StringLiteral kFunctionKey = "function";
static constexpr std::pair<StringLiteral, ExtentRule::Kind> kKinds[] = {
    {"equal", ExtentRule::Kind::Equal},
    {"at least", ExtentRule::Kind::AtLeast},
    {"multiple", ExtentRule::Kind::Multiple}};

static json::Value toJSON(const CallRules::Value &value) {
  json::Array letters, groups;
  for (const ExtentDim &dim : value.dims) {
    letters.push_back(getName(dim.letter));
    groups.push_back(dim.group);
  }
  return json::Object{{"name", value.name},
                      {"type", getName(value.type)},
                      {"scalar", value.isScalar},
                      {"result", value.isResult},
                      {"any_strides", value.hasAnyStrides},
                      {"shape", json::Array(value.shape)},
                      {"letters", std::move(letters)},
                      {"groups", std::move(groups)},
                      {"alignment", value.alignment}};
}

static json::Value toJSON(const ExtentRule &rule) {
  StringRef name;
  for (auto [kindName, kind] : kKinds)
    if (kind == rule.kind)
      name = kindName;
  return json::Object{{"left", printExtent(rule.left)},
                      {"is", name},
                      {"right", printExtent(rule.right)},
                      {"letter", getName(rule.letter)}};
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
  json::Array extents, batches;
  for (auto [value, dim] : rules.batches)
    batches.push_back(json::Array{value, dim});
  for (const ExtentRule &rule : rules.extents)
    extents.push_back(toJSON(rule));
  (*object)[kFunctionKey] = json::Object{{"name", rules.name},
                                         {"values", std::move(values)},
                                         {"groups", rules.numGroups},
                                         {"batches", std::move(batches)},
                                         {"max_batches", rules.maxBatches},
                                         {"extents", std::move(extents)}};
  return formatv("{0:2}\n", *root).str();
}

static std::optional<Letter> findLetter(StringRef name) {
  for (size_t letter = 0; letter <= kNumLetters; ++letter)
    if (name == getName(Letter(letter)))
      return Letter(letter);
  return std::nullopt;
}

static bool readValue(const json::Value &from, unsigned numGroups, CallRules::Value &value,
                      json::Path path) {
  json::ObjectMapper mapper(from, path);
  std::string type;
  std::vector<int64_t> shape, groups;
  std::vector<std::string> letters;
  if (!mapper || !mapper.map("name", value.name) || !mapper.map("type", type) ||
      !mapper.map("scalar", value.isScalar) || !mapper.map("result", value.isResult) ||
      !mapper.map("any_strides", value.hasAnyStrides) || !mapper.map("shape", shape) ||
      !mapper.map("letters", letters) || !mapper.map("groups", groups) ||
      !mapper.map("alignment", value.alignment))
    return false;
  std::optional<DataType> known = findDataType(type);
  if (!known || letters.size() != groups.size() ||
      (value.isScalar ? groups.size() > 1 || !shape.empty() : groups.size() != shape.size())) {
    path.report("expected an element type, and a letter and a group for each dimension");
    return false;
  }
  value.type = *known;
  value.shape.assign(shape.begin(), shape.end());
  for (auto [name, group] : zip_equal(letters, groups)) {
    std::optional<Letter> letter = findLetter(name);
    if (!letter || group < 0 || group >= numGroups) {
      path.report("expected letters of B, H, Hkv, M, N, D, Dv or nothing, and groups that exist");
      return false;
    }
    value.dims.push_back({*letter, static_cast<unsigned>(group)});
  }
  return true;
}

static bool readBatch(const json::Value &from, const CallRules &rules, BatchDim &batch) {
  const json::Array *pair = from.getAsArray();
  std::optional<int64_t> value =
                             pair && pair->size() == 2 ? (*pair)[0].getAsInteger() : std::nullopt,
                         dim = value ? (*pair)[1].getAsInteger() : std::nullopt;
  if (!dim || *value < 0 || *value >= int64_t(rules.values.size()) || *dim < 0 ||
      *dim >= int64_t(rules.values[*value].shape.size()))
    return false;
  batch = {static_cast<unsigned>(*value), static_cast<unsigned>(*dim)};
  return true;
}

static bool readRule(const json::Value &from, unsigned numGroups, ExtentRule &rule,
                     json::Path path) {
  json::ObjectMapper mapper(from, path);
  std::string left, kind, right, letterName;
  if (!mapper || !mapper.map("left", left) || !mapper.map("is", kind) ||
      !mapper.map("right", right) || !mapper.map("letter", letterName))
    return false;
  std::optional<Extent> leftExtent = parseExtent(left, numGroups),
                        rightExtent = parseExtent(right, numGroups);
  std::optional<Letter> letter = findLetter(letterName);
  const auto *found = find_if(kKinds, [&](auto &entry) { return entry.first == kind; });
  if (!leftExtent || !rightExtent || !letter || found == std::end(kKinds)) {
    path.report("expected a rule about extents");
    return false;
  }
  rule = {found->second, std::move(*leftExtent), std::move(*rightExtent), *letter};
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
  const json::Array *extents = function ? function->getArray("extents") : nullptr;
  const json::Array *batches = function ? function->getArray("batches") : nullptr;
  std::optional<int64_t> maxBatches = function ? function->getInteger("max_batches") : std::nullopt;
  std::optional<StringRef> name = function ? function->getString("name") : std::nullopt;
  std::optional<int64_t> numGroups = function ? function->getInteger("groups") : std::nullopt;
  if (!values || !name || !extents || !numGroups || !batches || !maxBatches ||
      !isUInt<20>(*numGroups))
    return createStringError("expected a kernel plan with a function, got one without");
  CallRules rules;
  rules.name = name->str();
  rules.numGroups = static_cast<unsigned>(*numGroups);
  for (const json::Value &from : *values) {
    if (!readValue(from, rules.numGroups, rules.values.emplace_back(), json::Path(root)))
      return root.getError();
    rules.numArguments += !rules.values.back().isResult;
  }
  for (const json::Value &from : *extents)
    if (!readRule(from, rules.numGroups, rules.extents.emplace_back(), json::Path(root)))
      return root.getError();
  rules.maxBatches = *maxBatches;
  for (const json::Value &from : *batches)
    if (!readBatch(from, rules, rules.batches.emplace_back()))
      return createStringError("expected a dimension of an argument for each batch");
  return rules;
}

} // namespace attn
