//===- GradStep.cpp - one step of a sum of gradients on tiles -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The steps over keys and over rows are one program with the roles exchanged: tiles have what stays
// for the block in their rows and what runs in their columns.
//
//               rows stay                      keys stay
//   scores      S  = Q K^T                     S^T  = K Q^T
//   dP          dP = dO V^T                    dP^T = V dO^T
//   weights     P  = exp2(T log2 e + neg_lse2) the same, with neg_lse2 of its columns; where there
//               is a neg_low2, in the order that attn.row_delta states
//   gradients   dS = grad(S, P (dP - delta))   the same, dP^T starts with - delta
//   sums        dQ += dS K                     dV += P^T dO, dK += dS^T Q
//
// So P and dS are left operands of products in registers, as they were computed. The product for dV
// comes before dS is computed, which then has company. Where blocks of keys have dQ too, all three
// products come after dS, the product for dQ first: then dQ goes to memory during the other two.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "lib/Schedule/GPUBlock.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <optional>

using namespace mlir;
using namespace attn;

namespace {
/// Weights, weights times their factors, and gradients of scores, of type f32.
struct Elements {
  Value p, weights, ds;
};

template <typename OpT> class GradStep {
public:
  GradStep(BlockConverter &block, OpT op, bool rowsRun)
      : block(block), b(block.builder), op(op), rowsRun(rowsRun) {}

  /// Finds the operands; false with a diagnostic if one has no form here.
  LogicalResult prepare();
  /// S and dP.
  LogicalResult emitProducts();
  /// P of S, and what multiplies values.
  LogicalResult emitWeights();
  /// dS of P.
  LogicalResult emitGradients();

  bool isOfSequences() { return getLie(*block.findSlice(op.getKey())) == Lie::InSequences; }

  /// Whether the product for dV comes after the product for dQ. Where tiles are squares, a mask
  /// leaves no registers for P so long.
  bool addsValuesLate() {
    return block.querySum && (block.querySum->isTransposed || op.getMask().empty());
  }

  /// Of the element type of the inputs.
  Value narrow(Value tile) { return b.narrow(tile, element); }
  /// The opposite.
  Value widen(Value tile) {
    auto type = cast<RankedTensorType>(tile.getType()).clone(b.getF32Type());
    return tile.getType() == type ? tile : arith::ExtFOp::create(b, type, tile).getResult();
  }
  Value multiply(Value weights, Value matrix, Value sum) {
    return tile::MmaOp::create(b, cast<RankedTensorType>(sum.getType()), weights, matrix, sum,
                               /*transposeLhs=*/false, /*transposeRhs=*/false);
  }
  /// The keys as a factor of dS: those that no row keeps may be anything.
  Value clearDropped(Value keys, Value gradients);
  /// dS K of the block's keys, from dS^T as a factor.
  Value multiplyForQueries(Value gradients);
  /// Adds it to what other blocks add to.
  void addToQueries(Value product);
  /// Adds what the region contributes, but for sums of rows, of which those that are `unadded` go
  /// on.
  LogicalResult addContributions(MutableArrayRef<Value> unadded);

  BlockConverter &block;
  TileBuilder &b;
  OpT op;
  bool rowsRun;
  Value query, key, value, gradient;
  SmallVector<Value> sums;
  Elements elements;

private:
  /// Whether keys may be dropped by the step itself.
  bool mayDrop() { return !op.getMask().empty() || mayDropKeys(op.getScore()); }
  /// The block's keys with zeros after their last column, once before the loops. Where a step may
  /// drop keys, numbers that are NaN become zeros too.
  Value loadFactorKeys(int64_t columns);
  Value load(TypedValue<ShapedType> operand, bool runs);
  /// neg_lse2 or delta, or the opposite, as a tile; of rows within the tensors where the tile of
  /// what runs may end early.
  Value loadPerRow(Value operand, bool isNegated = false);
  /// The memory that holds the operand, with zeros after the last row, or null.
  const RowNumbers *findRowNumbers(Value operand) {
    const ArgumentSlice *slice = block.findSlice(operand);
    return slice ? block.findRowNumbers(slice->memref) : nullptr;
  }
  /// Whether all steps of the grid are without a mask, in one loop.
  bool hasOneKind() {
    auto isMasked = [](OpT step) {
      return step.getMask().empty() ? WalkResult::advance() : WalkResult::interrupt();
    };
    return !op->template getParentOfType<scf::ForallOp>().walk(isMasked).wasInterrupted();
  }
  /// With -inf after the end, where that ends the sums.
  Value loadNegLse2();
  /// The logarithm of P in base 2, of T and the numbers of rows.
  Value emitExponent(Value t, Value factor);
  /// Coordinates along rows or keys, within the tensors where `isClamped`.
  Value emitPositions(bool ofRows, bool isClamped);
  LogicalResult emitKeep();
  LogicalResult emitFactors();
  /// Whether rows or keys are before their end.
  Value emitIsInside(bool ofRows);
  /// dP - delta, which the product may be.
  Value emitDifference();
  /// Whether rows after the end, which are zeros, add nothing because of their neg_lse2: -inf, or a
  /// zero, which makes their weights 1.
  bool endsByWeight() { return startsWithRows && isShort && hasPlainWeights(); }
  /// Whether a dot product of 0 has an exponent of neg_lse2: the scale is a number, and no region
  /// comes between them.
  bool hasPlainWeights();

  Type element;
  RankedTensorType shape;
  /// Whether dP^T starts with -delta of its columns. Where a product sums over padding too, ptxas
  /// finds no registers for that.
  bool startsWithRows = false;
  /// Whether the tile of what runs may end early.
  bool isShort = false;
  Value runningSize, fixedSize;
  SmallVector<Value> at;
  Value scale;
  /// The dot products, scaled where a region asks for them, and dP.
  Value scores, outputGradients;
  SmallVector<Value> coordinates;
  Value keep, isKept, keepsAll;
};
} // namespace

template <typename OpT> Value GradStep<OpT>::load(TypedValue<ShapedType> operand, bool runs) {
  const ArgumentSlice *slice = block.findSlice(operand);
  if (!slice) {
    op.emitOpError(
        "expected query, key, value and d_output to be slices of the kernel's arguments");
    return {};
  }
  (runs ? runningSize : fixedSize) = slice->sizes.front();
  // After the end of a sequence are rows of the next one. A block reads its own tiles once. They
  // are factors of sums of others where it adds to them.
  bool clears = getLie(*slice) == Lie::InSequences && (runs ? isShort : bool(block.querySum));
  OpBuilder::InsertionGuard guard(b);
  if (clears && !runs)
    block.moveBeforeLoops();
  int64_t rows = shape.getDimSize(runs ? 1 : 0);
  Value tile = b.load(*slice, {rows, operand.getType().getDimSize(1)});
  if (!clears)
    return tile;
  Value size = runs ? runningSize : fixedSize;
  Value whole = arith::ConstantIndexOp::create(b, rows);
  Value ends = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, size, whole);
  return tile::ClearUnreadOp::create(b, tile.getType(), tile, /*by=*/Value(), size, ends)
      .getResult();
}

template <typename OpT> Value GradStep<OpT>::loadPerRow(Value operand, bool isNegated) {
  const ArgumentSlice *slice = block.findSlice(operand);
  if (!slice) {
    op.emitOpError("expected numbers of rows to be slices of the kernel's arguments");
    return {};
  }
  const RowNumbers *numbers = findRowNumbers(operand);
  bool isOpposite = isNegated != (numbers && numbers->isNegated);
  if (!rowsRun) {
    // They stay for the block: read once, before the loops.
    OpBuilder::InsertionGuard guard(b);
    block.moveBeforeLoops();
    Value row = negateIf(b, isOpposite, b.load(*slice, {shape.getDimSize(0)}));
    return b.rowsToTile(row, shape.getDimSize(1));
  }
  // They come with the tile of queries.
  if (numbers)
    return negateIf(b, isOpposite,
                    tile::LoadColumnsOp::create(b, shape, slice->memref, slice->position));
  SmallVector<Value> indices = slice->position;
  auto positions = shape.clone(b.getIndexType());
  Value column = tile::CoordOp::create(b, positions, 1, indices.back());
  if (isShort)
    column = b.clampBelow(column, indices.back(), slice->sizes.front());
  indices.back() = column;
  return negateIf(b, isOpposite, tile::GatherOp::create(b, shape, slice->memref, indices));
}

template <typename OpT> Value GradStep<OpT>::loadNegLse2() {
  Value negLse2 = loadPerRow(op.getNegLse2());
  if (!negLse2 || !endsByWeight() || findRowNumbers(op.getNegLse2()))
    return negLse2;
  return arith::SelectOp::create(b, emitIsInside(rowsRun), negLse2,
                                 b.constant(kLowest, shape.getShape()));
}

template <typename OpT> LogicalResult GradStep<OpT>::prepare() {
  element = cast<ShapedType>(op.getQuery().getType()).getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return op.emitOpError("expected f16, bf16 or f32 elements on this target, got ") << element;
  for (Value matrix : {op.getQuery(), op.getKey(), op.getValue(), op.getDOutput()}) {
    auto type = cast<ShapedType>(matrix.getType());
    if (type.getElementType() != element)
      return op.emitOpError("expected query, key, value and d_output of one element type, got ")
             << op.getQuery().getType() << " and " << type;
    if (type.isDynamicDim(1))
      return op.emitOpError("expected static D and Dv, got ") << type;
  }
  auto schedule = op->template getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  int64_t running = !schedule ? block.rows : rowsRun ? schedule->blockM : schedule->blockN;
  shape = RankedTensorType::get({block.rows, running}, b.getF32Type());
  TypedValue<ShapedType> runningMatrix = rowsRun ? op.getQuery() : op.getKey();
  isShort = runningMatrix.getType().getDimSize(0) != running;
  // Rows or keys after the tile would add nothing.
  if (runningMatrix.getType().getDimSize(0) > running)
    return op.emitOpError("expected at most the ")
           << running << " rows of a tile, got " << runningMatrix.getType();
  int64_t step =
      plan::getMachine(op).product.sumBytes / getFactors(element.getIntOrFloatBitWidth()).bytes;
  startsWithRows = rowsRun && op.getQuery().getType().getDimSize(1) % step == 0 &&
                   op.getValue().getType().getDimSize(1) % step == 0 && !getFactor(op.getScore());
  for (OpFoldResult position : op.getMixedOrigin())
    at.push_back(block.lookup(op, position));
  // The sum of a captured tensor is in memory.
  if (!isa<GradCapturedStepOp>(op))
    for (Value sum : op.getDpsInits()) {
      sums.push_back(block.lookupInRegisters(op, sum));
      if (!sums.back())
        return failure();
    }
  if (llvm::is_contained(at, Value()) || failed(checkRows(op, block.rows, sums)))
    return failure();
  query = load(op.getQuery(), rowsRun);
  key = load(op.getKey(), !rowsRun);
  value = load(op.getValue(), !rowsRun);
  gradient = load(op.getDOutput(), rowsRun);
  return success(query && key && value && gradient);
}

template <typename OpT> Value GradStep<OpT>::emitPositions(bool ofRows, bool isClamped) {
  bool runs = ofRows == rowsRun;
  Value first = at[ofRows ? 2 : 3];
  Value positions = tile::CoordOp::create(b, shape.clone(b.getIndexType()), runs ? 1 : 0, first);
  if (!isClamped || (runs && !isShort))
    return positions;
  return b.clampBelow(positions, first, runs ? runningSize : fixedSize);
}

template <typename OpT> LogicalResult GradStep<OpT>::emitKeep() {
  if (!op.getMask().empty()) {
    keepsAll = isShort ? Value() : findKeepsAll(op.getMask());
    SmallVector<Value> arguments = {at[0], at[1], coordinates[0], coordinates[1]};
    keep = inlineRegion(block, op.getMask(), arguments, shape);
    if (!keep)
      return failure();
  }
  auto restrict = [&](Value isInside) {
    keep = keep ? arith::AndIOp::create(b, keep, isInside).getResult() : isInside;
  };
  if (isShort && !endsByWeight())
    restrict(emitIsInside(/*ofRows=*/rowsRun));
  // A region may make NaN of keys after the last.
  if (block.querySum && !(op.getScore().empty() && op.getGrad().empty()))
    restrict(emitIsInside(/*ofRows=*/false));
  return success();
}

template <typename OpT> Value GradStep<OpT>::emitIsInside(bool ofRows) {
  Value column = emitPositions(ofRows, /*isClamped=*/false);
  Value end = b.createOrFold<arith::AddIOp>(at[ofRows ? 2 : 3],
                                            ofRows == rowsRun ? runningSize : fixedSize);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, column,
                               b.splat(end, shape.getShape()));
}

template <typename OpT> LogicalResult GradStep<OpT>::emitProducts() {
  scale = block.lookup(op, op.getScale());
  // Read after the product, deltas would take registers, and an operation for each element.
  Value start = startsWithRows ? loadPerRow(op.getDelta(), /*isNegated=*/true) : Value();
  if (!scale || (startsWithRows && !start))
    return failure();
  auto multiplyTransposed = [&](Value rowsOf, Value keysOf, Value acc) -> Value {
    return tile::MmaOp::create(b, shape, rowsRun ? keysOf : rowsOf, rowsRun ? rowsOf : keysOf, acc,
                               /*transposeLhs=*/false, /*transposeRhs=*/true);
  };
  scores = multiplyTransposed(query, key, /*acc=*/{});
  outputGradients = multiplyTransposed(gradient, value, start);
  return success();
}

template <typename OpT> bool GradStep<OpT>::hasPlainWeights() {
  FloatAttr constant;
  return op.getScore().empty() && op.getGrad().empty() &&
         matchPattern(op.getScale(), m_Constant(&constant)) &&
         std::isfinite(constant.getValueAsDouble() * llvm::numbers::log2e);
}

template <typename OpT> Value GradStep<OpT>::emitExponent(Value t, Value factor) {
  // Read when the scores are there: in the meantime a thread would need registers for them.
  Value negLse2 = loadNegLse2();
  if (!negLse2)
    return {};
  Value factors = b.splat(factor, shape.getShape());
  // Products of 16 bits are seldom so large that their rows need neg_low2, and then the forward
  // pass, which multiplies and subtracts in one instruction, rounds otherwise.
  if (!op.getNegLow2() || (op.getScore().empty() && !element.isF32()))
    return math::FmaOp::create(b, t, factors, negLse2);
  Value negLow2 = loadPerRow(op.getNegLow2());
  if (!negLow2)
    return {};
  // As the forward pass rounds.
  Value t2 = arith::MulFOp::create(b, t, factors);
  return arith::AddFOp::create(b, arith::AddFOp::create(b, t2, negLse2), negLow2);
}

template <typename OpT> LogicalResult GradStep<OpT>::emitWeights() {
  bool hasRegions = !op.getScore().empty() || !op.getGrad().empty();
  bool reads = readsByPosition(op.getScore()) || readsByPosition(op.getMask()) ||
               readsByPosition(op.getGrad());
  // Rows that are not there would keep what no other does.
  coordinates = {emitPositions(/*ofRows=*/true, reads || !op.getMask().empty()),
                 emitPositions(/*ofRows=*/false, reads)};
  Value factor = arith::ConstantOp::create(b, b.getF32FloatAttr(llvm::numbers::log2e));
  Value t = scores;
  if (hasRegions)
    t = scores = arith::MulFOp::create(b, scores, b.splat(scale, shape.getShape()));
  else
    factor = b.createOrFold<arith::MulFOp>(scale, factor);
  if (!op.getScore().empty())
    t = inlineRegion(block, op.getScore(), {t, at[0], at[1], coordinates[0], coordinates[1]},
                     shape);
  if (!t || failed(emitKeep()))
    return failure();
  b.setLoc(op.getLoc());
  Value exponent = emitExponent(t, factor);
  if (!exponent)
    return failure();
  // g3: at most 1. Without regions no exponent is above 0 but for rounding, and those of keys after
  // the last, which are zeros as a factor of dS, and so need a finite weight. To the instruction
  // this is a modifier.
  if (hasRegions)
    exponent = arith::MinimumFOp::create(b, exponent, b.constant(0, shape.getShape()));
  else if (block.querySum)
    exponent = arith::NegFOp::create(b, math::AbsFOp::create(b, exponent));
  elements.p = math::Exp2Op::create(b, exponent);
  Value zero = b.constant(0, shape.getShape());
  if (keep)
    elements.p = arith::SelectOp::create(b, keep, elements.p, zero);
  // A thread has registers for half of P in addition to dP, where tiles are squares, loops are
  // many, or numbers say where sequences begin and end. One role hands P to another as products
  // take it.
  bool hasRoom = block.querySum && block.querySum->isTransposed && hasOneKind() && !mayDrop() &&
                 !isOfSequences();
  if (block.dividesSums || (block.querySum && !hasRoom))
    elements.p = widen(narrow(elements.p));
  // A kept element may have a weight of 0 and an infinite score.
  isKept = keep;
  if (mayDrop())
    isKept = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, elements.p, zero);
  return emitFactors();
}

/// g13: P * F for values, F * dP for scores; so a factor lives for one element at a time.
template <typename OpT> LogicalResult GradStep<OpT>::emitFactors() {
  elements.weights = elements.p;
  if (!getFactor(op.getScore()))
    return success();
  SmallVector<Value> arguments = {scores, at[0], at[1], coordinates[0], coordinates[1]};
  Value factors =
      inlineRegion(block, op.getScore(), arguments, shape, /*isFalse=*/Value(), /*yielded=*/1);
  if (!factors)
    return failure();
  b.setLoc(op.getLoc());
  elements.weights = arith::MulFOp::create(b, elements.p, factors);
  outputGradients = arith::MulFOp::create(b, outputGradients, factors);
  return success();
}

template <typename OpT>
LogicalResult GradStep<OpT>::addContributions(MutableArrayRef<Value> unadded) {
  Value zero = b.constant(0, shape.getShape());
  Value difference = emitDifference();
  if (!difference)
    return failure();
  // g7: nothing where P is 0, whatever else is no number there.
  Value isAdded = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, elements.p, zero);
  if (op.getQuery().getType().getDimSize(0) != block.rows)
    isAdded = arith::AndIOp::create(b, isAdded, emitIsInside(/*ofRows=*/true));
  Value dt =
      arith::SelectOp::create(b, isAdded, arith::MulFOp::create(b, elements.p, difference), zero);
  auto places = ArrayRef(block.captured->places);
  auto add = [&](ContributeOp contribution, Value addend, ValueRange indices) -> LogicalResult {
    if (places.empty())
      return contribution.emitOpError("expected as many contributions as other steps of the grid "
                                      "have, got more");
    if (!isa<RankedTensorType>(addend.getType()))
      addend = b.splat(addend, shape.getShape());
    SharedPlace place = places.front();
    places = places.drop_front();
    auto scatter = [&](Value value, Value keep) {
      tile::ScatterAddOp::create(b, value, block.captured->part.memref,
                                 getPlace(block, contribution, indices, shape), keep);
      return success();
    };
    if (place == SharedPlace::Element)
      return scatter(addend, isAdded);
    addend = arith::SelectOp::create(b, isAdded, addend, zero);
    if (place == SharedPlace::Diagonal) {
      // Where a row is a lane's, diagonals cross lanes.
      if (plan::getMachine(op).product.form == Product::Form::Tensor)
        return scatter(addend, isAdded);
      // A diagonal's first element is inside of the tensors if any is.
      Value sums = tile::SumDiagonalsOp::create(b, addend);
      return scatter(sums, arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, sums, zero));
    }
    Value &sum = unadded.front();
    unadded = unadded.drop_front();
    sum = tile::ReduceOp::create(b, cast<RankedTensorType>(sum.getType()), tile::Combiner::Add,
                                 addend, sum);
    return success();
  };
  DenseSet<Operation *> needed;
  for (Operation &inner : op.getGrad().front())
    if (!inner.hasTrait<OpTrait::IsTerminator>())
      needed.insert(&inner);
  return inlineContributions(block, op.getGrad(),
                             {scores, dt, at[0], at[1], coordinates[0], coordinates[1]}, shape,
                             needed, add);
}

template <typename OpT> Value GradStep<OpT>::emitDifference() {
  if (startsWithRows)
    return outputGradients;
  Value delta = loadPerRow(op.getDelta());
  return delta ? arith::SubFOp::create(b, outputGradients, delta).getResult() : Value();
}

template <typename OpT> LogicalResult GradStep<OpT>::emitGradients() {
  Value zero = b.constant(0, shape.getShape());
  auto dropUnkept = [&](Value tile) -> Value {
    return isKept ? arith::SelectOp::create(b, isKept, tile, zero).getResult() : tile;
  };
  Value difference = emitDifference();
  if (!difference)
    return failure();
  elements.ds = dropUnkept(arith::MulFOp::create(b, elements.p, difference));
  if (op.getGrad().empty())
    return success();
  elements.ds =
      inlineRegion(block, op.getGrad(),
                   {scores, elements.ds, at[0], at[1], coordinates[0], coordinates[1]}, shape);
  if (!elements.ds)
    return failure();
  b.setLoc(op.getLoc());
  elements.ds = dropUnkept(elements.ds);
  return success();
}

template <typename OpT> Value GradStep<OpT>::clearDropped(Value keys, Value gradients) {
  bool dropsItself = dropsKeysItself(op.getScore());
  if (!dropsItself && op.getMask().empty())
    return keys;
  Value clears;
  if (keepsAll && !dropsItself) {
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    clears = arith::XOrIOp::create(b, block.lookup(op, keepsAll), yes);
  }
  return tile::ClearUnreadOp::create(b, keys.getType(), keys, gradients, /*from=*/Value(), clears)
      .getResult();
}

template <typename OpT> Value GradStep<OpT>::loadFactorKeys(int64_t columns) {
  OpBuilder::InsertionGuard guard(b);
  block.moveBeforeLoops();
  const ArgumentSlice &slice = *block.findSlice(op.getKey());
  int64_t keys[] = {shape.getDimSize(0), columns};
  Value tile = b.load(slice, keys);
  if (!mayDrop())
    return tile;
  Value wide = widen(tile);
  Value infinity = b.constant(std::numeric_limits<double>::infinity(), keys);
  Value isFinite =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, wide), infinity);
  return narrow(arith::SelectOp::create(b, isFinite, wide, b.constant(0, keys)));
}

template <typename OpT> Value GradStep<OpT>::multiplyForQueries(Value gradients) {
  const QuerySum &sum = *block.querySum;
  int64_t numColumns = op.getQuery().getType().getDimSize(1);
  // The product has the rows that all products of the block have.
  int64_t columns = sum.isTransposed ? block.rows : numColumns;
  // A dropped weight is 0, but not its product with what is no number.
  Value keys = mayDrop() || columns != numColumns ? loadFactorKeys(columns) : key;
  auto type = RankedTensorType::get(
      {sum.isTransposed ? columns : sum.running, sum.isTransposed ? sum.running : columns},
      b.getF32Type());
  return tile::MmaOp::create(b, type, sum.isTransposed ? keys : gradients,
                             sum.isTransposed ? gradients : keys, /*acc=*/Value(),
                             /*transposeLhs=*/true, /*transposeRhs=*/false);
}

template <typename OpT> void GradStep<OpT>::addToQueries(Value product) {
  const QuerySum &sum = *block.querySum;
  SmallVector<Value> position = block.findSlice(op.getQuery())->position;
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value rows = arith::ConstantIndexOp::create(b, sum.running);
  position[2] = b.createOrFold<arith::DivUIOp>(position[2], rows);
  position[3] = zero;
  position.push_back(zero);
  tile::StoreOp::create(b, product, sum.memref, position, /*add=*/true);
}

LogicalResult attn::convertGradStep(BlockConverter &block, GradDeltaStepOp op) {
  GradStep step(block, op, /*rowsRun=*/false);
  if (failed(step.prepare()) || failed(step.emitProducts()) || failed(step.emitWeights()) ||
      failed(step.emitGradients()))
    return failure();
  Value tiles[] = {step.elements.p, step.elements.ds};
  for (auto [result, tile, sum] : llvm::zip_equal(op->getResults(), tiles, step.sums))
    block.mapping.map(result, tile::ReduceOp::create(step.b, cast<RankedTensorType>(sum.getType()),
                                                     tile::Combiner::Add, tile, sum)
                                  .getResult());
  return success();
}

LogicalResult attn::convertGradStep(BlockConverter &block, GradQueryStepOp op) {
  GradStep step(block, op, /*rowsRun=*/false);
  if (failed(step.prepare()) || failed(step.emitProducts()) || failed(step.emitWeights()) ||
      failed(step.emitGradients()))
    return failure();
  Value gradients = step.narrow(step.elements.ds);
  Value keys = step.clearDropped(step.key, gradients);
  block.mapping.map(op->getResult(0), step.multiply(gradients, keys, step.sums[0]));
  return success();
}

LogicalResult attn::convertGradStep(BlockConverter &block, GradKeyValueStepOp op) {
  GradStep step(block, op, /*rowsRun=*/true);
  if (failed(step.prepare()) || failed(step.emitProducts()) || failed(step.emitWeights()))
    return failure();
  bool isLate = step.addsValuesLate();
  auto addValues = [&](Value weights) {
    return step.multiply(weights, step.gradient, step.sums[1]);
  };
  Value valueSum = isLate ? Value() : addValues(step.narrow(step.elements.weights));
  if (failed(step.emitGradients()))
    return failure();
  Value gradients = step.narrow(step.elements.ds), queries;
  Value weights = isLate ? step.narrow(step.elements.weights) : Value();
  if (block.querySum)
    queries = step.multiplyForQueries(gradients);
  if (isLate)
    valueSum = addValues(weights);
  Value results[] = {step.multiply(gradients, step.query, step.sums[0]), valueSum};
  if (queries)
    step.addToQueries(queries);
  block.mapping.map(op->getResults(), ValueRange(results));
  return success();
}

LogicalResult attn::convertGradStep(BlockConverter &block, GradCapturedStepOp op) {
  GradStep step(block, op, /*rowsRun=*/false);
  SmallVector<Value> unadded = block.getUnadded(op.getSum());
  if (failed(step.prepare()) || failed(step.emitProducts()) || failed(step.emitWeights()) ||
      failed(step.addContributions(unadded)))
    return failure();
  block.setUnadded(op->getResult(0), unadded);
  return success();
}
