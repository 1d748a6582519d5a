//===- GradientSteps.cpp - gradients of attention, a tile at a time ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The formulas of AttnGradStepOps.td, in f64, one row at a time.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Interpreter/Evaluator.h"
#include "lib/Interpreter/RowGradients.h"

using namespace llvm;
using namespace mlir;

namespace attn {

Expected<bool> Evaluator::executeGradStep(Operation *op, Frame &frame) {
  if (auto rows = dyn_cast<GradRowsOp>(op))
    return done(gradRows(rows, frame));
  if (auto step = dyn_cast<GradDeltaStepOp>(op))
    return done(gradStep(step, frame));
  if (auto end = dyn_cast<GradDeltaEndOp>(op))
    return done(gradDeltaEnd(end, frame));
  if (auto step = dyn_cast<GradQueryStepOp>(op))
    return done(gradStep(step, frame));
  if (auto step = dyn_cast<GradKeyValueStepOp>(op))
    return done(gradStep(step, frame));
  if (auto end = dyn_cast<GradEndOp>(op))
    return done(gradEnd(end, frame));
  return false;
}

Error Evaluator::gradRows(GradRowsOp op, Frame &frame) {
  const DenseTensor &output = *getTensor(op.getOutput(), frame),
                    &gradient = *getTensor(op.getDOutput(), frame),
                    &lse = *getTensor(op.getLse(), frame);
  const DenseTensor *lseGradient = op.getDLse() ? &*getTensor(op.getDLse(), frame) : nullptr;
  bool hasData = !options.countOnly;
  int64_t m = output.getShape()[0], dv = output.getShape()[1];
  if (Error error = checkExtents(op, {{m, gradient.getShape()[0]},
                                      {dv, gradient.getShape()[1]},
                                      {m, lse.getShape()[0]},
                                      {m, lseGradient ? lseGradient->getShape()[0] : m}}))
    return error;
  Expected<TensorRef> negLse2 = allocate(op, op->getResult(0).getType(), {m}, hasData),
                      delta = allocate(op, op->getResult(1).getType(), {m}, hasData);
  if (!negLse2 || !delta)
    return makeOpError(op, joinErrors(negLse2.takeError(), delta.takeError()));
  if (hasData) {
    if (Error error = checkData(op, {&output, &gradient, &lse, lseGradient ? lseGradient : &lse}))
      return error;
    std::vector<double> sums = computeDelta(output, gradient, lseGradient);
    for (int64_t row = 0; row < m; ++row) {
      double natural = lse.data()[row].f;
      (*negLse2)->data()[row].f = op.getLseLow() ? -roundBase2(natural) : getNegLse2(natural);
      (*delta)->data()[row].f = sums[row];
    }
  }
  if (Error error = set(op, op->getResult(0), *negLse2, frame))
    return error;
  if (Error error = set(op, op->getResult(1), *delta, frame))
    return error;
  return setNegated(op, op.getNegLow2() ? op->getResult(2) : mlir::Value(), op.getLseLow(), frame);
}

Error Evaluator::gradEnd(GradEndOp op, Frame &frame) {
  const DenseTensor &acc = *getTensor(op.getAcc(), frame);
  bool hasData = !options.countOnly;
  Expected<TensorRef> output = allocate(op, op->getResult(0).getType(), acc.getShape(), hasData);
  if (!output)
    return output.takeError();
  if (hasData) {
    if (Error error = checkData(op, {&acc}))
      return error;
    Expected<double> scale = op.getScale() ? getScale(op, op.getScale(), acc.getShape()[1], frame)
                                           : Expected<double>(1.0);
    if (!scale)
      return scale.takeError();
    for (int64_t i = 0; i < acc.size(); ++i)
      (*output)->data()[i].f = *scale * acc.data()[i].f;
  }
  return set(op, op->getResult(0), *output, frame);
}

Error Evaluator::gradDeltaEnd(GradDeltaEndOp op, Frame &frame) {
  SmallVector<const DenseTensor *> tensors;
  for (mlir::Value operand : {op.getWeight(), op.getResidual(), op.getNegLse2(), op.getDelta()})
    tensors.push_back(&*getTensor(operand, frame));
  if (op.getDLse())
    tensors.push_back(&*getTensor(op.getDLse(), frame));
  int64_t m = tensors[0]->size();
  for (const DenseTensor *tensor : tensors)
    if (Error error = checkExtents(op, {{tensor->getShape()[0], m}}))
      return error;
  bool hasData = !options.countOnly;
  Expected<TensorRef> output = allocate(op, op->getResult(0).getType(), {m}, hasData);
  if (!output)
    return output.takeError();
  if (hasData) {
    Expected<double> sink =
        op.getSink() ? getReal(op, op.getSink(), frame) : Expected<double>(kLowest);
    if (!sink)
      return sink.takeError();
    if (Error error = checkData(op, tensors))
      return error;
    for (int64_t row = 0; row < m; ++row) {
      auto get = [&](unsigned number) { return tensors[number]->data()[row].f; };
      DeltaSums sums{get(0), get(1)};
      (*output)->data()[row].f = sums.end(get(2), get(3), op.getDLse() ? get(4) : 0, *sink);
    }
  }
  return set(op, op->getResult(0), *output, frame);
}

/// The extents of rows, keys and columns agree.
template <typename OpT> static Error checkStep(OpT op, ArrayRef<const DenseTensor *> tensors) {
  ArrayRef<int64_t> q = tensors[0]->getShape(), k = tensors[1]->getShape(),
                    v = tensors[2]->getShape(), gradient = tensors[3]->getShape();
  return checkExtents(op, {{q[1], k[1]},
                           {k[0], v[0]},
                           {q[0], gradient[0]},
                           {v[1], gradient[1]},
                           {q[0], tensors[4]->getShape()[0]},
                           {q[0], tensors[5]->getShape()[0]},
                           {q[0], tensors.back()->getShape()[0]}});
}

/// The sums of a step: gradients of rows, gradients of keys, or the sums for delta.
enum class SumsOf { Rows, Keys, Delta };

/// Adds what each row gives; `tensors` are query, key, value, d_output, neg_lse2 and delta.
static Error absorbRows(RowScores &rows, RegionProgram *grad, ArrayRef<int64_t> origin,
                        ArrayRef<const DenseTensor *> tensors, ArrayRef<TensorRef> sums,
                        SumsOf of) {
  const Lane *query = tensors[0]->data(), *gradient = tensors[3]->data();
  int64_t d = rows.headDim, dv = tensors[2]->getShape()[1];
  rows.key = tensors[1]->data();
  RowGradients own(rows.keys);
  own.value = tensors[2]->data();
  own.width = dv;
  own.grad = grad;
  for (int64_t row = 0; row < tensors[0]->getShape()[0]; ++row) {
    rows.query = query + row * d;
    int64_t at[] = {origin[0], origin[1], origin[2] + row, origin[3]};
    if (Error error = rows.compute(at[0], at[1], at[2], at[3]))
      return error;
    double negLse2 = tensors[4]->data()[row].f;
    own.gradient = gradient + row * dv;
    own.lse = tensors.size() > 6 ? (negLse2 + tensors[6]->data()[row].f) / -double(kF32Log2e)
                                 : negLse2 / -kLog2e;
    own.isEmpty = negLse2 == kLowest;
    own.delta = tensors[5]->data()[row].f;
    if (Error error = own.compute(rows, at))
      return error;
    if (of == SumsOf::Delta) {
      DeltaSums ofRow{sums[0]->data()[row].f, sums[1]->data()[row].f};
      ofRow.add(own);
      sums[0]->data()[row].f = ofRow.weight;
      sums[1]->data()[row].f = ofRow.residual;
      continue;
    }
    for (int64_t n = 0; n < rows.keys; ++n) {
      if (own.weights[n].f == 0)
        continue;
      if (of == SumsOf::Rows) {
        accumulate(sums[0]->data() + row * d, own.adjoints[n].f, rows.key + n * d, d);
        continue;
      }
      accumulate(sums[0]->data() + n * d, own.adjoints[n].f, rows.query, d);
      accumulate(sums[1]->data() + n * dv, own.weights[n].f * rows.factors[n].f, own.gradient, dv);
    }
  }
  return Error::success();
}

template <typename OpT> Error Evaluator::gradStep(OpT op, Frame &frame) {
  Expected<Indices> origin = getIndices(op, op.getMixedOrigin(), frame);
  if (!origin)
    return origin.takeError();
  SmallVector<const DenseTensor *> tensors;
  for (mlir::Value operand :
       {op.getQuery(), op.getKey(), op.getValue(), op.getDOutput(), op.getNegLse2(), op.getDelta()})
    tensors.push_back(&*getTensor(operand, frame));
  if (op.getNegLow2())
    tensors.push_back(&*getTensor(op.getNegLow2(), frame));
  if (Error error = checkStep(op, tensors))
    return error;
  RowScores rows(tensors[1]->getShape()[0]);
  rows.headDim = tensors[1]->getShape()[1];
  RegionProgram *grad = nullptr;
  for (auto [region, program] : {std::pair(&op.getScore(), &rows.score),
                                 {&op.getMask(), &rows.mask},
                                 {&op.getGrad(), &grad}})
    if (!region->empty()) {
      Expected<RegionProgram *> compiled = getProgram(*region, frame);
      if (!compiled)
        return compiled.takeError();
      *program = *compiled;
    }
  int64_t m = tensors[0]->getShape()[0];
  if (Error error = countTile(op, *origin, m, rows.keys, rows.mask, rows.keep))
    return error;
  SmallVector<TensorRef, 2> sums;
  for (mlir::Value init : op.getDpsInits())
    sums.push_back(getTensor(init, frame));
  if (!options.countOnly) {
    Expected<double> scale = getScale(op, op.getScale(), rows.headDim, frame);
    if (!scale)
      return scale.takeError();
    rows.scale = *scale;
    if (Error error = checkData(op, tensors))
      return error;
    for (TensorRef &sum : sums)
      sum = std::make_shared<DenseTensor>(*sum);
    SumsOf of = std::is_same_v<OpT, GradDeltaStepOp> ? SumsOf::Delta
                : op.getRunningPosition() == 2       ? SumsOf::Keys
                                                     : SumsOf::Rows;
    if (Error error = absorbRows(rows, grad, *origin, tensors, sums, of))
      return error;
  }
  return setResults(op, sums, frame);
}

} // namespace attn
