//===- AttnViewVerifiers.cpp - constraints of views, by number ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVerifiers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Keys in pages
//===----------------------------------------------------------------------===//

LogicalResult PagedOp::verify() {
  auto pool = cast<RankedTensorType>(getPool().getType()),
       table = cast<RankedTensorType>(getTable().getType()),
       result = cast<RankedTensorType>(getType());
  // paged_c1: pool (Np, P, Hkv, D) and result (B, Hkv, N, D) have rank 4, table (B, C) rank 2
  if (failed(checkRank(*this, "pool", pool, 4, "(Np, P, Hkv, D)")) ||
      failed(checkRank(*this, "table", table, 2, "(B, C)")) ||
      failed(checkRank(*this, "result", result, 4, "(B, Hkv, N, D)")))
    return failure();
  // paged_c2: elements of the table are signless i32 or i64, of the pool f16, bf16 or f32
  Type element = pool.getElementType();
  if (!element.isF16() && !element.isBF16() && !element.isF32())
    return emitOpError("expected a pool of f16, bf16 or f32, got ") << pool;
  if (!table.getElementType().isSignlessInteger(32) &&
      !table.getElementType().isSignlessInteger(64))
    return emitOpError("expected a table of i32 or i64, got ") << table;
  // paged_c3: P and D are compile-time constants above zero, and N is C * P
  int64_t page = pool.getDimSize(1), columns = pool.getDimSize(3);
  if (ShapedType::isDynamic(page) || ShapedType::isDynamic(columns) || page == 0 || columns == 0)
    return emitOpError("expected static P and D above 0, got ") << pool;
  int64_t keys = 0, pages = table.getDimSize(1);
  if (!ShapedType::isDynamic(pages) &&
      (llvm::MulOverflow(pages, page, keys) || !agree(keys, result.getDimSize(2))))
    return emitOpError("expected ") << pages << " * " << page << " keys, got " << result;
  // paged_c4: B, Hkv and D of the result are those of table and pool, as are its elements
  if (failed(
          checkExtent(*this, "B", "table", table.getDimSize(0), "result", result.getDimSize(0))) ||
      failed(
          checkExtent(*this, "Hkv", "pool", pool.getDimSize(2), "result", result.getDimSize(1))) ||
      failed(checkExtent(*this, "D", "pool", columns, "result", result.getDimSize(3))))
    return failure();
  if (pool.getElementType() != result.getElementType())
    return emitOpError("expected pool and result of one element type, got ")
           << pool << " and " << result;
  return success();
}

int64_t PagedOp::getPageSize() { return cast<ShapedType>(getPool().getType()).getDimSize(1); }

std::pair<Value, int64_t> PagedOp::getSizeSource(int64_t dim) {
  switch (dim) {
  case 0:
    return {getTable(), 0};
  case 1:
    return {getPool(), 2};
  case 2:
    return {getTable(), 1};
  default:
    return {getPool(), 3};
  }
}

//===----------------------------------------------------------------------===//
// Heads as rows
//===----------------------------------------------------------------------===//

/// slots_c1: slots are a power of two from 2 to 64
static LogicalResult checkSlots(Operation *op, int64_t slots) {
  if (slots >= 2 && slots <= 64 && llvm::isPowerOf2_64(slots))
    return success();
  return op->emitOpError("expected slots of 2, 4, 8, 16, 32 or 64, got ") << slots;
}

/// A dimension of M rows and its packed form.
static LogicalResult checkPackedRows(Operation *op, int64_t rows, int64_t packed, int64_t slots) {
  int64_t all = 0;
  if (ShapedType::isDynamic(rows) || (!llvm::MulOverflow(rows, slots, all) && agree(all, packed)))
    return success();
  return op->emitOpError("expected ")
         << rows << " * " << slots << " rows, got " << stringifyExtent(packed);
}

LogicalResult PackHeadsOp::verify() {
  if (failed(checkSlots(*this, getSlots())))
    return failure();
  // pack_heads_c1: source and result are (B, H, M, D) and (B, Hkv, M * slots, D), key is of rank 4
  auto source = cast<RankedTensorType>(getSource().getType()),
       key = cast<RankedTensorType>(getKey().getType()), result = cast<RankedTensorType>(getType());
  if (failed(checkRank(*this, "source", source, 4, "(B, H, M, D)")) ||
      failed(checkRank(*this, "key", key, 4, "(B, Hkv, N, D)")) ||
      failed(checkRank(*this, "result", result, 4, "(B, Hkv, M * slots, D)")) ||
      failed(checkExtent(*this, "B", "source", source.getDimSize(0), "result",
                         result.getDimSize(0))) ||
      failed(checkExtent(*this, "Hkv", "key", key.getDimSize(1), "result", result.getDimSize(1))) ||
      failed(checkExtent(*this, "D", "source", source.getDimSize(3), "result",
                         result.getDimSize(3))) ||
      failed(checkPackedRows(*this, source.getDimSize(2), result.getDimSize(2), getSlots())))
    return failure();
  if (source.getElementType() != result.getElementType())
    return emitOpError("expected source and result of one element type, got ")
           << source << " and " << result;
  return success();
}

LogicalResult PackSinkOp::verify() {
  if (failed(checkSlots(*this, getSlots())))
    return failure();
  // pack_sink_c1: source and result are (H) and (Hkv, M * slots) of f32, query and key of rank 4
  auto source = cast<RankedTensorType>(getSource().getType()),
       query = cast<RankedTensorType>(getQuery().getType()),
       key = cast<RankedTensorType>(getKey().getType()), result = cast<RankedTensorType>(getType());
  return failure(
      failed(checkRank(*this, "source", source, 1, "(H)")) ||
      failed(checkRank(*this, "query", query, 4, "(B, H, M, D)")) ||
      failed(checkRank(*this, "key", key, 4, "(B, Hkv, N, D)")) ||
      failed(checkRank(*this, "result", result, 2, "(Hkv, M * slots)")) ||
      failed(checkF32(*this, "source", source)) || failed(checkF32(*this, "result", result)) ||
      failed(
          checkExtent(*this, "H", "query", query.getDimSize(1), "source", source.getDimSize(0))) ||
      failed(checkExtent(*this, "Hkv", "key", key.getDimSize(1), "result", result.getDimSize(0))) ||
      failed(checkPackedRows(*this, query.getDimSize(2), result.getDimSize(1), getSlots())));
}

LogicalResult UnpackHeadsOp::verify() {
  if (failed(checkSlots(*this, getSlots())))
    return failure();
  // unpack_heads_c1: source is (B, Hkv, M * slots[, Dv]), result (B, H, M[, Dv]), query of rank 4
  auto source = cast<RankedTensorType>(getSource().getType()),
       query = cast<RankedTensorType>(getQuery().getType()),
       result = cast<RankedTensorType>(getType());
  if (source.getRank() != 3 && source.getRank() != 4)
    return emitOpError("expected source of rank 3 or 4, got ") << source;
  if (failed(checkRank(*this, "query", query, 4, "(B, H, M, D)")) ||
      failed(checkRank(*this, "result", result, source.getRank(), "of source")))
    return failure();
  constexpr StringLiteral names[] = {"B", "H", "M"};
  for (auto [dim, name] : llvm::enumerate(names))
    if (failed(checkExtent(*this, name, "query", query.getDimSize(dim), "result",
                           result.getDimSize(dim))))
      return failure();
  if (failed(checkPackedRows(*this, result.getDimSize(2), source.getDimSize(2), getSlots())))
    return failure();
  if (source.getElementType() != result.getElementType() ||
      source.getShape().drop_front(3) != result.getShape().drop_front(3))
    return emitOpError("expected source and result of one element type and as many columns, got ")
           << source << " and " << result;
  return success();
}
