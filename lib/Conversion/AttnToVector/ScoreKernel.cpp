//===- ScoreKernel.cpp - products of queries and keys -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

/// The word at (n, k) of the rows, in all lanes.
static Value broadcastWord(Emitter &b, const ScoreProduct &product, Value n, Value k) {
  if (product.packed.kind == WordKind::F32)
    return b.splat(b.load(product.rows, {n, k}));
  auto pair = VectorType::get({2}, b.getBF16Type());
  Value two = vector::LoadOp::create(b, pair, product.rows, ValueRange{n, b.mul(k, 2)});
  Value word = vector::BitCastOp::create(b, VectorType::get({1}, b.getF32Type()), two);
  return b.splat(vector::ExtractOp::create(b, word, ArrayRef<int64_t>{0}));
}

/// One register tile: `vectors` registers of lanes from m on, `keys` rows from n on. Returns the
/// maxima over its rows.
static SmallVector<Value> emitTile(Emitter &b, const ScoreProduct &product, Value m, Value n,
                                   int64_t vectors, int64_t keys, ValueRange maxima) {
  SmallVector<Value> columns, keyRows;
  for (int64_t v = 0; v < vectors; ++v)
    columns.push_back(b.add(m, v * b.target.lanes));
  for (int64_t j = 0; j < keys; ++j)
    keyRows.push_back(b.add(n, j));
  SmallVector<Value> zeros(vectors * keys, b.floatLike(b.f32Vec(), 0));
  SmallVector<Value> sums = b.loop(
      b.index(0), b.index(product.packed.depth), 1, zeros, [&](Value k, ValueRange accumulators) {
        SmallVector<Value> query, results(accumulators);
        for (Value column : columns)
          query.push_back(b.loadVector(product.packed.words, {k, column}));
        for (int64_t j = 0; j < keys; ++j) {
          Value word = broadcastWord(b, product, keyRows[j], k);
          for (int64_t v = 0; v < vectors; ++v) {
            Value &sum = results[j * vectors + v];
            sum = emitDot(b, product.packed.kind, query[v], word, sum);
          }
        }
        return results;
      });
  SmallVector<Value> results(maxima);
  // Here, not fused into the subtraction of the maximum: the largest score must cancel to exactly
  // zero however large it is.
  Value scale = product.scale ? b.splat(product.scale) : Value();
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = sums[j * vectors + v];
      if (scale)
        sum = arith::MulFOp::create(b, sum, scale);
      b.storeVector(sum, product.out, {keyRows[j], columns[v]});
      if (!maxima.empty())
        results[v] = b.max(results[v], sum);
    }
  return results;
}

/// How many rows go into a register tile with `vectors` registers of lanes: as many as the
/// accumulators allow, or fewer that divide `keys` evenly.
static int64_t chooseKeys(Emitter &b, int64_t vectors, int64_t keys) {
  int64_t most = std::min<int64_t>({b.target.accumulators() / vectors, 8, keys});
  for (int64_t count = most; 2 * count > most; --count)
    if (keys % count == 0)
      return count;
  return most;
}

/// How many registers of lanes: 4 or fewer, a divisor of all if there is one.
static int64_t chooseVectors(const VectorTarget &target, int64_t all) {
  int64_t most = std::min<int64_t>(target.lanes == 16 ? 4 : 2, all);
  for (int64_t count = most; 2 * count > most; --count)
    if (all % count == 0)
      return count;
  return most;
}

static void emitLanes(Emitter &b, const ScoreProduct &product, Value m, int64_t vectors) {
  int64_t keys = chooseKeys(b, vectors, product.count.bound);
  SmallVector<Value> maxima;
  if (product.maxima)
    maxima.assign(vectors, b.floatLike(b.f32Vec(), -std::numeric_limits<double>::infinity()));
  Value whole = b.alignDown(product.count.value, keys);
  maxima = b.loop(b.index(0), whole, keys, maxima, [&](Value n, ValueRange running) {
    return emitTile(b, product, m, n, vectors, keys, running);
  });
  int64_t rest = product.count.isStatic ? product.count.bound % keys : 1;
  if (rest > 0)
    maxima = b.loop(whole, product.count.value, rest, maxima, [&](Value n, ValueRange running) {
      return emitTile(b, product, m, n, vectors, rest, running);
    });
  for (auto [v, maximum] : llvm::enumerate(maxima))
    b.storeVector(maximum, product.maxima, {b.add(m, v * b.target.lanes)});
}

int64_t attn::getLaneUnit(const VectorTarget &target, int64_t laneStride) {
  int64_t unit = chooseVectors(target, laneStride / target.lanes) * target.lanes;
  return laneStride % unit == 0 && llvm::isPowerOf2_64(unit) ? unit : target.lanes;
}

void attn::emitScores(Emitter &b, const ScoreProduct &product) {
  int64_t lanes = b.target.lanes;
  int64_t vectors = chooseVectors(b.target, product.laneStride / lanes);
  Value whole = b.alignDown(product.paddedLanes, vectors * lanes);
  b.loop(b.index(0), whole, vectors * lanes, [&](Value m) { emitLanes(b, product, m, vectors); });
  // The unit is that of one register where tiles do not divide all lanes.
  bool isWhole =
      product.hasWholeTiles && getLaneUnit(b.target, product.laneStride) == vectors * lanes;
  if (vectors > 1 && !isWhole)
    b.loop(whole, product.paddedLanes, lanes, [&](Value m) { emitLanes(b, product, m, 1); });
}

void attn::callScores(Emitter &b, const ScoreProduct &product, KernelFunctions &functions) {
  std::string name =
      llvm::formatv("scores{0}.{1}x{2}{3}", product.packed.kind == WordKind::F32 ? "" : ".pairs",
                    product.count.bound, product.laneStride, product.hasWholeTiles ? ".whole" : "");
  Value operands[] = {product.packed.words, product.paddedLanes, product.rows,  product.count.value,
                      product.scale,        product.out,         product.maxima};
  functions.call(b, name, operands, [&](Emitter &inside, ArrayRef<Value> values) {
    ScoreProduct own = product;
    own.packed.words = values[0], own.paddedLanes = values[1], own.rows = values[2];
    own.count.value = values[3], own.scale = values[4], own.out = values[5];
    own.maxima = values[6];
    emitScores(inside, own);
  });
}
