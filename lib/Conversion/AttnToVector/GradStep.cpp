//===- GradStep.cpp - one step of a sum of gradients --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The steps over keys and over rows are one program with the roles exchanged. The dimension that
// stays for a block has its positions in lanes: rows of queries and of the output's gradient, or
// keys and values. Both of its matrices are packed once. A tile of the running dimension gives
// scores and gradients of probabilities, (running, lanes) each. Then regions turn these into
// gradients of scores, and sums over the running dimension end in the accumulators. So no pass
// reduces across lanes, as in the forward step.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Exp2.h"
#include "lib/Conversion/AttnToVector/RegionVectorizer.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

namespace {
/// A matrix of what stays, the one of what runs that it is multiplied with, and the tile of their
/// products.
struct Factors {
  Value fixed, running;
  Value product;
};

/// The numbers that all scores of a row share: tensors of rows, or their vectors for some elements.
/// `negLow2` may be null. Where it is not, and nothing changes scores, they come in base 2.
struct PerRow {
  Value negLse2, delta, negLow2;

  PerRow map(function_ref<Value(Value)> change) const {
    return {change(negLse2), change(delta), negLow2 ? change(negLow2) : Value()};
  }
};

struct GradStep {
  AbsorbingOpInterface op;
  bool rowsRun;
  /// The dimension that stays, and the dimension that runs.
  Extent lanes, terms;
  Value paddedLanes;
  int64_t laneStride = 0;
  /// query and key give scores, in whose place probabilities come; d_output and value give the
  /// gradients of probabilities, in whose place those of scores come.
  Factors scores, gradients;
  /// (M)
  PerRow rows;
  Value scale;
};

/// The regions of a step that are there, vectorised together.
struct Regions {
  std::optional<RegionVectorizer> score, mask, grad;

  void forEach(function_ref<void(RegionVectorizer &)> body) {
    for (std::optional<RegionVectorizer> *region : {&score, &mask, &grad})
      if (*region)
        body(**region);
  }
};
} // namespace

template <typename OpT> static GradStep describe(OpT op, bool rowsRun) {
  GradStep step;
  step.op = op;
  step.rowsRun = rowsRun;
  step.scores = {op.getQuery(), op.getKey(), {}};
  step.gradients = {op.getDOutput(), op.getValue(), {}};
  if (rowsRun)
    for (Factors *factors : {&step.scores, &step.gradients})
      std::swap(factors->fixed, factors->running);
  step.rows = {op.getNegLse2(), op.getDelta(), op.getNegLow2()};
  step.scale = op.getScale();
  return step;
}

static bool isF32(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType().isF32();
}

/// With `mayPair` pairs of bf16 are multiplied where they are in the forward pass, which rounds
/// sums of pairs.
static void emitProduct(Emitter &b, GradStep &step, Factors &factors, StringRef name, Value scale,
                        bool mayPair, Shared &shared) {
  PackedMatrix packed =
      shared.packer.get(step.op, factors.fixed, step.lanes, mayPair, b.target, shared.scratch);
  Value running = factors.running;
  // Each tile is read by many products of the fused form: where callers have it, its rows may all
  // want the same places of a cache.
  if (!isF32(factors.running) || isa<GradFusedStepOp>(step.op))
    factors.running = emitF32Tile(b, step.op, (name + "_rows").str(), factors.running, step.terms,
                                  /*kept=*/Value(), shared.scratch);
  factors.product = shared.scratch.get(step.op, name, {step.terms.bound, step.laneStride});
  Value lanes = b.alignUp(step.lanes.value, getLaneUnit(b.target, step.laneStride));
  if (packed.kind == WordKind::F32)
    running = factors.running;
  callScores(b,
             {packed, lanes, step.laneStride, running, step.terms, scale, factors.product,
              /*maxima=*/Value(), /*hasWholeTiles=*/true},
             shared.functions);
}

namespace {
/// P, P * F and dS of one register of lanes at one position that runs.
struct Element {
  Value p, weight, ds;
};
} // namespace

/// T log2(e) + neg_lse2, and with neg_low2 in the order in which the forward pass rounded.
static Value emitExponent(Emitter &b, Regions &regions, Value position, Value score,
                          const PerRow &row) {
  Value log2e = b.floatLike(b.f32Vec(), llvm::numbers::log2e);
  Value value = regions.score ? regions.score->emitAt(position, score) : score;
  if (!row.negLow2)
    return b.fma(value, log2e, row.negLse2);
  if (regions.score)
    value = arith::MulFOp::create(b, value, log2e);
  return arith::AddFOp::create(b, arith::AddFOp::create(b, value, row.negLse2), row.negLow2);
}

static Element emitElement(Emitter &b, Regions &regions, bool mayDrop, Value position, Value score,
                           Value gradient, Value exist, const PerRow &row, Value &isKept) {
  Value zero = b.floatLike(b.f32Vec(), 0);
  Value exponent = emitExponent(b, regions, position, score, row);
  // g3: at most 1. A score that is no number stays none.
  Value isAbove = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, exponent, zero);
  Value p = emitExp2(b, arith::SelectOp::create(b, isAbove, zero, exponent));
  if (regions.mask)
    p = arith::SelectOp::create(b, regions.mask->emitAt(position, {}), p, zero);
  Value weight = p;
  // g13
  if (Value factor = regions.score ? regions.score->getFactor() : Value()) {
    weight = arith::MulFOp::create(b, p, factor);
    gradient = arith::MulFOp::create(b, gradient, factor);
  }
  Value ds = arith::MulFOp::create(b, p, arith::SubFOp::create(b, gradient, row.delta));
  // A dropped element may be NaN, and so may the slope of its score, and the values of lanes that
  // do not exist.
  if (mayDrop) {
    isKept = arith::AndIOp::create(b, arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, p, zero),
                                   exist);
    ds = arith::SelectOp::create(b, isKept, ds, zero);
  }
  if (!regions.grad)
    return {p, weight, ds};
  ds = regions.grad->emitAt(position, {score, ds});
  return {p, weight, isKept ? arith::SelectOp::create(b, isKept, ds, zero).getResult() : ds};
}

/// Where the contribution goes in its part of the gradient: to the element that was read (s13).
static SmallVector<Value> findPlace(Emitter &b, ContributeOp contribution, Value sum,
                                    ArrayRef<Value> at) {
  SmallVector<Value> place(at);
  for (auto [dim, index] : llvm::enumerate(contribution.getIndices()))
    if (mayBeOutside(index, contribution.getTensor(), dim))
      place[dim] = keepInside(b, sum, dim, place[dim]);
  return place;
}

/// Adds what the lanes that are kept contribute. Lanes may share an element: one after the other.
static void emitContribution(Emitter &b, Value sum, Value addend, ArrayRef<Value> at, Value isKept,
                             Value numLanes) {
  addend = arith::SelectOp::create(b, isKept, addend, b.floatLike(b.f32Vec(), 0));
  auto add = [&](Value number, ValueRange position) {
    b.store(arith::AddFOp::create(b, b.load(sum, position), number), sum, position);
  };
  if (llvm::none_of(at, [](Value index) { return isa<VectorType>(index.getType()); }))
    return add(vector::ReductionOp::create(b, vector::CombiningKind::ADD, addend), at);
  Value count = arith::MinSIOp::create(b, numLanes, b.index(b.target.lanes));
  b.loop(b.index(0), count, 1, [&](Value lane) {
    auto extract = [&](Value value) -> Value {
      return isa<VectorType>(value.getType())
                 ? vector::ExtractOp::create(b, value, OpFoldResult(lane)).getResult()
                 : value;
    };
    add(extract(addend), llvm::map_to_vector(at, extract));
  });
}

/// Without regions no position counts, and elements come in the order in which they lie.
static void emitPlainElements(Emitter &b, const GradStep &step) {
  Regions none;
  b.loop(b.index(0), step.terms.value, 1, [&](Value term) {
    PerRow row = step.rows.map([&](Value rows) { return b.splat(b.load(rows, {term})); });
    b.loop(b.index(0), step.paddedLanes, b.target.lanes, [&](Value lane) {
      Value isKept;
      auto [p, weight, ds] = emitElement(b, none, /*mayDrop=*/false, /*position=*/{},
                                         b.loadVector(step.scores.product, {term, lane}),
                                         b.loadVector(step.gradients.product, {term, lane}),
                                         /*exist=*/{}, row, isKept);
      b.storeVector(ds, step.gradients.product, {term, lane});
      b.storeVector(weight, step.scores.product, {term, lane});
    });
  });
}

/// The same, by a function that steps share.
static void callPlainElements(Emitter &b, const GradStep &step, KernelFunctions &functions) {
  SmallVector<Value> operands = {step.terms.value, step.rows.negLse2,   step.rows.delta,
                                 step.paddedLanes, step.scores.product, step.gradients.product};
  if (step.rows.negLow2)
    operands.push_back(step.rows.negLow2);
  functions.call(b, "gradients", operands, [&](Emitter &inside, ArrayRef<Value> values) {
    GradStep own = step;
    own.terms.value = values[0];
    own.rows = {values[1], values[2], step.rows.negLow2 ? values[6] : Value()};
    own.paddedLanes = values[3], own.scores.product = values[4], own.gradients.product = values[5];
    emitPlainElements(inside, own);
  });
}

/// The region's contributions go to `captured`, and the sums of P and dS over the running dimension
/// to `rowSums`, where these are there. Else P * F and dS are left in place of scores and
/// gradients.
static void emitElements(Emitter &b, GradStep &step, Region &score, Region &mask, Region &grad,
                         bool mayDrop, ArrayRef<Value> origin, Value captured, ValueRange rowSums,
                         Shared &shared) {
  int64_t lanes = b.target.lanes;
  Regions regions;
  if (!score.empty())
    regions.score.emplace(b, score, origin, !step.rowsRun);
  if (!mask.empty())
    regions.mask.emplace(b, mask, origin, !step.rowsRun);
  if (!grad.empty())
    regions.grad.emplace(b, grad, origin, !step.rowsRun);
  regions.forEach([](RegionVectorizer &region) { region.emitInvariant(); });

  if (score.empty() && mask.empty() && grad.empty() && step.rowsRun)
    return callPlainElements(b, step, shared.functions);
  Value steps = vector::StepOp::create(b, b.vec(b.getIndexType()));
  Value first = origin[step.rowsRun ? 3 : 2], firstRunning = origin[step.rowsRun ? 2 : 3];
  b.loop(b.index(0), step.paddedLanes, lanes, [&](Value lane) {
    Value positions = arith::AddIOp::create(b, b.splat(b.add(first, lane)), steps);
    Value exist = b.maskBelow(b.sub(step.lanes.value, lane));
    regions.forEach([&](RegionVectorizer &region) { region.beginLanes(positions, exist); });
    Value isKept;
    if (captured && regions.grad)
      regions.grad->contribute = [&](ContributeOp contribution, Value addend, ArrayRef<Value> at) {
        emitContribution(b, captured, addend, findPlace(b, contribution, captured, at), isKept,
                         b.sub(step.lanes.value, lane));
      };
    PerRow row;
    if (!step.rowsRun)
      row = step.rows.map([&](Value rows) { return b.loadMasked(rows, {lane}, exist); });
    SmallVector<Value> zeros(rowSums.size(), b.floatLike(b.f32Vec(), 0));
    auto emitTerm = [&](Value term, ValueRange running) -> SmallVector<Value> {
      if (step.rowsRun)
        row = step.rows.map([&](Value rows) { return b.splat(b.load(rows, {term})); });
      Value inScores = b.loadVector(step.scores.product, {term, lane});
      Value inGradients = b.loadVector(step.gradients.product, {term, lane});
      auto [p, weight, ds] = emitElement(b, regions, mayDrop, b.add(firstRunning, term), inScores,
                                         inGradients, exist, row, isKept);
      if (!running.empty())
        return {arith::AddFOp::create(b, running[0], p), arith::AddFOp::create(b, running[1], ds)};
      if (captured)
        return {};
      b.storeVector(ds, step.gradients.product, {term, lane});
      if (step.rowsRun)
        b.storeVector(weight, step.scores.product, {term, lane});
      return {};
    };
    SmallVector<Value> ofTile = b.loop(b.index(0), step.terms.value, 1, zeros, emitTerm);
    for (auto [sum, value] : llvm::zip_equal(rowSums, ofTile)) {
      Value old = b.loadMasked(sum, {lane}, exist);
      b.storeMasked(arith::AddFOp::create(b, old, value), sum, {lane}, exist);
    }
  });
}

/// acc[lane][:] += sum over what runs of weights[term][lane] * matrix[term][:].
static void emitSum(Emitter &b, GradStep &step, Value weights, Value matrix, Value source,
                    Value acc, Shared &shared, Value kept = {}) {
  callSums(b,
           {.weights = weights,
            .terms = step.terms,
            .acc = acc,
            .rows = step.lanes,
            .columns = cast<MemRefType>(acc.getType()).getDimSize(1),
            .matrix = matrix,
            .isScratch = matrix != source,
            .kept = kept,
            .factor = Value()},
           shared.functions);
}

/// acc[row][:] += sum over the keys in lanes of dS[row][key] * key[:].
static void emitRowSums(Emitter &b, GradStep &step, Value acc, bool mayDrop, Shared &shared) {
  Value key = step.scores.fixed, kept;
  if (mayDrop) {
    kept = shared.scratch.get(step.op, "kept", {step.laneStride});
    emitKeptLanes(b, step.gradients.product, step.terms.value, step.paddedLanes, /*nothing=*/0,
                  kept);
  }
  Value matrix = shared.packer.copy(step.op, key, step.lanes, b.target, shared.scratch);
  callSums(b,
           {.weights = step.gradients.product,
            .termsAreColumns = true,
            .terms = step.lanes,
            .acc = acc,
            .isFar = true,
            .rows = step.terms,
            .columns = cast<MemRefType>(acc.getType()).getDimSize(1),
            .matrix = matrix,
            .isScratch = true,
            .kept = kept,
            .factor = Value()},
           shared.functions);
}

template <typename OpT> static LogicalResult checkOperands(OpT op) {
  for (auto [name, value] : {std::pair<StringRef, Value>{"query", op.getQuery()},
                             {"key", op.getKey()},
                             {"value", op.getValue()},
                             {"d_output", op.getDOutput()}})
    if (failed(checkColumns(op, name, value)))
      return failure();
  if constexpr (std::is_same_v<OpT, GradDeltaStepOp>) {
    if (failed(checkContiguous(op, "weight", op.getWeight())) ||
        failed(checkContiguous(op, "residual", op.getResidual())))
      return failure();
  } else if (!isa<GradCapturedStepOp>(op))
    for (Value sum : op.getDpsInits())
      if (failed(checkColumns(op, "a sum", sum)))
        return failure();
  if (op.getNegLow2() && failed(checkContiguous(op, "neg_low2", op.getNegLow2())))
    return failure();
  return success(succeeded(checkContiguous(op, "neg_lse2", op.getNegLse2())) &&
                 succeeded(checkContiguous(op, "delta", op.getDelta())));
}

template <typename OpT>
static LogicalResult lower(OpT op, bool rowsRun, const VectorTarget &target, Shared &shared) {
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  if (failed(checkOperands(op)))
    return failure();
  GradStep step = describe(op, rowsRun);
  FailureOr<Extent> lanes = getBoundedExtent(b, op, rowsRun ? "keys" : "rows", step.scores.fixed);
  FailureOr<Extent> terms = getBoundedExtent(b, op, rowsRun ? "rows" : "keys", step.scores.running);
  if (failed(lanes) || failed(terms))
    return failure();
  auto isEmpty = [](Extent extent) { return extent.isStatic && extent.bound == 0; };
  if (isEmpty(*lanes) || isEmpty(*terms)) {
    op.erase();
    return success();
  }
  step.lanes = *lanes;
  step.terms = *terms;
  step.paddedLanes = b.alignUp(step.lanes.value, target.lanes);
  step.laneStride = llvm::alignTo(step.lanes.bound, target.lanes);
  Value scoreSource = step.scores.running, gradientSource = step.gradients.running;
  // Without a score region the forward pass has log2(e) in the factor of the dot products.
  Value scale = step.scale;
  if (op.getNegLow2() && op.getScore().empty())
    scale = arith::MulFOp::create(b, scale, b.f32(llvm::numbers::log2e));
  emitProduct(b, step, step.scores, "scores", scale, /*mayPair=*/true, shared);
  emitProduct(b, step, step.gradients, "gradients", /*scale=*/Value(), /*mayPair=*/false, shared);
  SmallVector<Value> origin;
  for (OpFoldResult position : op.getMixedOrigin())
    origin.push_back(getValueOrCreateConstantIndexOp(b, op.getLoc(), position));
  if constexpr (std::is_same_v<OpT, GradCapturedStepOp>) {
    emitElements(b, step, op.getScore(), op.getMask(), op.getGrad(), /*mayDrop=*/true, origin,
                 op.getSum(), /*rowSums=*/{}, shared);
    op.erase();
    return success();
  }
  if constexpr (std::is_same_v<OpT, GradDeltaStepOp>) {
    emitElements(b, step, op.getScore(), op.getMask(), op.getGrad(), /*mayDrop=*/true, origin,
                 /*captured=*/Value(), op.getDpsInits(), shared);
    op.erase();
    return success();
  }
  bool mayDrop = !op.getMask().empty() || mayDropKeys(op.getScore());
  emitElements(b, step, op.getScore(), op.getMask(), op.getGrad(), mayDrop, origin,
               /*captured=*/Value(), /*rowSums=*/{}, shared);
  if constexpr (std::is_same_v<OpT, GradFusedStepOp>)
    emitRowSums(b, step, op.getAccQuery(), mayDrop, shared);
  // Keys are factors of dS, and those that no row keeps may be anything.
  Value kept;
  if (mayDrop && !rowsRun) {
    kept = shared.scratch.get(op, "kept", {step.terms.bound});
    emitKept(b, step.gradients.product, step.terms.value, step.paddedLanes, /*nothing=*/0, kept);
  }
  OperandRange sums = op.getDpsInits().take_back(rowsRun ? 2 : 1);
  emitSum(b, step, step.gradients.product, step.scores.running, scoreSource, sums[0], shared, kept);
  if (rowsRun)
    emitSum(b, step, step.scores.product, step.gradients.running, gradientSource, sums[1], shared);
  op.erase();
  return success();
}

LogicalResult attn::lowerGradStep(GradDeltaStepOp op, const VectorTarget &target, Shared &shared) {
  return lower(op, /*rowsRun=*/false, target, shared);
}

LogicalResult attn::lowerGradStep(GradQueryStepOp op, const VectorTarget &target, Shared &shared) {
  return lower(op, /*rowsRun=*/false, target, shared);
}

LogicalResult attn::lowerGradStep(GradKeyValueStepOp op, const VectorTarget &target,
                                  Shared &shared) {
  return lower(op, /*rowsRun=*/true, target, shared);
}

LogicalResult attn::lowerGradStep(GradFusedStepOp op, const VectorTarget &target, Shared &shared) {
  return lower(op, /*rowsRun=*/true, target, shared);
}

LogicalResult attn::lowerGradStep(GradCapturedStepOp op, const VectorTarget &target,
                                  Shared &shared) {
  return lower(op, /*rowsRun=*/false, target, shared);
}
