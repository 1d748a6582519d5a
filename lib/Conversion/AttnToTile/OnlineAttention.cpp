//===- OnlineAttention.cpp - one step of the online softmax on tiles ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Plan/IR/PlanDialect.h"
#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToTile/KeptColumns.h"
#include "lib/Conversion/AttnToTile/Recipes.h"
#include "lib/Conversion/AttnToTile/Regions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

std::optional<double> attn::findFoldedScale(scf::ForallOp grid) {
  std::optional<double> scale;
  bool isFoldable = true;
  grid.walk([&](OnlineAttentionOp step) {
    FloatAttr constant;
    // The backward pass rounds scores of f32 as the forward pass does.
    isFoldable &= step.getScore().empty() &&
                  !cast<ShapedType>(step.getQuery().getType()).getElementType().isF32() &&
                  matchPattern(step.getScale(), m_Constant(&constant));
    if (!isFoldable)
      return;
    double value = constant.getValueAsDouble();
    isFoldable &= value > 0 && std::isnormal(float(value)) && (!scale || *scale == value);
    scale = value;
  });
  return isFoldable ? scale : std::nullopt;
}

namespace {
/// Which values of a step's tile may be those of keys that no row keeps. They may be anything.
/// UnlessSquare: any, in calls with fewer rows than keys or more.
enum class Unread { None, BeforeFirstKey, UnlessSquare, Any };
} // namespace

static Unread findUnread(OnlineAttentionOp op) {
  if (dropsKeysItself(op.getScore()))
    return Unread::Any;
  if (op.getMask().empty())
    return Unread::None;
  auto kept = op->getAttrOfType<StringAttr>(kKeptKeysAttrName);
  if (kept && kept == kKeepsPrefix)
    return Unread::None;
  if (kept && kept == kKeepsDiagonal)
    return Unread::UnlessSquare;
  return kept ? Unread::BeforeFirstKey : Unread::Any;
}

/// Whether the bits of a row are its own, whatever other rows of its tile keep (s22).
static bool hasFixedSplit(OnlineAttentionOp op) {
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  return schedule && schedule->fixedSplit > 0;
}

/// By which factor 2^slack a row's maximum may lag; below 0: every step scales every row, by 1 but
/// for rounding where a row keeps nothing of a tile, which has to change no bit of a fixed split.
static int64_t getSlack(OnlineAttentionOp op) {
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  int64_t slack = schedule ? schedule->slack : -1;
  return hasFixedSplit(op) ? std::max<int64_t>(slack, 0) : slack;
}

/// How many keys a step's tile has at most.
static int64_t getTileKeys(BlockConverter &block, OnlineAttentionOp op) {
  auto schedule = op->getAttrOfType<ScheduleAttr>(kScheduleAttrName);
  return schedule ? schedule->blockN : block.rows;
}

/// Of 8 bits, as products of a machine may read them.
static bool isNarrow(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

/// Weights of 8 bits are at most 2^8, of the 448 that they may be: the least of them are as many
/// times more exact.
static constexpr int64_t kNarrowBits = 8;

namespace {
struct RowWeights {
  Value weights, factor;
};

/// The maxima to which the weights of rows are relative, and where they differ from the maxima
/// before; null: everywhere.
struct RowMaxima {
  Value max, raised;
};
} // namespace

/// Of the old maxima and those of a tile. With a slack the old one stays until it is 2^slack times
/// too small: weights are at most that then, and all of a row are relative to the same.
/// All maxima are `lead` less than they are, in base 2, and weights so much larger.
static RowMaxima emitRowMaxima(TileBuilder &b, std::optional<double> foldedScale, int64_t slack,
                               int64_t lead, Value old, Value ofTile) {
  if (lead > 0)
    ofTile = arith::SubFOp::create(b, ofTile,
                                   b.constant(double(lead) / foldedScale.value_or(1.0),
                                              cast<RankedTensorType>(ofTile.getType()).getShape()));
  if (slack < 0)
    return {arith::MaximumFOp::create(b, old, ofTile), Value()};
  ArrayRef<int64_t> rows = cast<RankedTensorType>(old.getType()).getShape();
  Value raised = slack == 0
                     ? arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, ofTile, old)
                     : arith::CmpFOp::create(b, arith::CmpFPredicate::OGT,
                                             arith::SubFOp::create(b, ofTile, old),
                                             b.constant(slack / foldedScale.value_or(1.0), rows));
  return {arith::SelectOp::create(b, raised, ofTile, old), raised};
}

/// Weights relative to the maximum, 2^(t - max), and the factor 2^(old - max) of what was computed
/// relative to the old one. A row that keeps nothing has maximum -inf; subtracting 0 instead makes
/// its weights 0, not NaN.
///
/// With a folded scale c, t and the maxima are not scaled yet: t * c - max * c is one multiply-add.
/// Where the product max * c is rounded, all weights of the row share the error as a factor, which
/// the sum cancels. It is at most 2^4 up to |max * c| = 2^28. Beyond, scores differ by more than
/// any weight can show or not at all, so that c may be rounded to a power of two, whose products
/// are exact.
static RowWeights emitRowWeights(TileBuilder &b, std::optional<double> foldedScale, Value t,
                                 Value old, Value max) {
  auto type = cast<RankedTensorType>(t.getType());
  ArrayRef<int64_t> rows = cast<RankedTensorType>(max.getType()).getShape();
  int64_t columns = type.getDimSize(1);
  Value shift = arith::SelectOp::create(b, b.isEqual(max, kLowest), b.constant(0.0, rows), max);
  if (!foldedScale) {
    Value factor = math::Exp2Op::create(b, arith::SubFOp::create(b, old, shift));
    return {math::Exp2Op::create(b, arith::SubFOp::create(b, t, b.rowsToTile(shift, columns))),
            factor};
  }
  Value scale = b.constant(*foldedScale, rows);
  Value magnitude = math::AbsFOp::create(b, arith::MulFOp::create(b, shift, scale));
  Value isHuge =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, magnitude, b.constant(0x1p28, rows));
  Value rounded = b.constant(std::exp2(std::floor(std::log2(*foldedScale))), rows);
  Value c = arith::SelectOp::create(b, isHuge, rounded, scale);
  Value negative = arith::NegFOp::create(b, arith::MulFOp::create(b, shift, c));
  Value factor =
      math::Exp2Op::create(b, arith::AddFOp::create(b, arith::MulFOp::create(b, old, c), negative));
  Value exponent =
      math::FmaOp::create(b, t, b.rowsToTile(c, columns), b.rowsToTile(negative, columns));
  return {math::Exp2Op::create(b, exponent), factor};
}

/// Checks that the values which a step reads and carries fit the tiles of its grid and its
/// schedule. Passes make them fit; programs of this room may also be written by hand.
static LogicalResult checkStep(OnlineAttentionOp op, int64_t rows, int64_t keys,
                               ArrayRef<Value> state) {
  ShapedType q = op.getQuery().getType(), k = op.getKey().getType(), v = op.getValue().getType();
  Type element = q.getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32() && !isNarrow(element))
    return op.emitOpError(
               "expected f8E4M3FN, f8E5M2, f16, bf16 or f32 elements on this target, got ")
           << element;
  if (k.getElementType() != element || v.getElementType() != element)
    return op.emitOpError("expected query, key and value of one element type, got ")
           << element << ", " << k.getElementType() << " and " << v.getElementType();
  if (q.isDynamicDim(1) || v.isDynamicDim(1))
    return op.emitOpError("expected static D and Dv, got ") << q << " and " << v;
  // A tile holds the keys of a step, or some would have no weight.
  if (std::max(k.getDimSize(0), v.getDimSize(0)) > keys)
    return op.emitOpError("expected at most the ")
           << keys << " keys of a tile, got " << k << " and " << v;
  return checkRows(op, rows, state);
}

namespace {
/// One step, in the order of its definition: scores, mask, weights, sums.
class StepRecipe {
public:
  StepRecipe(BlockConverter &block, OnlineAttentionOp op)
      : block(block), b(block.builder), op(op), blockM(block.rows), blockN(getTileKeys(block, op)),
        slack(getSlack(op)), foldedScale(findFoldedScale(block.grid)), unread(findUnread(op)),
        hasMask(!op.getMask().empty()),
        scores(RankedTensorType::get({blockM, blockN}, b.getF32Type())),
        positions(scores.clone(b.getIndexType())) {}

  LogicalResult emit();

private:
  LogicalResult readOperands();
  void shiftKeys();
  LogicalResult emitScores();
  void emitPositions();
  LogicalResult emitMask();
  LogicalResult emitMaskWhereNeeded();
  /// Makes zeros of the values that no row keeps, as products read them.
  Value clearUnread(Value v, Value weights);
  /// The weights as factors of values.
  Value emitFactors(Value p);
  LogicalResult emitSums();

  BlockConverter &block;
  TileBuilder &b;
  OnlineAttentionOp op;
  int64_t blockM, blockN, slack;
  std::optional<double> foldedScale;
  Unread unread;
  bool hasMask;
  RankedTensorType scores, positions;

  ArgumentSlice query, keys, values;
  Value scale;
  /// The position of the first score: b, h, m, n. The carried values: accumulator, maxima, sums.
  SmallVector<Value> at, state;
  /// Whether the tile may have fewer keys than columns, whether they are its last columns then, and
  /// whether columns past its keys may hold anything.
  bool isShort = false, isShifted = false, isOpen = false;
  Value firstColumn, keysBefore;
  /// Where columns past the keys are those of other sequences: which columns are keys.
  Value areKeys;
  /// The columns of the scores; positions at which tensors can be read.
  Value columns, safeRows, safeColumns;
  /// The dot products, and the scores.
  Value products, t;
  /// Whether values of keys that no row keeps become zeros; null: always.
  Value clears;
};
} // namespace

LogicalResult StepRecipe::readOperands() {
  const ArgumentSlice *q = block.findSlice(op.getQuery()), *k = block.findSlice(op.getKey()),
                      *v = block.findSlice(op.getValue());
  if (!q || !k || !v)
    return op.emitOpError("expected query, key and value to be slices of the kernel's arguments");
  query = *q, keys = *k, values = *v;
  scale = block.lookup(op, op.getScale());
  for (OpFoldResult position : op.getMixedOrigin())
    at.push_back(block.lookup(op, position));
  for (Value value : op.getDpsInits()) {
    state.push_back(block.lookupInRegisters(op, value));
    if (!state.back())
      return failure();
  }
  if (!scale || llvm::is_contained(at, Value()))
    return failure();
  Type element = op.getQuery().getType().getElementType();
  for (const ArgumentSlice *slice : {&query, &keys, &values})
    if (isNarrow(element) && getLie(*slice) != Lie::InOrder)
      return op.emitOpError(
                 "expected elements of 16 bits in pages and sequences on this target, got ")
             << element;
  return checkStep(op, blockM, blockN, state);
}

/// A tile of constant size is whole, any other may be short. Without a mask it ends at N, and
/// columns after N read as zeros. With a mask it may end before N, and columns after its keys may
/// hold anything. So the tile is shifted to end with its keys, and begins with keys of other steps.
/// A tile of pages stays where boxes of pages are. One of sequences stays too, and past its keys
/// are those of the next sequence, with a mask or without. One of a fixed split stays since other
/// rows say where it ends, and the order of its keys would be theirs.
void StepRecipe::shiftKeys() {
  Lie ofKeys = getLie(keys), ofValues = getLie(values);
  bool isView = ofKeys != Lie::InOrder || ofValues != Lie::InOrder,
       areOthers = ofKeys == Lie::InSequences || ofValues == Lie::InSequences;
  isShort = op.getKey().getType().getDimSize(0) != blockN;
  bool isShiftable = !isView && !hasFixedSplit(op);
  isShifted = isShort && hasMask && isShiftable;
  isOpen = isShort && !isShiftable && (hasMask || areOthers);
  // Sizes of what a view is of do not tell whether rows and keys are as many.
  if ((isView || getLie(query) != Lie::InOrder) && unread == Unread::UnlessSquare)
    unread = Unread::Any;
  firstColumn = at[3];
  if (!isShifted && !isOpen)
    return;
  keysBefore =
      b.createOrFold<arith::SubIOp>(arith::ConstantIndexOp::create(b, blockN), keys.sizes.front());
  if (isOpen)
    return;
  firstColumn = b.createOrFold<arith::SubIOp>(firstColumn, keysBefore);
  for (ArgumentSlice *slice : {&keys, &values}) {
    Value &row = slice->position[slice->position.size() - 2];
    row = b.createOrFold<arith::SubIOp>(row, keysBefore);
  }
}

/// T = score(scale * Q K^T)
LogicalResult StepRecipe::emitScores() {
  int64_t d = op.getQuery().getType().getDimSize(1);
  Value q = b.load(query, {blockM, d}), k = b.load(keys, {blockN, d});
  t = tile::MmaOp::create(b, scores, q, k, /*acc=*/Value(), /*transposeLhs=*/false,
                          /*transposeRhs=*/true);
  if (op.getScore().empty()) {
    if (!foldedScale)
      t = arith::MulFOp::create(b, t, b.splat(scale, scores.getShape()));
    return success();
  }
  // Of elements with scales; other functions stay as they are written.
  ScoreFactors leading;
  if (isNarrow(op.getQuery().getType().getElementType()))
    leading = findLeadingFactors(op.getScore());
  FailureOr<Value> byHead = inlineHeadFactors(block, op, leading.factors);
  if (failed(byHead))
    return failure();
  if (*byHead)
    scale = arith::MulFOp::create(b, scale, *byHead);
  t = products = arith::MulFOp::create(b, t, b.splat(scale, scores.getShape()));
  if (leading.isAll)
    return success();
  emitPositions();
  t = inlineRegion(block, op.getScore(), {t, at[0], at[1], safeRows, safeColumns}, scores,
                   /*isFalse=*/Value(), /*yielded=*/0, leading.product);
  return success(bool(t));
}

void StepRecipe::emitPositions() {
  safeRows = tile::CoordOp::create(b, positions, 0, at[2]);
  safeColumns = columns = tile::CoordOp::create(b, positions, 1, firstColumn);
  // Only where tensors are read must positions stay inside. Rows that are not there would read
  // keys that no other does.
  bool reads = readsByPosition(op.getScore()) || readsByPosition(op.getMask());
  if (reads || unread == Unread::Any || unread == Unread::UnlessSquare)
    safeRows = b.clampBelow(safeRows, at[2], query.sizes[0]);
  if (!reads)
    return;
  if (isShifted)
    safeColumns = arith::MaxSIOp::create(b, columns, b.splat(at[3], scores.getShape()));
  else if (isShort)
    safeColumns = b.clampBelow(columns, at[3], keys.sizes[0]);
}

/// Scores that the mask drops, and scores of no key of this step, become -inf.
LogicalResult StepRecipe::emitMask() {
  if (!hasMask && !isShort)
    return success();
  if (!columns)
    emitPositions();
  Value keep;
  if (hasMask) {
    keep = inlineRegion(block, op.getMask(), {at[0], at[1], safeRows, safeColumns}, scores,
                        isShort ? Value() : findKeepsAll(op.getMask()));
    if (!keep)
      return failure();
  }
  b.setLoc(op.getLoc());
  if (isShifted) {
    Value distances =
        tile::CoordOp::create(b, positions, 1, b.createOrFold<arith::SubIOp>(firstColumn, at[3]));
    keep = narrowFrom(b, keep, columns, distances, at[3]);
  } else if (isShort) {
    Value end = b.createOrFold<arith::AddIOp>(at[3], keys.sizes[0]);
    Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, columns,
                                         b.splat(end, scores.getShape()));
    if (getLie(values) == Lie::InSequences)
      areKeys = exists;
    keep = keep ? arith::AndIOp::create(b, keep, exists).getResult() : exists;
  }
  t = arith::SelectOp::create(b, keep, t, b.constant(kLowest, scores.getShape()));
  return success();
}

/// Where a scalar says that the mask keeps everything, it is passed over.
LogicalResult StepRecipe::emitMaskWhereNeeded() {
  Value keepsAll = !hasMask || isShort ? Value() : findKeepsAll(op.getMask());
  if (!keepsAll)
    return emitMask();
  Value condition = block.lookup(op, keepsAll);
  if (!condition)
    return failure();
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  if (!dropsKeysItself(op.getScore()))
    clears = arith::XOrIOp::create(b, condition, yes);
  auto applies = scf::IfOp::create(b, scores, condition, /*withElseRegion=*/true);
  b.setInsertionPointToEnd(applies.thenBlock());
  scf::YieldOp::create(b, t);
  b.setInsertionPointToEnd(applies.elseBlock());
  if (failed(emitMask()))
    return failure();
  scf::YieldOp::create(b, t);
  b.setInsertionPointAfter(applies);
  t = applies.getResult(0);
  return success();
}

/// The maxima of the rows, their weights relative to these, and the sums of both kinds.
/// After the exponentials, where nothing but their results lives: factors would take as many
/// registers as they do.
Value StepRecipe::emitFactors(Value p) {
  Value factor = getFactor(op.getScore());
  if (!factor)
    return p;
  if (isNarrow(op.getQuery().getType().getElementType())) {
    // It joins the division. Others have no bound, which weights of 8 bits need.
    if (isOfHead(op.getScore(), factor))
      return p;
    op.emitOpError(
        "expected a factor of weights that is one for a head where elements have 8 bits, "
        "got another");
    return {};
  }
  SmallVector<Value> arguments = {products, at[0], at[1], safeRows, safeColumns};
  Value factors = inlineRegion(block, op.getScore(), arguments, scores, /*isFalse=*/Value(),
                               /*yielded=*/1);
  b.setLoc(op.getLoc());
  return factors ? arith::MulFOp::create(b, p, factors).getResult() : Value();
}

/// Whether the call has fewer rows than keys, or more.
static Value emitIsOblong(BlockConverter &block, const ArgumentSlice &query,
                          const ArgumentSlice &keys) {
  TileBuilder &b = block.builder;
  OpBuilder::InsertionGuard guard(b);
  block.moveBeforeLoops();
  auto getLength = [&](const ArgumentSlice &slice) -> Value {
    int64_t rank = cast<MemRefType>(slice.memref.getType()).getRank();
    return memref::DimOp::create(b, slice.memref, arith::ConstantIndexOp::create(b, rank - 2));
  };
  Value rows = getLength(query);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, rows, getLength(keys));
}

Value StepRecipe::clearUnread(Value v, Value weights) {
  // s27.
  if (isNarrow(op.getQuery().getType().getElementType()))
    return v;
  bool isBounded = unread == Unread::None || unread == Unread::BeforeFirstKey;
  if (isBounded && !isOpen && (unread == Unread::None || !isShifted))
    return v;
  if (isBounded)
    clears = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, keysBefore,
                                   arith::ConstantIndexOp::create(b, 0));
  if (unread == Unread::UnlessSquare) {
    Value isOblong = emitIsOblong(block, query, keys);
    clears = clears ? arith::AndIOp::create(b, clears, isOblong).getResult() : isOblong;
  }
  return tile::ClearUnreadOp::create(b, v.getType(), v, weights, /*from=*/Value(), clears)
      .getResult();
}

/// Whether a sum is what a row begins with: no factor changes it, but for one that is NaN, and then
/// the weights are NaN too.
static bool isZero(Value sum) {
  auto broadcast = sum.getDefiningOp<tile::BroadcastOp>();
  return broadcast && tile::getConstantF32(broadcast.getSource()) == 0.0f;
}

LogicalResult StepRecipe::emitSums() {
  RankedTensorType row = RankedTensorType::get({blockM}, b.getF32Type());
  Value ofTile = tile::ReduceOp::create(b, row, tile::Combiner::Max, t, /*init=*/Value());
  Type element = op.getQuery().getType().getElementType();
  int64_t lead = isNarrow(element) ? kNarrowBits - std::max<int64_t>(slack, 0) : 0;
  auto [max, raised] = emitRowMaxima(b, foldedScale, slack, lead, state[1], ofTile);
  auto [p, factor] = emitRowWeights(b, foldedScale, t, state[1], max);
  // Rows past the sequence are queries of the next one, which may be NaN and read no value here.
  if (areKeys)
    p = arith::SelectOp::create(b, areKeys, p, b.constant(0.0, scores.getShape()));
  // Of two equal maxima the factor is 1 but for rounding.
  if (raised)
    factor = arith::SelectOp::create(b, raised, factor, b.constant(1.0, row.getShape()));
  auto sums = cast<RankedTensorType>(state[2].getType());
  Value decay = sums.getRank() == 2 ? b.rowsToTile(factor, sums.getDimSize(1)) : factor;
  Value before = isZero(state[2]) ? state[2] : arith::MulFOp::create(b, state[2], decay);
  Value sum = tile::ReduceOp::create(b, sums, tile::Combiner::Add, p, before);
  int64_t dv = op.getValue().getType().getDimSize(1);
  Value factors = emitFactors(p);
  if (!factors)
    return failure();
  // Of both formats, e4m3 has more bits for numbers whose size is known.
  Value weights =
      b.narrow(factors, isNarrow(element) ? Type(b.getType<Float8E4M3FNType>()) : element);
  Value acc = state[0];
  if (!isZero(acc)) {
    acc = arith::MulFOp::create(b, acc, b.rowsToTile(factor, dv));
    if (raised)
      acc = arith::SelectOp::create(b, b.rowsToTile(raised, dv), acc, state[0]);
  }
  Value v = b.load(values, {blockN, dv});
  acc = tile::MmaOp::create(b, cast<RankedTensorType>(acc.getType()), weights,
                            clearUnread(v, weights), acc,
                            /*transposeLhs=*/false, /*transposeRhs=*/false);
  Value next[] = {acc, max, sum};
  block.mapping.map(op->getResults(), ValueRange(next));
  return success();
}

LogicalResult StepRecipe::emit() {
  if (failed(readOperands()))
    return failure();
  b.setLoc(op.getLoc());
  shiftKeys();
  if (failed(emitScores()) || failed(emitMaskWhereNeeded()))
    return failure();
  return emitSums();
}

LogicalResult attn::convertStep(BlockConverter &block, OnlineAttentionOp op) {
  return StepRecipe(block, op).emit();
}
