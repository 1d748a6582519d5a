//===- LargeScores.cpp - scores of which f32 has no fractions left --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/LargeScores.h"
#include "lib/Support/Random.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <random>

namespace attn::test {

Capture makeLargeCapture(const char *dims) {
  std::string type = "tensor<";
  for (size_t i = 0; dims[i]; ++i)
    type += "?x";
  return {Capture::Large, "%large", type + "f32>", dims};
}

//===----------------------------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------------------------===//

/// Lines up to T, which is %t.
static std::string makeSum(double factor, const Capture *large) {
  if (!large)
    return "    %one = arith.constant 1.0 : f32\n    %t = arith.mulf %s, %one : f32\n";
  std::vector<std::string> indices;
  for (char dim : llvm::StringRef(large->dims))
    indices.push_back(std::string("%") + llvm::toLower(dim));
  std::string bits = llvm::utohexstr(llvm::bit_cast<uint32_t>(float(factor)), false, 8);
  return llvm::formatv("    %f = arith.constant 0x{0} : f32\n    %y = arith.mulf %s, %f : f32\n"
                       "    %x = tensor.extract {1}[{2}] : {3}\n    %t = arith.addf %y, %x : f32\n",
                       bits, large->name, llvm::join(indices, ", "), large->type);
}

static std::string makeRegion(const std::string &lines, const char *result) {
  return llvm::formatv(" score(%s, %b, %h, %m, %n) {{\n{0}    attn.yield {1} : f32\n  }", lines,
                       result);
}

std::string makeLargeScore(double factor, const Capture &large) {
  return makeRegion(makeSum(factor, &large), "%t");
}

/// %to is %from with 24 digits, the nearest.
static std::string makeRounding(const std::string &from, const std::string &to) {
  return llvm::formatv("    %{1}_p = arith.mulf %{0}, %split : f32\n"
                       "    %{1}_q = arith.addf %{1}_p, %{0} : f32\n"
                       "    %{1}_d = arith.subf %{1}_q, %{0} : f32\n"
                       "    %{1} = arith.subf %{1}_q, %{1}_d : f32\n",
                       from, to);
}

/// %to is %from with 24 digits, rounded towards zero.
static std::string makeTruncation(const std::string &from, const std::string &to) {
  std::string text = makeRounding(from, "near");
  // The product is between half a step and a whole one smaller.
  text += "    %below = arith.constant 0x3F7FFFFF : f32\n"
          "    %less = arith.mulf %near, %below : f32\n";
  text += makeRounding("less", "next");
  text += llvm::formatv("    %size = math.absf %{0} : f32\n    %sizeNear = math.absf %near : f32\n"
                        "    %isLarger = arith.cmpf ogt, %sizeNear, %size : f32\n"
                        "    %{1} = arith.select %isLarger, %next, %near : f32\n",
                        from, to);
  return text;
}

std::string makeLargeReference(double factor, const Capture *large, bool truncates) {
  std::string lines = "    %split = arith.constant 536870912.0 : f32\n"
                      "    %c = arith.constant 0x3FB8AA3B : f32\n" +
                      makeSum(factor, large) + makeRounding("t", "held") +
                      "    %u = arith.mulf %held, %c : f32\n";
  lines += truncates ? makeTruncation("u", "power") : makeRounding("u", "power");
  return makeRegion(lines + "    %score = arith.divf %power, %c : f32\n", "%score");
}

//===----------------------------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------------------------===//

void fillLarge(Array &array, uint64_t seed) {
  std::mt19937_64 random(seed);
  const float sizes[] = {1e4f, 0x1p16f, 1e5f, 0x1p20f, 1e6f, 1e7f, 0x1p27f, 1e9f, 0x1p30f};
  float size = sizes[random() % std::size(sizes)] * (random() % 2 ? 1.0f : -1.0f);
  float next = std::nextafter(size, 2 * size), afterNext = std::nextafter(next, 2 * size);
  const std::vector<float> palettes[] = {{size}, {0, size}, {0, -1e9f}, {size, next, afterNext}};
  const std::vector<float> &palette = palettes[random() % std::size(palettes)];
  for (int64_t i = 0; i < array.size(); ++i)
    array.set(i, palette[random() % palette.size()]);
}

void fillSmallIntegers(Array &array, uint64_t seed) { fillUniform(array, seed, -2, 2); }

void enlargeRows(Array &array, uint64_t seed, int64_t exponent) {
  std::mt19937_64 random(seed);
  int64_t columns = array.getShape().back();
  for (int64_t row = 0; row < array.size() / columns; ++row)
    for (int64_t i = 0, shift = random() % 2 ? exponent : 0; i < columns; ++i)
      array.set(row * columns + i, std::ldexp(array.get(row * columns + i), int(shift)));
}

double getLargest(Array &array) {
  double largest = 0;
  for (int64_t i = 0; i < array.size(); ++i)
    largest = std::max(largest, std::abs(array.get(i)));
  return largest;
}

} // namespace attn::test
