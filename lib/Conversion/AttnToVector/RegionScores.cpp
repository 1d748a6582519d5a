//===- RegionScores.cpp - scores through the score and mask functions ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/RegionVectorizer.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

Value attn::emitIsKept(Emitter &b, Value kept, Value n) {
  return arith::CmpFOp::create(b, arith::CmpFPredicate::ONE, b.load(kept, {n}), b.f32(0));
}

void attn::emitKept(Emitter &b, Value matrix, Value keys, Value paddedLanes, double nothing,
                    Value kept) {
  Value dropped = b.floatLike(b.f32Vec(), nothing);
  b.loop(b.index(0), keys, 1, [&](Value n) {
    Value none = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(b.getI1Type())));
    Value any =
        b.loop(b.index(0), paddedLanes, b.target.lanes, none, [&](Value m, ValueRange running) {
          Value isKept = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE,
                                               b.loadVector(matrix, {n, m}), dropped);
          return SmallVector<Value>{arith::OrIOp::create(b, running[0], isKept)};
        })[0];
    Value isKept = vector::ReductionOp::create(b, vector::CombiningKind::OR, any);
    b.store(arith::SelectOp::create(b, isKept, b.f32(1), b.f32(0)), kept, {n});
  });
}

void attn::emitKeptLanes(Emitter &b, Value matrix, Value rows, Value paddedLanes, double nothing,
                         Value kept) {
  Value dropped = b.floatLike(b.f32Vec(), nothing);
  Value none = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(b.getI1Type())));
  b.loop(b.index(0), paddedLanes, b.target.lanes, [&](Value n) {
    Value any = b.loop(b.index(0), rows, 1, none, [&](Value m, ValueRange running) {
      Value isKept = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE,
                                           b.loadVector(matrix, {m, n}), dropped);
      return SmallVector<Value>{arith::OrIOp::create(b, running[0], isKept)};
    })[0];
    Value number =
        arith::SelectOp::create(b, any, b.floatLike(b.f32Vec(), 1), b.floatLike(b.f32Vec(), 0));
    b.storeVector(number, kept, {n});
  });
}

void attn::emitScoreRegions(Emitter &b, Step &step) {
  int64_t lanes = b.target.lanes;
  OnlineAttentionOp op = step.op;
  SmallVector<Value> origin;
  for (OpFoldResult position : op.getMixedOrigin())
    origin.push_back(getValueOrCreateConstantIndexOp(b, op.getLoc(), position));
  std::optional<RegionVectorizer> score, mask;
  if (!op.getScore().empty())
    score.emplace(b, op.getScore(), origin).emitInvariant();
  if (!op.getMask().empty())
    mask.emplace(b, op.getMask(), origin).emitInvariant();

  VectorType type = b.f32Vec(), indexType = b.vec(b.getIndexType());
  Value infinity = b.floatLike(type, -std::numeric_limits<double>::infinity());
  Value steps = vector::StepOp::create(b, indexType);
  b.loop(b.index(0), step.paddedRows, lanes, [&](Value m) {
    Value rows = arith::AddIOp::create(b, b.splat(b.add(origin[2], m)), steps);
    Value exist = b.maskBelow(b.sub(step.rows.value, m));
    if (score)
      score->beginLanes(rows, exist);
    if (mask)
      mask->beginLanes(rows, exist);
    auto maximum =
        b.loop(b.index(0), step.keys.value, 1, infinity, [&](Value n, ValueRange running) {
          Value key = b.add(origin[3], n);
          Value value = b.loadVector(step.scores, {n, m});
          if (score)
            value = score->emitAt(key, value);
          if (step.factors)
            b.storeVector(score->getFactor(), step.factors, {n, m});
          // Rows that are not there keep nothing.
          Value keep = step.kept ? exist : Value();
          if (mask)
            keep = arith::AndIOp::create(b, mask->emitAt(key, {}), keep);
          if (keep)
            value = arith::SelectOp::create(b, keep, value, infinity);
          b.storeVector(value, step.scores, {n, m});
          return SmallVector<Value>{b.max(value, running[0])};
        });
    b.storeVector(maximum[0], step.rowScratch, {m});
  });
  if (step.kept)
    emitKept(b, step.scores, step.keys.value, step.paddedRows,
             -std::numeric_limits<double>::infinity(), step.kept);
}
