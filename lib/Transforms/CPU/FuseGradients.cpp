//===- FuseGradients.cpp - attn-cpu-fuse-gradients --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Two passes take seven products, of which the fused form leaves out two: who owns keys has the
// gradients of scores anyway, and adds their products with keys to the gradient of the queries. If
// one thread has all keys of a head, one after the other, then that is a sum in the order in which
// the pass over rows adds: the same bits. So which form runs is a matter of time alone, and the
// program decides by the number of heads and of threads.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Rooms/RoomPass.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace attn {
#define GEN_PASS_DEF_CPUFUSEGRADIENTSPASS
#include "lib/Transforms/CPU/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static constexpr llvm::StringLiteral kThreads = "attn_cpu_threads";

/// Products of a pair of tiles in both forms.
static constexpr int64_t kFusedProducts = 5, kTwoPassProducts = 7;

//===----------------------------------------------------------------------------------------===//
// Which grids
//===----------------------------------------------------------------------------------------===//

namespace {
/// The grids of one gradient: the one over rows first, then the one over keys.
struct GridPair {
  scf::ForallOp rows, keys;
  /// (B, H, M, D), which both read.
  Value query;
};
} // namespace

/// The value that `view` is a part of, seen through slices and casts.
static Value getViewed(Value view) {
  while (Operation *def = view.getDefiningOp()) {
    if (!isa<memref::SubViewOp, memref::CastOp>(def))
      break;
    view = def->getOperand(0);
  }
  return view;
}

/// The number of the gradient whose steps the grid has, or null, and what its queries are part of.
template <typename StepT> static std::pair<Attribute, Value> getGradient(scf::ForallOp grid) {
  Attribute number;
  Value query;
  WalkResult alike = grid.walk([&](StepT step) {
    Attribute own = step->getAttr(kFusedAttrName);
    Value whole = getViewed(step.getQuery());
    bool isAlike = own && (!number || (number == own && query == whole));
    number = own;
    query = whole;
    return isAlike ? WalkResult::advance() : WalkResult::interrupt();
  });
  if (alike.wasInterrupted())
    return {};
  return {number, query};
}

/// The only op of its kind in the body of the grid itself.
static GradEndOp getEnd(scf::ForallOp rows) {
  auto ends = rows.getBody()->getOps<GradEndOp>();
  return llvm::hasSingleElement(ends) ? *ends.begin() : GradEndOp();
}

/// Whether the grid has the heads of a batch, then tiles, as attn-tile-to-grid makes it.
static bool isOverHeads(scf::ForallOp grid) {
  return grid.getRank() == 3 && grid.getMapping() && grid.getNumResults() == 0 &&
         llvm::all_of(grid.getMixedLowerBound(), isZeroInteger) &&
         llvm::all_of(ArrayRef(grid.getMixedStep()).take_front(2), isOneInteger);
}

/// Whether `rows` may as well run where `keys` does.
static bool mayMove(scf::ForallOp rows, scf::ForallOp keys) {
  if (rows->getBlock() != keys->getBlock() || !rows->isBeforeInBlock(keys))
    return false;
  for (Operation *op = rows->getNextNode(); op != keys; op = op->getNextNode())
    if (!isMemoryEffectFree(op) && !isa<memref::AllocOp>(op))
      return false;
  return true;
}

static SmallVector<GridPair> findPairs(ModuleOp module) {
  SmallVector<scf::ForallOp> grids;
  module.walk([&](scf::ForallOp grid) {
    if (isOverHeads(grid))
      grids.push_back(grid);
  });
  SmallVector<GridPair> pairs;
  for (scf::ForallOp keys : grids) {
    auto [number, query] = getGradient<GradKeyValueStepOp>(keys);
    if (!number)
      continue;
    for (scf::ForallOp rows : grids) {
      if (getGradient<GradQueryStepOp>(rows) != std::pair(number, query) || !mayMove(rows, keys))
        continue;
      GradEndOp end = getEnd(rows);
      auto type = cast<MemRefType>(query.getType());
      bool isWhole = type.getRank() == 4 && !type.isDynamicDim(3) &&
                     query.getParentRegion()->isProperAncestor(&keys.getRegion());
      if (isWhole && end && end.getAcc().getDefiningOp<memref::AllocOp>())
        pairs.push_back({rows, keys, query});
    }
  }
  return pairs;
}

//===----------------------------------------------------------------------------------------===//
// The fused form
//===----------------------------------------------------------------------------------------===//

/// The part of `sum` that `view` is of `query`.
static Value getPart(ImplicitLocOpBuilder &b, Value view, Value query, Value sum) {
  if (view == query)
    return sum;
  Operation *def = view.getDefiningOp();
  Value source = getPart(b, def->getOperand(0), query, sum);
  auto slice = dyn_cast<memref::SubViewOp>(def);
  if (!slice)
    return source;
  MemRefType type = memref::SubViewOp::inferRankReducedResultType(
      slice.getType().getShape(), cast<MemRefType>(source.getType()), slice.getMixedOffsets(),
      slice.getMixedSizes(), slice.getMixedStrides());
  return memref::SubViewOp::create(b, type, source, slice.getMixedOffsets(), slice.getMixedSizes(),
                                   slice.getMixedStrides());
}

/// (B, H, M, D) of f32.
static Value createSum(ImplicitLocOpBuilder &b, Value query) {
  auto type = cast<MemRefType>(query.getType());
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(b.createOrFold<memref::DimOp>(query, i));
  return memref::AllocOp::create(b, MemRefType::get(type.getShape(), b.getF32Type()), sizes,
                                 b.getI64IntegerAttr(64));
}

/// The grid over rows without its steps; `finish` is given what ends their sums, and the part of
/// `sum` that has these rows.
static void cloneWithoutSteps(ImplicitLocOpBuilder &b, const GridPair &pair, Value sum,
                              function_ref<void(GradEndOp, Value)> finish) {
  auto grid = cast<scf::ForallOp>(b.clone(*pair.rows));
  OpBuilder::InsertionGuard guard(b);
  GradEndOp end = getEnd(grid);
  b.setInsertionPoint(end);
  GradQueryStepOp step;
  grid.walk([&](GradQueryStepOp found) { step = found; });
  Value part = getPart(b, step.getQuery(), pair.query, sum);
  Value acc = end.getAcc();
  llvm::SmallSetVector<Operation *, 4> adding;
  for (Operation *user : acc.getUsers())
    adding.insert(grid.getBody()->findAncestorOpInBlock(*user));
  adding.remove(end);
  finish(end, part);
  for (Operation *op : adding)
    op->erase();
  acc.getDefiningOp()->erase();
}

static void emitZeros(ImplicitLocOpBuilder &b, const GridPair &pair, Value sum) {
  cloneWithoutSteps(b, pair, sum, [&](GradEndOp end, Value part) {
    Value zero = arith::ConstantOp::create(b, b.getF32FloatAttr(0));
    linalg::FillOp::create(b, zero, part);
    end.erase();
  });
}

static void addQueries(GradKeyValueStepOp step, Value query, Value sum) {
  ImplicitLocOpBuilder b(step.getLoc(), step);
  Value part = getPart(b, step.getQuery(), query, sum);
  auto fused = GradFusedStepOp::create(
      b, TypeRange(), step.getQuery(), step.getKey(), step.getValue(), step.getDOutput(),
      step.getNegLse2(), step.getDelta(), step.getNegLow2(), step.getScale(), step.getOrigin(),
      part, step.getAccKey(), step.getAccValue());
  fused->setDiscardableAttrs(step->getDiscardableAttrDictionary());
  for (auto [from, to] : llvm::zip_equal(step->getRegions(), fused->getRegions()))
    to.takeBody(from);
  step.erase();
}

/// The grid over keys with a block for each key head, which has tiles of keys in their order.
static void emitKeys(ImplicitLocOpBuilder &b, const GridPair &pair, Value sum) {
  scf::ForallOp keys = pair.keys;
  SmallVector<OpFoldResult> first = keys.getMixedLowerBound(), count = keys.getMixedUpperBound(),
                            step = keys.getMixedStep();
  Value bounds[] = {getValueOrCreateConstantIndexOp(b, b.getLoc(), first[2]),
                    getValueOrCreateConstantIndexOp(b, b.getLoc(), count[2]),
                    getValueOrCreateConstantIndexOp(b, b.getLoc(), step[2])};
  count[2] = step[2] = b.getIndexAttr(1);
  auto grid = scf::ForallOp::create(b, first, count, step, ValueRange(), keys.getMappingAttr());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(grid.getBody());
  auto tiles = scf::ForOp::create(b, bounds[0], bounds[1], bounds[2]);
  b.setInsertionPointToStart(tiles.getBody());
  IRMapping mapping;
  SmallVector<Value> at(grid.getInductionVars());
  at[2] = tiles.getInductionVar();
  mapping.map(keys.getInductionVars(), at);
  for (Operation &op : keys.getBody()->without_terminator())
    b.clone(op, mapping);
  grid.walk([&](GradKeyValueStepOp step) { addQueries(step, pair.query, sum); });
}

//===----------------------------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------------------------===//

/// Whether threads that have whole heads end earlier than those that share seven products evenly:
/// 5 * ceil(heads / threads) * threads <= 7 * heads.
static Value emitPays(ImplicitLocOpBuilder &b, scf::ForallOp keys) {
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, value); };
  SmallVector<OpFoldResult> counts = keys.getMixedUpperBound();
  Value heads =
      b.createOrFold<arith::MulIOp>(getValueOrCreateConstantIndexOp(b, b.getLoc(), counts[0]),
                                    getValueOrCreateConstantIndexOp(b, b.getLoc(), counts[1]));
  Value threads =
      func::CallOp::create(b, kThreads, TypeRange(b.getIndexType()), ValueRange()).getResult(0);
  Value rounds = b.createOrFold<arith::CeilDivUIOp>(heads, threads);
  Value fused = b.createOrFold<arith::MulIOp>(b.createOrFold<arith::MulIOp>(rounds, threads),
                                              index(kFusedProducts));
  Value twoPass = b.createOrFold<arith::MulIOp>(heads, index(kTwoPassProducts));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ule, fused, twoPass);
}

static void fuse(const GridPair &pair) {
  scf::ForallOp keys = pair.keys;
  ImplicitLocOpBuilder b(keys.getLoc(), keys);
  auto choice = scf::IfOp::create(b, TypeRange(), emitPays(b, keys), /*withElseRegion=*/true);
  b.setInsertionPointToStart(choice.thenBlock());
  Value sum = createSum(b, pair.query);
  emitZeros(b, pair, sum);
  emitKeys(b, pair, sum);
  cloneWithoutSteps(b, pair, sum,
                    [](GradEndOp end, Value part) { end.getAccMutable().assign(part); });
  for (scf::ForallOp grid : {pair.rows, keys})
    grid->moveBefore(choice.elseBlock()->getTerminator());
}

/// Declares the function that tells how many threads there are, unless it is.
static LogicalResult declareThreads(ModuleOp module) {
  auto type = FunctionType::get(module.getContext(), {}, IndexType::get(module.getContext()));
  if (Operation *known = module.lookupSymbol(kThreads)) {
    auto function = dyn_cast<func::FuncOp>(known);
    if (function && function.isExternal() && function.getFunctionType() == type)
      return success();
    return known->emitOpError("expected the name '")
           << kThreads << "' for the function of the pool, " << type << ", got it here";
  }
  auto b = OpBuilder::atBlockBegin(module.getBody());
  func::FuncOp::create(b, module.getLoc(), kThreads, type).setPrivate();
  return success();
}

namespace {
struct CPUFuseGradientsPass : RoomPass<attn::impl::CPUFuseGradientsPassBase<CPUFuseGradientsPass>,
                                       Room::Buffers, Room::Buffers> {
  LogicalResult transform() override {
    SmallVector<GridPair> pairs = findPairs(getOperation());
    if (!pairs.empty() && failed(declareThreads(getOperation())))
      return failure();
    for (const GridPair &pair : pairs)
      fuse(pair);
    return success();
  }
};
} // namespace
