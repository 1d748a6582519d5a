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
  if (letter == "MN") {
    std::optional<int64_t> m = get("M"), n = get("N");
    return m && n ? std::max(m, n) : std::nullopt;
  }
  auto found = letters.find(letter.str());
  return found == letters.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> Binding::countFlops(FlopCount count) const {
  auto b = get("B"), h = get("H"), m = get("M"), n = get("N"), d = get("D"), dv = get("Dv");
  if (!b || !h || !m || !n || !d || !dv)
    return std::nullopt;
  double rows = double(*m), columns = double(*n), pairs = rows * columns;
  if (count != FlopCount::Full) {
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
  Binder(const Source &source, const RunOptions &options) : source(source), options(options) {}

  Expected<Binding> run() {
    for (const auto &entry : options.shape)
      if (!entry.getKey().contains('.'))
        if (Error error = bindLetter(entry.getKey(), entry.getValue(), "--shape"))
          return std::move(error);
    if (Error error = bindTypes(source.signature.arguments, source.arguments))
      return std::move(error);
    if (Error error = bindTypes(source.signature.results, source.results))
      return std::move(error);
    if (Error error = bindFiles())
      return std::move(error);
    addDefault("Hkv", "H");
    addDefault("N", "M");
    if (Error error = checkLetters())
      return std::move(error);
    if (Error error = settle(source.signature.arguments, source.arguments, binding.arguments))
      return std::move(error);
    if (Error error = settle(source.signature.results, source.results, binding.results))
      return std::move(error);
    if (!missing.empty())
      return createStringError("expected --shape to give the extents of @" + source.signature.name +
                               ", got none for " + join(missing, ", "));
    return std::move(binding);
  }

private:
  Error bindLetter(StringRef letter, int64_t extent, const Twine &origin) {
    if (letter == "?" || letter == "MN")
      return Error::success();
    auto [known, isNew] = binding.letters.try_emplace(letter.str(), extent);
    if (isNew) {
      origins[letter] = origin.str();
      return Error::success();
    }
    if (known->second == extent)
      return Error::success();
    return createStringError("expected " + letter + "=" + Twine(known->second) + " (" +
                             origins[letter] + "), got " + Twine(extent) + " (" + origin + ")");
  }

  Error bindTypes(ArrayRef<ValueType> types, ArrayRef<ValueFacts> facts) {
    for (auto [type, fact] : zip_equal(types, facts))
      for (auto [dim, extent] : enumerate(type.shape)) {
        used.push_back(fact.dims[dim]);
        if (extent >= 0)
          if (Error error = bindLetter(fact.dims[dim], extent, "the type of " + fact.name))
            return error;
      }
    return Error::success();
  }

  /// Inputs that are files; whether they fit is asked again when they are read.
  Error bindFiles() {
    for (auto [type, fact] : zip_equal(source.signature.arguments, source.arguments)) {
      auto input = options.inputs.find(fact.name);
      if (input == options.inputs.end() || type.isScalar ||
          !StringRef(input->second).ends_with(".npy"))
        continue;
      Expected<NpyHeader> header = readNpyHeader(input->second, {type.kind, type.shape});
      if (!header)
        return createStringError("--input " + fact.name + ": " + toString(header.takeError()));
      for (auto [dim, extent] : enumerate(header->shape)) {
        fileExtents[(fact.name + "." + Twine(dim)).str()] = extent;
        if (Error error = bindLetter(fact.dims[dim], extent, "'" + input->second + "'"))
          return error;
      }
    }
    return Error::success();
  }

  void addDefault(StringRef letter, StringRef from) {
    std::optional<int64_t> extent = binding.get(from);
    if (extent && is_contained(used, letter))
      binding.letters.try_emplace(letter.str(), *extent);
  }

  Error checkLetters() {
    for (const auto &entry : options.shape) {
      StringRef key = entry.getKey();
      bool isScalar = any_of(source.arguments, [&](auto &facts) { return facts.name == key; });
      bool isRow = (key == "M" || key == "N") && is_contained(used, "MN");
      if (key.contains('.') || isScalar || isRow || is_contained(used, key))
        continue;
      return createStringError("--shape: expected a dimension of @" + source.signature.name +
                               ", got " + key + ", which none of its tensors has");
    }
    std::optional<int64_t> h = binding.get("H"), hkv = binding.get("Hkv");
    if (h && hkv && *h != 0 && (*hkv == 0 || *h % *hkv != 0))
      return createStringError("expected H to be a multiple of Hkv, got H=" + Twine(*h) +
                               " and Hkv=" + Twine(*hkv));
    for (const auto &entry : options.shape)
      if (entry.getKey().contains('.') && !isDimension(entry.getKey()))
        return createStringError("--shape: expected tensor.dimension of @" + source.signature.name +
                                 ", got '" + entry.getKey() + "'");
    return Error::success();
  }

  bool isDimension(StringRef key) const {
    auto [name, index] = key.rsplit('.');
    size_t dim = 0;
    if (index.getAsInteger(10, dim))
      return false;
    for (const auto *facts : {&source.arguments, &source.results})
      for (const ValueFacts &fact : *facts)
        if (fact.name == name && dim < fact.dims.size())
          return true;
    return false;
  }

  Error settle(ArrayRef<ValueType> types, ArrayRef<ValueFacts> facts,
               SmallVectorImpl<SmallVector<int64_t, 4>> &shapes) {
    for (auto [type, fact] : zip_equal(types, facts)) {
      SmallVector<int64_t, 4> &shape = shapes.emplace_back(type.shape);
      for (auto [dim, extent] : enumerate(shape)) {
        std::string key = (fact.name + "." + Twine(dim)).str();
        std::optional<int64_t> wanted = binding.get(fact.dims[dim]);
        for (bool isFile : {true, false}) {
          const StringMap<int64_t> &given = isFile ? fileExtents : options.shape;
          auto found = given.find(key);
          if (found == given.end())
            continue;
          if (wanted && *wanted != found->second)
            return createStringError("expected " + Twine(*wanted) + " for dimension " + key +
                                     ", got " + Twine(found->second));
          wanted = found->second;
        }
        if (wanted && extent >= 0 && extent != *wanted)
          return createStringError("expected " + Twine(extent) + " (its type) for dimension " +
                                   key + ", got " + Twine(*wanted));
        if (extent < 0 && !wanted) {
          std::string name = fact.dims[dim] == "?" ? key : fact.dims[dim];
          if (!is_contained(missing, name))
            missing.push_back(name);
        }
        extent = wanted.value_or(extent);
      }
    }
    return Error::success();
  }

  const Source &source;
  const RunOptions &options;
  Binding binding;
  StringMap<std::string> origins;
  StringMap<int64_t> fileExtents;
  SmallVector<std::string> used, missing;
};
} // namespace

Expected<Binding> bindShapes(const Source &source, const RunOptions &options) {
  return Binder(source, options).run();
}

} // namespace attn
