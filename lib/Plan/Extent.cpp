//===- Extent.cpp - what the extents of a function's tensors have to be -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Plan/Extent.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace attn {

using Kind = ExtentTerm::Kind;

StringRef getName(Letter letter) {
  static constexpr StringLiteral names[] = {"B",  "H",  "Hkv", "M", "N", "D",
                                            "Dv", "Np", "P",   "C", "T", ""};
  return names[size_t(letter)];
}

std::optional<unsigned> getGroup(const Extent &extent) {
  if (extent.size() != 1 || extent.front().kind != Kind::Group)
    return std::nullopt;
  return extent.front().value;
}

//===----------------------------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------------------------===//

static std::optional<int64_t> apply(Kind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
  case Kind::Add:
    return AddOverflow(a, b, result) ? std::nullopt : std::optional(result);
  case Kind::Sub:
    return SubOverflow(a, b, result) ? std::nullopt : std::optional(result);
  case Kind::Mul:
    return MulOverflow(a, b, result) ? std::nullopt : std::optional(result);
  case Kind::Min:
    return std::min(a, b);
  case Kind::Max:
    return std::max(a, b);
  default:
    break;
  }
  if (b == 0 || (b == -1 && a == INT64_MIN))
    return std::nullopt;
  return kind == Kind::Div       ? a / b
         : kind == Kind::Rem     ? a % b
         : kind == Kind::CeilDiv ? divideCeilSigned(a, b)
                                 : divideFloorSigned(a, b);
}

std::optional<int64_t> evaluate(const Extent &extent, const GroupValues &values) {
  SmallVector<int64_t, 4> stack;
  for (const ExtentTerm &term : extent) {
    if (term.kind == Kind::Constant) {
      stack.push_back(term.value);
    } else if (term.kind == Kind::Group) {
      if (!values[term.value])
        return std::nullopt;
      stack.push_back(*values[term.value]);
    } else {
      int64_t b = stack.pop_back_val();
      std::optional<int64_t> result = apply(term.kind, stack.back(), b);
      if (!result)
        return std::nullopt;
      stack.back() = *result;
    }
  }
  return stack.back();
}

std::optional<std::string> check(const ExtentRule &rule, std::optional<unsigned> dim,
                                 GroupValues &values) {
  std::optional<int64_t> left = evaluate(rule.left, values), right = evaluate(rule.right, values);
  if (std::optional<unsigned> group = getGroup(rule.left);
      group && !left && right && rule.kind == ExtentRule::Kind::Equal)
    left = values[*group] = right;
  if (!left || !right)
    return std::string("expected extents below 2^63, got more, or a division by zero");
  std::string letter = getName(rule.letter).str();
  std::string wanted = (letter.empty() ? "" : letter + "=") + itostr(*right);
  std::string where = dim ? " in dimension " + utostr(*dim) : "";
  switch (rule.kind) {
  case ExtentRule::Kind::Equal:
    if (*left == *right)
      return std::nullopt;
    return "expected " + wanted + where + ", which the function says";
  case ExtentRule::Kind::AtLeast:
    if (*left >= *right)
      return std::nullopt;
    if (!dim)
      return "expected a slice within its tensor, got one from or to " + itostr(*left) +
             " where it is " + itostr(*right);
    return "expected at least " + wanted + " elements" + where + ", which is read " +
           (letter.empty() ? "up to there" : "at those positions");
  case ExtentRule::Kind::Multiple:
    if (*left == 0 || (*right != 0 && *left % *right == 0))
      return std::nullopt;
    return "expected H to be a multiple of Hkv, got H=" + itostr(*left) +
           " and Hkv=" + itostr(*right);
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------------------------===//
// As text
//===----------------------------------------------------------------------------------------===//

static constexpr std::pair<StringLiteral, Kind> kOperators[] = {
    {"add", Kind::Add}, {"sub", Kind::Sub},           {"mul", Kind::Mul},
    {"div", Kind::Div}, {"floordiv", Kind::FloorDiv}, {"ceildiv", Kind::CeilDiv},
    {"rem", Kind::Rem}, {"min", Kind::Min},           {"max", Kind::Max}};

std::string printExtent(const Extent &extent) {
  return join(map_range(extent,
                        [](const ExtentTerm &term) {
                          for (auto [name, kind] : kOperators)
                            if (kind == term.kind)
                              return name.str();
                          return (term.kind == Kind::Group ? "g" : "") + itostr(term.value);
                        }),
              " ");
}

std::optional<Extent> parseExtent(StringRef text, unsigned numGroups) {
  Extent extent;
  size_t depth = 0;
  for (StringRef word : split(text, ' ')) {
    const auto *found = find_if(kOperators, [&](auto &entry) { return entry.first == word; });
    if (found != std::end(kOperators)) {
      if (depth < 2)
        return std::nullopt;
      extent.push_back({found->second, 0});
      --depth;
      continue;
    }
    bool isGroup = word.consume_front("g");
    int64_t value = 0;
    if (word.getAsInteger(10, value) || (isGroup && (value < 0 || value >= numGroups)))
      return std::nullopt;
    extent.push_back({isGroup ? Kind::Group : Kind::Constant, value});
    ++depth;
  }
  return depth == 1 ? std::optional(extent) : std::nullopt;
}

} // namespace attn
