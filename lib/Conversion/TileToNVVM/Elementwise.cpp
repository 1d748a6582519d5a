//===- Elementwise.cpp - arith and math on register tiles ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace attn::tile;

/// The operand's elements [first, first + count) as a scalar or a vector of `count` elements.
static Value slice(OpBuilder &builder, Location loc, ValueRange values, Type elementType,
                   int64_t first, int64_t count) {
  int64_t pack = getPack(elementType);
  if (pack == count)
    return values[first / count];
  Value vector = LLVM::PoisonOp::create(builder, loc, VectorType::get({count}, elementType));
  for (int64_t index = 0; index < count; ++index)
    vector = LLVM::InsertElementOp::create(builder, loc, vector, values[first + index],
                                           i32(builder, loc, index));
  return vector;
}

namespace {
/// Applies the op register by register. Where operands and result share registers differently (f32
/// to bf16), it is applied to vectors as wide as the denser of them, or, since there are no vectors
/// of indices, element by element.
struct ElementwisePattern : ConversionPattern {
  ElementwisePattern(const PatternContext &context, MLIRContext *mlirContext)
      : ConversionPattern(context.types, MatchAnyOpTypeTag(), /*benefit=*/1, mlirContext) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isa_and_nonnull<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
        op->getNumResults() != 1)
      return failure();
    auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<Type> types;
    if (!result || isa<arith::ConstantOp>(op) ||
        failed(getTypeConverter()->convertType(result, types)))
      return failure();
    int64_t resultPack = getPack(result.getElementType()), width = resultPack;
    for (Type type : op->getOperandTypes())
      if (auto tile = dyn_cast<RankedTensorType>(type))
        width = std::max(width, getPack(tile.getElementType()));

    Location loc = op->getLoc();
    if (isa<arith::TruncFOp>(op) && resultPack == 4) {
      rewriter.replaceOpWithMultiple(op, {narrow(rewriter, loc, result, operands[0])});
      return success();
    }
    if (width > 1 && castsIndices(op)) {
      rewriter.replaceOpWithMultiple(op, {applyToElements(rewriter, op, result, operands)});
      return success();
    }
    SmallVector<Value> results;
    int64_t elements = types.size() * resultPack;
    for (int64_t first = 0; first < elements; first += width) {
      SmallVector<Value> arguments;
      for (auto [operand, values] : llvm::zip_equal(op->getOperands(), operands)) {
        auto tile = dyn_cast<RankedTensorType>(operand.getType());
        arguments.push_back(tile ? slice(rewriter, loc, values, tile.getElementType(), first, width)
                                 : values.front());
      }
      Type type =
          width == 1 ? result.getElementType() : VectorType::get({width}, result.getElementType());
      Value value =
          rewriter.create(loc, op->getName().getIdentifier(), arguments, type, op->getAttrs())
              ->getResult(0);
      if (resultPack == width)
        results.push_back(value);
      else
        llvm::append_range(results, unpack(rewriter, loc, value));
    }
    rewriter.replaceOpWithMultiple(op, {results});
    return success();
  }

  /// Words of four floats of 8 bits, which the hardware rounds two by two, to at most the largest.
  static SmallVector<Value> narrow(OpBuilder &b, Location loc, RankedTensorType result,
                                   ValueRange values) {
    auto vector = VectorType::get({4}, b.getI8Type());
    auto half = [&](size_t first) -> Value {
      Value pair = NVVM::ConvertF32x2ToF8x2Op::create(
          b, loc, b.getI16Type(), values[first + 1], values[first], NVVM::FPRoundingMode::RN,
          NVVM::SaturationMode::SATFINITE, /*relu=*/false, result.getElementType());
      return LLVM::ZExtOp::create(b, loc, b.getI32Type(), pair);
    };
    SmallVector<Value> words;
    for (size_t first = 0; first < values.size(); first += 4) {
      Value upper = LLVM::ShlOp::create(b, loc, half(first + 2), i32(b, loc, 16));
      Value word = LLVM::OrOp::create(b, loc, half(first), upper);
      words.push_back(LLVM::BitcastOp::create(b, loc, vector, word));
    }
    return words;
  }

  static bool castsIndices(Operation *op) {
    return getElementTypeOrSelf(op->getOperand(0)).isIndex() ||
           getElementTypeOrSelf(op->getResult(0)).isIndex();
  }

  /// A cast has one operand.
  static SmallVector<Value> applyToElements(OpBuilder &b, Operation *op, RankedTensorType result,
                                            ArrayRef<ValueRange> operands) {
    Location loc = op->getLoc();
    Type type = result.getElementType();
    SmallVector<Value> elements = unpack(b, loc, operands[0]);
    for (Value &element : elements)
      element =
          b.create(loc, op->getName().getIdentifier(), element, type, op->getAttrs())->getResult(0);
    return pack(b, loc, type, elements);
  }
};

/// One scalar constant stands for all elements.
struct ConstantPattern : TilePattern<arith::ConstantOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!splat || failed(getTypeConverter()->convertType(op.getType(), types)))
      return rewriter.notifyMatchFailure(op, "expected a splat constant of a tile with a layout");
    TypedAttr value = splat.getSplatValue<TypedAttr>();
    if (auto vector = dyn_cast<VectorType>(types.front())) {
      if (auto number = dyn_cast<FloatAttr>(value);
          number && isa<IntegerType>(vector.getElementType()))
        value =
            rewriter.getIntegerAttr(vector.getElementType(), number.getValue().bitcastToAPInt());
      value = SplatElementsAttr::get(vector, value);
    }
    Value scalar = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    rewriter.replaceOpWithMultiple(op, {SmallVector<Value>(types.size(), scalar)});
    return success();
  }
};

/// Free, an exchange within quads, or refused: see `isSameMap`.
struct ConvertLayoutPattern : TilePattern<ConvertLayoutOp> {
  using TilePattern::TilePattern;

  /// Of 32 columns of a row each lane of a quad has four pairs of neighbours, 8 columns apart: the
  /// column of a 4 x 4 matrix of pairs whose rows the lanes are to have.
  SmallVector<Value> transposeQuads(OpBuilder &b, ConvertLayoutOp op, ValueRange pairs) const {
    Location loc = op.getLoc();
    Layout from = getLayout(cast<RankedTensorType>(op.getSource().getType())),
           to = getLayout(cast<RankedTensorType>(op.getType()));
    Value thread = context.getKernel(op).thread;
    auto hasBit = [&](int64_t bit) -> Value {
      Value masked = LLVM::AndOp::create(b, loc, thread, i32(b, loc, bit));
      return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ne, masked, i32(b, loc, 0));
    };
    Value isOdd = hasBit(1), isUpper = hasBit(2);
    Type pairType = pairs.front().getType();
    SmallVector<Value> results(pairs.size());
    // The first of four pairs of the result, which is where lane 0 has them from.
    for (size_t first = 0; first < results.size(); first += 4) {
      Position position = to.getPosition({0, 0, int64_t(2 * first)});
      std::array<Value, 4> words;
      for (auto [group, word] : llvm::enumerate(words)) {
        int64_t reg = from.getOwner({position.row, position.column + 8 * int64_t(group)}).reg;
        word = LLVM::BitcastOp::create(b, loc, b.getI32Type(), pairs[reg / 2]);
      }
      emitExchange(b, loc, isOdd, 1, words[0], words[1]);
      emitExchange(b, loc, isOdd, 1, words[2], words[3]);
      emitExchange(b, loc, isUpper, 2, words[0], words[2]);
      emitExchange(b, loc, isUpper, 2, words[1], words[3]);
      for (auto [index, word] : llvm::enumerate(words))
        results[first + index] = LLVM::BitcastOp::create(b, loc, pairType, word);
    }
    return results;
  }

  /// Elements of 8 bits that stay with their threads, in other registers: halves of words move.
  static FailureOr<SmallVector<Value>> moveHalves(OpBuilder &b, Location loc,
                                                  ArrayRef<int64_t> registers, ValueRange words) {
    SmallVector<Value> results;
    for (size_t first = 0; first < registers.size(); first += 4) {
      Value word;
      for (size_t half : {0, 2}) {
        int64_t from = registers[first + half];
        if (from % 2 != 0 || registers[first + half + 1] != from + 1)
          return failure();
        Value value = LLVM::BitcastOp::create(b, loc, b.getI32Type(), words[from / 4]);
        bool isUpper = from % 4 != 0;
        if (half == 0)
          word = isUpper ? LLVM::LShrOp::create(b, loc, value, i32(b, loc, 16)).getResult()
                         : LLVM::AndOp::create(b, loc, value, i32(b, loc, 0xffff)).getResult();
        else
          value = isUpper ? LLVM::AndOp::create(b, loc, value, i32(b, loc, -0x10000)).getResult()
                          : LLVM::ShlOp::create(b, loc, value, i32(b, loc, 16)).getResult();
        if (half != 0)
          word = LLVM::OrOp::create(b, loc, word, value);
      }
      results.push_back(LLVM::BitcastOp::create(b, loc, words.front().getType(), word));
    }
    return results;
  }

  LogicalResult matchAndRewrite(ConvertLayoutOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto from = cast<RankedTensorType>(op.getSource().getType()),
         to = cast<RankedTensorType>(op.getType());
    if (!isConvertible(from, to))
      return op.emitOpError(
                 "expected layouts that hold the same elements in the same registers, got ")
             << from << " to " << to << "; go through shared memory instead";
    if (isSameMap(getLayout(from), getLayout(to))) {
      rewriter.replaceOpWithMultiple(op, {adaptor.getSource()});
      return success();
    }
    if (SmallVector<int64_t> registers = findRegisters(getLayout(from), getLayout(to));
        !registers.empty()) {
      if (getPack(from.getElementType()) != 4)
        return op.emitOpError("expected elements of 8 bits that stay with their threads, got ")
               << from << " to " << to;
      FailureOr<SmallVector<Value>> words =
          moveHalves(rewriter, op.getLoc(), registers, adaptor.getSource());
      if (failed(words))
        return op.emitOpError("expected pairs of elements that stay together, got ")
               << from << " to " << to;
      rewriter.replaceOpWithMultiple(op, {*words});
      return success();
    }
    rewriter.replaceOpWithMultiple(op, {transposeQuads(rewriter, op, adaptor.getSource())});
    return success();
  }
};
} // namespace

void attn::tile::populateElementwisePatterns(RewritePatternSet &patterns,
                                             const PatternContext &context) {
  patterns.add<ElementwisePattern, ConstantPattern, ConvertLayoutPattern>(context,
                                                                          patterns.getContext());
}
