//===- Inputs.cpp - inputs of one run ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Npy.h"
#include "lib/Support/Random.h"
#include "lib/Tools/AttnRun/Binding.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace llvm;

namespace attn {

static Expected<double> getScalar(const ValueType &type, const ValueFacts &facts,
                                  const Binding &binding, StringRef text) {
  double value = 0;
  if (!text.empty()) {
    if (!to_float(text, value))
      return createStringError("--input " + facts.name + ": expected a number, got '" + text + "'");
    return value;
  }
  if (std::optional<int64_t> extent = binding.get(facts.name))
    return static_cast<double>(*extent);
  return createStringError("expected --input " + facts.name + "=NUMBER for a scalar of " +
                           getName(type.kind) + ", got none");
}

/// Lengths and positions are what integers usually are: they lie in [0, N].
static std::pair<int64_t, int64_t> getDefaultRange(ElementKind kind, const Binding &binding) {
  if (kind == ElementKind::I1)
    return {0, 1};
  int64_t limit = kind == ElementKind::I8    ? INT8_MAX
                  : kind == ElementKind::I32 ? INT32_MAX
                                             : INT64_MAX;
  return {0, std::min(limit, binding.get("N").value_or(1))};
}

static Error fillArray(Array &array, const ValueFacts &facts, const Binding &binding,
                       StringRef text, uint64_t seed) {
  // Few enough that most tiles of the usual sizes lie within one document.
  int64_t numDocuments = array.getRank() ? 1 + array.getShape().back() / 512 : 1;
  numDocuments = std::max<int64_t>(numDocuments, 4);
  double number = 0;
  auto [low, high] = text.split("..");
  if (text == "zeros") {
    array.fill(0);
  } else if (text == "sorted" || (text.empty() && facts.isSorted)) {
    fillSorted(array, seed, numDocuments);
  } else if (text == "normal" || (text.empty() && isFloat(array.getKind()))) {
    if (!isFloat(array.getKind()))
      return createStringError("--input " + facts.name + ": expected integers, got normal values");
    fillNormal(array, seed);
  } else if (text.empty()) {
    auto [first, last] = getDefaultRange(array.getKind(), binding);
    fillUniform(array, seed, first, last);
  } else if (to_float(text, number)) {
    array.fill(number);
  } else {
    int64_t first = 0, last = 0;
    if (low.getAsInteger(10, first) || high.getAsInteger(10, last) || first > last)
      return createStringError("--input " + facts.name +
                               ": expected a path ending in .npy, a number, LOW..HIGH, sorted, "
                               "zeros or normal, got '" +
                               text + "'");
    fillUniform(array, seed, first, last);
  }
  return Error::success();
}

static Error checkNames(const StringMap<std::string> &given, ArrayRef<ValueFacts> facts,
                        StringRef option) {
  for (const auto &entry : given) {
    if (any_of(facts, [&](auto &fact) { return fact.name == entry.getKey(); }))
      continue;
    std::string names =
        facts.empty() ? "none"
                      : join(map_range(facts, [](const ValueFacts &f) { return f.name; }), ", ");
    return createStringError("--" + option + ": expected one of " + names + ", got '" +
                             entry.getKey() + "'");
  }
  return Error::success();
}

Expected<std::vector<ArgumentValue>> makeInputs(const Source &source, const Binding &binding,
                                                const RunOptions &options) {
  if (Error error = checkNames(options.inputs, source.arguments, "input"))
    return std::move(error);
  if (Error error = checkNames(options.outputs, source.results, "output"))
    return std::move(error);

  std::vector<ArgumentValue> values;
  for (auto [index, type] : enumerate(source.signature.arguments)) {
    const ValueFacts &facts = source.arguments[index];
    StringRef text;
    if (auto input = options.inputs.find(facts.name); input != options.inputs.end())
      text = input->second;
    ArgumentValue &value = values.emplace_back();
    value.isScalar = type.isScalar;
    if (type.isScalar) {
      Expected<double> scalar = getScalar(type, facts, binding, text);
      if (!scalar)
        return scalar.takeError();
      value.scalar = *scalar;
      continue;
    }
    // Counting tiles needs no queries, keys and values.
    if (options.count && isFloat(type.kind) && text.empty())
      continue;
    SmallVector<int64_t, 4> shape = binding.arguments[index];
    SmallVector<unsigned> order = getMemoryOrder(options, shape.size());
    bool isFile = text.ends_with(".npy");
    Expected<Array> array = isFile ? readNpy(text, {type.kind, shape}, order)
                                   : Array::allocate(type.kind, shape, order);
    if (!array)
      return createStringError("argument " + facts.name + ": " + toString(array.takeError()));
    value.array = std::move(*array);
    if (!isFile)
      if (Error error =
              fillArray(value.array, facts, binding, text, deriveSeed(options.seed, facts.name)))
        return std::move(error);
  }
  return std::move(values);
}

} // namespace attn
