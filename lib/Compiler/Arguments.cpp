//===- Arguments.cpp - checks of a call, before any memory is touched -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Footprint.h"
#include "lib/Compiler/Function.h"
#include "lib/Target/CPU/Invoke.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace llvm;

namespace attn {

namespace {
using Value = CallRules::Value;

/// Positions of the dialect (s12).
constexpr int64_t kMaxExtent = int64_t(1) << 29;
/// Bytes; strides of copies are below (cuTensorMapEncodeTiled).
constexpr int64_t kMaxDeviceStride = int64_t(1) << 40;

class Checker {
public:
  /// `isForHost`: tensors become words too.
  Checker(const CallRules &rules, SmallVectorImpl<uint64_t> &words, bool isForHost)
      : rules(rules), words(words), isForHost(isForHost), extents(rules.numGroups),
        owners(rules.numGroups), footprints(rules.values.size()) {}

  Status checkCount(LaunchArguments arguments) const {
    size_t numResults = rules.values.size() - rules.numArguments;
    if (arguments.size() == rules.values.size())
      return {};
    return fail("call",
                "expected " + Twine(rules.numArguments) + " arguments and " + Twine(numResults) +
                    " results, got " + Twine(arguments.size()) + " values",
                "pass " + describe());
  }

  /// What needs no memory.
  static Status checkShape(const Value &value, const LaunchArgument &argument) {
    if (argument.getKind() != LaunchArgument::Kind::Tensor)
      return fail(value.name, "expected a tensor, got a number");
    const TensorView &view = argument.getTensor();
    int64_t rank = value.shape.size();
    if (view.type != value.type)
      return fail(value.name, Twine("expected elements of ") + getName(value.type) + ", got " +
                                  getName(view.type));
    if (view.rank != rank)
      return fail(value.name, "expected " + Twine(rank) + " dimensions, got " + Twine(view.rank));
    if (rank > 0 && !view.shape)
      return fail(value.name, "expected a shape, got a null address");
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t extent = view.shape[dim], wanted = value.shape[dim];
      if (extent < 0 || extent >= kMaxExtent)
        return fail(value.name, "expected extents from 0 to 2^29 - 1, got " + getShape(view));
      if (wanted >= 0 && extent != wanted)
        return fail(value.name, "expected " + Twine(wanted) + " in dimension " + Twine(dim) +
                                    ", which the function was compiled for, got shape " +
                                    getShape(view));
    }
    return {};
  }

  Status run(LaunchArguments arguments) {
    if (Status status = checkCount(arguments); !status.ok())
      return status;
    for (auto [index, value] : enumerate(rules.values)) {
      const LaunchArgument &argument = arguments[index];
      Status status = value.isScalar ? addScalar(value, argument) : addTensor(value, argument);
      if (!status.ok())
        return status;
      if (value.isScalar && !value.dims.empty())
        extents[value.dims.front().group] = static_cast<int64_t>(words.back());
    }
    for (auto [index, value] : enumerate(rules.values)) {
      if (value.isScalar)
        continue;
      Status status = checkGroups(value, arguments[index].getTensor());
      if (!status.ok())
        return status;
    }
    for (const ExtentRule &rule : rules.extents) {
      Status status = checkRule(rule, arguments);
      if (!status.ok())
        return status;
    }
    for (const Value &value : drop_begin(rules.values, rules.numArguments)) {
      Status status = checkAliases(value);
      if (!status.ok())
        return status;
    }
    return {};
  }

private:
  static Status fail(StringRef where, const Twine &what, const Twine &hint = "") {
    return {StatusCode::InvalidArgument, (where + ": " + what).str(), hint.str()};
  }

  std::string describe() const {
    return join(map_range(rules.values, [](const Value &value) { return value.name; }), ", ");
  }

  static std::string printNumbers(ArrayRef<int64_t> numbers) {
    return "(" + join(map_range(numbers, [](int64_t x) { return itostr(x); }), ", ") + ")";
  }
  static std::string getShape(const TensorView &view) {
    return printNumbers(ArrayRef(view.shape, view.rank));
  }

  Status addTensor(const Value &value, const LaunchArgument &argument) {
    if (Status status = checkShape(value, argument); !status.ok())
      return status;
    const TensorView &view = argument.getTensor();
    int64_t rank = view.rank;
    bool isEmpty = is_contained(ArrayRef(view.shape, rank), 0);
    if (!isEmpty && !view.data)
      return fail(value.name, "expected an address of data, got a null address");
    int64_t alignment = std::max(value.alignment, getByteSize(view.type));
    if (!isEmpty && reinterpret_cast<uintptr_t>(view.data) % alignment != 0)
      return fail(value.name,
                  "expected data aligned to " + Twine(value.alignment ? "" : "its elements of ") +
                      Twine(alignment) + " bytes, got an address that is not",
                  "copy the tensor");
    SmallVector<int64_t, 8> strides(rank);
    // Wraps for what no memory can hold, which is for the caller to know.
    uint64_t packed = 1;
    for (int64_t dim = rank - 1; dim >= 0; --dim) {
      strides[dim] = view.strides ? view.strides[dim] : static_cast<int64_t>(packed);
      packed *= std::max<int64_t>(view.shape[dim], 1);
    }
    if (isForHost)
      addDescriptor(words, view.data, ArrayRef(view.shape, rank), strides);
    return isEmpty ? Status() : checkStrides(value, view, strides);
  }

  static Status checkStride(const Value &value, const TensorView &view, int64_t dim,
                            int64_t stride) {
    if (view.shape[dim] < 2)
      return {};
    bool isLast = dim == view.rank - 1;
    bool isContiguous = (view.rank > 1 || value.isResult) && !value.hasAnyStrides;
    if (isLast && isContiguous && stride != 1)
      return fail(value.name,
                  "expected a contiguous last dimension, got a stride of " + Twine(stride),
                  "copy the tensor into row-major order");
    if (value.isResult && stride == 0)
      return fail(value.name,
                  "expected elements of their own, got a stride of 0 in dimension " + Twine(dim));
    if (!value.alignment || isLast)
      return {};
    int64_t step = std::max<int64_t>(value.alignment / getByteSize(view.type), 1);
    if (stride % step != 0)
      return fail(value.name,
                  "expected strides of a multiple of " + Twine(step) + " elements (" +
                      Twine(value.alignment) + " bytes), got " + Twine(stride) + " in dimension " +
                      Twine(dim),
                  "pad the rows so that the stride is " +
                      Twine((stride / step + (stride > 0)) * step));
    if (stride < 0 || stride >= kMaxDeviceStride / getByteSize(view.type))
      return fail(value.name,
                  "expected strides from 0 to 2^40 bytes, got " + Twine(stride) +
                      " elements in dimension " + Twine(dim),
                  "copy the tensor into row-major order");
    return {};
  }

  /// Of an array with elements, whose footprint it keeps.
  Status checkStrides(const Value &value, const TensorView &view, ArrayRef<int64_t> strides) {
    for (int64_t dim = view.rank - 1; dim >= 0; --dim) {
      Status status = checkStride(value, view, dim, strides[dim]);
      if (!status.ok())
        return status;
    }
    std::optional<Footprint> footprint = Footprint::find(view, strides);
    auto describe = [&] {
      return "strides of " + printNumbers(strides) + " for shape " + getShape(view);
    };
    if (!footprint)
      return fail(value.name, "expected elements inside of the address space, got " + describe());
    if (value.isResult && !footprint->hasOwnElements())
      return fail(value.name, "expected elements of their own, got " + describe());
    footprints[&value - rules.values.data()] = std::move(footprint);
    return {};
  }

  /// A result is written while arguments and other results are still used.
  Status checkAliases(const Value &value) {
    const std::optional<Footprint> &mine = footprints[&value - rules.values.data()];
    if (!mine)
      return {};
    for (auto [other, its] : zip_equal(rules.values, footprints)) {
      // Of two results the later one is told of.
      bool isLater = other.isResult && &other >= &value;
      if (!isLater && its && mine->mayOverlap(*its))
        return fail(value.name,
                    "expected memory of its own, got memory that " + other.name + " has too",
                    "give another array for the result");
    }
    return {};
  }

  Status addScalar(const Value &value, const LaunchArgument &argument) {
    uint64_t &word = words.emplace_back(0);
    switch (argument.getKind()) {
    case LaunchArgument::Kind::Tensor: {
      const TensorView &view = argument.getTensor();
      if (view.type != value.type || view.rank != 0 || !view.data)
        return fail(value.name,
                    Twine("expected a number or a tensor of rank 0 with an element of ") +
                        getName(value.type) + ", got rank " + Twine(view.rank) + " of " +
                        getName(view.type));
      std::memcpy(&word, view.data, getByteSize(view.type));
      return {};
    }
    case LaunchArgument::Kind::Integer:
      return setInteger(value, argument.getInteger(), word);
    case LaunchArgument::Kind::Real:
      return setReal(value, argument.getReal(), word);
    }
    return {};
  }

  static Status setReal(const Value &value, double number, uint64_t &word) {
    if (value.type == DataType::F32) {
      float narrow = static_cast<float>(number);
      std::memcpy(&word, &narrow, sizeof(narrow));
    } else if (value.type == DataType::F64) {
      std::memcpy(&word, &number, sizeof(number));
    } else if (value.type == DataType::F16 || value.type == DataType::BF16) {
      word = value.type == DataType::F16 ? doubleToHalf(number) : doubleToBFloat(number);
    } else {
      return fail(value.name, Twine("expected an integer of ") + getName(value.type) +
                                  ", got a floating-point number");
    }
    return {};
  }

  static Status setInteger(const Value &value, int64_t number, uint64_t &word) {
    unsigned bits = 0;
    switch (value.type) {
    case DataType::I1:
    case DataType::I8:
    case DataType::I32:
    case DataType::I64:
      bits = value.type == DataType::I1 ? 1 : 8 * getByteSize(value.type);
      break;
    default:
      return setReal(value, static_cast<double>(number), word);
    }
    bool fits = bits == 1 ? number == 0 || number == 1 : isIntN(bits, number);
    if (!fits)
      return fail(value.name, Twine("expected an integer that fits ") + getName(value.type) +
                                  ", got " + Twine(number));
    word = static_cast<uint64_t>(number);
    return {};
  }

  /// The dimensions of a group are equal. The first tensor decides.
  Status checkGroups(const Value &value, const TensorView &view) {
    for (auto [dim, rule] : enumerate(value.dims)) {
      Owner &owner = owners[rule.group];
      std::optional<int64_t> &extent = extents[rule.group];
      if (!owner.value)
        owner = {&value, static_cast<unsigned>(dim)};
      if (!extent)
        extent = view.shape[dim];
      if (*extent == view.shape[dim])
        continue;
      std::string letter = getName(rule.letter).str();
      std::string origin = owner.value == &value ? "" : " as in " + owner.value->name;
      return fail(value.name, "expected " + (letter.empty() ? "" : letter + "=") + Twine(*extent) +
                                  origin + " in dimension " + Twine(dim) + ", got shape " +
                                  getShape(view));
    }
    return {};
  }

  Status checkRule(const ExtentRule &rule, LaunchArguments arguments) {
    std::optional<unsigned> group = getGroup(rule.left), dim;
    Owner owner = group ? owners[*group] : Owner();
    if (owner.value)
      dim = owner.dim;
    std::optional<std::string> message = check(rule, dim, extents);
    if (!message)
      return checkDerived(rule);
    if (!owner.value)
      return fail("call", *message);
    if (rule.kind == ExtentRule::Kind::Multiple)
      return fail(owner.value->name, *message);
    const TensorView &view = arguments[owner.value - rules.values.data()].getTensor();
    return fail(owner.value->name, *message + ", got shape " + getShape(view));
  }

  /// An extent that no argument has itself, such as the keys of a table's pages: of positions there
  /// are no more than of an argument's (s12).
  Status checkDerived(const ExtentRule &rule) const {
    std::optional<unsigned> group = getGroup(rule.left);
    if (rule.kind != ExtentRule::Kind::Equal || !group || owners[*group].value ||
        *extents[*group] < kMaxExtent)
      return {};
    // Told of the argument that it is computed from.
    const auto *from = llvm::find_if(rule.right, [&](const ExtentTerm &term) {
      return term.kind == ExtentTerm::Kind::Group && owners[term.value].value;
    });
    StringRef name = "call";
    if (from != rule.right.end())
      name = owners[from->value].value->name;
    return fail(name, "expected fewer than 2^29 positions, got " + Twine(*extents[*group]));
  }

  /// The first dimension of a group.
  struct Owner {
    const Value *value = nullptr;
    unsigned dim = 0;
  };
  const CallRules &rules;
  SmallVectorImpl<uint64_t> &words;
  bool isForHost;
  GroupValues extents;
  SmallVector<Owner, 16> owners;
  /// By value; none of scalars and of arrays without elements.
  SmallVector<std::optional<Footprint>, 12> footprints;
};
} // namespace

Status flattenArguments(const CallRules &rules, LaunchArguments arguments, CallWords &words) {
  return Checker(rules, words, /*isForHost=*/true).run(arguments);
}

Status checkArguments(const CallRules &rules, LaunchArguments arguments,
                      SmallVectorImpl<uint64_t> &scalars) {
  return Checker(rules, scalars, /*isForHost=*/false).run(arguments);
}

Status checkShapes(const CallRules &rules, LaunchArguments arguments) {
  SmallVector<uint64_t> words;
  if (Status status = Checker(rules, words, /*isForHost=*/false).checkCount(arguments);
      !status.ok())
    return status;
  for (auto [index, value] : enumerate(rules.values))
    if (!value.isScalar)
      if (Status status = checkShape(value, arguments[index]); !status.ok())
        return status;
  return {};
}

Status checkShape(const CallRules::Value &value, const LaunchArgument &argument) {
  return Checker::checkShape(value, argument);
}

} // namespace attn
