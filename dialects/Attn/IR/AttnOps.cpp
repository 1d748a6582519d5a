//===- AttnOps.cpp - syntax and simple interfaces of the attn ops --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// Parses `keyword(%a, %b, ...) { ... }`; the arguments' types follow from the keyword.
static ParseResult parseFunctionRegion(OpAsmParser &parser, StringRef keyword, ArrayRef<Type> types,
                                       Region &region) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren))
    return failure();
  if (arguments.size() != types.size())
    return parser.emitError(loc) << "expected " << types.size() << " arguments of the " << keyword
                                 << " region, got " << arguments.size();
  for (auto [argument, type] : llvm::zip_equal(arguments, types))
    argument.type = type;
  return parser.parseRegion(region, arguments);
}

static void printFunctionRegion(OpAsmPrinter &printer, StringRef keyword, Region &region) {
  if (region.empty())
    return;
  printer.increaseIndent();
  printer.printNewline();
  printer << keyword << "(";
  llvm::interleaveComma(region.getArguments(), printer,
                        [&](BlockArgument argument) { printer << argument; });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
  printer.decreaseIndent();
}

static ParseResult parseScoreAndMask(OpAsmParser &parser, Region &score, Region &mask) {
  Type index = parser.getBuilder().getIndexType();
  Type f32 = parser.getBuilder().getF32Type();
  return failure(parseFunctionRegion(parser, "score", {f32, index, index, index, index}, score) ||
                 parseFunctionRegion(parser, "mask", {index, index, index, index}, mask));
}

/// Ends the line of the last region, so that the types have one of their own.
static void printEndOfRegions(OpAsmPrinter &printer) {
  printer.increaseIndent();
  printer.printNewline();
  printer.decreaseIndent();
}

static void printScoreAndMask(OpAsmPrinter &printer, Operation *, Region &score, Region &mask) {
  printFunctionRegion(printer, "score", score);
  printFunctionRegion(printer, "mask", mask);
  if (!score.empty() || !mask.empty())
    printEndOfRegions(printer);
}

/// A sink for all rows is an f32, whose type is left out.
static ParseResult parseSink(OpAsmParser &parser,
                             std::optional<OpAsmParser::UnresolvedOperand> &sink, Type &type) {
  if (parser.parseOperand(sink.emplace()))
    return failure();
  if (succeeded(parser.parseOptionalColon()))
    return parser.parseType(type);
  type = parser.getBuilder().getF32Type();
  return success();
}

static void printSink(OpAsmPrinter &printer, Operation *, Value sink, Type type) {
  printer << sink;
  if (!type.isF32())
    printer << " : " << type;
}

static ParseResult parseMask(OpAsmParser &parser, Region &mask) {
  Type index = parser.getBuilder().getIndexType();
  return parseFunctionRegion(parser, "mask", {index, index, index, index}, mask);
}

static void printMask(OpAsmPrinter &printer, Operation *, Region &mask) {
  printFunctionRegion(printer, "mask", mask);
  printEndOfRegions(printer);
}

static ParseResult parseScoreMaskAndGrad(OpAsmParser &parser, Region &score, Region &mask,
                                         Region &grad) {
  Type index = parser.getBuilder().getIndexType();
  Type f32 = parser.getBuilder().getF32Type();
  return failure(parseScoreAndMask(parser, score, mask) ||
                 parseFunctionRegion(parser, "grad", {f32, f32, index, index, index, index}, grad));
}

static void printScoreMaskAndGrad(OpAsmPrinter &printer, Operation *, Region &score, Region &mask,
                                  Region &grad) {
  printFunctionRegion(printer, "score", score);
  printFunctionRegion(printer, "mask", mask);
  printFunctionRegion(printer, "grad", grad);
  if (!score.empty() || !mask.empty() || !grad.empty())
    printEndOfRegions(printer);
}

#include "dialects/Attn/IR/AttnInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Destinations and effects
//===----------------------------------------------------------------------===//

void attn::getBufferEffects(
    DestinationStyleOpInterface op, bool readsInits,
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    bool isInit = op.isDpsInit(&operand);
    if (!isInit || readsInits)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (isInit)
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  // Captured buffers are read by the regions; they are not operands.
  for (Region &region : op->getRegions())
    if (!region.empty() && op.hasPureBufferSemantics())
      effects.emplace_back(MemoryEffects::Read::get());
}

LogicalResult attn::reifyInits(DestinationStyleOpInterface op, OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  for (OpOperand &init : op.getDpsInitsMutable())
    shapes.push_back(tensor::getMixedSizes(builder, op.getLoc(), init.get()));
  return success();
}

SmallVector<OpFoldResult> attn::getOriginOrZeros(OperandRange origin, MLIRContext *context) {
  if (origin.empty())
    return SmallVector<OpFoldResult>(4, IntegerAttr::get(IndexType::get(context), 0));
  return getAsOpFoldResult(SmallVector<Value>(origin));
}

MutableOperandRange OnlineAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getNumOperands() - 3, 3);
}

void OnlineAttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/true, effects);
}

LogicalResult OnlineAttentionOp::reifyResultShapes(OpBuilder &builder,
                                                   ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

SmallVector<OpFoldResult> OnlineAttentionOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}

MutableOperandRange TileStatusOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getNumOperands() - 1, 1);
}

void TileStatusOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/false, effects);
}

LogicalResult TileStatusOp::reifyResultShapes(OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

SmallVector<OpFoldResult> TileStatusOp::getMixedOrigin() {
  return getOriginOrZeros(getOrigin(), getContext());
}

MutableOperandRange ListTilesOp::getDpsInitsMutable() {
  return MutableOperandRange(getOperation(), getNumOperands() - 2, 2);
}

void ListTilesOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/false, effects);
}

LogicalResult ListTilesOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

MutableOperandRange NormalizeOp::getDpsInitsMutable() {
  unsigned inits = 1 + (getLse() ? 1 : 0) + (getLseLow() ? 1 : 0);
  return MutableOperandRange(getOperation(), getNumOperands() - inits, inits);
}

void NormalizeOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/false, effects);
}

LogicalResult NormalizeOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

MutableOperandRange MergeOp::getDpsInitsMutable() {
  unsigned inits = 1 + (getLse() ? 1 : 0) + (getLseLow() ? 1 : 0);
  return MutableOperandRange(getOperation(), getNumOperands() - inits, inits);
}

void MergeOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  getBufferEffects(*this, /*readsInits=*/false, effects);
}

LogicalResult MergeOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyInits(*this, builder, shapes);
}

/// Moves the regions of an op to those of the same op created anew.
static void moveRegions(PatternRewriter &rewriter, Operation *from, Operation *to) {
  for (auto [source, dest] : llvm::zip_equal(from->getRegions(), to->getRegions()))
    rewriter.inlineRegionBefore(source, dest, dest.end());
}

namespace {
/// Absorbs tensor.cast producers that say less than their source. The tensor dialect has this
/// pattern for every destination-style op, but clones the op's regions and cannot clone an empty
/// one; the higher benefit comes first.
struct FoldTensorCasts : RewritePattern {
  FoldTensorCasts(StringRef name, MLIRContext *context)
      : RewritePattern(name, /*benefit=*/2, context) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!tensor::hasFoldableTensorCastOperand(op))
      return failure();
    SmallVector<Type> types(op->getResultTypes());
    SmallVector<Value> operands =
        tensor::getUpdatedOperandsAfterCastOpFolding(cast<DestinationStyleOpInterface>(op), types);
    OperationState state(op->getLoc(), op->getName(), operands, types,
                         op->getAttrDictionary().getValue());
    for (unsigned i = 0; i < op->getNumRegions(); ++i)
      state.addRegion();
    Operation *narrow = rewriter.create(state);
    moveRegions(rewriter, op, narrow);
    SmallVector<Value> results(narrow->getResults());
    for (auto [old, result] : llvm::zip_equal(op->getResults(), results))
      if (result.getType() != old.getType())
        result = tensor::CastOp::create(rewriter, op->getLoc(), old.getType(), result);
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

void attn::populateCastFold(RewritePatternSet &patterns, StringRef name) {
  patterns.add<FoldTensorCasts>(name, patterns.getContext());
}

void OnlineAttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}

void TileStatusOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}

void ListTilesOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *) {
  populateCastFold(patterns, getOperationName());
}

unsigned OnlineAttentionOp::getRunningPosition() { return 3; }

SmallVector<OpOperand *> OnlineAttentionOp::getRunningMutable() {
  return {&getKeyMutable(), &getValueMutable()};
}

Value OnlineAttentionOp::getFixed() { return getQuery(); }

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

SmallVector<Value> AttentionOp::getMatrices() {
  return {getQuery(), getKey(), getValue(), getOutput()};
}

LogicalResult AttentionOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<OpFoldResult> output = tensor::getMixedSizes(builder, getLoc(), getQuery());
  output[3] = builder.getIndexAttr(getValueDim());
  shapes.push_back(output);
  for (unsigned i = 1; i < getOperation()->getNumResults(); ++i)
    shapes.emplace_back(output.begin(), output.begin() + 3);
  return success();
}

namespace {
/// A mask region that yields a constant `true` masks nothing.
struct DropTrueMask : OpInterfaceRewritePattern<ScoredOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ScoredOpInterface op, PatternRewriter &rewriter) const override {
    if (op.getMask().empty() ||
        !matchPattern(cast<YieldOp>(op.getMask().front().getTerminator()).getResult(), m_One()))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&op.getMask().front()); });
    return success();
  }
};

/// A factor of 1 is none.
struct DropUnitFactor : OpInterfaceRewritePattern<ScoredOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ScoredOpInterface op, PatternRewriter &rewriter) const override {
    Value factor = getFactor(op.getScore());
    if (!factor || !matchPattern(factor, m_OneFloat()))
      return failure();
    auto yield = cast<YieldOp>(op.getScore().front().getTerminator());
    rewriter.modifyOpInPlace(yield, [&] { yield.getFactorMutable().clear(); });
    return success();
  }
};

/// A score region that yields its own score, without a factor, changes nothing.
struct DropIdentityScore : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    if (op.getScore().empty() || getFactor(op.getScore()) ||
        cast<YieldOp>(op.getScore().front().getTerminator()).getResult() !=
            op.getScore().getArgument(0))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { rewriter.eraseBlock(&op.getScore().front()); });
    return success();
  }
};

/// Nothing reads the log-sum-exp, or its low part: do not compute it.
struct DropUnusedLse : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op, PatternRewriter &rewriter) const override {
    unsigned kept = op->getNumResults();
    while (kept > 1 && op->getResult(kept - 1).use_empty())
      --kept;
    if (kept == op->getNumResults())
      return failure();
    auto properties = op.getProperties();
    properties.resultSegmentSizes = {1, kept > 1, kept > 2};
    auto narrow =
        AttentionOp::create(rewriter, op.getLoc(), op->getResults().take_front(kept).getTypes(),
                            op.getOperands(), op->getDiscardableAttrDictionary().getValue());
    narrow.getProperties() = properties;
    moveRegions(rewriter, op, narrow);
    for (auto [from, to] : llvm::zip(op->getResults(), narrow->getResults()))
      rewriter.replaceAllUsesWith(from, to);
    rewriter.eraseOp(op);
    return success();
  }
};

/// `at` of four zeros is the default.
struct DropZeroOrigin : OpInterfaceRewritePattern<ScoredOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ScoredOpInterface op, PatternRewriter &rewriter) const override {
    if (op.getOrigin().empty() ||
        !llvm::all_of(op.getOrigin(), [](Value v) { return matchPattern(v, m_Zero()); }))
      return failure();
    rewriter.modifyOpInPlace(op, [&] { op.getOriginMutable().clear(); });
    return success();
  }
};
} // namespace

Value attn::getWhole(Value value) {
  while (true) {
    if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
      value = slice.getSource();
    else if (auto assume = value.getDefiningOp<AssumeOp>())
      value = assume.getSource();
    else
      return value;
  }
}

bool attn::readsTensors(Region &region) {
  return !region.empty() && !region.front().getOps<tensor::ExtractOp>().empty();
}

/// Whether the number is the tensor's last index of a dimension.
static bool isLastIndex(Value value, Value tensor, int64_t dim) {
  auto type = cast<ShapedType>(tensor.getType());
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return !type.isDynamicDim(dim) && constant.getSExtValue() == type.getDimSize(dim) - 1;
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<arith::SubIOp, arith::AddIOp>(op) ||
      !matchPattern(op->getOperand(1), m_ConstantInt(&constant)) ||
      constant.getSExtValue() != (isa<arith::SubIOp>(op) ? 1 : -1))
    return false;
  auto size = op->getOperand(0).getDefiningOp<ShapedDimOpInterface>();
  return size && size.getShapedValue() == tensor && getConstantIntValue(size.getDimension()) == dim;
}

/// Whether the index is max(min(x, last), 0) or min(max(x, 0), last).
static bool isKeptInside(Value index, Value tensor, int64_t dim) {
  auto isBound = [&](Operation *op) {
    Value bound = op->getOperand(1);
    return isa<arith::MaxSIOp>(op) ? matchPattern(bound, m_Zero())
                                   : isLastIndex(bound, tensor, dim);
  };
  auto isMinMax = llvm::IsaPred<arith::MaxSIOp, arith::MinSIOp>;
  Operation *outer = index.getDefiningOp();
  Operation *inner = outer && isMinMax(outer) ? outer->getOperand(0).getDefiningOp() : nullptr;
  return inner && isMinMax(inner) && inner->getName() != outer->getName() && isBound(outer) &&
         isBound(inner);
}

bool attn::mayBeOutside(Value index, Value tensor, int64_t dim) {
  // Positions fit 32 bits (s12), and may wrap in fewer.
  auto isWide = [](Type type) { return type.isIndex() || type.getIntOrFloatBitWidth() >= 32; };
  Value source = index;
  for (auto cast = source.getDefiningOp<arith::IndexCastOp>();
       cast && isWide(cast.getIn().getType()); cast = source.getDefiningOp<arith::IndexCastOp>())
    source = cast.getIn();
  if (isa<BlockArgument>(source) &&
      isa_and_nonnull<ScoredOpInterface, AbsorbingOpInterface, TileStatusOp>(
          source.getParentRegion()->getParentOp()))
    return false;
  APInt constant;
  if (matchPattern(source, m_ConstantInt(&constant))) {
    auto type = cast<ShapedType>(tensor.getType());
    if (constant.isZero())
      return false;
    return type.isDynamicDim(dim) || constant.isNegative() ||
           constant.getSExtValue() >= type.getDimSize(dim);
  }
  return !isKeptInside(index, tensor, dim);
}

namespace {
/// Whether an index grows by one with the row, with the key, or with their difference, or not at
/// all.
enum class Step { None, Row, Key, Distance, Other };
} // namespace

static Step findStep(Operation &op, const DenseMap<Value, Step> &steps) {
  auto lookup = [&](unsigned number) { return steps.lookup(op.getOperand(number)); };
  if (llvm::all_of(op.getOperands(), [&](Value v) { return steps.lookup(v) == Step::None; }))
    return Step::None;
  if (isa<arith::IndexCastOp>(op))
    return lookup(0);
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op))
    return lookup(0) == Step::Distance && lookup(1) == Step::None ? Step::Distance : Step::Other;
  if (!isa<arith::AddIOp, arith::SubIOp>(op))
    return Step::Other;
  if (lookup(1) == Step::None)
    return lookup(0);
  if (isa<arith::AddIOp>(op))
    return lookup(0) == Step::None ? lookup(1) : Step::Other;
  bool isDistance = (lookup(0) == Step::Row && lookup(1) == Step::Key) ||
                    (lookup(0) == Step::Key && lookup(1) == Step::Row);
  return isDistance ? Step::Distance : Step::Other;
}

DenseSet<Value> attn::findDistances(Region &region) {
  DenseSet<Value> distances;
  if (region.empty())
    return distances;
  // The row and the key are the last two arguments.
  ValueRange positions = region.getArguments().take_back(2);
  DenseMap<Value, Step> steps{{positions[0], Step::Row}, {positions[1], Step::Key}};
  for (Value score : region.getArguments())
    if (!score.getType().isIndex())
      steps[score] = Step::Other;
  for (Operation &op : region.front().without_terminator()) {
    Step step = findStep(op, steps);
    for (Value result : op.getResults()) {
      steps[result] = step;
      if (step == Step::Distance)
        distances.insert(result);
    }
  }
  return distances;
}

bool attn::readsByPosition(Region &region) {
  if (region.empty())
    return false;
  ValueRange last = region.getArguments().take_back(2);
  DenseSet<Value> positions(last.begin(), last.end()), distances = findDistances(region);
  for (Operation &op : region.front()) {
    bool depends = llvm::any_of(op.getOperands(), [&](Value v) { return positions.contains(v); });
    if (auto read = dyn_cast<tensor::ExtractOp>(op))
      for (Value index : read.getIndices())
        if (positions.contains(index) && !distances.contains(index))
          return true;
    if (depends)
      positions.insert_range(op.getResults());
  }
  return false;
}

DenseSet<Operation *> attn::findOrigins(Region &region, unsigned yielded) {
  DenseSet<Operation *> origins;
  auto insert = [&](Value value) {
    if (Operation *op = value.getDefiningOp(); op && op->getParentRegion() == &region)
      origins.insert(op);
  };
  insert(region.front().getTerminator()->getOperand(yielded));
  for (Operation &op : llvm::reverse(region.front().without_terminator()))
    if (origins.contains(&op))
      llvm::for_each(op.getOperands(), insert);
  return origins;
}

Value attn::getFactor(Region &score) {
  return score.empty() ? Value() : cast<YieldOp>(score.front().getTerminator()).getFactor();
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<DropTrueMask, DropUnitFactor, DropIdentityScore, DropUnusedLse, DropZeroOrigin>(
      context);
}

void AttentionGradOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                  MLIRContext *context) {
  patterns.add<DropTrueMask, DropUnitFactor, DropZeroOrigin>(context);
  populateGradFolds(patterns);
}
