//===- Delays.h - ops that run some turns late in their loop ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_DELAYS_H
#define ATTN_LIB_TRANSFORMS_TILE_DELAYS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace attn::tile {

/// By how many turns of its loop an op runs late: its `tile.delay`, or 0.
int64_t getDelay(mlir::Operation *op);
void setDelay(mlir::Operation *op, int64_t turns);

/// The ops that a step leaves to the next one: ops with a delay, all in one block.
struct LateOps {
  /// A result that the loop carries, or that a step on its own gives to a loop.
  struct Carried {
    mlir::Value result;
    /// Among the operands of the terminator of `block`.
    unsigned operand = 0;
    /// Its index among the values that the loop carries.
    unsigned index = 0;
  };

  /// Null for a step that stands in front of a loop.
  mlir::scf::ForOp loop;
  /// The loop's body or, where a step is under conditions, a block of the innermost.
  mlir::Block *block = nullptr;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<Carried> carried;

  bool isConditional() { return block != loop.getBody(); }
};

/// Why ops cannot run as late as they say.
struct Misfit {
  mlir::Operation *op = nullptr;
  std::string why;
};

/// Whether one turn can hand on values of the type to the next: numbers and tiles.
bool isHandedOn(mlir::Type type);

/// The values from outside of the op that its regions read.
llvm::SetVector<mlir::Value> getCaptured(mlir::Operation *op);

/// The ops that steps of the loop leave to the next; may be empty. Fails where a late op is needed
/// by an op that is less late or in another block, and where memory would be accessed in another
/// order.
mlir::FailureOr<LateOps> findLateOps(mlir::scf::ForOp loop, Misfit &misfit);

/// The ops with a delay that stand in front of a loop and make one of `inits`.
LateOps findLateOpsBefore(mlir::scf::ForOp loop, mlir::ValueRange inits);

/// Whether one of the ops between `begin` and `end`, of one block, accesses memory that late ops
/// access too, and one of both writes.
bool touchSameMemory(llvm::ArrayRef<mlir::Operation *> late, mlir::Operation *begin,
                     mlir::Operation *end);

/// Whether the bounds show that the loop runs.
bool isCertainToRun(mlir::scf::ForOp loop);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_DELAYS_H
