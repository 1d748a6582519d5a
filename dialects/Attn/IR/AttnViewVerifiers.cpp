//===- AttnViewVerifiers.cpp - constraints of views, by number ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVerifiers.h"
#include "dialects/Attn/IR/AttnViews.h"
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
  // paged_c2: elements of the table are signless i32 or i64, of the pool f8E4M3FN, f8E5M2, f16,
  // bf16 or f32
  if (!isOperandFloat(pool.getElementType()))
    return emitOpError("expected a pool of ") << kOperandFloats << ", got " << pool;
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
// Sequences of any lengths
//===----------------------------------------------------------------------===//

/// offsets_c1: offsets are (B + 1) of signless i32 or i64, of at least one element
static LogicalResult checkOffsets(Operation *op, RankedTensorType offsets, int64_t batches) {
  if (failed(checkRank(op, "offsets", offsets, 1, "(B + 1)")))
    return failure();
  if (!offsets.getElementType().isSignlessInteger(32) &&
      !offsets.getElementType().isSignlessInteger(64))
    return op->emitOpError("expected offsets of i32 or i64, got ") << offsets;
  if (offsets.getDimSize(0) == 0)
    return op->emitOpError("expected an offset or more, got none");
  bool isKnown = !offsets.isDynamicDim(0) && !ShapedType::isDynamic(batches);
  if (isKnown && offsets.getDimSize(0) != batches + 1)
    return op->emitOpError("expected ") << batches << " + 1 offsets, got " << offsets;
  return success();
}

LogicalResult RaggedOp::verify() {
  auto rows = cast<RankedTensorType>(getRows().getType()),
       offsets = cast<RankedTensorType>(getOffsets().getType()),
       result = cast<RankedTensorType>(getType());
  // ragged_c1: rows and result are (T, H, D) and (B, H, M, D), or (T, H) and (B, H, M)
  if (rows.getRank() != 2 && rows.getRank() != 3)
    return emitOpError("expected rows of rank 2 or 3, got ") << rows;
  if (failed(checkRank(*this, "result", result, rows.getRank() + 1, "(B, H, M, ...)")))
    return failure();
  if (failed(checkOffsets(*this, offsets, result.getDimSize(0))))
    return failure();
  // ragged_c2: H and D of the result are those of the rows, as are its elements, f8E4M3FN, f8E5M2,
  // f16, bf16 or f32
  bool hasColumns = rows.getRank() == 3;
  if (failed(checkElement(*this, "rows", rows, isOperandFloat, kOperandFloats)) ||
      failed(checkExtent(*this, "H", "rows", rows.getDimSize(1), "result", result.getDimSize(1))) ||
      (hasColumns &&
       failed(checkExtent(*this, "D", "rows", rows.getDimSize(2), "result", result.getDimSize(3)))))
    return failure();
  if (rows.getElementType() != result.getElementType())
    return emitOpError("expected rows and result of one element type, got ")
           << rows << " and " << result;
  // ragged_c3: D is a compile-time constant above zero, and M is not one
  if (hasColumns && (rows.isDynamicDim(2) || rows.getDimSize(2) == 0))
    return emitOpError("expected a static D above 0, got ") << rows;
  if (!result.isDynamicDim(2))
    return emitOpError("expected M of the result to be dynamic, got ") << result;
  return success();
}

LogicalResult PlaceOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       offsets = cast<RankedTensorType>(getOffsets().getType()),
       dest = cast<RankedTensorType>(getDest().getType());
  // place_c1: source and dest are (B, H, M, D) and (T, H, D), or (B, H, M) and (T, H)
  if (source.getRank() != 3 && source.getRank() != 4)
    return emitOpError("expected source of rank 3 or 4, got ") << source;
  if (failed(checkRank(*this, "dest", dest, source.getRank() - 1, "(T, H, ...)")))
    return failure();
  if (failed(checkOffsets(*this, offsets, source.getDimSize(0))) ||
      failed(checkExtent(*this, "H", "source", source.getDimSize(1), "dest", dest.getDimSize(1))))
    return failure();
  // place_c2: columns and elements of dest are those of the source
  if (source.getElementType() != dest.getElementType() ||
      source.getShape().drop_front(3) != dest.getShape().drop_front(2))
    return emitOpError("expected source and dest of one element type and as many columns, got ")
           << source << " and " << dest;
  return success();
}

//===----------------------------------------------------------------------===//
// Elements of 8 bits
//===----------------------------------------------------------------------===//

/// scaled_c3: B of the scales is that of the source or 1, S divides H, and each block of rows has a
/// scale
static LogicalResult checkScales(ScaledOp op, RankedTensorType source, RankedTensorType scale) {
  if (scale.getRank() == 0)
    return success();
  int64_t batches = scale.getDimSize(0), heads = scale.getDimSize(1), all = source.getDimSize(1);
  if (batches != 1 &&
      failed(checkExtent(op, "B", "source", source.getDimSize(0), "scale", batches)))
    return failure();
  bool isKnown = !ShapedType::isDynamic(heads) && !ShapedType::isDynamic(all);
  if (heads == 0 || (isKnown && all % heads != 0))
    return op.emitOpError("expected heads of the scale that divide those of the source, got ")
           << scale << " and " << source;
  int64_t rows = source.getDimSize(2);
  if (scale.getRank() < 3 || ShapedType::isDynamic(rows))
    return success();
  return checkExtent(op, "C", "source", llvm::divideCeil(rows, *op.getBlock()), "scale",
                     scale.getDimSize(2));
}

LogicalResult ScaledOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType()),
       scale = cast<RankedTensorType>(getScale().getType()),
       result = cast<RankedTensorType>(getType());
  // scaled_c1: source and result are (B, H, R, D), of f8E4M3FN or f8E5M2 and of f16, bf16 or f32
  if (failed(checkRank(*this, "source", source, 4, "(B, H, R, D)")) ||
      failed(checkElement(*this, "source", source, isNarrowFloat, "f8E4M3FN or f8E5M2")) ||
      failed(checkElement(*this, "result", result, isStorageFloat, "f16, bf16 or f32")))
    return failure();
  if (source.getShape() != result.getShape())
    return emitOpError("expected source and result of one shape, got ")
           << source << " and " << result;
  // scaled_c2: scale is (), (B, S) or, with a block of one row or more, (B, S, C) of f32
  if (failed(checkF32(*this, "scale", scale)))
    return failure();
  if (getBlock() && *getBlock() < 1)
    return emitOpError("expected a block of one row or more, got ") << *getBlock();
  bool fits = getBlock() ? scale.getRank() == 3 : scale.getRank() == 0 || scale.getRank() == 2;
  if (!fits)
    return emitOpError("expected scale of ")
           << (getBlock() ? "rank 3 (B, S, C)" : "rank 0 or 2 (B, S)") << ", got rank "
           << scale.getRank();
  return checkScales(*this, source, scale);
}

//===----------------------------------------------------------------------===//
// Heads as rows
//===----------------------------------------------------------------------===//

/// slots_c1: slots are a power of two from 2 to 64
static LogicalResult checkSlots(Operation *op, int64_t slots) {
  if (slots >= 2 && slots <= kMostSlots && llvm::isPowerOf2_64(slots))
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
