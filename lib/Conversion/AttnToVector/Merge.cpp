//===- Merge.cpp - partial results over disjoint sets of keys -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/CheckBuffers.h"
#include "lib/Conversion/AttnToVector/Exp2.h"
#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [s, x...]
static SmallVector<Value> at(Value s, ValueRange x) {
  SmallVector<Value> indices{s};
  llvm::append_range(indices, x);
  return indices;
}

static SmallVector<Value> at(ValueRange x, Value column) {
  SmallVector<Value> indices(x);
  indices.push_back(column);
  return indices;
}

namespace {
/// The logarithm of a part's sum: as f32 holds it, natural, or where `low` has the rest of base 2.
struct Logarithm {
  Value high, low;
};
} // namespace

static Logarithm loadLogarithm(Emitter &b, MergeOp op, ValueRange at) {
  Value lse = b.load(op.getPartialLse(), at);
  if (!op.getPartialLow())
    return {lse, {}};
  return {arith::MulFOp::create(b, lse, b.f32(llvm::numbers::log2e)),
          b.load(op.getPartialLow(), at)};
}

/// exp(lse - offset), through base 2; lse <= offset. Where both are +inf, of a sink, the part is
/// the whole, though inf - inf is none.
static Value emitWeight(Emitter &b, Logarithm lse, Logarithm offset) {
  Value x = arith::SubFOp::create(b, lse.high, offset.high);
  if (!lse.low)
    x = arith::MulFOp::create(b, x, b.f32(llvm::numbers::log2e));
  Value isMax = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, lse.high, offset.high);
  if (!lse.low)
    return arith::SelectOp::create(b, isMax, b.f32(1), emitExp2(b, x));
  // Low parts are as large as what high ones cannot hold: neither is a weight by itself.
  x = arith::SelectOp::create(b, isMax, b.f32(0), x);
  return emitExp2(b, arith::AddFOp::create(b, x, arith::SubFOp::create(b, lse.low, offset.low)));
}

/// The greater of two, by their high parts first.
static Logarithm emitGreater(Emitter &b, Logarithm x, Logarithm y) {
  Logarithm greater = {b.max(x.high, y.high), {}};
  if (!x.low)
    return greater;
  Value isX = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x.high, y.high);
  Value isY = arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, y.high, x.high);
  Value low = arith::SelectOp::create(b, isY, y.low, b.max(x.low, y.low));
  greater.low = arith::SelectOp::create(b, isX, x.low, low);
  return greater;
}

/// The greatest logarithm of the parts of a row.
static Logarithm emitGreatest(Emitter &b, MergeOp op, ValueRange x, Value splits) {
  SmallVector<Value> start = {b.f32(-kInfinity)};
  if (op.getPartialLow())
    start.push_back(b.f32(0));
  auto pack = [](Logarithm logarithm) {
    SmallVector<Value> values = {logarithm.high};
    if (logarithm.low)
      values.push_back(logarithm.low);
    return values;
  };
  auto unpack = [](ValueRange values) {
    return Logarithm{values[0], values.size() > 1 ? values[1] : Value()};
  };
  return unpack(b.loop(b.index(0), splits, 1, start, [&](Value s, ValueRange running) {
    return pack(emitGreater(b, unpack(running), loadLogarithm(b, op, at(s, x))));
  }));
}

/// sum_s weight_s * partial[s, x, column ...] / total, over the s that kept something: others may
/// hold anything.
static void emitColumn(Emitter &b, MergeOp op, ValueRange x, Value splits, Logarithm offset,
                       Value inverse, Value column, Value mask) {
  Value partial = op.getPartial(), zero = b.floatLike(b.f32Vec(), 0);
  Value sum = b.loop(b.index(0), splits, 1, zero, [&](Value s, ValueRange running) {
    Logarithm lse = loadLogarithm(b, op, at(s, x));
    Value kept = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, lse.high, b.f32(-kInfinity));
    auto ifOp = scf::IfOp::create(b, TypeRange{b.f32Vec()}, kept, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    SmallVector<Value> source = at(s, at(x, column));
    Value values = mask ? b.loadMasked(partial, source, mask) : b.loadVector(partial, source);
    Value weight = b.splat(emitWeight(b, lse, offset));
    scf::YieldOp::create(b, b.fma(b.convert(values, b.getF32Type()), weight, running[0]));
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, running[0]);
    return SmallVector<Value>{ifOp.getResult(0)};
  })[0];
  Type element = cast<MemRefType>(op.getOutput().getType()).getElementType();
  Value out = b.convert(arith::MulFOp::create(b, sum, b.splat(inverse)), element);
  if (mask)
    b.storeMasked(out, op.getOutput(), at(x, column), mask);
  else
    b.storeVector(out, op.getOutput(), at(x, column));
}

static void emitRow(Emitter &b, MergeOp op, ValueRange x) {
  Value infinity = b.f32(-kInfinity), zero = b.f32(0);
  Value splits = b.dim(op.getPartial(), 0);
  Logarithm maximum = emitGreatest(b, op, x, splits), offset = maximum;
  Value nothing = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, maximum.high, infinity);
  offset.high = arith::SelectOp::create(b, nothing, zero, maximum.high);
  Value total = b.loop(b.index(0), splits, 1, zero, [&](Value s, ValueRange running) {
    Value weight = emitWeight(b, loadLogarithm(b, op, at(s, x)), offset);
    return SmallVector<Value>{arith::AddFOp::create(b, running[0], weight)};
  })[0];
  Value quotient = arith::DivFOp::create(b, b.f32(1), total);
  Value inverse = arith::SelectOp::create(b, nothing, zero, quotient);
  int64_t columns = cast<MemRefType>(op.getOutput().getType()).getShape().back();
  forColumns(b, columns, [&](Value column, Value mask) {
    emitColumn(b, op, x, splits, offset, inverse, column, mask);
  });
  if (!op.getLse())
    return;
  if (!op.getPartialLow()) {
    Value lse = arith::AddFOp::create(b, maximum.high, math::LogOp::create(b, total));
    b.store(arith::SelectOp::create(b, nothing, infinity, lse), op.getLse(), x);
    return;
  }
  Value rest = arith::AddFOp::create(b, maximum.low, math::Log2Op::create(b, total).getResult());
  Value lse = arith::MulFOp::create(b, arith::AddFOp::create(b, maximum.high, rest),
                                    b.f32(llvm::numbers::ln2));
  lse = arith::SelectOp::create(b, nothing, infinity, lse);
  b.store(lse, op.getLse(), x);
  if (op.getLseLow())
    b.store(emitLow(b, lse, maximum.high, rest), op.getLseLow(), x);
}

LogicalResult attn::lowerMerge(MergeOp op, const VectorTarget &target) {
  if (failed(checkBuffers(op)) || failed(checkContiguous(op, "partial", op.getPartial())) ||
      failed(checkColumns(op, "output", op.getOutput())))
    return failure();
  OpBuilder builder(op);
  Emitter b(op.getLoc(), builder, target);
  auto type = cast<MemRefType>(op.getOutput().getType());
  // Rows run in a loop; what is outside of them is shared among threads, unless this is inside a
  // block already.
  int64_t leading = type.getRank() - 1;
  bool isInBlock = bool(op->getParentOfType<scf::ForallOp>());
  int64_t shared = isInBlock ? 0 : std::max<int64_t>(leading - 1, 0);
  SmallVector<Value> x;
  SmallVector<OpFoldResult> lower, upper, steps;
  for (int64_t i = 0; i < leading; ++i) {
    Value size = b.dim(op.getOutput(), i);
    if (i < shared) {
      lower.push_back(b.getIndexAttr(0));
      upper.push_back(size);
      steps.push_back(b.getIndexAttr(1));
    }
  }
  if (shared > 0) {
    auto forall = scf::ForallOp::create(b, lower, upper, steps, ValueRange(), std::nullopt);
    llvm::append_range(x, forall.getInductionVars());
    b.setInsertionPoint(forall.getTerminator());
  }
  for (int64_t i = shared; i < leading; ++i) {
    auto forOp = scf::ForOp::create(b, b.index(0), b.dim(op.getOutput(), i), b.index(1));
    x.push_back(forOp.getInductionVar());
    b.setInsertionPointToStart(forOp.getBody());
  }
  emitRow(b, op, x);
  op.erase();
  return success();
}
