//===- AttentionOps.cpp - the attn dialect ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The formulas of AttnOps.td, in f64, one row at a time.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Interpreter/Evaluator.h"
#include "lib/Interpreter/RowGradients.h"
#include "lib/Interpreter/RowScores.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace attn {

Expected<bool> Evaluator::executeAttnOp(Operation *op, Frame &frame) {
  if (auto attentionOp = dyn_cast<AttentionOp>(op))
    return done(attention(attentionOp, frame));
  if (auto online = dyn_cast<OnlineAttentionOp>(op))
    return done(onlineAttention(online, frame));
  if (auto normalizeOp = dyn_cast<NormalizeOp>(op))
    return done(normalize(normalizeOp, frame));
  if (auto mergeOp = dyn_cast<MergeOp>(op))
    return done(merge(mergeOp, frame));
  if (isa<PagedOp, RaggedOp, PlaceOp, ScaledOp>(op))
    return done(executeView(op, frame));
  if (isa<AppendOp, RotaryOp>(op))
    return done(moveRows(op, frame));
  if (auto assume = dyn_cast<AssumeOp>(op))
    return done(set(op, assume.getResult(), getTensor(assume.getSource(), frame), frame));
  return false;
}

Expected<RegionProgram *> Evaluator::getProgram(Region &region, Frame &frame) {
  std::unique_ptr<RegionProgram> &program = programs[&region];
  if (!program) {
    Expected<RegionProgram> compiled = RegionProgram::compile(region, options.exactConstants);
    if (!compiled)
      return compiled.takeError();
    program = std::make_unique<RegionProgram>(std::move(*compiled));
  }
  auto lookup = [&](mlir::Value value) -> const RuntimeValue * {
    auto found = frame.find(value);
    return found == frame.end() ? nullptr : &found->second;
  };
  if (Error error = program->bind(lookup))
    return std::move(error);
  return program.get();
}

/// The factor of the dot products: the default one and its base 2 form, which the IR holds in f32,
/// are recognized. Two roundings to f32 lie between them and what they stand for.
Expected<double> Evaluator::getScale(Operation *op, mlir::Value scale, int64_t headDim,
                                     Frame &frame) {
  double standard = 1.0 / std::sqrt(double(headDim));
  if (!scale)
    return standard;
  Expected<double> value = getReal(op, scale, frame);
  if (value && options.exactConstants)
    for (double exact : {standard, standard * kLog2e})
      if (std::fabs(*value - exact) <= 0x1p-22 * exact)
        return exact;
  return value;
}

//===----------------------------------------------------------------------------------------===//
// attn.attention
//===----------------------------------------------------------------------------------------===//

Error Evaluator::recordMask(ScoredOpInterface op, ArrayRef<int64_t> origin, Frame &frame) {
  OriginalMasks::Attention record;
  record.op = op;
  ArrayRef<int64_t> q = getTensor(op.getQuery(), frame)->getShape();
  int64_t sizes[4] = {q[0], q[1], q[2], getTensor(op.getKey(), frame)->getShape()[2]};
  copy(sizes, record.sizes);
  copy(origin, record.origin);
  if (!op.getMask().empty()) {
    Expected<RegionProgram *> mask = getProgram(op.getMask(), frame);
    if (!mask)
      return mask.takeError();
    record.mask = **mask;
  }
  return recorded->add(std::move(record));
}

Error Evaluator::checkShapes(ScoredOpInterface op, Frame &frame) {
  if (op.getVariantsAttr())
    return makeOpError(op, "expected score and mask regions, got variants (attn-expand-variants "
                           "turns them into regions)");
  ArrayRef<int64_t> q = getTensor(op.getQuery(), frame)->getShape(),
                    k = getTensor(op.getKey(), frame)->getShape(),
                    v = getTensor(op.getValue(), frame)->getShape();
  if (Error error =
          checkExtents(op, {{q[0], k[0]}, {k[0], v[0]}, {k[1], v[1]}, {k[2], v[2]}, {q[3], k[3]}}))
    return error;
  if (q[1] != 0 && (k[1] == 0 || q[1] % k[1] != 0))
    return makeOpError(op, "expected H to be a multiple of Hkv, got " + Twine(q[1]) + " and " +
                               Twine(k[1]));
  return Error::success();
}

/// All but the row and the keys of its head.
Expected<RowScores> Evaluator::getRowScores(ScoredOpInterface op, Frame &frame) {
  ArrayRef<int64_t> k = getTensor(op.getKey(), frame)->getShape();
  RowScores rows(k[2]);
  rows.headDim = k[3];
  Expected<double> scale = getScale(op, op.getScale(), k[3], frame);
  if (!scale)
    return scale.takeError();
  rows.scale = *scale;
  rows.isBounded = mayExceedLargestScore(op.getScore());
  for (auto [region, program] :
       {std::pair(&op.getScore(), &rows.score), {&op.getMask(), &rows.mask}})
    if (!region->empty()) {
      Expected<RegionProgram *> compiled = getProgram(*region, frame);
      if (!compiled)
        return compiled.takeError();
      *program = *compiled;
    }
  return std::move(rows);
}

/// One row of the output and its log-sum-exp, of the scores of its keys.
static double attendRow(const RowScores &rows, const Lane *value, const Lane *sink,
                        MutableArrayRef<Lane> out) {
  double max = rows.getMax(sink ? sink->f : kLowest), sum = 0;
  // A sink of +inf is the whole sum, though inf - inf is none.
  if (sink && sink->f != kLowest)
    sum = sink->f == max ? 1 : std::exp(sink->f - max);
  fill(out, Lane{.f = 0});
  for (auto [n, score] : enumerate(rows.scores)) {
    if (score.f == kLowest)
      continue;
    double weight = std::exp(score.f - max);
    sum += weight;
    // s15
    if (double factor = rows.factors[n].f; factor != 0)
      accumulate(out.data(), weight * factor, value + n * out.size(), out.size());
  }
  for (Lane &x : out)
    if (sum != 0)
      x.f /= sum;
  return sum == 0 ? kLowest : max + std::log(sum);
}

Error Evaluator::setLow(Operation *op, mlir::Value low, const DenseTensor &lse, Frame &frame) {
  if (!low)
    return Error::success();
  Expected<TensorRef> rest = DenseTensor::create(lse.getShape(), true, !options.countOnly);
  if (!rest)
    return makeOpError(op, rest.takeError());
  for (int64_t row = 0; row < lse.size() && !options.countOnly; ++row)
    (*rest)->data()[row].f = getLow(lse.data()[row].f);
  return set(op, low, *rest, frame);
}

Error Evaluator::attention(AttentionOp op, Frame &frame) {
  Expected<Indices> origin = getIndices(op, op.getMixedOrigin(), frame);
  if (!origin)
    return origin.takeError();
  const DenseTensor &query = *getTensor(op.getQuery(), frame),
                    &key = *getTensor(op.getKey(), frame),
                    &value = *getTensor(op.getValue(), frame);
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape();
  if (Error error = checkShapes(op, frame))
    return error;
  if (recorded)
    if (Error error = recordMask(op, *origin, frame))
      return error;
  bool hasData = !options.countOnly;
  Expected<TensorRef> output =
      allocate(op, op.getOutput().getType(), {q[0], q[1], q[2], v[3]}, hasData);
  Expected<TensorRef> lse = DenseTensor::create({q[0], q[1], q[2]}, true, hasData);
  if (!output || !lse)
    return makeOpError(op, joinErrors(output.takeError(), lse.takeError()));
  if (Error error = set(op, op.getOutput(), *output, frame))
    return error;
  if (op.getLse())
    if (Error error = set(op, op.getLse(), *lse, frame))
      return error;
  if (!hasData)
    return setLow(op, op.getLseLow(), **lse, frame);

  // A sink for each head or, with rows, for each row of each head.
  const Lane *sinks = nullptr;
  bool hasRows = false;
  if (Error error = checkData(op, {&query, &key, &value}))
    return error;
  if (op.getSink()) {
    const DenseTensor &sink = *getTensor(op.getSink(), frame);
    if (Error error = checkData(op, {&sink}))
      return error;
    hasRows = sink.getShape().size() == 2;
    if (Error error = checkExtents(
            op, {{sink.getShape()[0], q[1]}, {hasRows ? sink.getShape()[1] : q[2], q[2]}}))
      return error;
    sinks = sink.data();
  }
  int64_t keys = k[2], d = q[3], dv = v[3], group = q[1] / std::max<int64_t>(k[1], 1);
  Expected<RowScores> rowScores = getRowScores(op, frame);
  if (!rowScores)
    return rowScores.takeError();
  RowScores &rows = *rowScores;
  for (int64_t row = 0; row < (*lse)->size(); ++row) {
    int64_t m = row % q[2], h = row / q[2] % q[1], b = row / q[2] / q[1];
    int64_t keyHead = b * k[1] + h / group;
    rows.query = query.data() + row * d;
    rows.key = key.data() + keyHead * keys * d;
    rows.available = countAvailable(op, b, m, keys, frame);
    if (Error error =
            rows.compute((*origin)[0] + b, (*origin)[1] + h, (*origin)[2] + m, (*origin)[3]))
      return error;
    (*lse)->data()[row].f = attendRow(rows, value.data() + keyHead * keys * dv,
                                      sinks ? sinks + (hasRows ? h * q[2] + m : h) : nullptr,
                                      MutableArrayRef<Lane>((*output)->data() + row * dv, dv));
  }
  return setLow(op, op.getLseLow(), **lse, frame);
}

//===----------------------------------------------------------------------------------------===//
// attn.online_attention
//===----------------------------------------------------------------------------------------===//

Error Evaluator::countTile(AbsorbingOpInterface op, ArrayRef<int64_t> origin, int64_t rows,
                           int64_t keys, RegionProgram *mask, std::vector<Lane> &keep) {
  ++counts.tiles;
  ++(mask ? counts.maskedTiles : counts.unmaskedTiles);
  if (rows * keys == 0)
    ++counts.emptyTiles;
  if (mask && rows * keys > 0) {
    int64_t numKept = 0;
    for (int64_t m = 0; m < rows; ++m) {
      if (Error error =
              mask->run(origin[0], origin[1], origin[2] + m, origin[3], keys, keep.data()))
        return error;
      numKept += count_if(keep, [](Lane lane) { return lane.i != 0; });
    }
    counts.maskedElements += rows * keys;
    counts.emptyTiles += numKept == 0;
    counts.needlessMasks += numKept == rows * keys;
  }
  if (prover)
    return prover->visit(op, origin, rows, keys, mask);
  return Error::success();
}

/// One row of the running state, which absorbs the scores of some keys.
static void absorbRow(const RowScores &rows, const Lane *value, MutableArrayRef<Lane> acc,
                      double &max, double &sum) {
  double newMax = rows.getMax(max);
  double factor = max == kLowest ? 0 : std::exp2(max - newMax);
  for (Lane &x : acc)
    x.f = factor == 0 ? 0 : x.f * factor;
  sum = factor == 0 ? 0 : sum * factor;
  max = newMax;
  for (auto [n, score] : enumerate(rows.scores)) {
    if (score.f == kLowest)
      continue;
    double weight = std::exp2(score.f - newMax);
    sum += weight;
    if (double scale = rows.factors[n].f; scale != 0)
      accumulate(acc.data(), weight * scale, value + n * acc.size(), acc.size());
  }
}

Error Evaluator::onlineAttention(OnlineAttentionOp op, Frame &frame) {
  Expected<Indices> origin = getIndices(op, op.getMixedOrigin(), frame);
  if (!origin)
    return origin.takeError();
  const DenseTensor &query = *getTensor(op.getQuery(), frame),
                    &key = *getTensor(op.getKey(), frame),
                    &value = *getTensor(op.getValue(), frame);
  TensorRef state[3] = {getTensor(op.getAcc(), frame), getTensor(op.getRowMax(), frame),
                        getTensor(op.getRowSum(), frame)};
  ArrayRef<int64_t> q = query.getShape(), k = key.getShape(), v = value.getShape(),
                    acc = state[0]->getShape();
  int64_t m = q[0], keys = k[0], d = q[1], dv = v[1];
  if (Error error = checkExtents(op, {{d, k[1]},
                                      {keys, v[0]},
                                      {m, acc[0]},
                                      {dv, acc[1]},
                                      {m, state[1]->getShape()[0]},
                                      {m, state[2]->getShape()[0]}}))
    return error;
  RowScores rows(keys);
  if (!op.getMask().empty()) {
    Expected<RegionProgram *> mask = getProgram(op.getMask(), frame);
    if (!mask)
      return mask.takeError();
    rows.mask = *mask;
  }
  if (Error error = countTile(op, *origin, m, keys, rows.mask, rows.keep))
    return error;
  if (options.countOnly)
    return setResults(op, state, frame);

  if (Error error = checkData(op, {&query, &key, &value, &*state[0], &*state[1], &*state[2]}))
    return error;
  if (!op.getScore().empty()) {
    Expected<RegionProgram *> score = getProgram(op.getScore(), frame);
    if (!score)
      return score.takeError();
    rows.score = *score;
  }
  rows.headDim = d;
  rows.key = key.data();
  Expected<double> scale = getScale(op, op.getScale(), d, frame);
  if (!scale)
    return scale.takeError();
  rows.scale = *scale;
  for (TensorRef &tensor : state)
    tensor = std::make_shared<DenseTensor>(*tensor);
  for (int64_t row = 0; row < m; ++row) {
    rows.query = query.data() + row * d;
    if (Error error = rows.compute((*origin)[0], (*origin)[1], (*origin)[2] + row, (*origin)[3]))
      return error;
    absorbRow(rows, value.data(), MutableArrayRef<Lane>(state[0]->data() + row * dv, dv),
              state[1]->data()[row].f, state[2]->data()[row].f);
  }
  return setResults(op, state, frame);
}

//===----------------------------------------------------------------------------------------===//
// attn.normalize and attn.merge
//===----------------------------------------------------------------------------------------===//

Error Evaluator::normalize(NormalizeOp op, Frame &frame) {
  const DenseTensor &acc = *getTensor(op.getAcc(), frame), &max = *getTensor(op.getRowMax(), frame),
                    &sum = *getTensor(op.getRowSum(), frame);
  int64_t m = acc.getShape()[0], dv = acc.getShape()[1];
  if (Error error = checkExtents(op, {{m, max.getShape()[0]}, {m, sum.getShape()[0]}}))
    return error;
  bool hasData = !options.countOnly;
  Expected<TensorRef> output = DenseTensor::create({m, dv}, true, hasData);
  Expected<TensorRef> lse = DenseTensor::create({m}, true, hasData);
  if (!output || !lse)
    return makeOpError(op, joinErrors(output.takeError(), lse.takeError()));
  if (hasData)
    if (Error error = checkData(op, {&acc, &max, &sum}))
      return error;
  double sink = kLowest;
  const DenseTensor *sinks = nullptr;
  if (op.getSink() && mlir::isa<mlir::ShapedType>(op.getSink().getType())) {
    sinks = getTensor(op.getSink(), frame).get();
    if (Error error = checkExtents(op, {{m, sinks->getShape()[0]}}))
      return error;
    if (Error error = hasData ? checkData(op, {sinks}) : Error::success())
      return error;
  } else if (op.getSink() && hasData) {
    Expected<double> natural = getReal(op, op.getSink(), frame);
    if (!natural)
      return natural.takeError();
    sink = *natural * kLog2e;
  }
  for (int64_t row = 0; row < m && hasData; ++row) {
    if (sinks)
      sink = sinks->data()[row].f * kLog2e;
    // All in base 2 and relative to the larger of the maximum and the sink.
    double top = std::max(max.data()[row].f, sink), total = 0, factor = 0;
    if (sum.data()[row].f != 0) {
      factor = std::exp2(max.data()[row].f - top);
      total = sum.data()[row].f * factor;
    }
    if (sink != kLowest)
      total += sink == top ? 1 : std::exp2(sink - top);
    for (int64_t i = 0; i < dv; ++i)
      (*output)->data()[row * dv + i].f =
          factor == 0 ? 0 : acc.data()[row * dv + i].f * factor / total;
    (*lse)->data()[row].f = total == 0 ? kLowest : (top + std::log2(total)) / kLog2e;
  }
  if (Error error = set(op, op->getResult(0), *output, frame))
    return error;
  if (op.getLse())
    if (Error error = set(op, op->getResult(1), *lse, frame))
      return error;
  return setLow(op, op.getLseLow() ? op->getResult(2) : mlir::Value(), **lse, frame);
}

Error Evaluator::merge(MergeOp op, Frame &frame) {
  const DenseTensor &partial = *getTensor(op.getPartial(), frame),
                    &partialLse = *getTensor(op.getPartialLse(), frame);
  ArrayRef<int64_t> shape = partial.getShape();
  if (shape.drop_back() != partialLse.getShape())
    return makeOpError(op, "expected partial_lse of shape " + formatShape(shape.drop_back()) +
                               ", got " + formatShape(partialLse.getShape()));
  bool hasData = !options.countOnly;
  Expected<TensorRef> output = DenseTensor::create(shape.drop_front(), true, hasData);
  Expected<TensorRef> lse = DenseTensor::create(shape.drop_front().drop_back(), true, hasData);
  if (!output || !lse)
    return makeOpError(op, joinErrors(output.takeError(), lse.takeError()));
  if (hasData)
    if (Error error = checkData(op, {&partial, &partialLse}))
      return error;
  std::vector<double> logarithms;
  if (hasData)
    logarithms = getLogarithms(partialLse, op.getPartialLow(), frame);
  int64_t parts = shape.front(), width = shape.back(), rows = (*lse)->size();
  for (int64_t row = 0; row < rows && hasData; ++row) {
    double top = kLowest, total = 0;
    for (int64_t s = 0; s < parts; ++s)
      top = std::max(top, logarithms[s * rows + row]);
    Lane *out = (*output)->data() + row * width;
    std::fill_n(out, width, Lane{.f = 0});
    for (int64_t s = 0; s < parts; ++s) {
      double own = logarithms[s * rows + row];
      if (own == kLowest)
        continue;
      double weight = own == top ? 1 : std::exp(own - top);
      total += weight;
      accumulate(out, weight, partial.data() + (s * rows + row) * width, width);
    }
    for (int64_t i = 0; i < width && total != 0; ++i)
      out[i].f /= total;
    (*lse)->data()[row].f = total == 0 ? kLowest : top + std::log(total);
  }
  if (Error error = set(op, op->getResult(0), *output, frame))
    return error;
  if (op.getLse())
    if (Error error = set(op, op->getResult(1), *lse, frame))
      return error;
  return setLow(op, op.getLseLow() ? op->getResult(2) : mlir::Value(), **lse, frame);
}

} // namespace attn
