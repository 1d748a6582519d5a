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

/// (keys, columns) of any float type -> f32 (keys, columns rounded up to lanes).
static Value emitF32Tile(Emitter &b, Step &step, Value source, StringRef name, Scratch &scratch) {
  int64_t columns = cast<MemRefType>(source.getType()).getDimSize(1);
  int64_t padded = llvm::alignTo(columns, b.target.lanes);
  Value tile = scratch.get(step.op, name, {step.keys.bound, padded});
  b.loop(b.index(0), step.keys.value, 1, [&](Value n) {
    forColumns(b, columns, [&](Value column, Value mask) {
      Value loaded = loadColumns(b, source, {n, column}, mask);
      b.storeVector(b.convert(loaded, b.getF32Type()), tile, {n, column});
    });
  });
  return tile;
}

/// Words of (value[2i][column], value[2i+1][column]); the row past an odd number of keys counts as
/// zeros.
static void emitPairs(Emitter &b, Value source, Value tile, int64_t columns, Value pair,
                      bool hasSecond) {
  Value n = b.mul(pair, 2);
  forColumns(b, columns, [&](Value column, Value mask) {
    Value even = loadColumns(b, source, {n, column}, mask);
    Value odd =
        hasSecond
            ? loadColumns(b, source, {b.add(n, 1), column}, mask)
            : Value(arith::ConstantOp::create(b, b.getZeroAttr(cast<VectorType>(even.getType()))));
    Value both = vector::InterleaveOp::create(b, even, odd);
    b.storeVector(vector::BitCastOp::create(b, b.f32Vec(), both), tile, {pair, column});
  });
}

static Value emitPairTile(Emitter &b, Step &step, Scratch &scratch) {
  Value source = step.op.getValue();
  int64_t columns = step.valueDim();
  Value tile =
      scratch.get(step.op, "value",
                  {(step.keys.bound + 1) / 2, int64_t(llvm::alignTo(columns, b.target.lanes))});
  Value pairs = b.createOrFold<arith::ShRUIOp>(step.keys.value, b.index(1));
  b.loop(b.index(0), pairs, 1,
         [&](Value pair) { emitPairs(b, source, tile, columns, pair, /*hasSecond=*/true); });
  if (step.keys.isStatic && step.keys.bound % 2 == 0)
    return tile;
  Value rounded = b.createOrFold<arith::ShRUIOp>(b.add(step.keys.value, 1), b.index(1));
  b.loop(pairs, rounded, 1,
         [&](Value pair) { emitPairs(b, source, tile, columns, pair, /*hasSecond=*/false); });
  return tile;
}

void attn::emitKeyValuePacking(Emitter &b, Step &step, Scratch &scratch) {
  step.key = step.op.getKey();
  step.value = step.op.getValue();
  if (step.kind == WordKind::BF16Pair) {
    step.value = emitPairTile(b, step, scratch);
    return;
  }
  if (!cast<MemRefType>(step.key.getType()).getElementType().isF32())
    step.key = emitF32Tile(b, step, step.key, "key", scratch);
  if (!cast<MemRefType>(step.value.getType()).getElementType().isF32())
    step.value = emitF32Tile(b, step, step.value, "value", scratch);
}
