//===- GradientOps.cpp - gradients of attention -----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The formulas of AttnGradOps.td, in f64, one row at a time: a row adds to the gradients of its
// query, of all keys and values of its head, and of what its scores read.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Interpreter/Evaluator.h"
#include "lib/Interpreter/RowGradients.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace attn {

/// The terms of an op's gradients, and the places of the sums; null for gradients that nobody
/// wants.
struct GradientSums {
  ScoredOpInterface op;
  mlir::Value outputGradient;
  /// Of each row: the natural logarithm of its sum, and delta.
  std::vector<double> lse = {}, delta = {};
  mlir::Value queryResult = {}, keyResult = {}, valueResult = {};
  mlir::ValueRange wrt = {}, wrtResults = {};
  TensorRef query = {}, key = {}, value = {};
  RegionProgram *grad = nullptr;
};

Expected<bool> Evaluator::executeGradOp(Operation *op, Frame &frame) {
  if (auto whole = dyn_cast<AttentionGradOp>(op))
    return done(attentionGrad(whole, frame));
  if (auto rows = dyn_cast<RowDeltaOp>(op))
    return done(rowDelta(rows, frame));
  if (auto delta = dyn_cast<AttentionGradDeltaOp>(op))
    return done(attentionGradDelta(delta, frame));
  if (auto query = dyn_cast<AttentionGradQueryOp>(op))
    return done(splitGrad(query, frame));
  if (auto keys = dyn_cast<AttentionGradKeyValueOp>(op))
    return done(splitGrad(keys, frame));
  return false;
}

static std::vector<double> getReals(const DenseTensor &tensor) {
  std::vector<double> reals(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i)
    reals[i] = tensor.data()[i].f;
  return reals;
}

std::vector<double> Evaluator::getLogarithms(const DenseTensor &lse, mlir::Value low,
                                             Frame &frame) {
  std::vector<double> logarithms = getReals(lse);
  if (!low)
    return logarithms;
  const DenseTensor &rest = *getTensor(low, frame);
  for (auto [row, logarithm] : enumerate(logarithms))
    if (std::isfinite(logarithm))
      logarithm = (roundBase2(logarithm) + rest.data()[row].f) / double(kF32Log2e);
  return logarithms;
}

std::vector<double> Evaluator::getNegatedLogarithms(const DenseTensor &negLse2, mlir::Value negLow2,
                                                    Frame &frame) {
  std::vector<double> logarithms = getReals(negLse2);
  const DenseTensor *rest = negLow2 ? &*getTensor(negLow2, frame) : nullptr;
  for (auto [row, logarithm] : enumerate(logarithms))
    logarithm = rest ? (logarithm + rest->data()[row].f) / -double(kF32Log2e) : logarithm / -kLog2e;
  return logarithms;
}

Error Evaluator::setNegated(Operation *op, mlir::Value result, mlir::Value source, Frame &frame) {
  if (!result)
    return Error::success();
  const DenseTensor &numbers = *getTensor(source, frame);
  Expected<TensorRef> negated =
      allocate(op, result.getType(), numbers.getShape(), !options.countOnly);
  if (!negated)
    return negated.takeError();
  if (!options.countOnly) {
    if (Error error = checkData(op, {&numbers}))
      return error;
    for (int64_t row = 0; row < numbers.size(); ++row)
      (*negated)->data()[row].f = -numbers.data()[row].f;
  }
  return set(op, result, *negated, frame);
}

//===----------------------------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------------------------===//

Expected<RowGradients> Evaluator::computeRow(GradientSums &sums, RowScores &rows, int64_t row,
                                             ArrayRef<int64_t> origin, Frame &frame) {
  const DenseTensor &query = *getTensor(sums.op.getQuery(), frame),
                    &key = *getTensor(sums.op.getKey(), frame),
                    &value = *getTensor(sums.op.getValue(), frame);
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape();
  int64_t d = q[3], dv = value.getShape()[3], m = row % q[2], h = row / q[2] % q[1],
          b = row / q[2] / q[1];
  int64_t firstKey = (b * k[1] + h / (q[1] / k[1])) * k[2];
  rows.query = query.data() + row * d;
  rows.key = key.data() + firstKey * d;
  int64_t at[] = {origin[0] + b, origin[1] + h, origin[2] + m, origin[3]};
  if (Error error = rows.compute(at[0], at[1], at[2], at[3]))
    return std::move(error);

  RowGradients own(rows.keys);
  own.gradient = getTensor(sums.outputGradient, frame)->data() + row * dv;
  own.value = value.data() + firstKey * dv;
  own.width = dv;
  own.lse = sums.lse[row];
  own.delta = sums.delta[row];
  own.isEmpty = own.lse == kLowest;
  own.grad = sums.grad;
  if (Error error = own.compute(rows, at))
    return std::move(error);
  return own;
}

/// Adds what row number `row` of (B, H, M) contributes.
Error Evaluator::addRow(GradientSums &sums, RowScores &rows, int64_t row, ArrayRef<int64_t> origin,
                        Frame &frame) {
  Expected<RowGradients> own = computeRow(sums, rows, row, origin, frame);
  if (!own)
    return own.takeError();
  int64_t d = rows.headDim, dv = own->width,
          firstKey = (rows.key - getTensor(sums.op.getKey(), frame)->data()) / d;
  // g4, g7, g13
  for (int64_t n = 0; n < rows.keys; ++n) {
    if (own->weights[n].f == 0)
      continue;
    double scaled = rows.scale * own->adjoints[n].f;
    if (sums.query)
      accumulate(sums.query->data() + row * d, scaled, rows.key + n * d, d);
    if (sums.key)
      accumulate(sums.key->data() + (firstKey + n) * d, scaled, rows.query, d);
    if (sums.value)
      accumulate(sums.value->data() + (firstKey + n) * dv, own->weights[n].f * rows.factors[n].f,
                 own->gradient, dv);
  }
  return Error::success();
}

Error Evaluator::sumGradients(GradientSums &sums, Frame &frame) {
  ScoredOpInterface op = sums.op;
  if (!op.getScore().empty() && op->getRegions().back().empty())
    return makeOpError(op, "expected a grad region beside the score region, got none "
                           "(attn-derive-score writes it)");
  bool hasData = !options.countOnly;
  auto makeZeros = [&](mlir::Value result, mlir::Value like) -> Expected<TensorRef> {
    if (!result)
      return TensorRef();
    Expected<TensorRef> zeros =
        allocate(op, result.getType(), getTensor(like, frame)->getShape(), hasData);
    if (!zeros)
      return zeros.takeError();
    if (hasData)
      std::fill_n((*zeros)->data(), (*zeros)->size(), Lane{.f = 0});
    if (Error error = set(op, result, *zeros, frame))
      return std::move(error);
    return *zeros;
  };
  for (auto [sum, result, like] : {std::tuple(&sums.query, sums.queryResult, op.getQuery()),
                                   {&sums.key, sums.keyResult, op.getKey()},
                                   {&sums.value, sums.valueResult, op.getValue()}}) {
    Expected<TensorRef> zeros = makeZeros(result, like);
    if (!zeros)
      return zeros.takeError();
    *sum = *zeros;
  }
  if (Region &grad = op->getRegions().back(); !grad.empty() && hasData) {
    Expected<RegionProgram *> program = getProgram(grad, frame);
    if (!program)
      return program.takeError();
    sums.grad = *program;
  }
  for (auto [tensor, result] : zip_equal(sums.wrt, sums.wrtResults)) {
    Expected<TensorRef> zeros = makeZeros(result, tensor);
    if (!zeros)
      return zeros.takeError();
    if (sums.grad)
      sums.grad->addContributionsInto(tensor, *zeros);
  }
  if (!hasData)
    return Error::success();
  Expected<Indices> origin = getIndices(op, op.getMixedOrigin(), frame);
  Expected<RowScores> rows = getRowScores(op, frame);
  if (!origin || !rows)
    return makeOpError(op, joinErrors(origin.takeError(), rows.takeError()));
  for (size_t row = 0; row < sums.lse.size(); ++row)
    if (Error error = addRow(sums, *rows, row, *origin, frame))
      return error;
  return Error::success();
}

/// g17
Expected<std::vector<double>> Evaluator::computeExactDelta(GradientSums &sums,
                                                           const DenseTensor *lseGradient,
                                                           const DenseTensor *sink, Frame &frame) {
  Expected<Indices> origin = getIndices(sums.op, sums.op.getMixedOrigin(), frame);
  Expected<RowScores> rows = getRowScores(sums.op, frame);
  if (!origin || !rows)
    return makeOpError(sums.op, joinErrors(origin.takeError(), rows.takeError()));
  ArrayRef<int64_t> q = getTensor(sums.op.getQuery(), frame)->getShape();
  if (sink)
    if (Error error = checkExtents(sums.op, {{sink->getShape()[0], q[1]}}))
      return std::move(error);
  std::vector<double> exact(sums.delta.size());
  for (size_t row = 0; row < exact.size(); ++row) {
    Expected<RowGradients> own = computeRow(sums, *rows, row, *origin, frame);
    if (!own)
      return own.takeError();
    DeltaSums ofRow;
    ofRow.add(*own);
    exact[row] = ofRow.end(getNegLse2(sums.lse[row]), sums.delta[row],
                           lseGradient ? lseGradient->data()[row].f : 0,
                           sink ? sink->data()[row / q[2] % q[1]].f : kLowest);
  }
  return exact;
}

//===----------------------------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------------------------===//

/// g2: d_output is of the output's shape, whose rows lse and d_lse have.
static Expected<std::vector<double>> getDelta(Operation *op, const DenseTensor &output,
                                              const DenseTensor &gradient, const DenseTensor &lse,
                                              const DenseTensor *lseGradient) {
  if (gradient.getShape() != output.getShape() || lse.getShape() != output.getShape().drop_back() ||
      (lseGradient && lseGradient->getShape() != lse.getShape()))
    return makeOpError(op, "expected output, lse and their gradients of the same rows");
  if (Error error = checkData(op, {&output, &gradient, &lse, lseGradient ? lseGradient : &lse}))
    return std::move(error);
  return computeDelta(output, gradient, lseGradient);
}

Error Evaluator::recordGradMask(ScoredOpInterface op, Frame &frame) {
  if (!recorded)
    return Error::success();
  Expected<Indices> origin = getIndices(op, op.getMixedOrigin(), frame);
  return origin ? recordMask(op, *origin, frame) : origin.takeError();
}

/// Counting needs shapes only.
Error Evaluator::attentionGrad(AttentionGradOp op, Frame &frame) {
  if (Error error = checkShapes(op, frame))
    return error;
  if (Error error = recordGradMask(op, frame))
    return error;
  GradientSums sums{op, op.getDOutput()}, captured = sums;
  sums.queryResult = op.getDQuery(), sums.keyResult = op.getDKey(),
  sums.valueResult = op.getDValue(), captured.wrt = op.getWrt(), captured.wrtResults = op.getDWrt();
  if (!options.countOnly) {
    const DenseTensor &lse = *getTensor(op.getLse(), frame);
    const DenseTensor *lseGradient = op.getDLse() ? &*getTensor(op.getDLse(), frame) : nullptr,
                      *sink = op.getSink() ? &*getTensor(op.getSink(), frame) : nullptr;
    Expected<std::vector<double>> delta =
        getDelta(op, *getTensor(op.getOutput(), frame), *getTensor(op.getDOutput(), frame), lse,
                 lseGradient);
    if (!delta)
      return delta.takeError();
    sums.lse = captured.lse = getLogarithms(lse, op.getLseLow(), frame);
    sums.delta = std::move(*delta);
    if (Error error =
            checkData(op, {&*getTensor(op.getQuery(), frame), &*getTensor(op.getKey(), frame),
                           &*getTensor(op.getValue(), frame), sink ? sink : &lse}))
      return error;
    if (!op.getWrt().empty()) {
      Expected<std::vector<double>> exact = computeExactDelta(sums, lseGradient, sink, frame);
      if (!exact)
        return exact.takeError();
      captured.delta = std::move(*exact);
    }
  }
  if (Error error = sumGradients(sums, frame))
    return error;
  if (!op.getWrt().empty())
    if (Error error = sumGradients(captured, frame))
      return error;
  return op.getDSink() ? sinkGrad(op, sums.delta, frame) : Error::success();
}

/// g9
Error Evaluator::sinkGrad(AttentionGradOp op, ArrayRef<double> delta, Frame &frame) {
  const DenseTensor &sink = *getTensor(op.getSink(), frame), &lse = *getTensor(op.getLse(), frame);
  bool hasData = !options.countOnly;
  Expected<TensorRef> sum = allocate(op, op.getDSink().getType(), sink.getShape(), hasData);
  if (!sum)
    return sum.takeError();
  if (hasData) {
    int64_t heads = lse.getShape()[1], m = lse.getShape()[2];
    if (Error error = checkExtents(op, {{sink.getShape()[0], heads}}))
      return error;
    std::fill_n((*sum)->data(), heads, Lane{.f = 0});
    for (int64_t row = 0; row < lse.size(); ++row) {
      int64_t h = row / m % heads;
      double logit = sink.data()[h].f, logarithm = lse.data()[row].f;
      double share = logit == kLowest ? 0 : logit == logarithm ? 1 : std::exp(logit - logarithm);
      if (share != 0)
        (*sum)->data()[h].f -= share * delta[row];
    }
  }
  return set(op, op.getDSink(), *sum, frame);
}

Error Evaluator::rowDelta(RowDeltaOp op, Frame &frame) {
  const DenseTensor &lse = *getTensor(op.getLse(), frame);
  bool hasData = !options.countOnly;
  Expected<TensorRef> negLse2 = allocate(op, op.getNegLse2().getType(), lse.getShape(), hasData);
  Expected<TensorRef> deltas = allocate(op, op.getDelta().getType(), lse.getShape(), hasData);
  if (!negLse2 || !deltas)
    return makeOpError(op, joinErrors(negLse2.takeError(), deltas.takeError()));
  if (hasData) {
    Expected<std::vector<double>> delta =
        getDelta(op, *getTensor(op.getOutput(), frame), *getTensor(op.getDOutput(), frame), lse,
                 op.getDLse() ? &*getTensor(op.getDLse(), frame) : nullptr);
    if (!delta)
      return delta.takeError();
    for (int64_t row = 0; row < lse.size(); ++row) {
      double natural = lse.data()[row].f;
      (*negLse2)->data()[row].f = op.getLseLow() ? -roundBase2(natural) : getNegLse2(natural);
      (*deltas)->data()[row].f = (*delta)[row];
    }
  }
  if (Error error = set(op, op.getNegLse2(), *negLse2, frame))
    return error;
  if (Error error = set(op, op.getDelta(), *deltas, frame))
    return error;
  return setNegated(op, op.getNegLow2(), op.getLseLow(), frame);
}

/// g15: the logarithm and delta of each row, of an op that takes those of attn.row_delta.
template <typename OpT> Error Evaluator::readRows(OpT op, GradientSums &sums, Frame &frame) {
  const DenseTensor &negLse2 = *getTensor(op.getNegLse2(), frame),
                    &delta = *getTensor(op.getDelta(), frame);
  if (Error error = checkData(
          op, {&negLse2, &delta, &*getTensor(op.getQuery(), frame), &*getTensor(op.getKey(), frame),
               &*getTensor(op.getValue(), frame), &*getTensor(op.getDOutput(), frame)}))
    return error;
  sums.lse = getNegatedLogarithms(negLse2, op.getNegLow2(), frame);
  sums.delta = getReals(delta);
  return Error::success();
}

Error Evaluator::attentionGradDelta(AttentionGradDeltaOp op, Frame &frame) {
  if (Error error = checkShapes(op, frame))
    return error;
  if (Error error = recordGradMask(op, frame))
    return error;
  bool hasData = !options.countOnly;
  Expected<TensorRef> result = allocate(op, op.getExactDelta().getType(),
                                        getTensor(op.getDelta(), frame)->getShape(), hasData);
  if (!result)
    return result.takeError();
  if (hasData) {
    GradientSums sums{op, op.getDOutput()};
    if (Error error = readRows(op, sums, frame))
      return error;
    const DenseTensor *lseGradient = op.getDLse() ? &*getTensor(op.getDLse(), frame) : nullptr,
                      *sink = op.getSink() ? &*getTensor(op.getSink(), frame) : nullptr;
    for (const DenseTensor *tensor : {lseGradient, sink})
      if (Error error = tensor ? checkData(op, {tensor}) : Error::success())
        return error;
    Expected<std::vector<double>> exact = computeExactDelta(sums, lseGradient, sink, frame);
    if (!exact)
      return exact.takeError();
    for (auto [element, number] :
         zip_equal(MutableArrayRef((*result)->data(), exact->size()), *exact))
      element.f = number;
  }
  return set(op, op.getExactDelta(), *result, frame);
}

/// g15. The base of the logarithm is a matter of rounding: -inf becomes +inf, which weighs nothing
/// just so.
template <typename OpT> Error Evaluator::splitGrad(OpT op, Frame &frame) {
  if (Error error = checkShapes(op, frame))
    return error;
  if (Error error = recordGradMask(op, frame))
    return error;
  GradientSums sums{op, op.getDOutput()};
  if constexpr (std::is_same_v<OpT, AttentionGradQueryOp>)
    sums.queryResult = op.getDQuery();
  else
    sums.keyResult = op.getDKey(), sums.valueResult = op.getDValue();
  sums.wrt = op.getWrt(), sums.wrtResults = op.getDWrt();
  if (!options.countOnly) {
    if (Error error = readRows(op, sums, frame))
      return error;
  }
  return sumGradients(sums, frame);
}

} // namespace attn
