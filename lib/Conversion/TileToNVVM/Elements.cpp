//===- Elements.cpp - elements of memory, one by one ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Global.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <map>

using namespace mlir;
using namespace attn::tile;

Type attn::tile::getMemoryType(Type elementType) {
  return elementType.isIndex() ? IntegerType::get(elementType.getContext(), 64) : elementType;
}

int64_t attn::tile::getBytes(Type elementType) {
  return llvm::divideCeil(getMemoryType(elementType).getIntOrFloatBitWidth(), 8);
}

Value attn::tile::castIndex(OpBuilder &builder, Location loc, Type type, Value value) {
  if (value.getType() == type)
    return value;
  return arith::IndexCastOp::create(builder, loc, type, value);
}

Value attn::tile::emitAddress(OpBuilder &builder, Location loc, const GlobalArgument &global,
                              ValueRange indices) {
  Value offset;
  for (auto [index, stride] : llvm::zip_equal(indices, global.strides)) {
    Value wide =
        LLVM::SExtOp::create(builder, loc, builder.getI64Type(), toI32(builder, loc, index));
    Value term = LLVM::MulOp::create(builder, loc, wide, stride);
    offset = offset ? LLVM::AddOp::create(builder, loc, offset, term).getResult() : term;
  }
  if (!offset)
    return global.pointer;
  return LLVM::GEPOp::create(builder, loc, global.pointer.getType(),
                             getMemoryType(global.type.getElementType()), global.pointer,
                             ValueRange{offset});
}

Value attn::tile::combine(OpBuilder &builder, Location loc, Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return LLVM::AndOp::create(builder, loc, a, b);
}

Value attn::tile::makeVector(OpBuilder &builder, Location loc, ArrayRef<Value> elements,
                             int64_t first, int64_t width) {
  if (width == 1)
    return elements[first];
  Value vector =
      LLVM::PoisonOp::create(builder, loc, VectorType::get({width}, elements[first].getType()));
  for (int64_t index = 0; index < width; ++index)
    vector = LLVM::InsertElementOp::create(builder, loc, vector, elements[first + index],
                                           i32(builder, loc, index));
  return vector;
}

void attn::tile::emitAdd(OpBuilder &builder, Location loc, const attn::Machine &machine,
                         Value pointer, ArrayRef<Value> elements, Value keep) {
  if (int64_t together = machine.addedTogether; int64_t(elements.size()) > together) {
    for (auto [index, element] : llvm::enumerate(elements))
      emitAdd(builder, loc, machine, addBytes(builder, loc, pointer, 4 * int64_t(index)), element,
              keep);
    return;
  }
  std::string registers, constraints = "l";
  for (size_t index = 0; index < elements.size(); ++index) {
    registers += (index ? ", $" : "$") + std::to_string(index + 1);
    constraints += ",f";
  }
  bool isVector = elements.size() > 1;
  std::string text = "red.relaxed.gpu.global.add." +
                     (isVector ? "v" + std::to_string(elements.size()) + "." : std::string()) +
                     "f32 [$0], " + (isVector ? "{" + registers + "}" : registers) + ";";
  SmallVector<Value> operands{pointer};
  llvm::append_range(operands, elements);
  if (keep) {
    text = "@$" + std::to_string(operands.size()) + " " + text;
    constraints += ",b";
    operands.push_back(keep);
  }
  emitAsm(builder, loc, text, constraints, operands, {});
}

namespace {
struct GatherPattern : TilePattern<GatherOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(GatherOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getSource());
    if (!hasLayout(type) || failed(global))
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> elements;
    // Registers that ask for the same element (a row's, in a tile) share one load.
    std::map<std::vector<void *>, Value> known;
    for (int64_t reg = 0; reg < getLayout(type).getNumRegisters(); ++reg) {
      SmallVector<Value> indices;
      std::vector<void *> key;
      for (ValueRange values : adaptor.getIndices()) {
        indices.push_back(values.size() == 1 ? values.front() : values[reg]);
        key.push_back(indices.back().getAsOpaquePointer());
      }
      Value &value = known[key];
      if (!value) {
        Value loaded = LLVM::LoadOp::create(
            rewriter, loc, getMemoryType(type.getElementType()),
            (*global)->inFragments ? emitFragmentAddress(rewriter, loc, **global, indices)
                                   : emitAddress(rewriter, loc, **global, indices),
            getBytes(type.getElementType()));
        value = castIndex(rewriter, loc, type.getElementType(), loaded);
      }
      elements.push_back(value);
    }
    rewriter.replaceOpWithMultiple(op, {pack(rewriter, loc, type.getElementType(), elements)});
    return success();
  }
};

struct ScatterAddPattern : TilePattern<ScatterAddOp> {
  using TilePattern::TilePattern;

  /// All elements of one place: a thread adds its own, then a warp those of its lanes, and one lane
  /// adds what is left to memory.
  void addAsOne(ScatterAddOp op, Value pointer, ArrayRef<Value> elements, ArrayRef<Value> keep,
                ConversionPatternRewriter &rewriter) const {
    Location loc = op.getLoc();
    Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0)), sum;
    for (auto [element, isKept] : llvm::zip_equal(elements, keep)) {
      Value term = LLVM::SelectOp::create(rewriter, loc, isKept, element, zero);
      sum = sum ? LLVM::FAddOp::create(rewriter, loc, sum, term).getResult() : term;
    }
    for (int64_t distance = 16; distance > 0; distance /= 2) {
      Value other = NVVM::ShflOp::create(rewriter, loc, sum.getType(), i32(rewriter, loc, -1), sum,
                                         i32(rewriter, loc, distance), i32(rewriter, loc, 31),
                                         NVVM::ShflKind::bfly, UnitAttr());
      sum = LLVM::FAddOp::create(rewriter, loc, sum, other);
    }
    Value isFirst = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq,
                                         context.getLane(rewriter, op), i32(rewriter, loc, 0));
    // Where nothing is kept the place may be outside.
    Value isSome = LLVM::FCmpOp::create(rewriter, loc, LLVM::FCmpPredicate::une, sum, zero);
    emitAdd(rewriter, loc, *context.getKernel(op).machine, pointer, sum,
            combine(rewriter, loc, isFirst, isSome));
  }

  LogicalResult matchAndRewrite(ScatterAddOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    FailureOr<const GlobalArgument *> global = context.getKernel(op).getArgument(op, op.getDest());
    if (!hasLayout(type) || failed(global))
      return failure();
    Location loc = op.getLoc();
    Value isFirst = context.getIsFirstReplica(rewriter, op, getLayout(type));
    SmallVector<Value> elements = unpack(rewriter, loc, adaptor.getValue()),
                       keep = unpack(rewriter, loc, adaptor.getKeep());
    for (Value &isKept : keep)
      isKept = combine(rewriter, loc, isKept, isFirst);
    bool isOne = llvm::none_of(op.getIndices().getTypes(), llvm::IsaPred<RankedTensorType>);
    auto getPointer = [&](int64_t reg) {
      SmallVector<Value> indices;
      for (auto [index, values] : llvm::zip_equal(op.getIndices(), adaptor.getIndices()))
        indices.push_back(isa<RankedTensorType>(index.getType()) ? values[reg] : values.front());
      return emitAddress(rewriter, loc, **global, indices);
    };
    if (isOne)
      addAsOne(op, getPointer(0), elements, keep, rewriter);
    for (int64_t reg = 0; !isOne && reg < int64_t(elements.size()); ++reg)
      if (!matchPattern(elements[reg], m_AnyZeroFloat()))
        emitAdd(rewriter, loc, *context.getKernel(op).machine, getPointer(reg), elements[reg],
                keep[reg]);
    rewriter.eraseOp(op);
    return success();
  }
};

/// One element, written by one thread.
struct ScalarStorePattern : TilePattern<memref::StoreOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(memref::StoreOp op, OneToNOpAdaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getMemRef());
    if (failed(global))
      return failure();
    context.emitOnce(rewriter, op, [&](OpBuilder &builder) {
      Location loc = op.getLoc();
      Value element = adaptor.getValue().front();
      LLVM::StoreOp::create(builder, loc,
                            castIndex(builder, loc, getMemoryType(element.getType()), element),
                            emitAddress(builder, loc, **global, op.getIndices()));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// One element, read by every thread.
struct ScalarLoadPattern : TilePattern<memref::LoadOp> {
  using TilePattern::TilePattern;
  LogicalResult matchAndRewrite(memref::LoadOp op, OneToNOpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<const GlobalArgument *> global =
        context.getKernel(op).getArgument(op, op.getMemRef());
    if (failed(global))
      return failure();
    Value loaded =
        LLVM::LoadOp::create(rewriter, op.getLoc(), getMemoryType(op.getType()),
                             emitAddress(rewriter, op.getLoc(), **global, op.getIndices()));
    rewriter.replaceOp(op, castIndex(rewriter, op.getLoc(), op.getType(), loaded));
    return success();
  }
};
} // namespace

void attn::tile::populateElementPatterns(RewritePatternSet &patterns,
                                         const PatternContext &context) {
  patterns.add<GatherPattern, ScatterAddPattern, ScalarLoadPattern, ScalarStorePattern>(
      context, patterns.getContext());
}
