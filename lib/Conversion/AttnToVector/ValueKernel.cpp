//===- ValueKernel.cpp - products of probabilities and values -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;

namespace {
/// `vectors` registers of columns; the mask of the last one is null if all its lanes exist.
struct Columns {
  SmallVector<Value> at;
  Value lastMask;
};
} // namespace

/// `mask`: the lanes to read besides those that exist, or null.
static Value loadColumn(Emitter &b, Value memref, Value row, const Columns &columns, unsigned i,
                        bool mayMask, Value mask = {}) {
  if (mayMask && columns.lastMask && i + 1 == columns.at.size())
    mask = mask ? Value(arith::AndIOp::create(b, mask, columns.lastMask)) : columns.lastMask;
  if (mask)
    return b.loadMasked(memref, {row, columns.at[i]}, mask);
  return b.loadVector(memref, {row, columns.at[i]});
}

/// Asks for the accumulators of the next tile of registers while this one multiplies: each of its
/// rows is a cache line of its own, at a distance that processors do not foresee.
static void emitPrefetch(Emitter &b, const SumProduct &product, Value m, int64_t rows,
                         const Columns &columns) {
  constexpr int64_t lineBytes = 64;
  int64_t perLine = std::max<int64_t>(1, lineBytes / (4 * b.target.lanes));
  // The last one asks for its own.
  Value next = arith::MinSIOp::create(b, b.add(m, rows), b.sub(product.rows.value, b.index(rows)));
  for (int64_t i = 0; i < rows; ++i)
    for (unsigned v = 0; v < columns.at.size(); v += perLine)
      memref::PrefetchOp::create(b, product.acc, ValueRange{b.add(next, i), columns.at[v]},
                                 /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
}

/// acc[m .. m + rows) = factor * acc + weights * matrix in a tile of registers. The terms are
/// summed first: a sum of millions of terms then has fewer roundings, by the number of terms here.
static void emitTile(Emitter &b, const SumProduct &product, Value m, int64_t rows,
                     const Columns &columns) {
  unsigned width = columns.at.size();
  Value acc = product.acc;
  SmallVector<Value> rowAt, sums(rows * width, b.floatLike(b.f32Vec(), 0));
  for (int64_t i = 0; i < rows; ++i)
    rowAt.push_back(b.add(m, i));
  if (product.isFar)
    emitPrefetch(b, product, m, rows, columns);
  bool pairs = product.kind == WordKind::BF16Pair;
  // Scratch tiles are as wide as whole registers.
  bool mayMask = !product.isScratch;
  Value depth = product.terms.value;
  if (pairs)
    depth = b.createOrFold<arith::ShRUIOp>(b.add(depth, 1), b.index(1));
  sums = b.loop(b.index(0), depth, 1, sums, [&](Value k, ValueRange accumulators) {
    SmallVector<Value> values, results(accumulators);
    Value isKept = product.kept ? b.splat(emitIsKept(b, product.kept, k)) : Value();
    for (unsigned v = 0; v < width; ++v)
      values.push_back(loadColumn(b, product.matrix, k, columns, v, mayMask, isKept));
    for (int64_t i = 0; i < rows; ++i) {
      Value first = k, second = rowAt[i];
      if (product.termsAreColumns)
        std::swap(first, second);
      Value word = b.splat(b.load(product.weights, {first, second}));
      for (unsigned v = 0; v < width; ++v) {
        Value &sum = results[i * width + v];
        sum = emitDot(b, product.kind, word, values[v], sum);
      }
    }
    return results;
  });
  for (int64_t i = 0; i < rows; ++i) {
    Value factor = product.factor ? b.splat(b.load(product.factor, {rowAt[i]})) : Value();
    for (unsigned v = 0; v < width; ++v) {
      Value sum = sums[i * width + v];
      Value old = loadColumn(b, acc, rowAt[i], columns, v, /*mayMask=*/true);
      sum = factor ? b.fma(old, factor, sum) : arith::AddFOp::create(b, old, sum).getResult();
      if (columns.lastMask && v + 1 == width)
        b.storeMasked(sum, acc, {rowAt[i], columns.at[v]}, columns.lastMask);
      else
        b.storeVector(sum, acc, {rowAt[i], columns.at[v]});
    }
  }
}

/// All rows of a group of columns; `valid` columns exist from `first` on.
static void emitColumns(Emitter &b, const SumProduct &product, Value first, int64_t vectors,
                        int64_t valid) {
  int64_t lanes = b.target.lanes;
  Columns columns;
  for (int64_t v = 0; v < vectors; ++v)
    columns.at.push_back(b.add(first, v * lanes));
  if (valid < vectors * lanes)
    columns.lastMask = b.maskBelow(b.index(valid - (vectors - 1) * lanes));
  int64_t most = std::min<int64_t>({b.target.accumulators() / vectors, 8, product.rows.bound});
  int64_t rows = most;
  while (2 * rows > most && product.rows.bound % rows != 0)
    --rows;
  if (product.rows.bound % rows != 0)
    rows = most;
  Value whole = b.alignDown(product.rows.value, rows);
  b.loop(b.index(0), whole, rows, [&](Value m) { emitTile(b, product, m, rows, columns); });
  if (rows > 1 && !(product.rows.isStatic && product.rows.bound % rows == 0))
    b.loop(whole, product.rows.value, 1, [&](Value m) { emitTile(b, product, m, 1, columns); });
}

void attn::emitSums(Emitter &b, const SumProduct &product) {
  int64_t lanes = b.target.lanes, all = llvm::divideCeil(product.columns, lanes);
  int64_t most = std::min<int64_t>(b.target.lanes == 16 ? 4 : 2, all);
  int64_t whole = product.columns / (most * lanes) * most * lanes;
  b.loop(b.index(0), b.index(whole), most * lanes,
         [&](Value first) { emitColumns(b, product, first, most, most * lanes); });
  if (int64_t rest = product.columns - whole; rest > 0)
    emitColumns(b, product, b.index(whole), llvm::divideCeil(rest, lanes), rest);
}

void attn::callSums(Emitter &b, const SumProduct &product, KernelFunctions &functions) {
  std::string name = llvm::formatv(
      "sums{0}.{1}x{2}{3}{4}{5}", product.kind == WordKind::F32 ? "" : ".pairs", product.rows.bound,
      product.terms.bound, product.termsAreColumns ? ".columns" : "",
      product.isScratch ? ".scratch" : "", product.isFar ? ".far" : "");
  Value operands[] = {product.weights, product.terms.value, product.acc,   product.rows.value,
                      product.matrix,  product.kept,        product.factor};
  functions.call(b, name, operands, [&](Emitter &inside, ArrayRef<Value> values) {
    SumProduct own = product;
    own.weights = values[0], own.terms.value = values[1], own.acc = values[2];
    own.rows.value = values[3], own.matrix = values[4], own.kept = values[5];
    own.factor = values[6];
    emitSums(inside, own);
  });
}
