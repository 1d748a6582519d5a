//===- RegionVectorizer.h - functions of scores, a register of lanes at a time -------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToVector/Emitter.h"
#include "mlir/IR/IRMapping.h"
#include <functional>

namespace attn {

/// Emits a score, mask or grad region for one register of rows and one key, or the other way round:
/// the dimension that stays for a block is in lanes, the running dimension is not.
///
/// Each op is emitted at the outermost of three points that its operands allow: once per step, once
/// per register of lanes, or once per position that runs. It is a scalar unless it depends on the
/// lanes; then its operands that are scalars are broadcast.
///
///   emitInvariant();
///   for (lanes) { beginLanes(m, mask);  for (keys) { result = emitAt(n, score); } }
class RegionVectorizer {
public:
  /// `origin` is the global (b, h, m, n) of the step.
  RegionVectorizer(Emitter &b, mlir::Region &region, llvm::ArrayRef<mlir::Value> origin,
                   bool lanesAreRows = true);

  void emitInvariant();
  /// `positions` are the global positions of the lanes; `mask` tells which of them exist.
  void beginLanes(mlir::Value positions, mlir::Value mask);
  /// The region's result as a vector. `values` are the arguments before the positions: the score,
  /// and in a grad region the gradient of its function.
  mlir::Value emitAt(mlir::Value position, llvm::ArrayRef<mlir::Value> values);
  /// The factor of the weight where emitAt was last, as a vector; null where it is 1.
  mlir::Value getFactor();

  /// Called where a grad region contributes, with the addend, a vector, and its place, scalars or
  /// vectors.
  std::function<void(ContributeOp, mlir::Value, llvm::ArrayRef<mlir::Value>)> contribute;

private:
  /// The loop that a value depends on, outermost first.
  enum class Stage { Step, Lanes, Running };
  struct Dependence {
    Stage stage = Stage::Step;
    bool isVector = false;
  };
  Dependence getDependence(mlir::Value value) const;
  void emitStage(Stage stage);
  void emitOp(mlir::Operation *op, bool isVector);
  mlir::Value getVector(mlir::Value value);
  mlir::Value emitGather(mlir::Value memref, mlir::ValueRange indices, mlir::Type element);

  Emitter &b;
  mlir::Region &region;
  /// The region's arguments for the positions in lanes and for the one that runs.
  mlir::Value laneArgument, runningArgument;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, Dependence> dependences;
  mlir::Value laneMask;
};

/// The index, a scalar or a vector, or the nearest one inside of the dimension.
mlir::Value keepInside(Emitter &b, mlir::Value memref, int64_t dim, mlir::Value index);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H
