//===- RandomProgram.cpp - programs of room 4 that nobody has written -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/RandomProgram.h"

namespace attn::test {

RandomProgram::RandomProgram(uint64_t seed) : random(seed) {
  int64_t warpgroups = pick(1, 2);
  height = 64 * warpgroups;
  stages = pick(1, 3);
  rows = pick(1, 300);
  outputRows = pick(1, 3 * height);
  products = pick(1, 5);
  bool goesOn = flip(0.4);
  std::string h = std::to_string(height);
  text = "!in = memref<?x64xbf16, strided<[?, 1]>>\n!out = memref<?x64xf32, strided<[?, 1]>>\n"
         "!high = tensor<" +
         h + "x64xbf16>\n!low = tensor<64x64xbf16>\n!acc = tensor<" + h +
         "x64xf32>\n!square = tensor<" + h + "x" + h + "xf32>\n!narrow = tensor<" + h + "x" + h +
         "xbf16>\nfunc.func @program(";
  for (unsigned i = 0; i < numInputs; ++i)
    text += "%a" + std::to_string(i) + ": !in, ";
  text += "%o: !out) attributes {tile.kernel = #tile.kernel<warpgroups = " +
          std::to_string(warpgroups) + ", schedule = <stages = " + std::to_string(stages) +
          ">, grid = [[";
  text += goesOn ? "2" : "#plan.extent<argument = 3, dim = 0, divisor = " + h + ">";
  text += "], [], []]>} {\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
          "%c64 = arith.constant 64 : index\n%h = arith.constant " +
          h + " : index\n%step = arith.constant " + std::to_string(2 * height) +
          " : index\n%n = memref.dim %a0, %c0 : !in\n%end = memref.dim %o, %c0 : !out\n"
          "%sixteenth = arith.constant 0.0625 : f32\n"
          "%small = tile.broadcast %sixteenth : f32 -> !acc\n"
          "%tiny = tile.broadcast %sixteenth : f32 -> !square\n"
          "%half = arith.constant 0.5 : f32\n"
          "%id = gpu.block_id x\n%first = arith.muli %id, %h : index\n"
          "%odd = arith.andi %id, %c1 : index\n%even = arith.cmpi eq, %odd, %c0 : index\n"
          "%start = tile.broadcast %half : f32 -> !acc\n";
  scope.positions = {"%c0", "%c64", "%first"};
  scope.conditions = {"%even"};
  std::string position = "%first";
  if (goesOn) {
    position = "%m";
    text += "scf.for %m = %first to %end step %step {\n";
    scope.positions.push_back(position);
  }
  std::string result = block(/*depth=*/0, "%start");
  while (products > 0)
    result = block(/*depth=*/1, result);
  text += "tile.store " + result + " to %o[" + position + ", %c0] : !acc, !out\n";
  text += goesOn ? "}\nreturn\n}\n" : "return\n}\n";
}

std::string RandomProgram::emit(const std::string &what) {
  std::string name = "%v" + std::to_string(names++);
  text += name + " = " + what + "\n";
  return name;
}

std::string RandomProgram::load(bool isHigh) {
  std::vector<std::string> &known = isHigh ? scope.high : scope.low;
  if (!known.empty() && flip(0.5))
    return pick(known);
  known.push_back(emit("tile.load %a" + std::to_string(pick(0, numInputs - 1)) + "[" +
                       pick(scope.positions) + ", %c0] : !in -> " + (isHigh ? "!high" : "!low")));
  return known.back();
}

std::string RandomProgram::narrow(const std::string &tile, bool isSquare) {
  return emit("arith.truncf " + tile + (isSquare ? " : !square to !narrow" : " : !acc to !high"));
}

std::string RandomProgram::scale(const std::string &tile, bool isSquare) {
  return emit("arith.mulf " + tile + (isSquare ? ", %tiny : !square" : ", %small : !acc"));
}

/// A lhs from memory or from registers, and a rhs from memory.
std::string RandomProgram::multiply(const std::string &acc) {
  --products;
  bool isNarrowed = !scope.tiles.empty() && flip(0.5), adds = flip(0.5);
  std::string lhs = isNarrowed ? narrow(pick(scope.tiles), false) : load(/*isHigh=*/true);
  std::string rhs = load(/*isHigh=*/false);
  std::string product = emit("tile.mma " + lhs + ", " + rhs + (adds ? ", " + acc : "") +
                             (flip(0.5) ? " {transpose_rhs}" : "") + " : !high, !low" +
                             (adds ? ", !acc" : "") + " -> !acc");
  return scale(product, false);
}

/// Two products, the first with a rhs that threads have computed; the second may read what they
/// computed as its transpose.
std::string RandomProgram::exchange(const std::string &acc) {
  products -= 2;
  std::string rhs = narrow(acc, false), lhs = load(/*isHigh=*/true);
  std::string square =
      emit("tile.mma " + lhs + ", " + rhs + " {transpose_rhs} : !high, !high -> !square");
  std::string weights = narrow(scale(square, true), true);
  std::string product = emit("tile.mma " + weights + ", " + load(/*isHigh=*/true) +
                             (flip(0.5) ? " {transpose_lhs}" : "") + " : !narrow, !high -> !acc");
  return scale(product, false);
}

std::string RandomProgram::block(int depth, std::string acc) {
  int64_t statements = pick(1, 2);
  for (int64_t i = 0; i < statements; ++i) {
    scope.tiles.push_back(acc);
    int64_t kind = products <= 0 ? 5 : depth >= 3 ? pick(5, 9) : pick(0, 9);
    if (kind <= 2)
      acc = loop(depth, acc);
    else if (kind == 3)
      acc = whileLoop(depth, acc);
    else if (kind == 4)
      acc = condition(depth, acc);
    else if (kind <= 8 || depth == 0)
      acc = multiply(acc);
    else
      acc = exchange(acc);
  }
  return acc;
}

std::string RandomProgram::loop(int depth, const std::string &acc) {
  Scope saved = scope;
  std::string iv = "%i" + std::to_string(names), in = "%in" + std::to_string(names);
  std::string name = "%loop" + std::to_string(names++);
  text += name + " = scf.for " + iv + " = " + (flip(0.7) ? "%c0" : "%c64") +
          " to %n step %c64 iter_args(" + in + " = " + acc + ") -> !acc {\n";
  scope.tiles.clear();
  scope.positions.push_back(iv);
  scope.conditions.push_back(emit("arith.cmpi ne, " + iv + ", %c64 : index"));
  std::string result = block(depth + 1, in);
  text += "scf.yield " + result + " : !acc\n}\n";
  scope = saved;
  return name;
}

std::string RandomProgram::whileLoop(int depth, const std::string &acc) {
  Scope saved = scope;
  std::string number = std::to_string(names++), name = "%while" + number;
  std::string j = "%j" + number, k = "%k" + number, in = "%into" + number, on = "%on" + number;
  text += name + ":2 = scf.while (" + k + " = %c0, " + on + " = " + acc +
          ") : (index, !acc) -> (index, !acc) {\n";
  std::string go = emit("arith.cmpi slt, " + k + ", %n : index");
  text += "scf.condition(" + go + ") " + k + ", " + on + " : index, !acc\n} do {\n^bb0(" + j +
          ": index, " + in + ": !acc):\n";
  scope.tiles.clear();
  scope.positions.push_back(j);
  std::string result = block(depth + 1, in);
  std::string next = emit("arith.addi " + j + ", %h : index");
  text += "scf.yield " + next + ", " + result + " : index, !acc\n}\n";
  scope = saved;
  return name + "#1";
}

std::string RandomProgram::condition(int depth, const std::string &acc) {
  Scope saved = scope;
  std::string name = "%if" + std::to_string(names++);
  text += name + " = scf.if " + pick(scope.conditions) + " -> !acc {\n";
  std::string result = block(depth + 1, acc);
  text += "scf.yield " + result + " : !acc\n} else {\n";
  scope = saved;
  std::string other = flip(0.3) ? block(depth + 2, acc) : acc;
  text += "scf.yield " + other + " : !acc\n}\n";
  scope = saved;
  return name;
}

} // namespace attn::test
