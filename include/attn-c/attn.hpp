//===- attn.hpp - the C interface of attn for C++ ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
//   attn::AttentionSpec causal;
//   causal.headDim = 128;
//   causal.causal = attn::Causal::BottomRight;
//   attn::Result<attn::Kernel> attention = attn::compile(causal, {{"device", "cuda"}});
//   if (!attention)
//     report(attention.status().str());
//   attn::Status status = attention->run({query, key, value, output}, stream);
//
// A header alone, C++17: what crosses the library's border is C, so that any compiler and any
// standard library will do. Nothing throws but std::bad_alloc; everything may be called from any
// number of threads at once.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_C_ATTN_HPP
#define ATTN_C_ATTN_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "attn-c/attn.hpp: expected C++17 or later (-std=c++17)"
#endif

#include "attn-c/attn.h"
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace attn {
// Programs that hold the compiler itself (include/attn) have other classes of these names.
inline namespace c1 {

//===----------------------------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------------------------===//

/// Whether a call did what it was to do; true if so.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(attn_code code, std::string message, std::string hint = "")
      : errorCode(code), text(std::move(message)), change(std::move(hint)) {}

  /// Of a call of the C interface that this thread has just made.
  static Status of(attn_code code) {
    return code == ATTN_OK ? Status() : Status(code, attn_last_message(), attn_last_hint());
  }

  explicit operator bool() const { return errorCode == ATTN_OK; }
  attn_code code() const { return errorCode; }
  /// One line, "where: expected X, got Y".
  const std::string &message() const { return text; }
  /// The nearest change that would be accepted; may be empty.
  const std::string &hint() const { return change; }
  /// All of it: "invalid argument: key: expected .., got .. (hint)".
  std::string str() const {
    if (*this)
      return "ok";
    return std::string(attn_code_name(errorCode)) + ": " + text +
           (change.empty() ? "" : " (" + change + ")");
  }

private:
  attn_code errorCode = ATTN_OK;
  std::string text, change;
};

/// A value, or why there is none.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : held(std::move(value)) {}
  Result(Status status) : error(std::move(status)) { assert(!error && "expected an error"); }

  explicit operator bool() const { return held.has_value(); }
  const Status &status() const { return error; }
  /// Only where there is one.
  T &operator*() { return *held; }
  const T &operator*() const { return *held; }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }

private:
  std::optional<T> held;
  Status error;
};

//===----------------------------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------------------------===//

enum class Type { F16, BF16, F32, F64, F8E4M3FN, F8E5M2, I1, I8, I32, I64 };

/// Memory that somebody else owns, with its shape. On a GPU `device` is its number; -1 is the CPU.
class Tensor {
public:
  static constexpr size_t kMaxRank = 8;
  using Extents = std::vector<int64_t>;

  /// Strides are in elements; none means row-major. More than eight dimensions are refused by run.
  Tensor(void *data, Type type, const Extents &shape, const Extents &strides = {}, int device = -1)
      : rank(shape.size()), hasStrides(!strides.empty()) {
    for (size_t i = 0; i < kMaxRank; ++i) {
      extents[i] = i < shape.size() ? shape[i] : 0;
      steps[i] = i < strides.size() ? strides[i] : 0;
    }
    isWrong = rank > kMaxRank || (hasStrides && strides.size() != rank);
    tensor.data = data;
    tensor.device.device_type = device < 0 ? ATTN_DL_CPU : ATTN_DL_CUDA;
    tensor.device.device_id = device < 0 ? 0 : device;
    static constexpr uint8_t codes[] = {
        ATTN_DL_FLOAT,       ATTN_DL_BFLOAT, ATTN_DL_FLOAT, ATTN_DL_FLOAT, ATTN_DL_FLOAT8_E4M3FN,
        ATTN_DL_FLOAT8_E5M2, ATTN_DL_BOOL,   ATTN_DL_INT,   ATTN_DL_INT,   ATTN_DL_INT};
    static constexpr uint8_t bits[] = {16, 16, 32, 64, 8, 8, 8, 8, 32, 64};
    tensor.dtype.code = codes[static_cast<size_t>(type)];
    tensor.dtype.bits = bits[static_cast<size_t>(type)];
    tensor.dtype.lanes = 1;
  }

  /// Of elements that C++ has itself: float, double, bool, int8_t, int32_t or int64_t.
  template <typename T>
  Tensor(T *data, const Extents &shape, const Extents &strides = {}, int device = -1)
      : Tensor(const_cast<std::remove_const_t<T> *>(data), typeOf<std::remove_const_t<T>>(), shape,
               strides, device) {}

  /// Whether it can be said to the library at all.
  bool isValid() const { return !isWrong; }

  /// As the C interface takes it; valid as long as this stays where it is.
  const attn_tensor *get() {
    tensor.ndim = static_cast<int32_t>(rank);
    tensor.shape = extents.data();
    tensor.strides = hasStrides ? steps.data() : nullptr;
    return &tensor;
  }

private:
  template <typename T> static constexpr Type typeOf() {
    if constexpr (std::is_same_v<T, float>)
      return Type::F32;
    else if constexpr (std::is_same_v<T, double>)
      return Type::F64;
    else if constexpr (std::is_same_v<T, bool>)
      return Type::I1;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 1)
      return Type::I8;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 4)
      return Type::I32;
    else {
      static_assert(std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 8,
                    "expected float, double, bool, int8_t, int32_t or int64_t; others are given "
                    "with a Type");
      return Type::I64;
    }
  }

  attn_tensor tensor = {};
  size_t rank;
  bool hasStrides, isWrong = false;
  std::array<int64_t, kMaxRank> extents = {}, steps = {};
};

//===----------------------------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------------------------===//

/// Keys and values of attn_options_set: {{"device", "cuda"}, {"block-m", "64"}}.
using Options = std::vector<std::pair<std::string, std::string>>;

/// An argument or a result.
struct Value {
  std::string name, type;
  bool isScalar = false;
  /// -1 is decided by each call.
  std::vector<int64_t> shape;
};

/// Code in this process. A handle: copies are cheap and share the code.
class Kernel {
public:
  /// Takes what attn_compile gave.
  explicit Kernel(attn_kernel *kernel) : handle(kernel, attn_kernel_free) {}

  /// Calls it with its arguments and then its results, which it fills (attn_run).
  Status run(std::vector<Tensor> tensors, void *stream = nullptr) const {
    std::vector<const attn_tensor *> pointers;
    for (Tensor &tensor : tensors) {
      if (!tensor.isValid())
        return {ATTN_INVALID_ARGUMENT, "tensor " + std::to_string(pointers.size()) +
                                           ": expected at most 8 extents and a stride for each"};
      pointers.push_back(tensor.get());
    }
    return Status::of(attn_run(handle.get(), pointers.data(), pointers.size(), stream));
  }

  /// Arguments, and then results.
  std::vector<Value> values() const {
    std::vector<Value> found;
    size_t count = attn_kernel_num_arguments(get()) + attn_kernel_num_results(get());
    for (size_t i = 0; i < count; ++i) {
      attn_value value;
      if (attn_kernel_value(get(), i, &value) != ATTN_OK)
        break;
      found.push_back({value.name, value.type, value.is_scalar != 0,
                       std::vector<int64_t>(value.shape, value.shape + value.ndim)});
    }
    return found;
  }

  const attn_kernel *get() const { return handle.get(); }

private:
  std::shared_ptr<attn_kernel> handle;
};

namespace detail {
/// Calls `use` with options of the C interface.
template <typename Use> Status withOptions(const Options &options, Use use) {
  if (attn_abi_version() != ATTN_ABI_VERSION)
    return {ATTN_INVALID_ARGUMENT,
            "libattn.so: expected interface " + std::to_string(ATTN_ABI_VERSION) + ", got " +
                std::to_string(attn_abi_version()),
            "build the program with the header of the library that it loads"};
  attn_options *made = nullptr;
  Status status = Status::of(attn_options_create(&made));
  for (size_t i = 0; status && i < options.size(); ++i)
    status =
        Status::of(attn_options_set(made, options[i].first.c_str(), options[i].second.c_str()));
  if (status)
    status = Status::of(use(made));
  attn_options_free(made);
  return status;
}

inline std::string take(char *text) {
  std::string copy = text ? text : "";
  attn_string_free(text);
  return copy;
}
} // namespace detail

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

/// Keys at or before the row's own position, counted from the first row and key or from the last.
enum class Causal { No, TopLeft, BottomRight };

/// Where the rows or keys of a call stand in the whole: at their own numbers, from an origin on, or
/// where a table says.
enum class Positions { Own, Origin, Table };

/// The common attentions without writing IR; score and mask functions are source. attn_spec lists
/// the arguments of the function in their order.
struct AttentionSpec {
  /// Of query, key, value and output: F16, BF16 or F32.
  Type type = Type::F32;
  /// D of query and key; Dv of value and output, 0 for D.
  int64_t headDim = 0, valueDim = 0;
  Causal causal = Causal::No;
  /// Keys before and after the row's own position, counted from the bottom-right; -1 is no bound.
  int64_t windowLeft = -1, windowRight = -1;
  /// Whether calls give the factor of the products, otherwise 1/sqrt(D), and one more logit for
  /// each head.
  bool hasScale = false, hasSink = false;
  /// A second result, the natural logarithm of the sum of exponentials, F32 of shape (B, H, M).
  bool returnsLse = false;
  /// P, the keys of a page, which page_table finds; 0 where keys and values lie in one piece.
  int64_t pageSize = 0;
  /// Whether each sequence has its own number of keys, seqused_k.
  bool hasLengths = false;
  /// Whether query, key and value are rows of sequences of any lengths. Not together with the two
  /// above, or with documents.
  bool isRagged = false;
  /// Scores s become softcap * tanh(s / softcap); 0: they stay.
  double softcap = 0;
  /// Whether slopes[h] times the distance of a key from the row's own position is taken off a
  /// score, after the cap.
  bool hasAlibi = false;
  /// Whether rows keep the keys of their own document alone.
  bool hasDocuments = false;
  /// The probability with which a weight becomes 0, and otherwise weight / (1 - p); 0: none.
  double dropout = 0;
  /// The gradients of the attention of the same spec, from its output, its lse and the gradient of
  /// its output. Not together with pages or isRagged.
  bool isGradient = false;
  /// With isGradient: whether d_query, d_key and d_value are F32, whatever the type.
  bool hasWideGradients = false;
  /// Of the output where the type has 8 bits: F16, BF16 or F32. Where it has 16: F32, or else the
  /// type.
  Type outputType = Type::BF16;
  /// Of calls that have some rows and keys of a whole (attn_spec).
  Positions rowPositions = Positions::Own, keyPositions = Positions::Own;
};

namespace detail {
/// As sources name it; "another type" where no operand is of it.
inline const char *nameOf(Type type) {
  switch (type) {
  case Type::F16:
    return "f16";
  case Type::BF16:
    return "bf16";
  case Type::F32:
    return "f32";
  case Type::F8E4M3FN:
    return "f8E4M3FN";
  case Type::F8E5M2:
    return "f8E5M2";
  default:
    return "another type";
  }
}
} // namespace detail

/// The same as a source (attn_write_source).
inline Result<std::string> getSource(const AttentionSpec &spec) {
  attn_spec said = ATTN_SPEC_INIT;
  said.type = detail::nameOf(spec.type);
  said.output_type = detail::nameOf(spec.outputType);
  said.head_dim = spec.headDim;
  said.value_dim = spec.valueDim;
  said.causal = static_cast<int32_t>(spec.causal);
  said.window_left = spec.windowLeft;
  said.window_right = spec.windowRight;
  said.has_scale = spec.hasScale;
  said.has_sink = spec.hasSink;
  said.returns_lse = spec.returnsLse;
  said.page_size = spec.pageSize;
  said.has_lengths = spec.hasLengths;
  said.is_ragged = spec.isRagged;
  said.softcap = spec.softcap;
  said.dropout = spec.dropout;
  said.has_alibi = spec.hasAlibi;
  said.has_documents = spec.hasDocuments;
  said.is_gradient = spec.isGradient;
  said.has_wide_gradients = spec.hasWideGradients;
  said.row_positions = static_cast<int32_t>(spec.rowPositions);
  said.key_positions = static_cast<int32_t>(spec.keyPositions);
  char *source = nullptr;
  if (Status status = Status::of(attn_write_source(&said, &source)); !status)
    return status;
  return detail::take(source);
}

/// Compiles a function on tensors in the `attn` dialect (attn_compile).
inline Result<Kernel> compile(const std::string &source, const Options &options = {}) {
  attn_kernel *kernel = nullptr;
  Status status = detail::withOptions(options, [&](const attn_options *made) {
    return attn_compile(source.c_str(), made, &kernel);
  });
  if (!status)
    return status;
  return Kernel(kernel);
}

inline Result<Kernel> compile(const AttentionSpec &spec, const Options &options = {}) {
  Result<std::string> source = getSource(spec);
  return source ? compile(*source, options) : source.status();
}

/// The kernels that training calls: the attention with its lse, and the gradients.
struct Training {
  Kernel forward, backward;
};

inline Result<Training> compileTraining(AttentionSpec spec, const Options &options = {}) {
  spec.returnsLse = true;
  Result<Kernel> forward = compile(spec, options);
  if (!forward)
    return forward.status();
  spec.isGradient = true;
  Result<Kernel> backward = compile(spec, options);
  if (!backward)
    return backward.status();
  return Training{*forward, *backward};
}

/// Tells a function, in one line, of each kernel that is compiled or loaded from disk because a
/// call takes it, in the thread of that call; an empty one ends it (attn_set_log). Functions of
/// before are kept for calls that are telling them something.
inline void setLog(std::function<void(const std::string &)> log) {
  using Log = std::function<void(const std::string &)>;
  if (!log)
    return attn_set_log(nullptr, nullptr);
  attn_set_log([](const char *line, void *to) { (*static_cast<Log *>(to))(line); },
               new Log(std::move(log)));
}

/// PTX, and a plan of how to launch it, without a GPU (attn_emit).
struct Image {
  std::string ptx, plan;
};

inline Result<Image> emit(const std::string &source, const Options &options = {}) {
  char *ptx = nullptr, *plan = nullptr;
  Status status = detail::withOptions(options, [&](const attn_options *made) {
    return attn_emit(source.c_str(), made, &ptx, &plan);
  });
  if (!status)
    return status;
  return Image{detail::take(ptx), detail::take(plan)};
}

/// How a source is compiled, and the IR after a room (attn_explain).
inline Result<std::string> explain(const std::string &source, const Options &options = {},
                                   const std::string &until = "online") {
  char *text = nullptr;
  Status status = detail::withOptions(options, [&](const attn_options *made) {
    return attn_explain(source.c_str(), made, until.c_str(), &text);
  });
  if (!status)
    return status;
  return detail::take(text);
}

//===----------------------------------------------------------------------------------------===//
// Caches
//===----------------------------------------------------------------------------------------===//

/// Keys and values of sequences that grow where they lie (attn_cache). A handle.
class Cache {
public:
  static Result<Cache> create(const attn_cache_spec &spec) {
    attn_cache *made = nullptr;
    Status status = Status::of(attn_cache_create(&spec, &made));
    if (!status)
      return status;
    return Cache(made);
  }

  Status grow(int64_t sequence, int64_t tokens) {
    return Status::of(attn_cache_grow(get(), sequence, tokens));
  }
  /// How many of the tokens are shared.
  Result<int64_t> share(int64_t from, int64_t to, int64_t tokens) {
    int64_t shared = 0;
    Status status = Status::of(attn_cache_share(get(), from, to, tokens, &shared));
    if (!status)
      return status;
    return shared;
  }
  Status release(int64_t sequence, void *stream = nullptr) {
    return Status::of(attn_cache_release(get(), sequence, stream));
  }
  Status trim() { return Status::of(attn_cache_trim(get())); }

  /// Of a layer, (B, Hkv, N, D), as attn_run takes them. They live as long as the cache.
  Result<attn_tensor> keys(int64_t layer) const { return find(layer, 0); }
  Result<attn_tensor> values(int64_t layer) const { return find(layer, 1); }

  int64_t tokens(int64_t sequence) const { return attn_cache_tokens(get(), sequence); }
  int64_t bytes() const { return attn_cache_bytes(get()); }
  attn_cache *get() const { return handle.get(); }

private:
  explicit Cache(attn_cache *cache) : handle(cache, attn_cache_free) {}

  Result<attn_tensor> find(int64_t layer, int32_t isValue) const {
    attn_tensor tensor;
    Status status = Status::of(attn_cache_tensor(get(), layer, isValue, &tensor));
    if (!status)
      return status;
    return tensor;
  }

  std::shared_ptr<attn_cache> handle;
};

} // namespace c1
} // namespace attn

#endif // ATTN_C_ATTN_HPP
