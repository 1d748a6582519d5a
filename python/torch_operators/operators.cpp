//===- operators.cpp - attention in PyTorch's dispatcher --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Written on PyTorch's stable ABI of 2.10 and on attn's C interface: one library for that PyTorch
// and later ones, with CUDA and without it, for every Python, and for programs without Python. The
// operators mean what python/attn/_operator.py says, which registers them where this library is not
// there, and always what differentiates, traces and maps them.
//
// forward_plain, record_plain and backward_plain are forward, record and backward of tensors that
// autograd has seen: code of Inductor calls them. The others enter Python at autograd's key, which
// takes longer than small kernels do.
//
//===----------------------------------------------------------------------------------------===//

#include "Error.h"
#include "Frame.h"
#include "Program.h"
#include <charconv>
#include <cmath>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <tuple>

using namespace attn_torch;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using Captures = std::optional<std::vector<Tensor>>;

//===----------------------------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------------------------===//

namespace {
/// What every operator is given, and the program of its source.
struct Call {
  const Tensor &q, &k, &v;
  const std::optional<Tensor> &sink;
  const Captures &captures;
  std::optional<double> scale;
  bool rowsFirst;
  Program &program;

  int32_t device() const { return findDevice(q); }
  size_t numCaptures() const { return captures ? captures->size() : 0; }
};

/// (B, H, M).
using Rows = std::array<int64_t, 3>;
} // namespace

static std::string nameType(ScalarType type) {
  switch (type) {
  case ScalarType::Half:
    return "torch.float16";
  case ScalarType::BFloat16:
    return "torch.bfloat16";
  case ScalarType::Float:
    return "torch.float32";
  case ScalarType::Double:
    return "torch.float64";
  default:
    return "another type";
  }
}

static ScalarType findType(const std::string &name) {
  return name == "f16"    ? ScalarType::Half
         : name == "bf16" ? ScalarType::BFloat16
                          : ScalarType::Float;
}

template <typename Extents> static std::string describe(const Extents &extents) {
  std::string text;
  for (int64_t extent : extents)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "(" + text + (extents.size() == 1 ? ",)" : ")");
}

static void checkGiven(const char *name, bool isGiven, bool isWanted) {
  if (isGiven != isWanted)
    refuse(std::string(name) + (isWanted ? ": expected one, as the source says, got none"
                                         : ": expected none, as the source says, got one"));
}

static void checkLeast(size_t capture, const Tensor &x, const std::vector<int64_t> &least) {
  auto shape = x.sizes();
  bool fits = shape.size() == least.size();
  for (size_t i = 0; fits && i < least.size(); ++i)
    fits = shape[i] >= least[i];
  if (!fits)
    refuse("captures[" + std::to_string(capture) + "]: expected a shape of at least " +
           describe(least) + ", which is read, got " + describe(shape));
}

/// All that is said of a call before a kernel is asked for.
static void checkCall(const Call &call) {
  const Source &source = call.program.source;
  if (call.q.scalar_type() != findType(source.type))
    refuse("q: expected elements of " + source.type + ", as the source says, got " +
           nameType(call.q.scalar_type()));
  checkGiven("scale", call.scale.has_value(), source.hasScale);
  checkGiven("sink", call.sink.has_value(), source.hasSink);
  if (call.numCaptures() != source.least.size())
    refuse("captures: expected " + std::to_string(source.least.size()) +
           ", as the source says, got " + std::to_string(call.numCaptures()));
  const std::pair<const char *, const Tensor &> matrices[] = {
      {"q", call.q}, {"k", call.k}, {"v", call.v}};
  for (auto [name, x] : matrices)
    if (x.dim() != 4)
      refuse(std::string(name) + ": expected 4 dimensions, " +
             (call.rowsFirst ? "(B, S, H, D)" : "(B, H, S, D)") + ", got shape " +
             describe(x.sizes()));
  for (size_t i = 0; i < call.numCaptures(); ++i)
    checkLeast(i, (*call.captures)[i], source.least[i]);
}

/// The number as kernels take it.
static float toScale(std::optional<double> scale) {
  auto number = static_cast<float>(scale.value_or(0));
  if (!scale || !std::isinf(number) || std::isinf(*scale))
    return number;
  char digits[32];
  char *end = std::to_chars(digits, digits + sizeof(digits), *scale).ptr;
  refuse("scale: expected a number that f32 holds, got " + std::string(digits, end));
}

static Tensor copyDense(const Tensor &x, ScalarType type) {
  auto shape = x.sizes();
  Tensor copy = makeEmpty(shape.data(), shape.size(), type, findDevice(x));
  torch::stable::copy_(copy, x);
  return copy;
}

/// The sink as kernels take it: floats of any size in f32.
static std::optional<Tensor> toSink(const std::optional<Tensor> &sink) {
  ScalarType type = sink ? sink->scalar_type() : ScalarType::Float;
  bool isOther = type == ScalarType::Half || type == ScalarType::BFloat16;
  if (isOther || type == ScalarType::Double)
    return copyDense(*sink, ScalarType::Float);
  return sink;
}

static void addArguments(Frame &frame, const Call &call, float *scale,
                         const std::optional<Tensor> &sink) {
  frame.add("q", call.q, call.rowsFirst);
  frame.add("k", call.k, call.rowsFirst);
  frame.add("v", call.v, call.rowsFirst);
  if (call.scale)
    frame.addScale(scale);
  if (sink)
    frame.add("sink", *sink);
  for (size_t i = 0; i < call.numCaptures(); ++i)
    frame.add(("captures[" + std::to_string(i) + "]").c_str(), (*call.captures)[i]);
}

//===----------------------------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------------------------===//

static Rows findRows(const Call &call) {
  auto shape = call.q.sizes();
  return {shape[0], shape[call.rowsFirst ? 2 : 1], shape[call.rowsFirst ? 1 : 2]};
}

static Tensor makeOutput(const Call &call) {
  auto [b, h, m] = findRows(call);
  int64_t shape[] = {b, call.rowsFirst ? m : h, call.rowsFirst ? h : m,
                     call.program.source.valueDim};
  return makeEmpty(shape, 4, findType(call.program.source.outputType), call.device());
}

static Tensor makeRows(const Call &call) {
  return makeEmpty(findRows(call).data(), 3, ScalarType::Float, call.device());
}

/// `low` for a kernel that returns what lse lost to rounding.
static void runForward(const Call &call, const Tensor &output, const Tensor &lse,
                       const Tensor *low = nullptr) {
  Frame frame(8 + call.numCaptures(), call.device());
  float scale = toScale(call.scale);
  std::optional<Tensor> sink = toSink(call.sink);
  addArguments(frame, call, &scale, sink);
  frame.add("output", output, call.rowsFirst);
  frame.add("lse", lse);
  if (low)
    frame.add("lse_low", *low);
  Wish wish = {call.device(), /*hasLow=*/low != nullptr, /*isInOrder=*/false, std::nullopt};
  frame.run(call.program.find(wish));
}

static std::tuple<Tensor, Tensor> forward(Tensor q, Tensor k, Tensor v, std::optional<Tensor> sink,
                                          Captures captures, std::string source,
                                          std::optional<double> scale, bool rowsFirst) {
  auto program = findProgram(source);
  Call call = {q, k, v, sink, captures, scale, rowsFirst, *program};
  checkCall(call);
  Tensor output = makeOutput(call), lse = makeRows(call);
  runForward(call, output, lse);
  return {output, lse};
}

static void forwardOut(Tensor q, Tensor k, Tensor v, std::optional<Tensor> sink, Captures captures,
                       std::string source, std::optional<double> scale, bool rowsFirst,
                       Tensor output, Tensor lse) {
  auto program = findProgram(source);
  Call call = {q, k, v, sink, captures, scale, rowsFirst, *program};
  checkCall(call);
  runForward(call, output, lse);
}

/// lse_low has no rows where gradients of the source do without it.
static std::tuple<Tensor, Tensor, Tensor> record(Tensor q, Tensor k, Tensor v,
                                                 std::optional<Tensor> sink, Captures captures,
                                                 std::string source, std::optional<double> scale,
                                                 bool rowsFirst) {
  auto program = findProgram(source);
  Call call = {q, k, v, sink, captures, scale, rowsFirst, *program};
  checkCall(call);
  Tensor output = makeOutput(call), lse = makeRows(call);
  if (program->source.readsLow(q.is_cpu())) {
    Tensor low = makeRows(call);
    runForward(call, output, lse, &low);
    return {output, lse, low};
  }
  runForward(call, output, lse);
  auto [b, h, m] = findRows(call);
  int64_t none[] = {b, h, 0};
  return {output, lse, makeEmpty(none, 3, ScalarType::Float, call.device())};
}

//===----------------------------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------------------------===//

// Of libtorch_cpu.so: the stable ABI has no word for torch.use_deterministic_algorithms.
[[gnu::weak]] const void *getContext() __asm__("_ZN2at13globalContextEv");
[[gnu::weak]] bool
isDeterministic(const void *) __asm__("_ZNK2at7Context23deterministicAlgorithmsEv");

/// Whether PyTorch's programs ask for the same bits each time. Yes where that cannot be told.
static bool wantsSameBits() {
  return !getContext || !isDeterministic || isDeterministic(getContext());
}

template <typename Extents> static bool isRowMajor(const Extents &shape, const Extents &strides) {
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != stride)
      return false;
    stride *= shape[i];
  }
  return true;
}

/// The tensor, or a copy where it is expanded, or has a gap or an address that a kernel may not
/// read: gradients come as PyTorch makes them.
static Tensor toDense(const Tensor &x) {
  auto given = x.sizes(), steps = x.strides();
  std::vector<int64_t> shape(given.begin(), given.end()), strides(steps.begin(), steps.end());
  bool isDense = isRowMajor(shape, strides);
  if (!isDense && shape.size() == 4) {
    std::swap(shape[1], shape[2]);
    std::swap(strides[1], strides[2]);
    isDense = isRowMajor(shape, strides);
  }
  if (isDense && reinterpret_cast<uintptr_t>(x.data_ptr()) % 16 == 0)
    return x;
  return copyDense(x, x.scalar_type());
}

/// Those that are wanted, in the layout of what they are of; added to the frame.
static std::vector<Tensor> addGradients(Frame &frame, const Call &call,
                                        const std::vector<bool> &wanted) {
  std::vector<Tensor> results;
  auto add = [&](const char *name, const int64_t *shape, size_t rank, ScalarType type) {
    results.push_back(makeEmpty(shape, rank, type, call.device()));
    frame.add(name, results.back(), call.rowsFirst);
  };
  const std::pair<const char *, const Tensor &> matrices[] = {
      {"d_q", call.q}, {"d_k", call.k}, {"d_v", call.v}};
  for (size_t i = 0; i < std::size(matrices); ++i)
    if (wanted[i])
      add(matrices[i].first, matrices[i].second.sizes().data(), 4, call.q.scalar_type());
  int64_t heads = findRows(call)[1];
  if (wanted[3])
    add("d_sink", &heads, 1, ScalarType::Float);
  for (size_t i = 0; i < call.numCaptures(); ++i) {
    if (!wanted[Source::kNumNamed + i])
      continue;
    auto shape = (*call.captures)[i].sizes();
    // Kernels sum in f32.
    results.push_back(makeEmpty(shape.data(), shape.size(), ScalarType::Float, call.device()));
    frame.add("d_captures", results.back());
  }
  return results;
}

static std::vector<Tensor> backward(Tensor dOutput, std::optional<Tensor> dLse, Tensor q, Tensor k,
                                    Tensor v, std::optional<Tensor> sink, Captures captures,
                                    Tensor output, Tensor lse, std::string source,
                                    std::optional<double> scaleGiven, bool rowsFirst,
                                    std::vector<bool> wanted, std::optional<Tensor> lseLow) {
  auto program = findProgram(source);
  Call call = {q, k, v, sink, captures, scaleGiven, rowsFirst, *program};
  checkCall(call);
  wanted.resize(Source::kNumNamed + call.numCaptures());
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end())
    return {};
  bool isOnCPU = q.is_cpu(), hasLow = lseLow && program->source.readsLow(isOnCPU);
  Frame frame(12 + 2 * wanted.size(), call.device());
  float scale = toScale(call.scale);
  std::optional<Tensor> wideSink = toSink(sink);
  addArguments(frame, call, &scale, wideSink);
  frame.add("output", output, rowsFirst);
  frame.add("lse", lse);
  if (hasLow)
    frame.add("lse_low", *lseLow);
  // Products are of the elements of q.
  Tensor denseOutput = dOutput.scalar_type() == q.scalar_type()
                           ? toDense(dOutput)
                           : copyDense(dOutput, q.scalar_type());
  frame.add("d_output", denseOutput, rowsFirst);
  std::optional<Tensor> denseLse;
  if (dLse) {
    denseLse = toDense(*dLse);
    frame.add("d_lse", *denseLse);
  }
  std::vector<Tensor> results = addGradients(frame, call, wanted);
  Wish wish = {call.device(), /*hasLow=*/false, /*isInOrder=*/!isOnCPU && wantsSameBits(),
               Gradients{wanted, dLse.has_value(), hasLow}};
  frame.run(program->find(wish));
  return results;
}

//===----------------------------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------------------------===//

#define ATTN_INPUTS                                                                                \
  "Tensor q, Tensor k, Tensor v, Tensor? sink, Tensor[]? captures, str source, float? scale, "     \
  "bool rows_first"
#define ATTN_GRADIENTS                                                                             \
  "Tensor d_output, Tensor? d_lse, Tensor q, Tensor k, Tensor v, Tensor? sink, "                   \
  "Tensor[]? captures, Tensor output, Tensor lse, str source, float? scale, bool rows_first, "     \
  "bool[] wanted, Tensor? lse_low=None"

// Functions of PyTorch 2.12, null in those before, where operators have no tags.
extern "C" {
[[gnu::weak]] AOTITorchError torch_library_def_with_tags(TorchLibraryHandle library,
                                                         const char *schema, const int32_t *tags,
                                                         int32_t count);
[[gnu::weak]] int32_t torch_tag_pt2_compliant_tag();
}

namespace {
/// STABLE_TORCH_LIBRARY, for every PyTorch from 2.10 on.
class Definitions {
public:
  Definitions() {
    TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_def("attn", __FILE__, __LINE__, &library));
    for (const char *plain : {"", "_plain"}) {
      std::string end = plain;
      define("forward" + end + "(" ATTN_INPUTS ") -> (Tensor output, Tensor lse)");
      define("record" + end + "(" ATTN_INPUTS ") -> (Tensor output, Tensor lse, Tensor lse_low)");
      define("backward" + end + "(" ATTN_GRADIENTS ") -> Tensor[]");
    }
    define("forward_out(" ATTN_INPUTS ", *, Tensor(a!) output, Tensor(b!) lse) -> ()");
  }
  Definitions(const Definitions &) = delete;
  Definitions &operator=(const Definitions &) = delete;
  ~Definitions() { aoti_torch_delete_library_object(library); }

private:
  void define(const std::string &schema) {
    if (torch_library_def_with_tags) {
      int32_t tag = torch_tag_pt2_compliant_tag();
      TORCH_ERROR_CODE_CHECK(
          torch_library_def_with_tags(library, schema.c_str(), &tag, /*count=*/1));
    } else {
      TORCH_ERROR_CODE_CHECK(aoti_torch_library_def(library, schema.c_str()));
    }
  }

  TorchLibraryHandle library;
};
} // namespace

static const Definitions definitions;

/// The same code for all devices: tensors say which one is meant.
template <typename Library> static void implement(Library &library) {
  library.impl("forward", TORCH_BOX(&forward));
  library.impl("forward_out", TORCH_BOX(&forwardOut));
  library.impl("record", TORCH_BOX(&record));
  library.impl("backward", TORCH_BOX(&backward));
  library.impl("forward_plain", TORCH_BOX(&forward));
  library.impl("record_plain", TORCH_BOX(&record));
  library.impl("backward_plain", TORCH_BOX(&backward));
}

STABLE_TORCH_LIBRARY_IMPL(attn, CPU, library) { implement(library); }
STABLE_TORCH_LIBRARY_IMPL(attn, CUDA, library) { implement(library); }

/// For tests: how many sources are kept.
extern "C" ATTN_EXPORT size_t attn_torch_count_programs() { return countPrograms(); }
