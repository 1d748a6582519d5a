//===- Json.cpp - JSON as Python writes it -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// By hand: the library links PyTorch and attn's C interface, which have no JSON, and LLVM's would
// be a second LLVM in the process.
//
//===----------------------------------------------------------------------------------------===//

#include "Json.h"
#include <charconv>
#include <cstdint>
#include <stdexcept>

using attn_torch::Json;

class Json::Reader {
public:
  explicit Reader(std::string_view text) : rest(text) {}

  Json read(int depth = 0) {
    // Lists of lists are the deepest that there are; others must not end the stack.
    if (depth > 16)
      fail("a shallow value");
    Json value;
    char first = peek();
    if (first == '"') {
      value.kind = Kind::Text;
      value.scalar = readText();
    } else if (first == '[') {
      value.kind = Kind::List;
      readAll(']', [&] { value.list.push_back(read(depth + 1)); });
    } else if (first == '{') {
      value.kind = Kind::Object;
      readAll('}', [&] {
        std::string name = readText();
        take(':');
        value.members[name] = read(depth + 1);
      });
    } else {
      size_t end = std::min(rest.find_first_of(",]} \n"), rest.size());
      value.scalar = rest.substr(0, end);
      rest.remove_prefix(end);
    }
    return value;
  }

private:
  [[noreturn]] static void fail(const std::string &expected) {
    throw std::invalid_argument("expected " + expected);
  }

  char peek() {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \n"), rest.size()));
    if (rest.empty())
      fail("more text");
    return rest.front();
  }

  void take(char wanted) {
    if (peek() != wanted)
      fail(std::string(1, wanted));
    rest.remove_prefix(1);
  }

  template <typename Read> void readAll(char end, Read readOne) {
    rest.remove_prefix(1);
    while (peek() != end) {
      readOne();
      if (peek() != end)
        take(',');
    }
    rest.remove_prefix(1);
  }

  uint32_t readUnit() {
    uint32_t unit = 0;
    const char *first = rest.data(), *last = first + std::min<size_t>(rest.size(), 4);
    if (std::from_chars(first, last, unit, 16).ptr != first + 4)
      fail("four digits after \\u");
    rest.remove_prefix(4);
    return unit;
  }

  /// Two units of UTF-16 are one character of the higher planes.
  void appendEscaped(std::string &text) {
    uint32_t code = readUnit();
    if (code >= 0xd800 && code < 0xdc00 && rest.starts_with("\\u")) {
      rest.remove_prefix(2);
      code = 0x10000 + ((code - 0xd800) << 10) + (readUnit() - 0xdc00);
    }
    auto append = [&](uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80)
      return append(code);
    if (code < 0x800) {
      append(0xc0 | code >> 6);
    } else {
      if (code < 0x10000) {
        append(0xe0 | code >> 12);
      } else {
        append(0xf0 | code >> 18);
        append(0x80 | (code >> 12 & 0x3f));
      }
      append(0x80 | (code >> 6 & 0x3f));
    }
    append(0x80 | (code & 0x3f));
  }

  std::string readText() {
    take('"');
    std::string text;
    while (true) {
      if (rest.empty())
        fail("an end of the text");
      char next = rest.front();
      rest.remove_prefix(1);
      if (next == '"')
        return text;
      if (next != '\\') {
        text += next;
        continue;
      }
      if (rest.empty())
        fail("a character after the backslash");
      char escaped = rest.front();
      rest.remove_prefix(1);
      constexpr std::string_view letters = "nrtbf", meant = "\n\r\t\b\f";
      if (escaped == 'u')
        appendEscaped(text);
      else if (size_t i = letters.find(escaped); i != std::string_view::npos)
        text += meant[i];
      else
        text += escaped;
    }
  }

  std::string_view rest;
};

Json Json::read(std::string_view text) { return Reader(text).read(); }

const Json &Json::operator[](const std::string &name) const {
  auto found = members.find(name);
  if (found == members.end())
    throw std::invalid_argument("expected '" + name + "'");
  return found->second;
}

const Json *Json::find(const std::string &name) const {
  auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

const std::vector<Json> &Json::elements() const {
  if (kind != Kind::List)
    throw std::invalid_argument("expected a list");
  return list;
}

std::vector<std::string> Json::texts() const {
  std::vector<std::string> all;
  for (const Json &element : elements())
    all.push_back(element.text());
  return all;
}

const std::string &Json::text() const {
  if (kind != Kind::Text)
    throw std::invalid_argument("expected a text");
  return scalar;
}

int64_t Json::integer() const {
  int64_t value = 0;
  const char *last = scalar.data() + scalar.size();
  if (!isNull() && (kind != Kind::Word || std::from_chars(scalar.data(), last, value).ptr != last))
    throw std::invalid_argument("expected an integer");
  return value;
}

double Json::real() const {
  double value = 0;
  const char *last = scalar.data() + scalar.size();
  if (kind != Kind::Word || std::from_chars(scalar.data(), last, value).ptr != last)
    throw std::invalid_argument("expected a number");
  return value;
}
