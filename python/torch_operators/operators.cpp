//===- operators.cpp - attn::forward in PyTorch's dispatcher ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Written on PyTorch's stable ABI of 2.10 and on attn's C interface: one library for that PyTorch
// and later ones, for every Python, and for programs without Python. The operators mean what
// python/attn/_operator.py says, which registers them where this library is not there, and always
// what differentiates, traces and maps them.
//
// `source` is the IR of a function, then comments: "// option NAME=VALUE", quoted as in URLs,
// "// least NUMBER EXTENTS" of what a captured tensor must have, and last "// pieces ...", which
// gradients are made of. All of it is one line. Programs that were exported by earlier versions
// have line ends where this has blanks.
//
//===----------------------------------------------------------------------------------------===//

#include "attn-c/attn.h"
#include <array>
#include <charconv>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <tuple>
#include <vector>

using torch::headeronly::ScalarType;
using torch::stable::Tensor;
using Captures = std::optional<std::vector<Tensor>>;

[[noreturn]] static void fail(const char *code, const std::string &message) {
  throw std::runtime_error("attn: " + std::string(code) + ": " + message);
}

static void check(attn_code code) {
  if (code == ATTN_OK)
    return;
  std::string hint = attn_last_hint();
  fail(attn_code_name(code), attn_last_message() + (hint.empty() ? "" : " (" + hint + ")"));
}

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

namespace {
struct Kernel {
  attn_kernel *handle;
  bool hasScale, hasSink;
  int64_t valueDim;
  /// By the number of a captured tensor.
  std::map<size_t, std::vector<int64_t>> least;
};
} // namespace

/// What follows the prefix, if the text has it.
static std::optional<std::string> strip(const std::string &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return std::nullopt;
  return text.substr(prefix.size());
}

/// "%2F" as "/", and so on.
static std::string unquote(const std::string &text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char *first = text.data() + i + 1, *last = text.data() + std::min(i + 3, text.size());
    if (text[i] == '%' && std::from_chars(first, last, value, 16).ptr == first + 2) {
      result += static_cast<char>(value);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

static Kernel compile(const std::string &source) {
  attn_options *options;
  check(attn_options_create(&options));
  std::unique_ptr<attn_options, void (*)(attn_options *)> owner(options, attn_options_free);
  check(attn_options_set(options, "device", "cpu"));
  Kernel kernel = {};
  bool isWhole = false;
  constexpr std::string_view comment = "// ";
  size_t begin = source.find(comment);
  std::string function = source.substr(0, begin);
  while (begin != std::string::npos && !isWhole) {
    size_t end = source.find(comment, begin + comment.size());
    std::string text = source.substr(begin, end == std::string::npos ? end : end - begin);
    isWhole = text.starts_with("// pieces ");
    if (auto option = strip(text, "// option ")) {
      option->erase(option->find_last_not_of(" \n") + 1);
      size_t equals = std::min(option->find('='), option->size());
      std::string name = unquote(option->substr(0, equals));
      std::string value = unquote(option->substr(equals).erase(0, 1));
      check(attn_options_set(options, name.c_str(), value.c_str()));
    } else if (auto least = strip(text, "// least ")) {
      std::istringstream numbers(*least);
      size_t capture = 0;
      numbers >> capture;
      kernel.least[capture].assign(std::istream_iterator<int64_t>(numbers), {});
    }
    begin = end;
  }
  if (!isWhole)
    fail("invalid argument", "source: expected what attn wrote, got text that does not read");
  check(attn_compile(function.c_str(), options, &kernel.handle));
  attn_value value;
  size_t count = attn_kernel_num_arguments(kernel.handle);
  for (size_t i = 3; i < count && i < 5; ++i) {
    check(attn_kernel_value(kernel.handle, i, &value));
    kernel.hasScale |= value.is_scalar != 0;
    kernel.hasSink |= std::string_view(value.name) == "sink";
  }
  check(attn_kernel_value(kernel.handle, count, &value));
  kernel.valueDim = value.ndim == 4 ? value.shape[3] : 0;
  if (count < 3 || kernel.valueDim <= 0 || attn_kernel_num_results(kernel.handle) != 2)
    fail("invalid argument", "source: expected a function of q, k and v that returns output, lse");
  return kernel;
}

/// Kept as long as the process: graphs that call it may stay loaded as long.
static const Kernel &findKernel(const std::string &source) {
  static auto &mutex = *new std::shared_mutex;
  static auto &kernels = *new std::map<std::string, Kernel, std::less<>>;
  // A map's keys stay where they are.
  thread_local const std::pair<const std::string, Kernel> *last = nullptr;
  if (last && last->first == source)
    return last->second;
  {
    std::shared_lock lock(mutex);
    if (auto found = kernels.find(source); found != kernels.end()) {
      last = &*found;
      return last->second;
    }
  }
  Kernel kernel = compile(source);
  std::unique_lock lock(mutex);
  auto [known, isNew] = kernels.try_emplace(source, kernel);
  if (!isNew)
    attn_kernel_free(kernel.handle);
  last = &*known;
  return last->second;
}

//===----------------------------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------------------------===//

namespace {
/// The tensors of one call, in memory that a frame of them owns.
class Frame {
public:
  explicit Frame(size_t count) : tensors(count), extents(count) {}

  /// `isSwapped` for a matrix of (B, S, H, D).
  void add(const char *name, const Tensor &x, bool isSwapped = false) {
    attn_tensor &tensor = tensors[size];
    std::array<int64_t, 16> &words = extents[size++];
    auto shape = x.sizes(), strides = x.strides();
    if (shape.size() > words.size() / 2)
      fail("invalid argument", std::string(name) + ": expected at most 8 dimensions");
    std::copy(shape.begin(), shape.end(), words.begin());
    std::copy(strides.begin(), strides.end(), words.begin() + 8);
    if (isSwapped && shape.size() == 4) {
      std::swap(words[1], words[2]);
      std::swap(words[9], words[10]);
    }
    tensor.data = x.data_ptr();
    setType(name, x.scalar_type(), tensor);
    set(tensor, static_cast<int32_t>(shape.size()), words.data());
  }

  void addScale(float *scale) {
    attn_tensor &tensor = tensors[size];
    tensor.data = scale;
    tensor.dtype.code = ATTN_DL_FLOAT;
    tensor.dtype.bits = 32;
    set(tensor, 0, extents[size++].data());
  }

  void run(const Kernel &kernel) {
    std::vector<const attn_tensor *> pointers(size);
    for (size_t i = 0; i < size; ++i)
      pointers[i] = &tensors[i];
    auto threads = static_cast<int32_t>(torch::stable::get_num_threads());
    if (threads != attn_get_num_threads())
      check(attn_set_num_threads(threads));
    check(attn_run(kernel.handle, pointers.data(), size, nullptr));
  }

private:
  static void set(attn_tensor &tensor, int32_t rank, int64_t *words) {
    tensor.device.device_type = ATTN_DL_CPU;
    tensor.dtype.lanes = 1;
    tensor.ndim = rank;
    tensor.shape = words;
    tensor.strides = words + 8;
  }

  static void setType(const char *name, ScalarType type, attn_tensor &tensor) {
    auto set = [&](int code, int bits) {
      tensor.dtype.code = static_cast<uint8_t>(code);
      tensor.dtype.bits = static_cast<uint8_t>(bits);
    };
    switch (type) {
    case ScalarType::Half:
      return set(ATTN_DL_FLOAT, 16);
    case ScalarType::BFloat16:
      return set(ATTN_DL_BFLOAT, 16);
    case ScalarType::Float:
      return set(ATTN_DL_FLOAT, 32);
    case ScalarType::Double:
      return set(ATTN_DL_FLOAT, 64);
    case ScalarType::Bool: // Kernels read bools as bytes.
    case ScalarType::Char:
      return set(ATTN_DL_INT, 8);
    case ScalarType::Int:
      return set(ATTN_DL_INT, 32);
    case ScalarType::Long:
      return set(ATTN_DL_INT, 64);
    default:
      fail("invalid argument", std::string(name) + ": expected a type that attn has");
    }
  }

  size_t size = 0;
  std::vector<attn_tensor> tensors;
  std::vector<std::array<int64_t, 16>> extents;
};
} // namespace

static void checkLeast(const Captures &captures, size_t capture,
                       const std::vector<int64_t> &least) {
  std::string name = "captures[" + std::to_string(capture) + "]";
  if (!captures || captures->size() <= capture)
    fail("invalid argument", name + ": expected one, as the source says, got none");
  auto shape = (*captures)[capture].sizes();
  bool fits = shape.size() == least.size();
  for (size_t i = 0; fits && i < least.size(); ++i)
    fits = shape[i] >= least[i];
  if (fits)
    return;
  std::string extents;
  for (int64_t extent : least)
    extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  fail("invalid argument",
       name + ": expected a shape of at least (" + extents + "), which is read");
}

static void run(const Kernel &kernel, const Tensor &q, const Tensor &k, const Tensor &v,
                const std::optional<Tensor> &sink, const Captures &captures,
                std::optional<double> scale, bool rowsFirst, const Tensor &output,
                const Tensor &lse) {
  if (scale.has_value() != kernel.hasScale)
    fail("invalid argument", kernel.hasScale ? "scale: expected one, as the source says, got none"
                                             : "scale: expected none, as the source says, got one");
  if (sink.has_value() != kernel.hasSink)
    fail("invalid argument", kernel.hasSink ? "sink: expected one, as the source says, got none"
                                            : "sink: expected none, as the source says, got one");
  Frame frame(7 + (captures ? captures->size() : 0));
  frame.add("q", q, rowsFirst);
  frame.add("k", k, rowsFirst);
  frame.add("v", v, rowsFirst);
  auto number = static_cast<float>(scale.value_or(0));
  if (scale)
    frame.addScale(&number);
  if (sink)
    frame.add("sink", *sink);
  if (captures)
    for (const Tensor &x : *captures)
      frame.add("captures", x);
  for (const auto &[capture, least] : kernel.least)
    checkLeast(captures, capture, least);
  frame.add("output", output, rowsFirst);
  frame.add("lse", lse);
  frame.run(kernel);
}

static Tensor makeEmpty(std::initializer_list<int64_t> shape, ScalarType type) {
  std::array<int64_t, 4> strides = {};
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape.begin()[i];
  }
  AtenTensorHandle handle;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      static_cast<int64_t>(shape.size()), shape.begin(), strides.data(),
      torch::stable::detail::to<int32_t>(torch::stable::detail::from(type)),
      aoti_torch_device_type_cpu(), 0, &handle));
  return Tensor(handle);
}

static std::tuple<Tensor, Tensor> forward(Tensor q, Tensor k, Tensor v, std::optional<Tensor> sink,
                                          Captures captures, std::string source,
                                          std::optional<double> scale, bool rowsFirst) {
  const Kernel &kernel = findKernel(source);
  if (q.dim() != 4)
    fail("invalid argument",
         "q: expected 4 dimensions, got " + std::to_string(q.dim()) + " of them");
  auto shape = q.sizes();
  int64_t b = shape[0], h = shape[rowsFirst ? 2 : 1], m = shape[rowsFirst ? 1 : 2];
  Tensor output = rowsFirst ? makeEmpty({b, m, h, kernel.valueDim}, q.scalar_type())
                            : makeEmpty({b, h, m, kernel.valueDim}, q.scalar_type());
  Tensor lse = makeEmpty({b, h, m}, ScalarType::Float);
  run(kernel, q, k, v, sink, captures, scale, rowsFirst, output, lse);
  return {output, lse};
}

static void forwardOut(Tensor q, Tensor k, Tensor v, std::optional<Tensor> sink, Captures captures,
                       std::string source, std::optional<double> scale, bool rowsFirst,
                       Tensor output, Tensor lse) {
  run(findKernel(source), q, k, v, sink, captures, scale, rowsFirst, output, lse);
}

#define ATTN_INPUTS                                                                                \
  "Tensor q, Tensor k, Tensor v, Tensor? sink, Tensor[]? captures, str source, float? scale, "     \
  "bool rows_first"

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
    define("forward(" ATTN_INPUTS ") -> (Tensor output, Tensor lse)");
    define("forward_out(" ATTN_INPUTS ", *, Tensor(a!) output, Tensor(b!) lse) -> ()");
  }
  Definitions(const Definitions &) = delete;
  Definitions &operator=(const Definitions &) = delete;
  ~Definitions() { aoti_torch_delete_library_object(library); }

private:
  void define(const char *schema) {
    if (torch_library_def_with_tags) {
      int32_t tag = torch_tag_pt2_compliant_tag();
      TORCH_ERROR_CODE_CHECK(torch_library_def_with_tags(library, schema, &tag, /*count=*/1));
    } else {
      TORCH_ERROR_CODE_CHECK(aoti_torch_library_def(library, schema));
    }
  }

  TorchLibraryHandle library;
};
} // namespace

static const Definitions definitions;

STABLE_TORCH_LIBRARY_IMPL(attn, CPU, library) {
  library.impl("forward", TORCH_BOX(&forward));
  library.impl("forward_out", TORCH_BOX(&forwardOut));
}
