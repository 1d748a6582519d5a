//===- GradToLinalg.cpp - the definition of attention's gradients ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// g2 to g9 of dialects/Attn/README.md, one loop nest a line.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToLinalg/Reference.h"
#include "lib/Conversion/AttnToLinalg/WidenRegion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

using It = utils::IteratorType;
using OFRs = SmallVector<OpFoldResult>;
using Dims = SmallVector<int64_t>;

static const Dims kAll = {0, 1, 2, 3}, kRows = {0, 1, 2};
static const SmallVector<It> kElements(4, It::parallel), kPerRow(3, It::parallel);

static Value add(Reference &r, Value a, Value b) { return arith::AddFOp::create(r, a, b); }
static Value sub(Reference &r, Value a, Value b) { return arith::SubFOp::create(r, a, b); }
static Value mul(Reference &r, Value a, Value b) { return arith::MulFOp::create(r, a, b); }

/// A dropped element weighs nothing, whatever its factor is.
static Value weigh(Reference &r, Value weight, Value x) {
  return r.select(r.isZero(weight), r.number(0.0), mul(r, weight, r.toReal(x)));
}

//===----------------------------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------------------------===//

/// g2: delta = sum_d d_output * output - d_lse
static Value defineDelta(Reference &b, Value output, Value outputGradient, Value lseGradient) {
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), output);
  sizes.pop_back();
  Value delta = b.filled(sizes, b.number(0.0));
  if (lseGradient)
    delta = b.loop(lseGradient, delta, {kRows, kRows}, kPerRow, [](Reference &r, ValueRange args) {
      return sub(r, r.number(0.0), r.toReal(args[0]));
    });
  return b.loop({output, outputGradient}, delta, {kAll, kAll, kRows},
                {It::parallel, It::parallel, It::parallel, It::reduction},
                [](Reference &r, ValueRange args) {
                  return add(r, args[2], mul(r, r.toReal(args[0]), r.toReal(args[1])));
                });
}

/// g15: a row that keeps nothing has -inf, so that every finite score gives it 0
static Value defineNegLse2(Reference &b, Value lse, bool hasLow) {
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), lse);
  return b.loop(lse, b.filled(sizes, b.number(0.0)), {kRows, kRows}, kPerRow,
                [hasLow](Reference &r, ValueRange args) {
                  Value lse = r.toReal(args[0]);
                  Value scaled = hasLow ? sub(r, r.number(0.0), r.toRoundedBase2(args[0]))
                                        : mul(r, lse, r.number(-llvm::numbers::log2e));
                  return r.select(r.isLowest(lse), r.lowest(), scaled);
                });
}

SmallVector<Value> attn::defineRowDelta(Reference &b, RowDeltaOp op) {
  SmallVector<Value> rows = {defineNegLse2(b, op.getLse(), bool(op.getLseLow())),
                             defineDelta(b, op.getOutput(), op.getDOutput(), op.getDLse())};
  if (Value low = op.getLseLow())
    rows.push_back(b.loop(low, b.filled(tensor::getMixedSizes(b, b.getLoc(), low), b.number(0.0)),
                          {kRows, kRows}, kPerRow, [](Reference &r, ValueRange args) {
                            return sub(r, r.number(0.0), r.toReal(args[0]));
                          }));
  return rows;
}

//===----------------------------------------------------------------------------------------===//
// Rows and keys
//===----------------------------------------------------------------------------------------===//

/// g3: P = min(exp(T - lse), 1), from the natural logarithm, or with the c of s17
/// min(2^(c T - round(c lse) - lse_low), 1)
static Value emitWeight(Reference &r, Value t, Value logarithm, Value low) {
  Value lse = r.toReal(logarithm), zero = r.number(0.0), power;
  if (low)
    power =
        sub(r, sub(r, mul(r, t, r.number(double(kF32Log2e))), r.toRoundedBase2(logarithm)), low);
  else
    power = sub(r, t, lse);
  power = arith::MinimumFOp::create(r, power, zero);
  Value weight = low ? math::Exp2Op::create(r, power).getResult() : math::ExpOp::create(r, power);
  return r.select(arith::OrIOp::create(r, r.isLowest(t), r.isLowest(lse)), zero, weight);
}

/// g15: P = min(exp2(T * log2(e) + neg_lse2), 1), or with the c of s17
/// min(exp2((c T + neg_lse2) + neg_low2), 1)
static Value emitWeight2(Reference &r, Value t, Value logarithm, Value negLow2) {
  Value factor = r.number(negLow2 ? double(kF32Log2e) : llvm::numbers::log2e);
  Value power = add(r, mul(r, t, factor), r.toReal(logarithm));
  if (negLow2)
    power = add(r, power, negLow2);
  power = arith::MinimumFOp::create(r, power, r.number(0.0));
  return r.select(r.isLowest(t), r.number(0.0), math::Exp2Op::create(r, power));
}

namespace {
/// The tensors (B, H, M, N) from which every gradient is a sum.
struct GradReference {
  using Weight = Value (*)(Reference &, Value t, Value logarithm, Value low);

  /// `logarithm` is of each row's sum, and `low` what it lost to rounding, or null; `weight` says
  /// how P comes of them.
  GradReference(Reference &b, ScoredOpInterface op, Region &grad, Value outputGradient,
                Value logarithm, Value low, Value delta, Weight weight);

  Value query(Reference &b);
  /// The sum over a group's heads and all rows of a weight (B, H, M, N) and rows (B, H, M, _).
  Value overRows(Reference &b, Value weights, Value rows);
  Value key(Reference &b) { return scaled(b, overRows(b, dS, scores.op.getQuery())); }
  /// g17, from delta and the rows' logarithms of base 2, their sign changed.
  Value delta(Reference &b, Value negLse2, Value delta, Value lseGradient, Value sink);
  /// From now on dT and dS are those of another delta.
  void setDelta(Reference &b, Value delta);
  Value value(Reference &b) { return overRows(b, scores.multiply(b, factors, p), outputGradient); }
  SmallVector<Value> captured(Reference &b, ValueRange wrt);

private:
  Value scaled(Reference &b, Value sum);
  /// The loop nest over one batch, head, row and key more than `at` has.
  SmallVector<Value> addContributions(Reference &b, ValueRange wrt, ArrayRef<Value> at,
                                      ValueRange sums);

  ScoreReference scores;
  Region &grad;
  /// The products S, F, P, F * dP, dT and dS.
  Value outputGradient, product, factors, p, dP, dT, dS;
};
} // namespace

GradReference::GradReference(Reference &b, ScoredOpInterface op, Region &grad, Value outputGradient,
                             Value logarithm, Value low, Value delta, Weight weight)
    : scores(b, op), grad(grad), outputGradient(outputGradient) {
  auto empty = [&] { return b.filled(scores.bhmn, b.number(0.0)); };
  // s1, s2, s3, g3: the scores, and the weights from them
  product = scores.products(b, op.getQuery(), op.getKey());
  SmallVector<Value> ins = {product, logarithm};
  SmallVector<Dims> maps = {kAll, kRows};
  if (low) {
    ins.push_back(low);
    maps.push_back(kRows);
  }
  maps.push_back(kAll);
  p = b.loop(ins, empty(), maps, kElements, [&](Reference &r, ValueRange args) {
    return weight(r, scores.score(r, args[0]), args[1], low ? r.toReal(args[2]) : Value());
  });
  // g5, g13: dP = d_output value, dT = P * (F * dP - delta)
  factors = scores.factors(b, product);
  dP = scores.multiply(b, factors, scores.products(b, outputGradient, op.getValue()));
  setDelta(b, delta);
}

void GradReference::setDelta(Reference &b, Value delta) {
  auto empty = [&] { return b.filled(scores.bhmn, b.number(0.0)); };
  dT = b.loop({p, dP, delta}, empty(), {kAll, kAll, kRows, kAll}, kElements,
              [](Reference &r, ValueRange args) {
                return weigh(r, args[0], sub(r, args[1], r.toReal(args[2])));
              });
  // g6: dS = grad(S, dT), 0 where P is
  dS = dT;
  if (!grad.empty())
    dS = b.loop({product, p, dT}, empty(), {kAll, kAll, kAll, kAll}, kElements,
                [&](Reference &r, ValueRange args) {
                  SmallVector<Value> arguments = {mul(r, args[0], scores.scale), args[2]};
                  llvm::append_range(arguments, scores.positions(r));
                  Value adjoint = inlineWidened(r, grad, arguments, r.real);
                  return r.select(r.isZero(args[1]), r.number(0.0), adjoint);
                });
}

/// Whether the weights of a row add up to 1 as far as rounding lets them.
static Value emitIsWhole(Reference &r, Value total, Value negLse2) {
  Value off = math::AbsFOp::create(r, sub(r, total, r.number(1.0)));
  Value slack = mul(r, math::AbsFOp::create(r, negLse2), r.number(GradDeltaEndOp::kSlackOfLse));
  slack = arith::MaximumFOp::create(r, slack, r.number(GradDeltaEndOp::kLeastSlack));
  slack = arith::MinimumFOp::create(r, slack, r.number(GradDeltaEndOp::kMostSlack));
  return arith::CmpFOp::create(r, arith::CmpFPredicate::OLE, off, slack);
}

Value GradReference::delta(Reference &b, Value negLse2, Value delta, Value lseGradient,
                           Value sink) {
  auto sumOverKeys = [&](Value elements) {
    return b.loop(elements, b.filled(scores.bhm, b.number(0.0)), {kAll, kRows},
                  {It::parallel, It::parallel, It::parallel, It::reduction},
                  [](Reference &r, ValueRange args) { return add(r, args[1], args[0]); });
  };
  SmallVector<Value> ins = {sumOverKeys(p), sumOverKeys(dT), negLse2, delta};
  SmallVector<Dims> maps(4, kRows);
  for (const auto &[operand, dims] : {std::pair{lseGradient, kRows}, {sink, Dims{1}}})
    if (operand) {
      ins.push_back(operand);
      maps.push_back(dims);
    }
  maps.push_back(kRows);
  auto end = [&](Reference &r, ValueRange args) -> Value {
    Value total = args[0], residual = args[1], old = r.toReal(args[3]);
    Value negative = r.toReal(args[2]);
    if (sink) {
      Value logit = mul(r, r.toReal(args[args.size() - 2]), r.number(llvm::numbers::log2e));
      Value share = math::Exp2Op::create(r, add(r, logit, negative));
      total = add(r, total, share);
      residual = sub(r, residual, mul(r, share, old));
    }
    Value error = arith::DivFOp::create(r, residual, total);
    if (lseGradient)
      error = sub(r, error, r.toReal(args[4]));
    return r.select(emitIsWhole(r, total, negative), add(r, old, error), old);
  };
  return b.loop(ins, b.filled(scores.bhm, b.number(0.0)), maps, kPerRow, end);
}

Value GradReference::scaled(Reference &b, Value sum) {
  return b.loop({}, sum, {kAll}, kElements,
                [&](Reference &r, ValueRange args) { return mul(r, args[0], scores.scale); });
}

/// g7: d_query = scale * sum_n dS key
Value GradReference::query(Reference &b) {
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), scores.op.getQuery());
  Value key = scores.op.getKey();
  Value sum = b.loop(dS, b.filled(sizes, b.number(0.0)), {{0, 1, 2, 4}, kAll},
                     {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction},
                     [&](Reference &r, ValueRange args) {
                       Value head = scores.keyHead(r, r.index(1));
                       Value element = tensor::ExtractOp::create(
                           r, key, ValueRange{r.index(0), head, r.index(4), r.index(3)});
                       return add(r, args[1], weigh(r, args[0], element));
                     });
  return scaled(b, sum);
}

/// g4, g7: the sums for (b, h', n, d) run over the heads of group h' and over m.
Value GradReference::overRows(Reference &b, Value weights, Value rows) {
  Location loc = b.getLoc();
  OFRs sizes = tensor::getMixedSizes(b, loc, scores.op.getKey());
  sizes.back() = tensor::getMixedSize(b, loc, rows, 3);
  // Without key heads there are no heads either, and any group will do.
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value group =
      arith::DivUIOp::create(b, scores.heads, arith::MaxUIOp::create(b, scores.keyHeads, one));
  // Nothing that is read has these two extents alone: they come from a tensor that nobody reads.
  Value extents = tensor::EmptyOp::create(b, OFRs{OpFoldResult(group), scores.bhm[2]}, b.real);
  return b.loop(
      extents, b.filled(sizes, b.number(0.0)), {{4, 5}, kAll},
      {It::parallel, It::parallel, It::parallel, It::parallel, It::reduction, It::reduction},
      [&](Reference &r, ValueRange args) {
        Value first = arith::MulIOp::create(r, r.index(1), group);
        Value head = arith::AddIOp::create(r, first, r.index(4));
        Value weight = tensor::ExtractOp::create(
            r, weights, ValueRange{r.index(0), head, r.index(5), r.index(2)});
        Value element = tensor::ExtractOp::create(
            r, rows, ValueRange{r.index(0), head, r.index(5), r.index(3)});
        return add(r, args[1], weigh(r, weight, element));
      });
}

//===----------------------------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------------------------===//

/// g8: each element of (b, h, m, n) adds what its grad region contributes.
SmallVector<Value> GradReference::captured(Reference &b, ValueRange wrt) {
  SmallVector<Value> sums;
  for (Value tensor : wrt)
    sums.push_back(b.filled(tensor::getMixedSizes(b, b.getLoc(), tensor), b.number(0.0)));
  if (wrt.empty() || grad.empty())
    return sums;
  return addContributions(b, wrt, {}, sums);
}

SmallVector<Value> GradReference::addContributions(Reference &b, ValueRange wrt, ArrayRef<Value> at,
                                                   ValueRange sums) {
  Location loc = b.getLoc();
  if (at.size() < 4) {
    Value zero = arith::ConstantIndexOp::create(b, 0), one = arith::ConstantIndexOp::create(b, 1);
    Value end = getValueOrCreateConstantIndexOp(b, loc, scores.bhmn[at.size()]);
    auto body = [&](OpBuilder &builder, Location loc, Value i, ValueRange current) {
      Reference inner(loc, builder, b.real);
      SmallVector<Value> deeper(at);
      deeper.push_back(i);
      scf::YieldOp::create(inner, addContributions(inner, wrt, deeper, current));
    };
    return SmallVector<Value>(scf::ForOp::create(b, zero, end, one, sums, body)->getResults());
  }
  Value weight = tensor::ExtractOp::create(b, p, at);
  Value s = mul(b, tensor::ExtractOp::create(b, product, at), scores.scale);
  SmallVector<Value> arguments = {s, tensor::ExtractOp::create(b, dT, at)};
  for (auto [i, origin] : llvm::zip_equal(at, scores.origin))
    arguments.push_back(
        b.createOrFold<arith::AddIOp>(i, getValueOrCreateConstantIndexOp(b, loc, origin)));
  SmallVector<Value> current(sums);
  auto contribute = [&](ContributeOp op, Value addend, ValueRange indices) {
    Value &sum = current[llvm::find(wrt, op.getTensor()) - wrt.begin()];
    Value old = tensor::ExtractOp::create(b, sum, indices);
    Value kept = b.select(b.isZero(weight), b.number(0.0), addend);
    sum = tensor::InsertOp::create(b, add(b, old, kept), sum, indices);
  };
  (void)inlineWidened(b, grad, arguments, b.real, contribute);
  return current;
}

/// g9: d_sink = - sum of exp(sink - lse) * delta
static Value defineSink(Reference &b, AttentionGradOp op, Value delta) {
  OFRs sizes = tensor::getMixedSizes(b, b.getLoc(), op.getSink());
  return b.loop({op.getLse(), delta, op.getSink()}, b.filled(sizes, b.number(0.0)),
                {kRows, kRows, {1}, {1}}, {It::reduction, It::parallel, It::reduction},
                [](Reference &r, ValueRange args) {
                  Value lse = r.toReal(args[0]), sink = r.toReal(args[2]);
                  Value share = math::ExpOp::create(r, sub(r, sink, lse));
                  // A sink of +inf is the whole sum, though inf - inf is none.
                  Value isAll = arith::CmpFOp::create(r, arith::CmpFPredicate::OEQ, sink, lse);
                  share = r.select(isAll, r.number(1.0), share);
                  share = r.select(r.isLowest(sink), r.number(0.0), share);
                  return sub(r, args[3], weigh(r, share, args[1]));
                });
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

SmallVector<Value> attn::defineAttentionGrad(Reference &b, AttentionGradOp op) {
  Value delta = defineDelta(b, op.getOutput(), op.getDOutput(), op.getDLse());
  GradReference gradients(b, op, op.getGrad(), op.getDOutput(), op.getLse(), op.getLseLow(), delta,
                          emitWeight);
  SmallVector<Value> results;
  if (op.getDQuery())
    results.push_back(gradients.query(b));
  if (op.getDKey())
    results.push_back(gradients.key(b));
  if (op.getDValue())
    results.push_back(gradients.value(b));
  if (op.getDSink())
    results.push_back(defineSink(b, op, delta));
  if (!op.getWrt().empty())
    gradients.setDelta(b, gradients.delta(b, defineNegLse2(b, op.getLse(), /*hasLow=*/false), delta,
                                          op.getDLse(), op.getSink()));
  llvm::append_range(results, gradients.captured(b, op.getWrt()));
  return results;
}

SmallVector<Value> attn::defineGradDelta(Reference &b, AttentionGradDeltaOp op) {
  Region none;
  GradReference gradients(b, op, none, op.getDOutput(), op.getNegLse2(), op.getNegLow2(),
                          op.getDelta(), emitWeight2);
  return {gradients.delta(b, op.getNegLse2(), op.getDelta(), op.getDLse(), op.getSink())};
}

SmallVector<Value> attn::defineGradQuery(Reference &b, AttentionGradQueryOp op) {
  GradReference gradients(b, op, op.getGrad(), op.getDOutput(), op.getNegLse2(), op.getNegLow2(),
                          op.getDelta(), emitWeight2);
  SmallVector<Value> results;
  if (op.getDQuery())
    results.push_back(gradients.query(b));
  llvm::append_range(results, gradients.captured(b, op.getWrt()));
  return results;
}

SmallVector<Value> attn::defineGradKeyValue(Reference &b, AttentionGradKeyValueOp op) {
  GradReference gradients(b, op, op.getGrad(), op.getDOutput(), op.getNegLse2(), op.getNegLow2(),
                          op.getDelta(), emitWeight2);
  SmallVector<Value> results;
  if (op.getDKey())
    results.push_back(gradients.key(b));
  if (op.getDValue())
    results.push_back(gradients.value(b));
  llvm::append_range(results, gradients.captured(b, op.getWrt()));
  return results;
}
