//===- CallRules.cpp - the rules of a call as JSON --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/CallRules.h"
#include "lib/Plan/DataTypes.h"
#include "lib/Plan/JSON.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace attn {

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

json::Value toValue(const CallRules &rules) {
  json::Array values, extents, batches;
  for (const CallRules::Value &value : rules.values)
    values.push_back(toJSON(value));
  for (auto [value, dim] : rules.batches)
    batches.push_back(json::Array{value, dim});
  for (const ExtentRule &rule : rules.extents)
    extents.push_back(toJSON(rule));
  return json::Object{{"name", rules.name},
                      {"values", std::move(values)},
                      {"groups", rules.numGroups},
                      {"batches", std::move(batches)},
                      {"max_batches", rules.maxBatches},
                      {"extents", std::move(extents)}};
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
      path.report("expected letters of B, H, Hkv, M, N, D, Dv, Np, P, C, T or nothing, and groups "
                  "that exist");
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

/// The array of that name, or null after a report.
static const json::Array *findArray(const json::Object &object, StringLiteral name,
                                    json::Path path) {
  const json::Array *array = object.getArray(name);
  if (!array)
    path.field(name).report("expected an array");
  return array;
}

bool fromValue(const json::Value &from, CallRules &rules, json::Path path) {
  json::ObjectMapper mapper(from, path);
  if (!mapper || !mapper.map("name", rules.name) || !mapper.map("groups", rules.numGroups) ||
      !mapper.map("max_batches", rules.maxBatches))
    return false;
  // Tables are as long as there are groups.
  if (!isUInt<20>(rules.numGroups)) {
    path.field("groups").report("expected fewer than 2^20 groups");
    return false;
  }
  const json::Object &object = *from.getAsObject();
  const json::Array *values = findArray(object, "values", path),
                    *extents = values ? findArray(object, "extents", path) : nullptr,
                    *batches = extents ? findArray(object, "batches", path) : nullptr;
  if (!batches)
    return false;
  for (auto [index, value] : enumerate(*values)) {
    if (!readValue(value, rules.numGroups, rules.values.emplace_back(),
                   path.field("values").index(index)))
      return false;
    rules.numArguments += !rules.values.back().isResult;
  }
  for (auto [index, extent] : enumerate(*extents))
    if (!readRule(extent, rules.numGroups, rules.extents.emplace_back(),
                  path.field("extents").index(index)))
      return false;
  for (auto [index, batch] : enumerate(*batches))
    if (!readBatch(batch, rules, rules.batches.emplace_back())) {
      path.field("batches").index(index).report("expected a dimension of an argument");
      return false;
    }
  return true;
}

} // namespace attn
