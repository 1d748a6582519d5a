//===- Recipes.cpp - what ops of attention become on tiles ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToTile/Recipes.h"
#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn;

/// An assumption is for the analyses of rooms before.
static LogicalResult convertAssume(BlockConverter &block, AssumeOp op) {
  Value memref = block.lookup(op, op.getSource());
  block.mapping.map(op.getResult(), memref);
  return success(memref != nullptr);
}

/// Consumers compute the parts.
static LogicalResult convertPartBegin(BlockConverter &block, PartBeginOp op) {
  Value all = block.lookup(op, op.getAll());
  SmallVector<Value> parts;
  for (Value part : op.getParts())
    parts.push_back(block.lookup(op, part));
  if (!all || llvm::is_contained(parts, Value()))
    return failure();
  Value begin = tile::PartBeginOp::create(block.builder, all.getType(), all, parts);
  block.mapping.map(op.getResult(), begin);
  return success();
}

LogicalResult attn::checkRows(Operation *op, int64_t rows, ValueRange tiles) {
  for (Type type : tiles.getTypes())
    if (cast<RankedTensorType>(type).getDimSize(0) != rows)
      return op->emitOpError("expected tiles of the grid's ") << rows << " rows, got " << type;
  return success();
}

LogicalResult attn::convertAttention(BlockConverter &block, Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](AssumeOp assume) { return convertAssume(block, assume); })
      .Case([&](PartBeginOp begin) { return convertPartBegin(block, begin); })
      .Case([&](OnlineAttentionOp step) { return convertStep(block, step); })
      .Case([&](TileStatusOp status) { return convertTileStatus(block, status); })
      .Case([&](ListTilesOp list) { return convertListTiles(block, list); })
      .Case([&](NormalizeOp normalize) { return convertNormalize(block, normalize); })
      .Case([&](MergeOp merge) { return convertMerge(block, merge); })
      .Case([&](GradRowsOp rows) { return convertGradRows(block, rows); })
      .Case<GradDeltaStepOp, GradQueryStepOp, GradKeyValueStepOp, GradCapturedStepOp>(
          [&](auto step) { return convertGradStep(block, step); })
      .Case([&](GradDeltaEndOp end) { return convertGradDeltaEnd(block, end); })
      .Case([&](GradEndOp end) { return convertGradEnd(block, end); })
      .Default([](Operation *op) { return op->emitOpError("has no form on tiles"); });
}
