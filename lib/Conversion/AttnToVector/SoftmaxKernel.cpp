//===- SoftmaxKernel.cpp - probabilities and the running state ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Exp2.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Two vectors of f32 as words of (bf16, bf16), rounded to nearest.
static Value emitPair(Emitter &b, Value even, Value odd) {
  int64_t lanes = b.target.lanes;
  std::string name = "llvm.x86.avx512bf16.cvtne2ps2bf16." + std::to_string(32 * lanes);
  auto both = VectorType::get({2 * lanes}, b.getBF16Type());
  // The intrinsic puts its second operand into the low half.
  Value halves =
      LLVM::CallIntrinsicOp::create(b, both, b.getStringAttr(name), ValueRange{odd, even})
          .getResult(0);
  SmallVector<int64_t> interleave;
  for (int64_t lane = 0; lane < lanes; ++lane)
    interleave.append({lane, lanes + lane});
  Value words = vector::ShuffleOp::create(b, halves, halves, interleave);
  return vector::BitCastOp::create(b, b.f32Vec(), words);
}

/// `vectors` registers of rows from m on.
static void emitRows(Emitter &b, Step &step, Value m, int64_t vectors) {
  Value infinity = b.floatLike(b.f32Vec(), -kInfinity), zero = b.floatLike(b.f32Vec(), 0);
  bool pairs = step.kind == WordKind::BF16Pair;
  Exp2Precision precision = pairs ? Exp2Precision::Half : Exp2Precision::Full;
  SmallVector<Value> columns, masks, negated, factors, sums;
  for (int64_t v = 0; v < vectors; ++v) {
    Value column = b.add(m, v * b.target.lanes);
    Value mask = b.maskBelow(b.sub(step.rows.value, column));
    Value before = b.loadMasked(step.op.getRowMax(), {column}, mask);
    Value tile = b.loadVector(step.rowScratch, {column});
    Value after = b.max(before, tile);
    b.storeMasked(after, step.op.getRowMax(), {column}, mask);
    // A row that has kept nothing has -inf as its maximum; zero in its place keeps -inf - -inf out.
    Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, after, infinity);
    Value offset = arith::SelectOp::create(b, nothing, zero, after);
    Value factor = emitExp2(b, arith::SubFOp::create(b, before, offset));
    b.storeVector(factor, step.rowScratch, {column});
    columns.push_back(column);
    masks.push_back(mask);
    factors.push_back(factor);
    negated.push_back(arith::NegFOp::create(b, offset));
    sums.push_back(zero);
  }
  auto probability = [&](Value n, int64_t v) -> Value {
    Value score = b.loadVector(step.scores, {n, columns[v]});
    Value x = arith::AddFOp::create(b, score, negated[v]);
    return emitExp2(b, x, precision);
  };
  // s15: what multiplies values is not what is summed.
  auto weigh = [&](Value p, Value n, int64_t v) -> Value {
    return step.factors ? arith::MulFOp::create(b, p, b.loadVector(step.factors, {n, columns[v]}))
                              .getResult()
                        : p;
  };
  // In place: pair i is written to row i after rows 2i and 2i + 1 were read.
  sums = b.loop(b.index(0), step.keys.value, pairs ? 2 : 1, sums, [&](Value n, ValueRange running) {
    SmallVector<Value> results;
    for (int64_t v = 0; v < vectors; ++v) {
      Value p = probability(n, v), sum = arith::AddFOp::create(b, running[v], p);
      Value row = n;
      if (pairs) {
        Value next = b.add(n, 1), odd = probability(next, v);
        sum = arith::AddFOp::create(b, sum, odd);
        p = emitPair(b, weigh(p, n, v), weigh(odd, next, v));
        row = arith::ShRUIOp::create(b, n, b.index(1));
      } else {
        p = weigh(p, n, v);
      }
      b.storeVector(p, step.scores, {row, columns[v]});
      results.push_back(sum);
    }
    return results;
  });
  for (int64_t v = 0; v < vectors; ++v) {
    Value before = b.loadMasked(step.op.getRowSum(), {columns[v]}, masks[v]);
    b.storeMasked(b.fma(before, factors[v], sums[v]), step.op.getRowSum(), {columns[v]}, masks[v]);
  }
}

void attn::emitSoftmax(Emitter &b, Step &step) {
  int64_t lanes = b.target.lanes;
  bool pairs = step.kind == WordKind::BF16Pair;
  if (pairs && !(step.keys.isStatic && step.keys.bound % 2 == 0)) {
    // The partner of the last of an odd number of keys has probability zero.
    Value even = b.alignUp(step.keys.value, 2), infinity = b.floatLike(b.f32Vec(), -kInfinity);
    b.loop(step.keys.value, even, 1, [&](Value n) {
      b.loop(b.index(0), step.paddedRows, lanes, [&](Value m) {
        b.storeVector(infinity, step.scores, {n, m});
        if (step.factors)
          b.storeVector(b.floatLike(b.f32Vec(), 1), step.factors, {n, m});
      });
    });
  }
  int64_t vectors = pairs || step.rowStride == lanes ? 1 : 2;
  Value whole = b.alignDown(step.paddedRows, vectors * lanes);
  b.loop(b.index(0), whole, vectors * lanes, [&](Value m) { emitRows(b, step, m, vectors); });
  if (vectors > 1)
    b.loop(whole, step.paddedRows, lanes, [&](Value m) { emitRows(b, step, m, 1); });
}
