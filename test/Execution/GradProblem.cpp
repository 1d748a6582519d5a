//===- GradProblem.cpp - gradients to test --------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GradProblem.h"
#include "lib/Support/Random.h"
#include "test/Execution/LargeScores.h"
#include "test/Execution/RaggedSource.h"
#include "test/Execution/TestDevice.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace attn::test {

//===----------------------------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------------------------===//

bool hasSink(const Variant &variant) {
  return llvm::any_of(variant.captures,
                      [](const Capture &c) { return c.isWanted && c.kind == Capture::Sink; });
}

std::vector<Capture> getTrained(const Variant &variant) {
  std::vector<Capture> trained;
  llvm::copy_if(variant.captures, std::back_inserter(trained),
                [](const Capture &c) { return c.isTrained(); });
  return trained;
}

/// The variant's parts with `part` in front of the first of `words` that it holds, or at the end.
static std::string insertBefore(const std::string &text, std::initializer_list<const char *> words,
                                const std::string &part) {
  size_t at = text.size();
  for (const char *word : words)
    at = std::min(at, text.find(word));
  return text.substr(0, at) + part + " " + text.substr(std::min(at, text.size()));
}

/// Types of the arguments and results of both functions.
struct Types : TensorTypes {
  Types(const Variant &variant, const Problem &p) : TensorTypes(p) {
    for (const Capture &capture : variant.captures)
      captures += std::string(", ") + capture.name + ": " + capture.type;
    for (const Capture &capture : getTrained(variant)) {
      std::string separator = trained.empty() ? "" : ", ";
      auto [shape, element] = llvm::StringRef(capture.type).rsplit('x');
      trained += separator + capture.name;
      trainedTypes += separator + capture.type;
      gradients += separator + (element.empty() ? "tensor<f32>" : shape.str() + "xf32>");
    }
  }
  std::string captures;
  /// Captured tensors whose gradients are wanted.
  std::string trained, trainedTypes, gradients;
};

bool hasLow(const Variant &variant, const Problem &p) {
  if (variant.large)
    return true;
  llvm::StringRef text = variant.text;
  bool changesScores =
      llvm::any_of(std::initializer_list<const char *>{"score(", "#attn.softcap", "#attn.alibi",
                                                       "#attn.relative_bias"},
                   [&](const char *word) { return text.contains(word); });
  return !p.withLse && (changesScores || !getOptions().device->roundsGradFactors());
}

static std::string makeGradient(const Variant &variant, const Problem &p, const Types &t) {
  std::string text = variant.text;
  if (hasLow(variant, p))
    text = insertBefore(text, {"scale(", "sink(", "score(", "mask("},
                        "lse_low(%lselow : " + t.row + ")");
  if (p.withLse)
    text =
        insertBefore(text, {"scale(", "sink(", "score(", "mask("}, "d_lse(%dlse : " + t.row + ")");
  std::string rest = hasSink(variant) ? "d_sink(tensor<?xf32>)" : "";
  if (!t.trained.empty()) {
    text =
        insertBefore(text, {"score(", "mask("}, "wrt(" + t.trained + " : " + t.trainedTypes + ")");
    rest += " d_wrt(" + t.gradients + ")";
  }
  return llvm::formatv(
      "  %g:{0} = attn.attention_grad %q, %k, %v, %o, %lse, %do {1}\n    : {2}, {3}, "
      "{4}, {5}, {6}, {8} -> d_query({9}) d_key({10}) d_value({11}) {7}\n",
      3 + hasSink(variant) + getTrained(variant).size(), text, t.query, t.key, t.value, t.output,
      t.row, rest, t.outputGradient, t.queryGradient, t.keyGradient, t.valueGradient);
}

static std::string makeRaggedGradSource(const Variant &variant, const Problem &p) {
  Variant untrained = variant;
  for (Capture &capture : untrained.captures)
    capture.isWanted = false;
  Types t(untrained, p);
  RaggedSource source(p);
  source.addOperand("q", t.query, 'q');
  source.addOperand("k", t.key, 'k');
  source.addOperand("v", t.value, 'k');
  source.addCaptured(variant);
  source.addOperand("do", t.outputGradient, 'q');
  source.addOperand("dlse", t.row, 'q');
  source.addOperand("o", t.output, 'q');
  source.addOperand("lse", t.row, 'q');
  if (hasLow(variant, p))
    source.addOperand("lselow", t.row, 'q');
  source.addResult("%g#0", t.queryGradient, 'q', p.clears);
  source.addResult("%g#1", t.keyGradient, 'k', p.clears);
  source.addResult("%g#2", t.valueGradient, 'v', p.clears);
  return source.write("grad", variant.prologue + makeGradient(untrained, p, t));
}

std::string makeGradSource(const Variant &variant, const Problem &p) {
  if (p.isRagged)
    return makeRaggedGradSource(variant, p);
  Types t(variant, p);
  std::string arguments =
      llvm::formatv("%q: {0}, %k: {1}, %v: {2}{3}, %do: {7}, %dlse: {5}, %o: {4}, %lse: {5}{6}",
                    t.query, t.key, t.value, t.captures, t.output, t.row,
                    hasLow(variant, p) ? ", %lselow: " + t.row : "", t.outputGradient);
  std::string results = t.queryGradient + ", " + t.keyGradient + ", " + t.valueGradient,
              values = "%g#0, %g#1, %g#2";
  if (hasSink(variant)) {
    results += ", tensor<?xf32>";
    values += ", %g#3";
  }
  for (size_t i = 0, count = getTrained(variant).size(); i < count; ++i)
    values += llvm::formatv(", %g#{0}", 3 + hasSink(variant) + i);
  if (!t.gradients.empty())
    results += ", " + t.gradients;
  return llvm::formatv("func.func @grad({0}) -> ({1}) {{\n{2}{3}  return {4} : {1}\n}\n", arguments,
                       results, variant.prologue, makeGradient(variant, p, t), values);
}

//===----------------------------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------------------------===//

std::vector<Array> allocateGradients(ElementKind kind, ElementKind rowKind, const Variant &variant,
                                     std::vector<Input> &inputs, const Problem &p, const Extents &e,
                                     Memory memory) {
  std::vector<Array> results;
  results.push_back(allocate(kind, {e.batch, e.heads, e.m, p.d}, memory));
  results.push_back(allocate(kind, {e.batch, e.keyHeads, e.n, p.d}, memory));
  results.push_back(allocate(kind, {e.batch, e.keyHeads, e.n, p.dv}, memory));
  if (hasSink(variant))
    results.push_back(allocate(rowKind, {e.heads}));
  for (auto [i, capture] : llvm::enumerate(variant.captures))
    if (capture.isTrained())
      results.push_back(allocate(rowKind, inputs[3 + i].array.getShape()));
  for (Array &array : results)
    array.poison();
  return results;
}

std::vector<Input> makeGradInputs(const Variant &variant, const Problem &p, const Extents &e,
                                  uint64_t seed) {
  std::vector<Input> inputs = makeInputs(variant, p, e, seed);
  inputs.emplace_back().array =
      allocate(getElementKind(p.type), {e.batch, e.heads, e.m, p.dv}, p.memory);
  fillNormal(inputs.back().array, seed + 100);
  inputs.emplace_back().array = allocate(ElementKind::F32, {e.batch, e.heads, e.m});
  fillNormal(inputs.back().array, seed + 101);
  return inputs;
}

/// A copy in other elements.
static Array round(Array &source, ElementKind kind, Memory memory) {
  Array result = allocate(kind, source.getShape(), memory);
  for (int64_t i = 0; i < source.size(); ++i)
    result.set(i, source.get(i));
  return result;
}

/// What the rounded one of two log-sum-exps lost (s17).
static Array getLow(Array &exact, Array &rounded) {
  Array low = allocate(ElementKind::F32, exact.getShape());
  for (int64_t i = 0; i < exact.size(); ++i) {
    double lost = exact.get(i) * double(kLog2e) - double(float(rounded.get(i)) * kLog2e);
    low.set(i, std::isfinite(lost) ? lost : 0);
  }
  return low;
}

void addAttention(CompiledKernel &attention, std::vector<Input> &inputs, const Problem &p,
                  const Extents &e, bool withLow) {
  std::vector<Array> results;
  results.push_back(allocate(ElementKind::F64, {e.batch, e.heads, e.m, p.dv}));
  results.push_back(allocate(ElementKind::F64, {e.batch, e.heads, e.m}));
  llvm::MutableArrayRef<Input> all(inputs);
  call(attention, all.drop_back(2), results);
  ElementKind kind = getElementKind(p.getResultType());
  inputs.emplace_back().array = round(results[0], kind, p.memory);
  inputs.emplace_back().array = round(results[1], ElementKind::F32, Memory::RowMajor);
  if (!withLow)
    return;
  Array low = getLow(results[1], inputs.back().array);
  inputs.emplace_back().array = std::move(low);
}

//===----------------------------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------------------------===//

static double getRms(Array &reference, int64_t begin, int64_t count) {
  double sum = 0;
  for (int64_t i = begin; i < begin + count; ++i)
    sum += reference.get(i) * reference.get(i);
  return std::sqrt(sum / double(count));
}

double getError(Array &x, Array &reference, double least) {
  double worst = 0, rms = 0;
  int64_t columns = reference.getShape().empty() ? 1 : reference.getShape().back();
  for (int64_t i = 0; i < x.size(); ++i) {
    if (i % columns == 0)
      rms = getRms(reference, i, columns);
    double r = reference.get(i), error = std::abs(x.get(i) - r);
    if (std::isnan(error))
      return error;
    worst = std::max(worst, error / std::max({std::abs(r), rms, least}));
  }
  return worst;
}

double getGradBound(const Variant &variant, const std::string &type, const Extents &e) {
  double bound = 5e-5;
  // Scores as large as the distance are rounded to f32 before their exponentials are taken.
  if (llvm::any_of(variant.captures, [](const Capture &c) { return c.kind == Capture::Slopes; }))
    bound += 0x1p-22 * double(std::max(e.m, e.n));
  if (type == "f32")
    return bound;
  const TestDevice &device = *getOptions().device;
  // Rows that keep few keys have weights near 1, of which one rounding is as much as many of
  // others.
  if (device.roundsGradFactors())
    return bound + 2 * device.getErrors(type).masked;
  return bound + (type == "f16" ? 0x1p-11 : 0x1p-8);
}

double getLeastGradient(const Problem &problem, int64_t numTerms) {
  return 0.025 * std::sqrt(double(problem.dv) * std::max(1.0, double(numTerms) / 128));
}

double getLargeScale(const Variant &variant, std::vector<Input> &inputs, size_t result) {
  auto scale = llvm::find_if(inputs, [](const Input &input) { return input.isScalar; });
  double columns = double(inputs[0].array.getShape().back());
  return variant.large->factor * scale->scalar * std::sqrt(columns) *
         getLargest(inputs[result == 0 ? 1 : 0].array);
}

} // namespace attn::test
