//===- MatrixPacking.cpp - the query with rows in lanes ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

/// One word of row m: an f32, or the two bf16 from column 2d on.
static Value emitWord(Emitter &b, Value memref, WordKind kind, Value row, Value d) {
  if (kind == WordKind::F32)
    return b.convert(b.load(memref, {row, d}), b.getF32Type());
  auto pair = VectorType::get({2}, b.getBF16Type());
  Value two = vector::LoadOp::create(b, pair, memref, ValueRange{row, b.mul(d, 2)});
  Value word = vector::BitCastOp::create(b, VectorType::get({1}, b.getF32Type()), two);
  return vector::ExtractOp::create(b, word, ArrayRef<int64_t>{0});
}

Value MatrixPacker::copy(Operation *user, Value matrix, const Extent &rows,
                         const VectorTarget &target, Scratch &scratch) {
  auto [entry, isNew] = copies.try_emplace({matrix, Scratch::getBlock(user)});
  if (!isNew)
    return entry->second;
  std::string name = ("copy" + Twine(copies.size())).str();
  OpBuilder builder(user);
  Operation *def = matrix.getDefiningOp();
  Block *block = Scratch::getBlock(user);
  if (def && block->findAncestorOpInBlock(*def))
    builder.setInsertionPointAfter(def);
  else
    builder.setInsertionPointToStart(block);
  Emitter b(user->getLoc(), builder, target);
  Extent count = rows;
  count.value = rows.isStatic ? b.index(rows.bound) : b.dim(matrix, 0);
  return entry->second = emitF32Tile(b, user, name, matrix, count, /*kept=*/Value(), scratch);
}

PackedMatrix MatrixPacker::get(Operation *user, Value matrix, const Extent &rows, bool mayPair,
                               const VectorTarget &target, Scratch &scratch) {
  Block *block = Scratch::getBlock(user);
  auto [entry, isNew] = packed.try_emplace({matrix, block, unsigned(mayPair)});
  PackedMatrix &result = entry->second;
  if (!isNew)
    return result;
  auto type = cast<MemRefType>(matrix.getType());
  int64_t d = type.getDimSize(1);
  // Pairs need an even D: an odd last element would pair with memory that may not be there.
  bool pairs = mayPair && target.bf16Dot && target.lanes >= 8 && type.getElementType().isBF16() &&
               d % 2 == 0;
  result.kind = pairs ? WordKind::BF16Pair : WordKind::F32;
  result.depth = pairs ? d / 2 : d;
  int64_t stride = llvm::alignTo(rows.bound, target.lanes);
  // Two matrices in one block keep two packed forms.
  result.words = scratch.get(user, ("packed" + Twine(packed.size())).str(), {result.depth, stride});

  // As early as the matrix and its packed form are both there.
  OpBuilder builder(user);
  Operation *buffer = result.words.getDefiningOp(), *def = matrix.getDefiningOp();
  if (def && block->findAncestorOpInBlock(*def))
    builder.setInsertionPointAfter(def);
  else
    builder.setInsertionPointAfter(buffer);
  Emitter b(user->getLoc(), builder, target);
  Value zero = b.index(0), depth = b.index(result.depth);
  Value count = rows.isStatic ? b.index(rows.bound) : b.dim(matrix, 0);
  b.loop(zero, count, 1, [&](Value m) {
    b.loop(zero, depth, 1,
           [&](Value k) { b.store(emitWord(b, matrix, result.kind, m, k), result.words, {k, m}); });
  });
  // Lanes without a row compute on zeros.
  Value padded = b.alignUp(count, getLaneUnit(target, stride)), none = b.f32(0);
  b.loop(zero, depth, 1, [&](Value k) {
    b.loop(count, padded, 1, [&](Value m) { b.store(none, result.words, {k, m}); });
  });
  return result;
}
