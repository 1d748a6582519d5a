//===- MaskWriter.h - random masks as text ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_MASKWRITER_H
#define ATTN_TEST_UNIT_MASKWRITER_H

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

namespace attn::test {

/// Writes operations of a mask region over %b, %h, %m, %n and what MaskTilesTest captures.
class MaskWriter {
public:
  /// A number from the first to the last, both included.
  using Draw = std::function<int64_t(int64_t first, int64_t last)>;
  explicit MaskWriter(Draw draw) : random(std::move(draw)) {}

  /// What has been written; methods return the name of a value in it.
  std::string text;

  std::string fresh(const std::string &operation) {
    std::string name = "%v" + std::to_string(count++);
    text += name + " = " + operation + "\n";
    return name;
  }
  std::string constant(int64_t c) {
    return fresh("arith.constant " + std::to_string(c) + " : index");
  }
  std::string binary(const std::string &op, const std::string &a, const std::string &b,
                     const std::string &type = "index") {
    return fresh("arith." + op + " " + a + ", " + b + " : " + type);
  }
  std::string pick(std::initializer_list<const char *> names) {
    return names.begin()[random(0, names.size() - 1)];
  }

  /// m, n or m - n compared with a block constant.
  std::string unitAtom() {
    std::string left = pick({"%m", "%n", "d", "d", "d"});
    if (left == "d")
      left = random(0, 1) ? binary("subi", "%m", "%n") : binary("subi", "%n", "%m");
    std::string right = random(0, 1) ? constant(random(-20, 60)) : pick({"%off", "%w", "%p"});
    if (random(0, 3) == 0)
      right = binary("addi", right, pick({"%off", "%w", "%p"}));
    return binary("cmpi " + pick({"slt", "sle", "sgt", "sge", "eq", "ne"}) + ",", left, right);
  }
  /// Such conditions, joined.
  std::string unitTree(int atoms) {
    if (atoms == 1)
      return unitAtom();
    int left = random(1, atoms - 1);
    std::string a = unitTree(left), b = unitTree(atoms - left);
    std::string result = binary(pick({"andi", "ori"}), a, b, "i1");
    return random(0, 4) ? result : binary("xori", result, fresh("arith.constant true"), "i1");
  }

  /// Any arithmetic on positions, captured numbers and elements of tensors.
  std::string integer(int depth) {
    if (depth == 0 || random(0, 5) == 0) {
      if (random(0, 4) == 0)
        return constant(random(-9, 40));
      return pick({"%m", "%n", "%m", "%n", "%b", "%h", "%off", "%w", "%p"});
    }
    std::string a = integer(depth - 1);
    switch (random(0, 9)) {
    case 0:
      return binary(pick({"divui", "floordivsi", "divsi", "remui", "remsi", "ceildivsi"}), a,
                    random(0, 3) ? constant(random(1, 12)) : "%c");
    case 1:
      return binary(pick({"maxsi", "minsi"}), a, integer(depth - 1));
    case 2:
      return binary("muli", a, random(0, 3) ? constant(random(-3, 3)) : integer(0));
    case 3: {
      std::string type = pick({"i8", "i32", "i64"});
      std::string narrow = fresh("arith.index_cast " + a + " : index to " + type);
      std::string other = fresh("arith.index_cast " + integer(0) + " : index to " + type);
      narrow = binary(pick({"addi", "subi"}), narrow, other, type);
      return fresh("arith." + pick({"index_cast ", "index_castui "}) + narrow + " : " + type +
                   " to index");
    }
    case 4: {
      std::string id = fresh(pick({"tensor.extract %idq[%b, %m] : tensor<?x?xi32>",
                                   "tensor.extract %idk[%b, %n] : tensor<?x?xi32>"}));
      return fresh("arith.index_cast " + id + " : i32 to index");
    }
    case 5:
      return fresh("arith.select " + boolean(0) + ", " + a + ", " + integer(depth - 1) +
                   " : index");
    default:
      return binary(pick({"addi", "subi"}), a, integer(depth - 1));
    }
  }
  /// Any condition on such numbers.
  std::string boolean(int depth) {
    if (depth == 0 || random(0, 5) == 0) {
      if (random(0, 9) == 0)
        return "%flag";
      std::string predicate =
          pick({"slt", "sle", "sgt", "sge", "eq", "ne", "ult", "ule", "ugt", "uge"});
      std::string a = integer(random(0, 2));
      return binary("cmpi " + predicate + ",", a, integer(random(0, 2)));
    }
    std::string a = boolean(depth - 1), b = boolean(depth - 1);
    if (random(0, 5) == 0)
      return fresh("arith.select " + boolean(depth - 1) + ", " + a + ", " + b + " : i1");
    return binary(pick({"andi", "ori", "andi", "ori", "xori"}), a, b, "i1");
  }

private:
  Draw random;
  int count = 0;
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_MASKWRITER_H
