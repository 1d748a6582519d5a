//===- ScoreKernel.cpp - products of queries and keys -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// The word at (n, k) of the key, in all lanes.
static Value broadcastKey(Emitter &b, Step &step, Value n, Value k) {
  if (step.kind == WordKind::F32)
    return b.splat(b.load(step.key, {n, k}));
  auto pair = VectorType::get({2}, b.getBF16Type());
  Value two = vector::LoadOp::create(b, pair, step.key, ValueRange{n, b.mul(k, 2)});
  Value word = vector::BitCastOp::create(b, VectorType::get({1}, b.getF32Type()), two);
  return b.splat(vector::ExtractOp::create(b, word, ArrayRef<int64_t>{0}));
}

/// One register tile: `vectors` registers of rows from m on, `keys` keys from n on. Returns the
/// maxima over its keys.
static SmallVector<Value> emitTile(Emitter &b, Step &step, Value m, Value n, int64_t vectors,
                                   int64_t keys, ValueRange maxima) {
  SmallVector<Value> columns, keyRows;
  for (int64_t v = 0; v < vectors; ++v)
    columns.push_back(b.add(m, v * b.target.lanes));
  for (int64_t j = 0; j < keys; ++j)
    keyRows.push_back(b.add(n, j));
  SmallVector<Value> zeros(vectors * keys, b.floatLike(b.f32Vec(), 0));
  SmallVector<Value> sums =
      b.loop(b.index(0), b.index(step.depth()), 1, zeros, [&](Value k, ValueRange accumulators) {
        SmallVector<Value> query, results(accumulators);
        for (Value column : columns)
          query.push_back(b.loadVector(step.query.words, {k, column}));
        for (int64_t j = 0; j < keys; ++j) {
          Value word = broadcastKey(b, step, keyRows[j], k);
          for (int64_t v = 0; v < vectors; ++v) {
            Value &sum = results[j * vectors + v];
            sum = emitDot(b, step.kind, query[v], word, sum);
          }
        }
        return results;
      });
  SmallVector<Value> results(maxima);
  // Here, not fused into the subtraction of the maximum: the largest score must cancel to exactly
  // zero however large it is.
  Value scale = b.splat(step.op.getScale());
  for (int64_t j = 0; j < keys; ++j)
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = arith::MulFOp::create(b, sums[j * vectors + v], scale);
      b.storeVector(sum, step.scores, {keyRows[j], columns[v]});
      if (!maxima.empty())
        results[v] = b.max(results[v], sum);
    }
  return results;
}

/// How many keys go into a register tile beside `vectors` registers of rows: all accumulators if it
/// comes out even.
static int64_t chooseKeys(Emitter &b, int64_t vectors, int64_t keys) {
  int64_t most = std::min<int64_t>({b.target.accumulators() / vectors, 8, keys});
  for (int64_t count = most; 2 * count > most; --count)
    if (keys % count == 0)
      return count;
  return most;
}

/// How many registers of rows: 4 or fewer, a divisor of all if there is one.
static int64_t chooseVectors(Emitter &b, int64_t all) {
  int64_t most = std::min<int64_t>(b.target.lanes == 16 ? 4 : 2, all);
  for (int64_t count = most; 2 * count > most; --count)
    if (all % count == 0)
      return count;
  return most;
}

static void emitRows(Emitter &b, Step &step, Value m, int64_t vectors) {
  int64_t keys = chooseKeys(b, vectors, step.keys.bound);
  SmallVector<Value> maxima;
  if (!step.hasRegions())
    maxima.assign(vectors, b.floatLike(b.f32Vec(), -std::numeric_limits<double>::infinity()));
  Value whole = b.alignDown(step.keys.value, keys);
  maxima = b.loop(b.index(0), whole, keys, maxima, [&](Value n, ValueRange running) {
    return emitTile(b, step, m, n, vectors, keys, running);
  });
  int64_t rest = step.keys.isStatic ? step.keys.bound % keys : 1;
  if (rest > 0)
    maxima = b.loop(whole, step.keys.value, rest, maxima, [&](Value n, ValueRange running) {
      return emitTile(b, step, m, n, vectors, rest, running);
    });
  for (auto [v, maximum] : llvm::enumerate(maxima))
    b.storeVector(maximum, step.rowScratch, {b.add(m, v * b.target.lanes)});
}

void attn::emitScores(Emitter &b, Step &step) {
  int64_t lanes = b.target.lanes;
  int64_t vectors = chooseVectors(b, step.rowStride / lanes);
  Value whole = b.alignDown(step.paddedRows, vectors * lanes);
  b.loop(b.index(0), whole, vectors * lanes, [&](Value m) { emitRows(b, step, m, vectors); });
  if (vectors > 1)
    b.loop(whole, step.paddedRows, lanes, [&](Value m) { emitRows(b, step, m, 1); });
}
