//===- AttnVariants.cpp - building score and mask regions ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "dialects/Attn/IR/AttnDropout.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/SetVector.h"
#include <array>

using namespace mlir;
using namespace attn;

namespace {
using P = arith::CmpIPredicate;

/// Short names for the few ops regions are made of.
struct RegionBuilder : ImplicitLocOpBuilder {
  RegionBuilder(OpBuilder &builder, Location loc) : ImplicitLocOpBuilder(loc, builder) {}

  Value index(int64_t value) { return arith::ConstantIndexOp::create(*this, value); }
  Value f32(double value) { return arith::ConstantOp::create(*this, getF32FloatAttr(value)); }
  Value add(Value a, Value b) { return createOrFold<arith::AddIOp>(a, b); }
  Value sub(Value a, Value b) { return createOrFold<arith::SubIOp>(a, b); }
  Value cmp(P predicate, Value a, Value b) { return arith::CmpIOp::create(*this, predicate, a, b); }
  Value both(Value a, Value b) { return arith::AndIOp::create(*this, a, b); }
  Value either(Value a, Value b) { return arith::OrIOp::create(*this, a, b); }

  /// Row m in the coordinates of the keys: unchanged, or shifted so that the last row meets the
  /// last key.
  Value aligned(const Position &at, Alignment alignment) {
    if (alignment == Alignment::TopLeft)
      return at.m;
    return add(at.m, sub(at.keyLength, at.queryLength));
  }
  Value readIndex(Value tensor, ValueRange indices) {
    Value element = tensor::ExtractOp::create(*this, tensor, indices);
    return element.getType().isIndex()
               ? element
               : arith::IndexCastOp::create(*this, getIndexType(), element).getResult();
  }
  /// A number from 0 to 2^28, so that sums with positions fit every index type.
  Value readNumber(Value tensor, ValueRange indices) {
    Value number = arith::MaxSIOp::create(*this, readIndex(tensor, indices), index(0));
    return arith::MinSIOp::create(*this, number, index(int64_t(1) << 28));
  }
  Value readF32(Value tensor, ValueRange indices) {
    Value element = tensor::ExtractOp::create(*this, tensor, indices);
    return element.getType().isF32()
               ? element
               : arith::ExtFOp::create(*this, getF32Type(), element).getResult();
  }
};
} // namespace

bool attn::isScoreVariant(Attribute variant) {
  return isa<SoftcapAttr, AlibiAttr, RelativeBiasAttr, DropoutAttr>(variant);
}

/// An origin or a table for each position that is not the op's own, then the whole's extents.
static SmallVector<CaptureRule> getCaptureRules(PositionsAttr positions) {
  constexpr CaptureRule kOrigins[] = {{"first batch (1)", "1", false},
                                      {"first head (1)", "1", false},
                                      {"first row (1)", "1", false},
                                      {"first key (1)", "1", false}};
  constexpr CaptureRule kTables[] = {{"positions of batches (B)", "B", false},
                                     {"positions of heads (H)", "H", false},
                                     {"positions of rows (M)", "M", false},
                                     {"positions of keys (N)", "N", false}};
  SmallVector<CaptureRule> rules;
  for (unsigned position = 0; position < 4; ++position)
    if (Placement placement = positions.getPlacement(position); placement != Placement::Own)
      rules.push_back(placement == Placement::Origin ? kOrigins[position] : kTables[position]);
  rules.push_back({"total (2)", "2", false});
  return rules;
}

std::optional<SmallVector<CaptureRule>> attn::getCaptureRules(Attribute variant) {
  using Rules = SmallVector<CaptureRule>;
  if (isa<CausalAttr, WindowAttr, ChunkedAttr, SoftcapAttr>(variant))
    return Rules{};
  if (auto prefix = dyn_cast<PrefixAttr>(variant))
    return prefix.getLength() < 0 ? Rules{{"prefix lengths (B)", "B", false}} : Rules{};
  if (isa<DocumentAttr>(variant))
    return Rules{{"query ids (B, M)", "BM", false}, {"key ids (B, N)", "BN", false}};
  if (isa<KeyLengthAttr>(variant))
    return Rules{{"key lengths (B)", "B", false}};
  if (isa<AlibiAttr>(variant))
    return Rules{{"slopes (H)", "H", true}};
  if (isa<RelativeBiasAttr>(variant))
    return Rules{{"bias (H, R)", "HR", true}};
  if (isa<DropoutAttr>(variant))
    return Rules{{"seed (1)", "1", false}};
  if (auto positions = dyn_cast<PositionsAttr>(variant))
    return ::getCaptureRules(positions);
  return std::nullopt;
}

SmallVector<CaptureRule> attn::getCaptureRules(ScoredOpInterface op) {
  SmallVector<CaptureRule> rules;
  if (op.getVariantsAttr())
    for (Attribute variant : op.getVariantsAttr())
      llvm::append_range(rules, *getCaptureRules(variant));
  return rules;
}

PositionsAttr attn::findPositions(ScoredOpInterface op) {
  ArrayAttr variants = op.getVariantsAttr();
  return variants && !variants.empty() ? dyn_cast<PositionsAttr>(variants[0]) : PositionsAttr();
}

bool attn::readsOwn(ScoredOpInterface op, unsigned position) {
  PositionsAttr positions = findPositions(op);
  return !positions || positions.getPlacement(position) == Placement::Own;
}

bool attn::isOwnIndex(OpOperand &index) {
  auto dims = index.getOwner()->getAttrOfType<DenseI64ArrayAttr>(kOwnAttrName);
  // The first operand is the tensor.
  return dims && llvm::is_contained(dims.asArrayRef(), int64_t(index.getOperandNumber()) - 1);
}

Value attn::buildMask(OpBuilder &builder, Location loc, Attribute variant, const Position &at,
                      ValueRange captures) {
  RegionBuilder b(builder, loc);
  if (auto causal = dyn_cast<CausalAttr>(variant))
    return b.cmp(P::sle, at.n, b.aligned(at, causal.getAlignment()));
  if (auto window = dyn_cast<WindowAttr>(variant)) {
    Value row = b.aligned(at, window.getAlignment());
    Value keep;
    if (window.getLeft() >= 0)
      keep = b.cmp(P::sge, at.n, b.sub(row, b.index(window.getLeft())));
    if (window.getRight() >= 0) {
      Value right = b.cmp(P::sle, at.n, b.add(row, b.index(window.getRight())));
      keep = keep ? b.both(keep, right) : right;
    }
    return keep ? keep : arith::ConstantOp::create(b, b.getBoolAttr(true)).getResult();
  }
  if (auto prefix = dyn_cast<PrefixAttr>(variant)) {
    Value length =
        prefix.getLength() < 0 ? b.readIndex(captures[0], at.b) : b.index(prefix.getLength());
    Value causal = b.cmp(P::sle, at.n, b.aligned(at, prefix.getAlignment()));
    return b.either(b.cmp(P::slt, at.n, length), causal);
  }
  if (auto chunked = dyn_cast<ChunkedAttr>(variant)) {
    Value size = b.index(chunked.getSize());
    Value rowChunk = arith::FloorDivSIOp::create(b, b.aligned(at, chunked.getAlignment()), size);
    Value keyChunk = arith::FloorDivSIOp::create(b, at.n, size);
    return b.cmp(P::eq, keyChunk, rowChunk);
  }
  if (isa<DocumentAttr>(variant)) {
    Value row = tensor::ExtractOp::create(b, captures[0], ValueRange{at.b, at.m});
    Value key = tensor::ExtractOp::create(b, captures[1], ValueRange{at.b, at.n});
    if (row.getType() != key.getType()) {
      row = b.readIndex(captures[0], {at.b, at.m});
      key = b.readIndex(captures[1], {at.b, at.n});
    }
    return b.cmp(P::eq, row, key);
  }
  auto keyLength = cast<KeyLengthAttr>(variant);
  (void)keyLength;
  return b.cmp(P::slt, at.n, b.readIndex(captures[0], at.b));
}

Value attn::buildScore(OpBuilder &builder, Location loc, Attribute variant, Value s,
                       const Position &at, ValueRange captures) {
  RegionBuilder b(builder, loc);
  if (auto softcap = dyn_cast<SoftcapAttr>(variant)) {
    double cap = softcap.getCap().getValueAsDouble();
    Value scaled = arith::MulFOp::create(b, s, b.f32(1.0 / cap));
    return arith::MulFOp::create(b, math::TanhOp::create(b, scaled), b.f32(cap));
  }
  if (auto alibi = dyn_cast<AlibiAttr>(variant)) {
    Value slope = b.readF32(captures[0], at.h);
    Value distance = b.sub(b.aligned(at, alibi.getAlignment()), at.n);
    Value distanceInt = arith::IndexCastOp::create(b, b.getI32Type(), distance);
    Value distanceF32 = arith::SIToFPOp::create(b, b.getF32Type(), distanceInt);
    Value bias = arith::MulFOp::create(b, slope, math::AbsFOp::create(b, distanceF32));
    return arith::SubFOp::create(b, s, bias);
  }
  auto relative = cast<RelativeBiasAttr>(variant);
  // A region holds scalar arithmetic only: the extent R is computed in front of its op.
  OpBuilder outside(b.getInsertionBlock()->getParentOp());
  Value extent = outside.createOrFold<tensor::DimOp>(loc, captures[0], 1);
  Value last = b.sub(extent, b.index(1));
  Value distance =
      b.add(b.sub(b.aligned(at, relative.getAlignment()), at.n), b.index(relative.getOffset()));
  Value clamped = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, distance, last), b.index(0));
  return arith::AddFOp::create(b, s, b.readF32(captures[0], {at.h, clamped}));
}

namespace {
/// The values that a region yields: a score and its factor, or whether to keep. Null: none yet.
struct Yielded {
  Value result, factor;
};
} // namespace

/// Ends `region` with `extend` applied to what it yields so far.
static void extendRegion(RewriterBase &rewriter, Location loc, Region &region, TypeRange arguments,
                         function_ref<Yielded(Block &, Yielded)> extend) {
  OpBuilder::InsertionGuard guard(rewriter);
  Yielded current;
  if (region.empty()) {
    Block *block =
        rewriter.createBlock(&region, {}, arguments, SmallVector<Location>(arguments.size(), loc));
    rewriter.setInsertionPointToEnd(block);
  } else {
    auto yield = cast<YieldOp>(region.front().getTerminator());
    current = {yield.getResult(), yield.getFactor()};
    rewriter.setInsertionPoint(yield);
    rewriter.eraseOp(yield);
    rewriter.setInsertionPointToEnd(&region.front());
  }
  Yielded extended = extend(region.front(), current);
  YieldOp::create(rewriter, loc, extended.result, extended.factor);
}

/// A score variant changes the score, or multiplies the factor.
static Yielded buildYielded(OpBuilder &builder, Location loc, Attribute variant, Yielded current,
                            const Position &at, ValueRange captures) {
  auto dropout = dyn_cast<DropoutAttr>(variant);
  if (!dropout)
    return {buildScore(builder, loc, variant, current.result, at, captures), current.factor};
  Value factor = buildDropout(builder, loc, dropout, at, captures[0]);
  if (current.factor)
    factor = arith::MulFOp::create(builder, loc, current.factor, factor);
  return {current.result, factor};
}

namespace {
/// M or N of a batch: the size of the tensor, or how many rows the sequence has.
struct Length {
  Length(OpBuilder &builder, Location loc, Value tensor)
      : view(findRagged(tensor)),
        size(view ? builder.createOrFold<tensor::DimOp>(loc, view.getRows(), 0)
                  : builder.createOrFold<tensor::DimOp>(loc, tensor, 2)) {}

  Value emit(OpBuilder &builder, Location loc, Value batch) {
    if (!view)
      return size;
    return emitSequence(builder, loc, view.getOffsets(), size, getAsOpFoldResult(view.getUpTo()),
                        batch)
        .rows;
  }

  RaggedOp view;
  /// Of a view: of all its rows.
  Value size;
};
} // namespace

namespace {
/// The positions that regions of an op mean, and the extents that go with them.
class Places {
public:
  Places(RewriterBase &rewriter, ScoredOpInterface op);

  /// At the insertion point, in a region's block.
  Position locate(Block &block);
  /// Lets the rest of a region, which was there before, mean these positions. Drops what nobody
  /// asked for.
  void finish(Region &region);

private:
  /// Of a part of a whole, at the beginning of a block; positions of other blocks are its
  /// arguments.
  const std::array<Value, 4> &place(Block &block);

  RewriterBase &rewriter;
  Location loc;
  Length rows, keys;
  PositionsAttr positions;
  /// Numbers to add to positions, and tables of them.
  std::array<Value, 4> origins, tables;
  /// M and N of the whole, where there are positions.
  Value totals[2];
  DenseMap<Block *, std::array<Value, 4>> placed;
};
} // namespace

Places::Places(RewriterBase &rewriter, ScoredOpInterface op)
    : rewriter(rewriter), loc(op.getLoc()), rows(rewriter, loc, op.getQuery()),
      keys(rewriter, loc, op.getKey()), positions(findPositions(op)) {
  if (!positions)
    return;
  RegionBuilder b(rewriter, loc);
  ValueRange captures = op.getCaptures();
  Value zero = b.index(0);
  for (unsigned i = 0; i < 4; ++i) {
    Placement placement = positions.getPlacement(i);
    if (placement == Placement::Own)
      continue;
    if (placement == Placement::Origin)
      origins[i] = b.readNumber(captures.front(), zero);
    else
      // Bounds of loops over rows and keys are searched for in their tables.
      tables[i] = i < 2 ? captures.front()
                        : AssumeOp::create(b, Fact::NonDecreasing, captures.front()).getResult();
    captures = captures.drop_front();
  }
  totals[0] = b.readNumber(captures.front(), zero);
  totals[1] = b.readNumber(captures.front(), b.index(1));
}

const std::array<Value, 4> &Places::place(Block &block) {
  auto [found, isNew] = placed.try_emplace(&block);
  std::array<Value, 4> &at = found->second;
  if (!isNew)
    return at;
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToStart(&block);
  RegionBuilder b(rewriter, loc);
  for (auto [i, own] : llvm::enumerate(block.getArguments().take_back(4)))
    at[i] = origins[i]  ? arith::AddIOp::create(b, own, origins[i]).getResult()
            : tables[i] ? b.readIndex(tables[i], own)
                        : own;
  return at;
}

Position Places::locate(Block &block) {
  if (!positions) {
    ValueRange p = block.getArguments().take_back(4);
    return {p[0], p[1], p[2], p[3], rows.emit(rewriter, loc, p[0]), keys.emit(rewriter, loc, p[0])};
  }
  const std::array<Value, 4> &at = place(block);
  return {at[0], at[1], at[2], at[3], totals[0], totals[1]};
}

void Places::finish(Region &region) {
  if (!positions || region.empty())
    return;
  Block &block = region.front();
  std::array<Value, 4> at = place(block);
  for (auto [own, there] : llvm::zip_equal(block.getArguments().take_back(4), at)) {
    if (own == there)
      continue;
    // They read a table and convert its elements, or add an origin.
    SetVector<Operation *> makers;
    for (Operation *maker = there.getDefiningOp(); maker && maker->getBlock() == &block;
         maker = maker->getOperand(0).getDefiningOp())
      makers.insert(maker);
    auto isOther = [&](OpOperand &use) {
      return !makers.contains(use.getOwner()) && !isOwnIndex(use);
    };
    rewriter.replaceUsesWithIf(own, there, isOther);
    for (Operation *maker : makers)
      if (maker->use_empty())
        rewriter.eraseOp(maker);
  }
  for (Operation &inner : block)
    inner.removeAttr(kOwnAttrName);
}

void attn::expandVariants(RewriterBase &rewriter, ScoredOpInterface op) {
  if (!op.getVariantsAttr())
    return;
  Location loc = op.getLoc();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Places places(rewriter, op);
  Type index = rewriter.getIndexType(), f32 = rewriter.getF32Type();

  rewriter.modifyOpInPlace(op, [&] {
    ValueRange captures = op.getCaptures();
    for (Attribute variant : op.getVariantsAttr()) {
      ValueRange own = captures.take_front(getCaptureRules(variant)->size());
      captures = captures.drop_front(own.size());
      if (isa<PositionsAttr>(variant))
        continue;
      if (isScoreVariant(variant)) {
        extendRegion(rewriter, loc, op.getScore(), {f32, index, index, index, index},
                     [&](Block &block, Yielded current) {
                       Position here = places.locate(block);
                       if (!current.result)
                         current.result = block.getArgument(0);
                       return buildYielded(rewriter, loc, variant, current, here, own);
                     });
        continue;
      }
      extendRegion(rewriter, loc, op.getMask(), {index, index, index, index},
                   [&](Block &block, Yielded current) -> Yielded {
                     Value mask = buildMask(rewriter, loc, variant, places.locate(block), own);
                     if (current.result)
                       mask = arith::AndIOp::create(rewriter, loc, current.result, mask);
                     return {mask, Value()};
                   });
    }
    for (Region *region : {&op.getScore(), &op.getMask()})
      places.finish(*region);
    op.getCapturesMutable().clear();
    op.removeVariantsAttr();
  });
}
