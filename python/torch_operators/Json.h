//===- Json.h - JSON as Python writes it ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TORCH_OPERATORS_JSON_H
#define ATTN_TORCH_OPERATORS_JSON_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attn_torch {
/// One value. All functions throw std::invalid_argument where the text is not what is asked for.
class Json {
public:
  /// The value that `text` begins with; there may be more after it.
  static Json read(std::string_view text);

  /// Of an object.
  const Json &operator[](const std::string &name) const;
  /// The same; null where it has no such member.
  const Json *find(const std::string &name) const;
  /// Of a list.
  const std::vector<Json> &elements() const;
  std::vector<std::string> texts() const;
  const std::string &text() const;
  /// Of a number, 0 for null.
  int64_t integer() const;
  double real() const;
  bool isTrue() const { return kind == Kind::Word && scalar == "true"; }
  bool isNull() const { return kind == Kind::Word && scalar == "null"; }

private:
  enum class Kind { Word, Text, List, Object };
  class Reader;

  Kind kind = Kind::Word;
  /// A text without its quotes; numbers and true, false and null as they are written.
  std::string scalar;
  std::vector<Json> list;
  std::map<std::string, Json> members;
};
} // namespace attn_torch

#endif // ATTN_TORCH_OPERATORS_JSON_H
