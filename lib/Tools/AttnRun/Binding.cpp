//===- Binding.cpp - extents of one run -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Binding.h"
#include "lib/Support/Memory.h"
#include "lib/Support/Npy.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;

namespace attn {

std::optional<int64_t> Binding::get(StringRef letter) const {
  auto found = letters.find(letter.str());
  return found == letters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Binding::countFlops(FlopCount count, std::optional<double> kept) const {
  auto b = get("B"), h = get("H"), m = get("M"), n = get("N"), d = get("D"), dv = get("Dv");
  if (!b || !h || !m || !n || !d || !dv)
    return std::nullopt;
  double rows = double(*m), columns = double(*n), pairs = rows * columns;
  if (count == FlopCount::Kept && kept) {
    pairs = *kept;
  } else if (count == FlopCount::CausalTopLeft || count == FlopCount::CausalBottomRight) {
    // Row i keeps min(N, max(0, i + 1 + shift)) columns: a triangle between two clamps.
    double shift = count == FlopCount::CausalTopLeft ? 0 : columns - rows;
    double first = std::clamp(-shift, 0.0, rows), last = std::clamp(columns - shift, first, rows);
    pairs = (last - first) * (first + last + 1 + 2 * shift) / 2 + (rows - last) * columns;
  }
  return 2.0 * *b * *h * pairs * (double(*d) + double(*dv));
}

Error Binding::checkMemory(const KernelSignature &signature, bool withReference) const {
  uint64_t total = 0;
  auto add = [&](ArrayRef<ValueType> types, const auto &shapes) -> Error {
    for (auto [type, shape] : zip_equal(types, shapes)) {
      for (ElementKind kind : {type.kind, ElementKind::F64}) {
        Expected<int64_t> bytes = countBytes(kind, shape);
        if (!bytes)
          return bytes.takeError();
        total = SaturatingAdd(total, static_cast<uint64_t>(*bytes));
        if (!withReference)
          break;
      }
    }
    return Error::success();
  };
  if (Error error = add(signature.arguments, arguments))
    return error;
  if (Error error = add(signature.results, results))
    return error;
  return checkAvailableMemory(total, "the inputs and outputs");
}

SmallVector<unsigned> getMemoryOrder(const RunOptions &options, size_t rank) {
  if (options.isRowsFirst && rank == 4)
    return {0, 2, 1, 3};
  return {};
}

namespace {
class Binder {
public:
  Binder(const Source &source, const RunOptions &options)
      : source(source), options(options), values(source.extents.numGroups),
        origins(source.extents.numGroups), names(source.extents.numGroups) {}

  Expected<Binding> run();

private:
  using Facts = ArrayRef<ValueFacts>;
  using Types = ArrayRef<ValueType>;

  void nameGroups();
  Error checkKeys();
  bool isDimension(StringRef key) const;
  Error bind(unsigned group, int64_t extent, const Twine &origin);
  Error bindLetters();
  Error bindTypes(Types types, Facts facts);
  Error bindFiles();
  Error bindDimensions(Facts facts);
  void bindScalars();
  Error bindReads();
  Error bindMade();
  void addDefaults();
  Error checkRules();
  void settle(Types types, Facts facts, SmallVectorImpl<SmallVector<int64_t, 4>> &shapes);

  const Source &source;
  const RunOptions &options;
  Binding binding;
  GroupValues values;
  /// Of each group: what gave its value, and its letters, or else a dimension such as "table.1".
  std::vector<std::string> origins;
  std::vector<SmallVector<std::string, 2>> names;
  SmallVector<std::string> missing;
};
} // namespace

void Binder::nameGroups() {
  for (const auto &letters : source.extents.attentions)
    for (auto [letter, group] : enumerate(letters)) {
      std::string name = getName(Letter(letter)).str();
      if (!is_contained(names[group], name))
        names[group].push_back(name);
    }
  for (const auto *facts : {&source.arguments, &source.results})
    for (const ValueFacts &fact : *facts)
      for (auto [dim, extent] : enumerate(fact.dims))
        if (names[extent.group].empty() && extent.letter >= Letter::Np &&
            extent.letter < Letter::None)
          names[extent.group].push_back(getName(extent.letter).str());
        else if (names[extent.group].empty())
          names[extent.group].push_back((fact.name + "." + Twine(dim)).str());
}

bool Binder::isDimension(StringRef key) const {
  auto [name, index] = key.rsplit('.');
  size_t dim = 0;
  if (index.getAsInteger(10, dim))
    return false;
  for (Facts facts : {Facts(source.arguments), Facts(source.results)})
    for (const ValueFacts &fact : facts)
      if (fact.name == name && dim < fact.dims.size())
        return true;
  return false;
}

Error Binder::checkKeys() {
  for (const auto &entry : options.shape) {
    StringRef key = entry.getKey();
    if (key.contains('.')) {
      if (!isDimension(key))
        return createStringError("--shape: expected tensor.dimension of @" + source.signature.name +
                                 ", got '" + key + "'");
      continue;
    }
    bool isScalar = any_of(source.arguments, [&](auto &facts) { return facts.name == key; });
    bool isLetter = any_of(names, [&](auto &group) { return is_contained(group, key); });
    if (!isScalar && !isLetter)
      return createStringError("--shape: expected a dimension of @" + source.signature.name +
                               ", got " + key + ", which none of its tensors has");
  }
  return Error::success();
}

Error Binder::bind(unsigned group, int64_t extent, const Twine &origin) {
  if (!values[group]) {
    values[group] = extent;
    origins[group] = origin.str();
  } else if (*values[group] != extent) {
    return createStringError("expected " + join(names[group], "=") + "=" + Twine(*values[group]) +
                             " (" + origins[group] + "), got " + Twine(extent) + " (" + origin +
                             ")");
  }
  return Error::success();
}

Error Binder::bindLetters() {
  for (const auto &entry : options.shape) {
    if (entry.getKey().contains('.'))
      continue;
    binding.letters[entry.getKey().str()] = entry.getValue();
  }
  for (const auto &[letter, extent] : binding.letters)
    for (unsigned group = 0; group < values.size(); ++group)
      if (is_contained(names[group], letter))
        if (Error error =
                bind(group, extent, names[group].size() > 1 ? "--shape " + letter : "--shape"))
          return error;
  return Error::success();
}

Error Binder::bindTypes(Types types, Facts facts) {
  for (auto [type, fact] : zip_equal(types, facts))
    for (auto [extent, dim] : zip(type.shape, fact.dims))
      if (extent >= 0)
        if (Error error = bind(dim.group, extent, "the type of " + fact.name))
          return error;
  return Error::success();
}

/// Inputs that are files; whether they fit is asked again when they are read.
Error Binder::bindFiles() {
  for (auto [type, fact] : zip_equal(source.signature.arguments, source.arguments)) {
    auto input = options.inputs.find(fact.name);
    if (input == options.inputs.end() || type.isScalar ||
        !StringRef(input->second).ends_with(".npy"))
      continue;
    Expected<NpyHeader> header = readNpyHeader(input->second, {type.kind, type.shape});
    if (!header)
      return createStringError("--input " + fact.name + ": " + toString(header.takeError()));
    for (auto [extent, dim] : zip_equal(header->shape, fact.dims))
      if (Error error = bind(dim.group, extent, "'" + input->second + "'"))
        return error;
  }
  return Error::success();
}

Error Binder::bindDimensions(Facts facts) {
  for (const ValueFacts &fact : facts)
    for (auto [index, dim] : enumerate(fact.dims)) {
      std::string key = (fact.name + "." + Twine(index)).str();
      auto given = options.shape.find(key);
      if (given != options.shape.end())
        if (Error error = bind(dim.group, given->second, "--shape " + key))
          return error;
    }
  return Error::success();
}

/// Index arguments: a rule may be about their values.
void Binder::bindScalars() {
  for (auto [type, fact] : zip_equal(source.signature.arguments, source.arguments)) {
    if (!type.isScalar || fact.dims.empty())
      continue;
    int64_t number = 0;
    auto input = options.inputs.find(fact.name);
    if (input == options.inputs.end())
      values[fact.dims.front().group] = binding.get(fact.name);
    else if (!StringRef(input->second).getAsInteger(10, number))
      values[fact.dims.front().group] = number;
  }
}

/// A tensor that is read at the positions of a letter tells how many there are.
Error Binder::bindReads() {
  for (const ExtentRule &rule : source.extents.rules) {
    std::optional<unsigned> read = getGroup(rule.left), letter = getGroup(rule.right);
    if (rule.kind == ExtentRule::Kind::AtLeast && read && letter && values[*read] &&
        !values[*letter])
      if (Error error = bind(*letter, *values[*read], origins[*read]))
        return error;
  }
  return Error::success();
}

/// Extents that others make, as pages make keys.
Error Binder::bindMade() {
  for (const ExtentRule &rule : source.extents.rules) {
    std::optional<unsigned> group = getGroup(rule.left);
    if (rule.kind != ExtentRule::Kind::Equal || !group || values[*group])
      continue;
    if (std::optional<int64_t> extent = evaluate(rule.right, values))
      if (Error error = bind(*group, *extent, "what it is made of"))
        return error;
  }
  return Error::success();
}

void Binder::addDefaults() {
  for (const auto &letters : source.extents.attentions)
    for (auto [letter, from] : {std::pair(Letter::Hkv, Letter::H), {Letter::N, Letter::M}})
      if (auto &value = values[letters[size_t(letter)]]; !value)
        value = values[letters[size_t(from)]];
  // A dimension that is read at rows and at columns is as large as both.
  std::vector<bool> isRead(values.size());
  for (const ExtentRule &rule : source.extents.rules) {
    std::optional<unsigned> read = getGroup(rule.left);
    if (rule.kind != ExtentRule::Kind::AtLeast || !read || (values[*read] && !isRead[*read]))
      continue;
    if (std::optional<int64_t> least = evaluate(rule.right, values)) {
      values[*read] = std::max(values[*read].value_or(0), *least);
      isRead[*read] = true;
    }
  }
}

Error Binder::checkRules() {
  for (const ExtentRule &rule : source.extents.rules) {
    // The interpreter looks at every access itself, and names the op.
    if (rule.kind == ExtentRule::Kind::AtLeast && options.device == Device::Interpreter)
      continue;
    // A value that nothing gives is reported as missing.
    if (!evaluate(rule.right, values) || (!evaluate(rule.left, values) && !getGroup(rule.left)))
      continue;
    std::optional<unsigned> group = getGroup(rule.left), dim;
    std::string name;
    for (Facts facts : {Facts(source.arguments), Facts(source.results)})
      for (const ValueFacts &fact : facts)
        for (auto [index, extent] : enumerate(fact.dims))
          if (group && extent.group == *group && !dim) {
            dim = index;
            name = fact.name + ": ";
          }
    if (std::optional<std::string> message = check(rule, dim, values))
      return createStringError((rule.kind == ExtentRule::Kind::Multiple ? "" : name) + *message);
  }
  return Error::success();
}

void Binder::settle(Types types, Facts facts, SmallVectorImpl<SmallVector<int64_t, 4>> &shapes) {
  for (auto [type, fact] : zip_equal(types, facts)) {
    SmallVector<int64_t, 4> &shape = shapes.emplace_back();
    if (type.isScalar)
      continue;
    for (const ExtentDim &dim : fact.dims) {
      shape.push_back(values[dim.group].value_or(0));
      if (!values[dim.group] && !is_contained(missing, names[dim.group].front()))
        missing.push_back(names[dim.group].front());
    }
  }
}

Expected<Binding> Binder::run() {
  nameGroups();
  if (Error error = checkKeys())
    return std::move(error);
  if (Error error = bindLetters())
    return std::move(error);
  if (Error error = bindTypes(source.signature.arguments, source.arguments))
    return std::move(error);
  if (Error error = bindTypes(source.signature.results, source.results))
    return std::move(error);
  if (Error error = bindFiles())
    return std::move(error);
  for (Facts facts : {Facts(source.arguments), Facts(source.results)})
    if (Error error = bindDimensions(facts))
      return std::move(error);
  bindScalars();
  if (Error error = bindReads())
    return std::move(error);
  if (Error error = bindMade())
    return std::move(error);
  addDefaults();
  if (Error error = checkRules())
    return std::move(error);
  settle(source.signature.arguments, source.arguments, binding.arguments);
  settle(source.signature.results, source.results, binding.results);
  if (!missing.empty())
    return createStringError("expected --shape to give the extents of @" + source.signature.name +
                             ", got none for " + join(missing, ", "));
  // Of the first attention, where there are several.
  for (const auto &letters : source.extents.attentions)
    for (auto [letter, group] : enumerate(letters))
      if (values[group])
        binding.letters.try_emplace(getName(Letter(letter)).str(), *values[group]);
  return std::move(binding);
}

Error bind(Expected<Source> found, const RunOptions &options, Source &source, Binding &binding) {
  if (!found)
    return found.takeError();
  source = std::move(*found);
  Expected<Binding> bound = Binder(source, options).run();
  if (!bound)
    return bound.takeError();
  binding = std::move(*bound);
  return Error::success();
}

} // namespace attn
