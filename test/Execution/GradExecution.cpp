//===- GradExecution.cpp - gradients against the f64 reference ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/GradExecution.h"
#include "lib/Support/Compare.h"
#include "lib/Support/Random.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

namespace attn::test {

//===----------------------------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------------------------===//

static bool hasSink(const Variant &variant) {
  return llvm::any_of(variant.captures, [](const Capture &c) { return c.kind == Capture::Sink; });
}

/// Captured tensors whose gradients are checked.
static std::vector<Capture> getTrained(const Variant &variant) {
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

/// Whether gradients are given both parts of the log-sum-exp. On GPUs plain scores do without; with
/// the gradient of lse all do, so that both forms are seen.
static bool hasLow(const Variant &variant, const Problem &p) {
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
      "{4}, {5}, {6}, {5} -> d_query({2}) d_key({3}) d_value({4}) {7}\n",
      3 + hasSink(variant) + getTrained(variant).size(), text, t.query, t.key, t.value, t.output,
      t.row, rest);
}

static std::string makeGradSource(const Variant &variant, const Problem &p) {
  Types t(variant, p);
  std::string arguments = llvm::formatv(
      "%q: {0}, %k: {1}, %v: {2}{3}, %do: {4}, %dlse: {5}, %o: {4}, %lse: {5}{6}", t.query, t.key,
      t.value, t.captures, t.output, t.row, hasLow(variant, p) ? ", %lselow: " + t.row : "");
  std::string results = t.query + ", " + t.key + ", " + t.value, values = "%g#0, %g#1, %g#2";
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

/// Poisoned arrays for d_query, d_key, d_value, perhaps d_sink, and gradients of captured tensors
/// among `inputs`.
static std::vector<Array> allocateGradients(ElementKind kind, ElementKind rowKind,
                                            const Variant &variant, std::vector<Input> &inputs,
                                            const Problem &p, const Extents &e, Memory memory) {
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

/// query, key, value, captures, and the gradients of output and lse.
static std::vector<Input> makeGradInputs(const Variant &variant, const Problem &p, const Extents &e,
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

//===----------------------------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------------------------===//

static double getRms(Array &reference, int64_t begin, int64_t count) {
  double sum = 0;
  for (int64_t i = begin; i < begin + count; ++i)
    sum += reference.get(i) * reference.get(i);
  return std::sqrt(sum / double(count));
}

/// The largest |x - r| / max(|r|, rms of its row, least): a row is a sum, whose terms are rounded.
/// Gradients that cancel, as all do where a row keeps one key, have nothing but rounding errors to
/// be relative to; inputs and so other gradients are near 1.
static double getError(Array &x, Array &reference, double least) {
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

/// The arithmetic is f32's, and so are results of f32. Those of 16 bits are rounded once, by half a
/// unit in the last place. Where factors are too, errors are those of attention's own output, which
/// has such a factor.
static double getBound(const Variant &variant, const std::string &type, const Extents &e) {
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

/// What the terms of a captured tensor's or a sink's gradient are near: of slopes distances, whose
/// root mean square over a square is a 2.4th of the longest.
static double getTermScale(const Variant &variant, size_t i, const Extents &e) {
  std::vector<Capture> trained = getTrained(variant);
  size_t first = 3 + hasSink(variant);
  bool isSlope = i >= first && trained[i - first].kind == Capture::Slopes;
  return isSlope ? std::max(1.0, double(std::max(e.m, e.n)) / 2.4) : 1;
}

void GradExecution::check(const Variant &variant, const Problem &problem,
                          const std::vector<Extents> &extents) {
  std::string source = makeGradSource(variant, problem);
  SCOPED_TRACE(source);
  auto module = sources.parse(source);
  ASSERT_TRUE(module);
  llvm::Expected<std::unique_ptr<TestKernel>> kernel =
      getOptions().device->compile(*module, problem);
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  ++numCompiles;
  // The device may only write kernels down.
  if (!*kernel)
    return;
  // Of any extents, so that the reference knows no tile.
  Problem forward = problem, backward = problem;
  forward.withLse = true;
  forward.extents = backward.extents = std::nullopt;
  auto attention = sources.define(makeSource(variant, forward)),
       gradients = sources.define(makeGradSource(variant, backward));
  ASSERT_TRUE(attention && gradients);
  for (const Extents &e : extents)
    run(variant, problem, e, {**kernel, *attention, *gradients});
}

/// What is no number in keys and values that no row keeps: those whose values have no gradient.
/// Returns whether there are such.
static bool spoilDroppedKeys(std::vector<Input> &inputs, Array &valueGradients) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double garbage[] = {std::nan(""), infinity, -infinity};
  int64_t columns = valueGradients.getShape().back(), numSpoilt = 0;
  for (int64_t key = 0; key < valueGradients.size() / columns; ++key) {
    auto isZero = [&](int64_t i) { return valueGradients.get(key * columns + i) == 0; };
    if (!llvm::all_of(llvm::seq(columns), isZero))
      continue;
    ++numSpoilt;
    for (Array *array : {&inputs[1].array, &inputs[2].array})
      for (int64_t i = 0, count = array->getShape().back(); i < count; ++i)
        array->set(key * count + i, garbage[(key + i) % 3]);
  }
  return numSpoilt > 0;
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

/// Output and lse of attention, rounded as a forward kernel does, and perhaps what lse lost, behind
/// the other inputs.
static void addAttention(CompiledKernel &attention, std::vector<Input> &inputs, const Problem &p,
                         const Extents &e, bool withLow) {
  std::vector<Array> results;
  results.push_back(allocate(ElementKind::F64, {e.batch, e.heads, e.m, p.dv}));
  results.push_back(allocate(ElementKind::F64, {e.batch, e.heads, e.m}));
  llvm::MutableArrayRef<Input> all(inputs);
  call(attention, all.drop_back(2), results);
  ElementKind kind = inputs[0].array.getKind();
  inputs.emplace_back().array = round(results[0], kind, p.memory);
  inputs.emplace_back().array = round(results[1], ElementKind::F32, Memory::RowMajor);
  if (!withLow)
    return;
  Array low = getLow(results[1], inputs.back().array);
  inputs.emplace_back().array = std::move(low);
}

void GradExecution::run(const Variant &variant, const Problem &p, const Extents &e,
                        const Kernels &kernels) {
  seed += 1000;
  SCOPED_TRACE(llvm::formatv("{0} B={1} H={2} Hkv={3} M={4} N={5} seed={6}", variant.name, e.batch,
                             e.heads, e.keyHeads, e.m, e.n, seed)
                   .str());
  std::vector<Input> inputs = makeGradInputs(variant, p, e, seed);
  addAttention(kernels.attention, inputs, p, e, hasLow(variant, p));
  ++numRuns;
  std::vector<Array> expected = allocateGradients(ElementKind::F64, ElementKind::F64, variant,
                                                  inputs, p, e, Memory::RowMajor);
  call(kernels.gradients, inputs, expected);
  ElementKind kind = inputs[0].array.getKind();
  std::vector<Array> results =
      allocateGradients(kind, ElementKind::F32, variant, inputs, p, e, p.memory);
  // Captured tensors' gradients are the last.
  kernels.device.isAddedTo = [numOthers = results.size() - getTrained(variant).size()](size_t i) {
    return i >= numOthers || (i == 0 && getOptions().fused);
  };
  kernels.device.takeWay(0);
  if (llvm::Error error = kernels.device.run(inputs, results, p.memory, seed)) {
    ADD_FAILURE() << llvm::toString(std::move(error));
    return;
  }
  std::vector<std::string> names = {"d_query", "d_key", "d_value"};
  if (hasSink(variant))
    names.push_back("d_sink");
  for (const Capture &capture : getTrained(variant))
    names.push_back(std::string("d_") + (capture.name + 1));
  auto expectClose = [&](Array &result, size_t i) {
    // Of sinks and captured tensors: sums over rows too, whose terms may cancel.
    bool isSum = i >= 3;
    // Where dP and delta cancel, the rest is rounding of numbers that are near sqrt(Dv).
    double least = isSum ? getTermScale(variant, i, e) : 0.025 * std::sqrt(double(p.dv));
    // Whatever the output was rounded to.
    bool isCaptured = i >= results.size() - getTrained(variant).size();
    EXPECT_LE(getError(result, expected[i], least),
              (isSum ? 4 : 1) * getBound(variant, isCaptured ? "f32" : p.type, e))
        << names[i];
  };
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(llvm::cantFail(compare(results[i], expected[i])).numUnwritten, 0) << names[i];
    expectClose(results[i], i);
  }
  auto expectSame = [&](unsigned way, const std::string &what) {
    kernels.device.takeWay(way);
    std::vector<Array> again =
        allocateGradients(kind, ElementKind::F32, variant, inputs, p, e, p.memory);
    if (llvm::Error error = kernels.device.run(inputs, again, p.memory, seed)) {
      ADD_FAILURE() << llvm::toString(std::move(error));
      return;
    }
    for (auto [i, result, other] : llvm::enumerate(results, again)) {
      if (kernels.device.isAddedTo(i) && kernels.device.addsInAnyOrder()) {
        expectClose(other, i);
        continue;
      }
      EXPECT_EQ(std::memcmp(result.data(), other.data(), result.getByteCount()), 0)
          << names[i] << " depends on " << what << ": "
          << llvm::cantFail(compare(other, result)).numNaN << " NaN";
    }
  };
  unsigned numWays = kernels.device.getNumWays();
  for (unsigned way = 1; way < numWays; ++way)
    expectSame(way, "the way that a kernel takes");
  // A factor of 0 takes the gradient from a value, but not its key from a row.
  if (!variant.hasFactors() && spoilDroppedKeys(inputs, expected[2]))
    for (unsigned way = 0; way < numWays; ++way)
      expectSame(way, "keys that no row keeps");
}

} // namespace attn::test
