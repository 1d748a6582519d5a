//===- RegionVectorizer.h - score and mask functions, a register of rows at a time --===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H

#include "lib/Conversion/AttnToVector/Emitter.h"
#include "mlir/IR/IRMapping.h"

namespace attn {

/// Emits a score or mask region for one register of rows and one key.
///
/// Each op is emitted at the outermost of three points that its operands allow: once per step, once
/// per register of rows, or once per key. It is a scalar unless it depends on the rows; then its
/// operands that are scalars are broadcast.
///
///   emitInvariant();  for (rows) { beginRows(m, mask);  for (keys) { result = emitKey(n, score); }
///   }
class RegionVectorizer {
public:
  /// `origin` is the global (b, h, m, n) of the step.
  RegionVectorizer(Emitter &b, mlir::Region &region, llvm::ArrayRef<mlir::Value> origin);

  void emitInvariant();
  /// `positions` are the global rows of the lanes; `mask` tells which of them exist.
  void beginRows(mlir::Value positions, mlir::Value mask);
  /// The region's result as a vector. `score` is null in a mask region.
  mlir::Value emitKey(mlir::Value position, mlir::Value score);

private:
  /// What a value depends on, outermost loop first.
  enum class Stage { Step, Rows, Key };
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
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, Dependence> dependences;
  mlir::Value rowMask;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_REGIONVECTORIZER_H
