//===- StepConverter.cpp - the arithmetic of attention on tiles --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Analysis/ScoreExtremes/ScoreExtremes.h"
#include "lib/Conversion/AttnToTile/BlockConverter.h"
#include "lib/Transforms/Attn/KeptKeys.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Small tiles
//===----------------------------------------------------------------------===//

Value BlockConverter::splat(Value scalar, ArrayRef<int64_t> shape) {
  return tile::BroadcastOp::create(b, RankedTensorType::get(shape, scalar.getType()), scalar);
}

Value BlockConverter::constant(double value, ArrayRef<int64_t> shape) {
  return splat(arith::ConstantOp::create(b, b.getF32FloatAttr(value)), shape);
}

Value BlockConverter::rowsToTile(Value rows, int64_t columns) {
  auto type = cast<RankedTensorType>(rows.getType());
  return tile::BroadcastOp::create(
      b, RankedTensorType::get({type.getDimSize(0), columns}, type.getElementType()), rows);
}

Value BlockConverter::isEqual(Value tile, double value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(tile.getType()).getShape();
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, tile, constant(value, shape));
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

/// Arguments are tiles or scalars; an op with a tile among its operands works on tiles, others stay
/// scalar. `isFalse`, from outside of the region, is known to be.
Value BlockConverter::inlineRegion(Region &region, ValueRange arguments, RankedTensorType shape,
                                   Value isFalse) {
  IRMapping local;
  local.map(region.getArguments(), arguments);
  auto toTile = [&](Value value) -> Value {
    return isa<RankedTensorType>(value.getType()) ? value : splat(value, shape.getShape());
  };
  for (Operation &op : region.front()) {
    b.setLoc(op.getLoc());
    SmallVector<Value> operands;
    for (Value operand : op.getOperands()) {
      Value value = local.lookupOrNull(operand);
      if (!value)
        value = lookup(&op, operand);
      if (!value)
        return {};
      operands.push_back(value);
    }
    if (isa<YieldOp>(op))
      return toTile(operands[0]);
    if (isFalse && isa<arith::OrIOp>(op) && llvm::is_contained(op.getOperands(), isFalse)) {
      local.map(op.getResult(0), operands[op.getOperand(0) == isFalse ? 1 : 0]);
      continue;
    }
    bool onTiles =
        llvm::any_of(operands, [](Value v) { return isa<RankedTensorType>(v.getType()); });
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      ValueRange indices = ValueRange(operands).drop_front();
      Type element = extract.getType();
      Value result =
          onTiles
              ? tile::GatherOp::create(b, shape.clone(element), operands[0], indices).getResult()
              : memref::LoadOp::create(b, operands[0], indices).getResult();
      local.map(extract.getResult(), result);
      continue;
    }
    if (!onTiles) {
      OperationState state(op.getLoc(), op.getName(), operands, op.getResultTypes(), op.getAttrs());
      local.map(op.getResults(), b.create(state)->getResults());
      continue;
    }
    for (Value &operand : operands)
      operand = toTile(operand);
    SmallVector<Type> types;
    for (Type type : op.getResultTypes())
      types.push_back(shape.clone(type));
    OperationState state(op.getLoc(), op.getName(), operands, types, op.getAttrs());
    local.map(op.getResults(), b.create(state)->getResults());
  }
  return {};
}

/// The value outside of the mask that, where it is true, keeps everything: an operand of the or
/// that the mask yields.
static Value findKeepsAll(Region &mask) {
  auto either = mask.front().getTerminator()->getOperand(0).getDefiningOp<arith::OrIOp>();
  if (either)
    for (Value operand : either->getOperands())
      if (!mask.isAncestor(operand.getParentRegion()))
        return operand;
  return {};
}

namespace {
/// Which values of a step's tile may be those of keys that no row keeps. They may be anything.
enum class Unread { None, BeforeFirstKey, Any };
} // namespace

static Unread findUnread(OnlineAttentionOp op) {
  if (dropsKeysItself(op.getScore()))
    return Unread::Any;
  if (op.getMask().empty())
    return Unread::None;
  auto kept = op->getAttrOfType<StringAttr>(kKeptKeysAttrName);
  if (kept && kept == kKeepsPrefix)
    return Unread::None;
  return kept ? Unread::BeforeFirstKey : Unread::Any;
}

namespace {
/// columns `predicate` bound.
struct ColumnBound {
  arith::CmpIPredicate predicate;
  Value bound;
};
} // namespace

static std::optional<ColumnBound> matchColumnBound(Value keep, Value columns) {
  auto compare = keep.getDefiningOp<arith::CmpIOp>();
  if (!compare)
    return std::nullopt;
  if (compare.getLhs() == columns)
    return ColumnBound{compare.getPredicate(), compare.getRhs()};
  if (compare.getRhs() != columns)
    return std::nullopt;
  using enum arith::CmpIPredicate;
  switch (compare.getPredicate()) {
  case sle:
    return ColumnBound{sge, compare.getLhs()};
  case slt:
    return ColumnBound{sgt, compare.getLhs()};
  case sge:
    return ColumnBound{sle, compare.getLhs()};
  case sgt:
    return ColumnBound{slt, compare.getLhs()};
  default:
    return std::nullopt;
  }
}

/// `keep` with what `narrow` makes of one of the comparisons that it conjoins; null where it makes
/// nothing of any.
static Value narrowOne(ImplicitLocOpBuilder &b, Value keep,
                       llvm::function_ref<Value(Value)> narrow) {
  auto both = keep.getDefiningOp<arith::AndIOp>();
  if (!both)
    return narrow(keep);
  if (Value lhs = narrowOne(b, both.getLhs(), narrow))
    return arith::AndIOp::create(b, lhs, both.getRhs());
  if (Value rhs = narrowOne(b, both.getRhs(), narrow))
    return arith::AndIOp::create(b, both.getLhs(), rhs);
  return {};
}

/// `keep`, also false for columns before `begin`, in one of its own comparisons where it has one of
/// the kind. `distances` are those of the columns from `begin`.
static Value narrowFrom(ImplicitLocOpBuilder &b, Value keep, Value columns, Value distances,
                        Value begin) {
  using enum arith::CmpIPredicate;
  auto type = cast<RankedTensorType>(columns.getType());
  auto broadcast = [&](Value scalar) -> Value {
    return tile::BroadcastOp::create(b, type, scalar);
  };
  Value before = b.createOrFold<arith::SubIOp>(begin, arith::ConstantIndexOp::create(b, 1));
  // With a least column, it is the greater of the two.
  Value narrowed = narrowOne(b, keep, [&](Value compare) -> Value {
    std::optional<ColumnBound> least = matchColumnBound(compare, columns);
    if (!least || (least->predicate != sge && least->predicate != sgt))
      return {};
    Value own = broadcast(least->predicate == sge ? begin : before);
    return arith::CmpIOp::create(b, least->predicate, columns,
                                 arith::MaxSIOp::create(b, least->bound, own));
  });
  if (narrowed)
    return narrowed;
  // With a greatest one, it says how many are kept from `begin` on: without a sign, distances of
  // columns before are greater.
  narrowed = narrowOne(b, keep, [&](Value compare) -> Value {
    std::optional<ColumnBound> greatest = matchColumnBound(compare, columns);
    // Beside other uses of the columns, distances would take as many registers again.
    if (!greatest || (greatest->predicate != sle && greatest->predicate != slt) ||
        !columns.hasOneUse())
      return {};
    Value own = broadcast(greatest->predicate == slt ? begin : before);
    Value count = arith::SubIOp::create(b, greatest->bound, own);
    Value none = broadcast(arith::ConstantIndexOp::create(b, 0));
    return arith::CmpIOp::create(b, ult, distances, arith::MaxSIOp::create(b, count, none));
  });
  if (narrowed)
    return narrowed;
  return arith::AndIOp::create(b, keep, arith::CmpIOp::create(b, sge, columns, broadcast(begin)));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Weights relative to the maximum, 2^(t - max), and the factor 2^(old - max) of what was computed
/// relative to the old one. A row that keeps nothing has maximum -inf; subtracting 0 instead makes
/// its weights 0, not NaN.
///
/// With a folded scale c, t and the maxima are not scaled yet: t * c - max * c is one multiply-add.
/// Where the product max * c is rounded, all weights of the row share the error as a factor, which
/// the sum cancels. It is at most 2^4 up to |max * c| = 2^28. Beyond, scores differ by more than
/// any weight can show or not at all, so that c may be rounded to a power of two, whose products
/// are exact.
BlockConverter::RowWeights BlockConverter::emitRowWeights(Value t, Value old, Value max) {
  auto type = cast<RankedTensorType>(t.getType());
  ArrayRef<int64_t> rows = cast<RankedTensorType>(max.getType()).getShape();
  int64_t columns = type.getDimSize(1);
  Value shift = arith::SelectOp::create(b, isEqual(max, kLowest), constant(0.0, rows), max);
  if (!foldedScale) {
    Value factor = math::Exp2Op::create(b, arith::SubFOp::create(b, old, shift));
    return {math::Exp2Op::create(b, arith::SubFOp::create(b, t, rowsToTile(shift, columns))),
            factor};
  }
  Value scale = constant(*foldedScale, rows);
  Value magnitude = math::AbsFOp::create(b, arith::MulFOp::create(b, shift, scale));
  Value isHuge =
      arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, magnitude, constant(0x1p28, rows));
  Value rounded = constant(std::exp2(std::floor(std::log2(*foldedScale))), rows);
  Value c = arith::SelectOp::create(b, isHuge, rounded, scale);
  Value negative = arith::NegFOp::create(b, arith::MulFOp::create(b, shift, c));
  Value factor =
      math::Exp2Op::create(b, arith::AddFOp::create(b, arith::MulFOp::create(b, old, c), negative));
  Value exponent = math::FmaOp::create(b, t, rowsToTile(c, columns), rowsToTile(negative, columns));
  return {math::Exp2Op::create(b, exponent), factor};
}

LogicalResult BlockConverter::convertStep(OnlineAttentionOp op) {
  auto query = slices.find(op.getQuery()), key = slices.find(op.getKey()),
       value = slices.find(op.getValue());
  if (query == slices.end() || key == slices.end() || value == slices.end())
    return op.emitOpError("expected query, key and value to be slices of the kernel's arguments");
  Type element = op.getQuery().getType().getElementType();
  if (!element.isF16() && !element.isBF16())
    return op.emitOpError("expected f16 or bf16 elements on this target, got ") << element;
  int64_t d = op.getQuery().getType().getDimSize(1), dv = op.getValue().getType().getDimSize(1);
  RankedTensorType scores = RankedTensorType::get({blockM, blockN}, b.getF32Type());
  auto load = [&](const ArgumentSlice &slice, int64_t rows, int64_t columns) -> Value {
    return tile::LoadOp::create(b, RankedTensorType::get({rows, columns}, element), slice.memref,
                                slice.position);
  };

  Value scale = lookup(op, op.getScale());
  SmallVector<Value> at, state;
  for (OpFoldResult position : op.getMixedOrigin())
    at.push_back(lookup(op, position));
  for (Value value : op.getDpsInits()) {
    state.push_back(lookupInRegisters(op, value));
    if (!state.back())
      return failure();
  }
  if (!scale || llvm::is_contained(at, Value()))
    return failure();

  // A tile of constant size is whole, any other may be short. Without a mask it ends at N, and what
  // is behind reads as zeros. With one it may end before: what lies behind its keys may hold
  // anything, so it ends with them and begins with keys of other steps.
  b.setLoc(op.getLoc());
  bool isShort = op.getKey().getType().getDimSize(0) != blockN;
  bool isShifted = isShort && !op.getMask().empty();
  Unread unread = findUnread(op);
  ArgumentSlice keys = key->second, values = value->second;
  Value firstColumn = at[3], keysBefore;
  if (isShifted) {
    keysBefore = b.createOrFold<arith::SubIOp>(arith::ConstantIndexOp::create(b, blockN),
                                               keys.sizes.front());
    firstColumn = b.createOrFold<arith::SubIOp>(firstColumn, keysBefore);
    for (ArgumentSlice *slice : {&keys, &values}) {
      Value &row = slice->position[slice->position.size() - 2];
      row = b.createOrFold<arith::SubIOp>(row, keysBefore);
    }
  }

  // T = score(scale * Q K^T)
  Value q = load(query->second, blockM, d), k = load(keys, blockN, d);
  Value t = tile::MmaOp::create(b, scores, q, k, /*acc=*/Value(), /*transpose_lhs=*/false,
                                /*transpose_rhs=*/true);
  if (!foldedScale)
    t = arith::MulFOp::create(b, t, splat(scale, scores.getShape()));
  RankedTensorType positions = scores.clone(b.getIndexType());
  auto clamp = [&](Value coordinates, Value size, Value first) -> Value {
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value last = b.createOrFold<arith::SubIOp>(b.createOrFold<arith::AddIOp>(first, size), one);
    return arith::MinSIOp::create(b, coordinates, splat(last, scores.getShape()));
  };
  Value columns, safeRows, safeColumns;
  auto emitPositions = [&] {
    safeRows = tile::CoordOp::create(b, positions, 0, at[2]);
    safeColumns = columns = tile::CoordOp::create(b, positions, 1, firstColumn);
    // Only where tensors are read must positions stay inside. Rows that are not there would read
    // keys that no other does.
    bool reads = readsTensors(op.getScore()) || readsTensors(op.getMask());
    if (reads || unread == Unread::Any)
      safeRows = clamp(safeRows, query->second.sizes[0], at[2]);
    if (!reads)
      return;
    if (isShifted)
      safeColumns = arith::MaxSIOp::create(b, columns, splat(at[3], scores.getShape()));
    else if (isShort)
      safeColumns = clamp(columns, keys.sizes[0], at[3]);
  };
  if (!op.getScore().empty()) {
    emitPositions();
    t = inlineRegion(op.getScore(), {t, at[0], at[1], safeRows, safeColumns}, scores);
    if (!t)
      return failure();
  }
  // Where a scalar says that the mask keeps everything, it is passed over.
  scf::IfOp applies;
  Value clears;
  Value keepsAll = op.getMask().empty() || isShort ? Value() : findKeepsAll(op.getMask());
  if (keepsAll) {
    Value condition = lookup(op, keepsAll);
    if (!condition)
      return failure();
    Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
    if (!dropsKeysItself(op.getScore()))
      clears = arith::XOrIOp::create(b, condition, yes);
    applies = scf::IfOp::create(b, scores, condition, /*withElseRegion=*/true);
    b.setInsertionPointToEnd(applies.thenBlock());
    scf::YieldOp::create(b, t);
    b.setInsertionPointToEnd(applies.elseBlock());
  }
  if (!columns && (isShort || !op.getMask().empty()))
    emitPositions();
  Value keep;
  if (!op.getMask().empty()) {
    keep = inlineRegion(op.getMask(), {at[0], at[1], safeRows, safeColumns}, scores, keepsAll);
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
    keep =
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, columns, splat(end, scores.getShape()));
  }
  if (keep)
    t = arith::SelectOp::create(b, keep, t, constant(kLowest, scores.getShape()));
  if (applies) {
    scf::YieldOp::create(b, t);
    b.setInsertionPointAfter(applies);
    t = applies.getResult(0);
  }

  RankedTensorType row = RankedTensorType::get({blockM}, b.getF32Type());
  Value max = arith::MaximumFOp::create(b, state[1],
                                        tile::ReduceOp::create(b, row, tile::Combiner::Max, t,
                                                               /*init=*/Value()));
  RowWeights weight = emitRowWeights(t, state[1], max);
  Value factor = weight.factor, p = weight.weights;
  auto sums = cast<RankedTensorType>(state[2].getType());
  Value decay = sums.getRank() == 2 ? rowsToTile(factor, sums.getDimSize(1)) : factor;
  Value sum = tile::ReduceOp::create(b, sums, tile::Combiner::Add, p,
                                     arith::MulFOp::create(b, state[2], decay));
  Value weights = arith::TruncFOp::create(b, scores.clone(element), p);
  Value acc = arith::MulFOp::create(b, state[0], rowsToTile(factor, dv));
  Value v = load(values, blockN, dv);
  if (unread == Unread::BeforeFirstKey && isShifted)
    clears = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, keysBefore,
                                   arith::ConstantIndexOp::create(b, 0));
  if (unread == Unread::Any || (unread == Unread::BeforeFirstKey && isShifted))
    v = tile::ClearUnreadOp::create(b, v.getType(), v, weights, clears).getResult();
  acc = tile::MmaOp::create(b, cast<RankedTensorType>(acc.getType()), weights, v, acc,
                            /*transpose_lhs=*/false,
                            /*transpose_rhs=*/false);
  Value next[] = {acc, max, sum};
  mapping.map(op->getResults(), ValueRange(next));
  return success();
}

Value BlockConverter::sumParts(Value sums) {
  auto type = cast<RankedTensorType>(sums.getType());
  if (type.getRank() == 1)
    return sums;
  auto rows = RankedTensorType::get({type.getDimSize(0)}, type.getElementType());
  return tile::ReduceOp::create(b, rows, tile::Combiner::Add, sums, /*init=*/Value());
}

LogicalResult BlockConverter::convertNormalize(NormalizeOp op) {
  Value acc = lookupInRegisters(op, op.getAcc()), max = lookupInRegisters(op, op.getRowMax()),
        sum = lookupInRegisters(op, op.getRowSum());
  if (!acc || !max || !sum)
    return failure();
  sum = sumParts(sum);
  int64_t dv = op.getAcc().getType().getDimSize(1);
  RankedTensorType row = RankedTensorType::get({blockM}, b.getF32Type());
  // What one unit of the maximum is as a natural logarithm, and without a sink in base 2.
  double unit = foldedScale.value_or(1.0);
  if (op.getSink()) {
    Value scalar = lookup(op, op.getSink());
    if (!scalar)
      return failure();
    // The sink joins the maximum and the sum; the accumulator follows the maximum. All are natural
    // logarithms: in base 2 a finite sink may be none.
    auto power = [&](Value difference) -> Value {
      Value exponent = arith::MulFOp::create(b, difference, constant(1.0 / M_LN2, row.getShape()));
      return math::Exp2Op::create(b, exponent);
    };
    Value zero = constant(0.0, row.getShape()), one = constant(1.0, row.getShape());
    Value sink = splat(scalar, row.getShape());
    max = arith::MulFOp::create(b, max, constant(unit * M_LN2, row.getShape()));
    Value joined = arith::MaximumFOp::create(b, max, sink);
    Value safe = arith::SelectOp::create(b, isEqual(joined, kLowest), zero, joined);
    Value factor = power(arith::SubFOp::create(b, max, safe));
    // Of a sink of +inf too, though inf - inf is none.
    Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, sink, safe);
    Value extra =
        arith::SelectOp::create(b, isMax, one, power(arith::SubFOp::create(b, sink, safe)));
    sum = arith::AddFOp::create(b, arith::MulFOp::create(b, sum, factor), extra);
    acc = arith::MulFOp::create(b, acc, rowsToTile(factor, dv));
    max = joined;
  } else if (foldedScale) {
    max = arith::MulFOp::create(b, max, constant(unit, row.getShape()));
  }
  Value empty = isEqual(sum, 0.0);
  Value divisor = arith::SelectOp::create(b, empty, constant(1.0, row.getShape()), sum);
  Value inverse = arith::DivFOp::create(b, constant(1.0, row.getShape()), divisor);
  Value o = arith::MulFOp::create(b, acc, rowsToTile(inverse, dv));
  Type element = op.getOutput().getType().getElementType();
  if (!element.isF32())
    o = arith::TruncFOp::create(b, cast<RankedTensorType>(o.getType()).clone(element), o);
  mapping.map(op->getResult(0), o);
  if (op.getLse()) {
    Value log = math::Log2Op::create(b, divisor), ln2 = constant(M_LN2, row.getShape()), lse;
    if (op.getSink())
      lse = arith::AddFOp::create(b, max, arith::MulFOp::create(b, log, ln2));
    else
      lse = arith::MulFOp::create(b, arith::AddFOp::create(b, max, log), ln2);
    mapping.map(
        op->getResult(1),
        arith::SelectOp::create(b, empty, constant(kLowest, row.getShape()), lse).getResult());
  }
  return success();
}
