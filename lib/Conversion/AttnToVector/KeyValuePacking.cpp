//===- KeyValuePacking.cpp - keys and values as the products read them --------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace attn;

static Value loadColumns(Emitter &b, Value memref, ValueRange at, Value mask) {
  return mask ? b.loadMasked(memref, at, mask) : b.loadVector(memref, at);
}

/// Columns of a tile whose rows are an odd number of cache lines apart, so that a column of it has
/// all sets of a cache.
static int64_t getTileWidth(int64_t columns) {
  constexpr int64_t line = 16;
  return (llvm::divideCeil(columns, line) | 1) * line;
}

Value attn::emitF32Tile(Emitter &b, Operation *user, StringRef name, Value source,
                        const Extent &count, Value kept, Scratch &scratch) {
  int64_t columns = cast<MemRefType>(source.getType()).getDimSize(1);
  Value tile = scratch.get(user, name, {count.bound, getTileWidth(columns)});
  b.loop(b.index(0), count.value, 1, [&](Value n) {
    Value isKept = kept ? emitIsKept(b, kept, n) : Value();
    forColumns(b, columns, [&](Value column, Value mask) {
      Value loaded = b.convert(loadColumns(b, source, {n, column}, mask), b.getF32Type());
      if (isKept)
        loaded = arith::SelectOp::create(b, isKept, loaded, b.floatLike(b.f32Vec(), 0));
      b.storeVector(loaded, tile, {n, column});
    });
  });
  return tile;
}

/// Words of (value[2i][column], value[2i+1][column]); the row past an odd number of keys counts as
/// zeros, and so do those of keys that no row keeps.
static void emitPairs(Emitter &b, Step &step, Value tile, Value pair, bool hasSecond) {
  Value source = step.op.getValue(), n = b.mul(pair, 2), bits;
  int64_t columns = step.valueDim();
  if (step.kept) {
    auto half = [&](Value key, int64_t ones) -> Value {
      return arith::SelectOp::create(b, emitIsKept(b, step.kept, key),
                                     b.intLike(b.getI32Type(), ones), b.intLike(b.getI32Type(), 0));
    };
    bits = half(n, 0xffff);
    if (hasSecond)
      bits = arith::OrIOp::create(b, bits, half(b.add(n, 1), -0x10000));
    bits = b.splat(bits);
  }
  forColumns(b, columns, [&](Value column, Value mask) {
    Value even = loadColumns(b, source, {n, column}, mask);
    Value odd =
        hasSecond
            ? loadColumns(b, source, {b.add(n, 1), column}, mask)
            : Value(arith::ConstantOp::create(b, b.getZeroAttr(cast<VectorType>(even.getType()))));
    Value both = vector::InterleaveOp::create(b, even, odd);
    if (bits) {
      Value words = vector::BitCastOp::create(b, bits.getType(), both);
      both = arith::AndIOp::create(b, words, bits);
    }
    b.storeVector(vector::BitCastOp::create(b, b.f32Vec(), both), tile, {pair, column});
  });
}

static Value emitPairTile(Emitter &b, Step &step, Scratch &scratch) {
  int64_t padded = llvm::alignTo(step.valueDim(), b.target.lanes);
  Value tile = scratch.get(step.op, "value", {(step.keys.bound + 1) / 2, padded});
  Value pairs = b.createOrFold<arith::ShRUIOp>(step.keys.value, b.index(1));
  b.loop(b.index(0), pairs, 1,
         [&](Value pair) { emitPairs(b, step, tile, pair, /*hasSecond=*/true); });
  if (step.keys.isStatic && step.keys.bound % 2 == 0)
    return tile;
  Value rounded = b.createOrFold<arith::ShRUIOp>(b.add(step.keys.value, 1), b.index(1));
  b.loop(pairs, rounded, 1,
         [&](Value pair) { emitPairs(b, step, tile, pair, /*hasSecond=*/false); });
  return tile;
}

static bool isF32(Value memref) {
  return cast<MemRefType>(memref.getType()).getElementType().isF32();
}

void attn::emitKeyPacking(Emitter &b, Step &step, Scratch &scratch) {
  step.key = step.op.getKey();
  if (step.kind != WordKind::BF16Pair && !isF32(step.key))
    step.key = emitF32Tile(b, step.op, "key", step.key, step.keys, /*kept=*/Value(), scratch);
}

void attn::emitValuePacking(Emitter &b, Step &step, Scratch &scratch) {
  step.value = step.op.getValue();
  if (step.kind == WordKind::BF16Pair)
    step.value = emitPairTile(b, step, scratch);
  else if (!isF32(step.value))
    step.value = emitF32Tile(b, step.op, "value", step.value, step.keys, step.kept, scratch);
}
