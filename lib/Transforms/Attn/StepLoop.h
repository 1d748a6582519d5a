//===- StepLoop.h - the loop over tiles of what runs ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_STEPLOOP_H
#define ATTN_LIB_TRANSFORMS_ATTN_STEPLOOP_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <functional>

namespace attn {

/// The loop that attn-tile-kv-loop makes: a loop over [0, length) of the keys, or of the rows,
/// whose body is one step on a tile of each of `sources`.
struct StepLoop {
  mlir::scf::ForOp loop;
  AbsorbingOpInterface step;
  /// All of what runs, for each operand of the step that is a tile of it.
  llvm::SmallVector<mlir::Value, 4> sources;
  mlir::Value length;
  int64_t tileSize;
  /// Global position of the first key or row: the step's position less the loop's index.
  mlir::OpFoldResult origin;
  /// Where consumers begin apart: the ends of the tiles that matter to the rows of the first
  /// consumer, of the first two, and so on, of all but the last.
  llvm::SmallVector<mlir::Value, 2> partEnds;
  /// A full tile may be the last one, and not whole.
  bool lastMayBeFull = false;
  /// Some row of the batch and head keeps each of the keys between `first`, or the first of all if
  /// it is null, and `length`.
  bool hasNoHoles = false;
  mlir::Value first = {};
  /// In a call with as many rows as keys, some row of the batch and head keeps each of them.
  bool keepsDiagonal = false;
  /// Whether tiles are visited from the first to the last, each where its own keys say, whatever
  /// other rows of the block keep (s22).
  bool ascends = false;
  /// Where the mask reads something once a tile: emits whether that lets it keep some of the tile
  /// at the loop's index.
  // NOLINTNEXTLINE(readability-redundant-member-init)
  std::function<mlir::Value(mlir::OpBuilder &, mlir::Value)> emitIsLive = {};
};

/// The loop around `step`, or failure if it is another. May emit the origin in front of it.
llvm::FailureOr<StepLoop> matchStepLoop(mlir::OpBuilder &builder, AbsorbingOpInterface step);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_STEPLOOP_H
