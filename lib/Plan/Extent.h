//===- Extent.h - what the extents of a function's tensors have to be -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Generated code believes its extents: an attention reads as many value rows as there are key rows.
// The conditions for that on a call are here, without IR, so that a plan can keep them:
//
//   * Dimensions that are one and the same are a group. Each dimension of an argument or result is
//     in one, and so is the value of an index argument.
//   * Rules relate expressions over groups: the extents of slices, of what regions read at their
//     positions, of query and key heads.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PLAN_EXTENT_H
#define ATTN_LIB_PLAN_EXTENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace attn {

/// The letters of dimensions: those of an attention, then those of pages and of sequences. `None`
/// is a dimension that the source says nothing about.
enum class Letter : uint8_t { B, H, Hkv, M, N, D, Dv, Np, P, C, T, None };
constexpr size_t kNumLetters = size_t(Letter::None);
constexpr size_t kNumAttentionLetters = size_t(Letter::Dv) + 1;
llvm::StringRef getName(Letter letter);

/// One step of an expression, which is in postfix order.
struct ExtentTerm {
  /// `Div` rounds towards zero.
  enum class Kind : uint8_t {
    Constant,
    Group,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    CeilDiv,
    Rem,
    Min,
    Max
  };
  Kind kind = Kind::Constant;
  /// The constant or the group.
  int64_t value = 0;

  bool operator==(const ExtentTerm &) const = default;
};
using Extent = llvm::SmallVector<ExtentTerm, 3>;

inline Extent makeConstant(int64_t value) { return {{ExtentTerm::Kind::Constant, value}}; }
inline Extent makeExtent(unsigned group) { return {{ExtentTerm::Kind::Group, group}}; }
/// The group that an expression is, if it is no more.
std::optional<unsigned> getGroup(const Extent &extent);

/// The values of groups; nothing where unknown.
using GroupValues = llvm::SmallVector<std::optional<int64_t>, 16>;

/// Nothing when a group is unknown, or the arithmetic wraps or divides by zero.
std::optional<int64_t> evaluate(const Extent &extent, const GroupValues &values);

struct ExtentRule {
  enum class Kind : uint8_t { Equal, AtLeast, Multiple };
  Kind kind = Kind::Equal;
  Extent left, right;
  /// Of `right`, for messages.
  Letter letter = Letter::None;

  bool operator==(const ExtentRule &) const = default;
};

/// One dimension of an argument or result, or the value of an index argument.
struct ExtentDim {
  /// By its first use in an attention.
  Letter letter = Letter::None;
  unsigned group = 0;

  bool operator==(const ExtentDim &) const = default;
};
using ExtentDims = llvm::SmallVector<ExtentDim, 4>;

/// A dimension of an argument or result, which are counted through.
struct BatchDim {
  unsigned value = 0, dim = 0;

  bool operator==(const BatchDim &) const = default;
};

/// Nothing, or what is wrong: "expected at least N=5 elements ...", for a message about `dim`, the
/// dimension that is the rule's left side if there is one. Gives a value to a group that nothing
/// else does.
std::optional<std::string> check(const ExtentRule &rule, std::optional<unsigned> dim,
                                 GroupValues &values);

/// "g2 1 add" for plans, and back. Nothing for other text.
std::string printExtent(const Extent &extent);
std::optional<Extent> parseExtent(llvm::StringRef text, unsigned numGroups);

} // namespace attn

#endif // ATTN_LIB_PLAN_EXTENT_H
