//===- Views.cpp - where positions of a view are in memory ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/TileToNVVM/Views.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attn::tile;

SmallVector<Value> attn::tile::unpackCoordinates(OpBuilder &builder, Location loc,
                                                 const PackedRows &packed,
                                                 ArrayRef<Value> coordinates) {
  SmallVector<Value> result(coordinates);
  result[1] = LLVM::MulOp::create(builder, loc, coordinates[2], packed.group);
  result[2] = LLVM::LShrOp::create(builder, loc, coordinates[1],
                                   i32(builder, loc, llvm::Log2_64(packed.slots)));
  return result;
}

Value attn::tile::emitPage(OpBuilder &builder, Location loc, const PageTable &table, Value batch,
                           Value row) {
  using Predicate = LLVM::ICmpPredicate;
  Type i32Type = builder.getI32Type(), i64Type = builder.getI64Type();
  Value entry = LLVM::UDivOp::create(builder, loc, row, i32(builder, loc, table.page));
  Value exists = LLVM::ICmpOp::create(builder, loc, Predicate::ult, entry, table.count);
  auto branch = scf::IfOp::create(builder, loc, TypeRange(i32Type), exists,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value offset = LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(0));
  const Value indices[] = {batch, entry};
  for (auto [index, stride] : llvm::zip_equal(indices, table.strides)) {
    Value wide = LLVM::SExtOp::create(builder, loc, i64Type, index);
    offset =
        LLVM::AddOp::create(builder, loc, offset, LLVM::MulOp::create(builder, loc, wide, stride));
  }
  Value address = LLVM::GEPOp::create(builder, loc, table.pointer.getType(), table.element,
                                      table.pointer, ValueRange{offset});
  Value page = LLVM::LoadOp::create(builder, loc, table.element, address);
  if (table.element == i64Type) {
    Value most = LLVM::ConstantOp::create(
        builder, loc, builder.getI64IntegerAttr(std::numeric_limits<int32_t>::max()));
    Value fits = LLVM::ICmpOp::create(builder, loc, Predicate::ule, page, most);
    Value narrow = LLVM::TruncOp::create(builder, loc, i32Type, page);
    page = LLVM::SelectOp::create(builder, loc, fits, narrow, i32(builder, loc, -1));
  }
  scf::YieldOp::create(builder, loc, page);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, i32(builder, loc, -1));
  return branch.getResult(0);
}

SequenceRows attn::tile::emitSequence(OpBuilder &builder, Location loc, const RaggedRows &ragged,
                                      Value batch) {
  Type i32Type = builder.getI32Type();
  bool isWide = ragged.element != i32Type;
  auto widen = [&](Value value) -> Value {
    return isWide ? LLVM::SExtOp::create(builder, loc, ragged.element, value) : value;
  };
  auto narrow = [&](Value value) -> Value {
    return isWide ? LLVM::TruncOp::create(builder, loc, i32Type, value) : value;
  };
  Value wide = LLVM::SExtOp::create(builder, loc, builder.getI64Type(), batch);
  Value offset = LLVM::MulOp::create(builder, loc, wide, ragged.stride);
  Value total = widen(ragged.total), zero = widen(i32(builder, loc, 0));
  // Clamped as wide as offsets are, which may have more bits than a coordinate.
  auto read = [&](Value from) {
    Value address = LLVM::GEPOp::create(builder, loc, ragged.pointer.getType(), ragged.element,
                                        ragged.pointer, ValueRange{from});
    Value read = LLVM::LoadOp::create(builder, loc, ragged.element, address);
    read = LLVM::SMaxOp::create(builder, loc, read, zero);
    return narrow(LLVM::SMinOp::create(builder, loc, read, total));
  };
  Value begin = read(offset);
  Value next = read(LLVM::AddOp::create(builder, loc, offset, ragged.stride));
  next = LLVM::SMaxOp::create(builder, loc, next, begin);
  Value count = LLVM::SubOp::create(builder, loc, next, begin);
  return {begin, LLVM::SMinOp::create(builder, loc, count, ragged.most)};
}
