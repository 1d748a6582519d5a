//===- SharedOperand.cpp - shared tiles as products read them ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/SharedOperand.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "lib/Machine/Swizzle.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// Of K, in one instruction.
static constexpr int64_t kStepBytes = 32;

int64_t SharedOperand::getOffset(int64_t mn, int64_t kStep) const {
  int64_t swizzle = type.getSwizzle(), byte = kStep * kStepBytes;
  if (isKMajor)
    return byte / swizzle * type.getSlabBytes() + byte % swizzle + mn * swizzle;
  int64_t rows = kStepBytes / type.getElementBytes();
  return kStep * rows * swizzle + mn / type.getSlabColumns() * type.getSlabBytes();
}

uint64_t SharedOperand::getDescriptorBits() const {
  uint64_t leading = isKMajor ? 1 : type.getSlabBytes() >> 4;
  uint64_t stride = kSwizzleRows * type.getSwizzle() >> 4;
  // Swizzles from the widest on, in two bits. A third below them has another use, and is 0.
  uint64_t code = 1 + (llvm::find(kSwizzles, type.getSwizzle()) - std::begin(kSwizzles));
  uint64_t version = form == Form::Tensor ? 1 : 0;
  return code << 62 | version << 46 | stride << 32 | leading << 16;
}

Value SharedOperand::emitDescriptor(OpBuilder &builder, Location loc, Value pointer) const {
  Value address = LLVM::PtrToIntOp::create(builder, loc, builder.getI32Type(), pointer);
  address = LLVM::LShrOp::create(builder, loc, address, i32(builder, loc, 4));
  address = LLVM::AndOp::create(builder, loc, address, i32(builder, loc, 0x3fff));
  Value wide = LLVM::ZExtOp::create(builder, loc, builder.getI64Type(), address);
  return LLVM::OrOp::create(builder, loc, wide, i64(builder, loc, getDescriptorBits()));
}

Value attn::tile::advanceDescriptor(OpBuilder &builder, Location loc, Value descriptor,
                                    int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  return LLVM::AddOp::create(builder, loc, descriptor, i64(builder, loc, bytes >> 4));
}
