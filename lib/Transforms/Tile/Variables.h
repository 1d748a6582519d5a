//===- Variables.h - values that ops change, through loops and branches ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_VARIABLES_H
#define ATTN_LIB_TRANSFORMS_TILE_VARIABLES_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::tile {

/// Variables of a program that is in SSA form: a value for each at every op, which loops and
/// branches around the ops that change it carry. Use: add variables, say which ops change them,
/// then run, and read and assign `variables[index]` in the callbacks.
class Variables {
public:
  explicit Variables(mlir::RewriterBase &rewriter) : rewriter(rewriter) {}

  unsigned add(mlir::Value initial);
  /// `op` is going to assign the variable before or after itself.
  void addChange(unsigned index, mlir::Operation *op);
  mlir::Value &operator[](unsigned index) { return current[index]; }
  mlir::Value operator[](unsigned index) const { return current[index]; }

  /// Goes through the block: `enter` before each op, then the blocks inside of it, then `leave`
  /// with the op and the op that replaced it, which has more results if it carries variables.
  /// Neither may erase ops.
  using Enter = llvm::function_ref<void(mlir::Operation *)>;
  using Leave = llvm::function_ref<void(mlir::Operation *, mlir::Operation *)>;
  mlir::LogicalResult run(mlir::Block &block, Enter enter, Leave leave);

private:
  using Indices = llvm::ArrayRef<unsigned>;
  using Widened = mlir::FailureOr<mlir::Operation *>;

  Widened runRegions(mlir::Operation *op, Enter enter, Leave leave);
  Widened runFor(mlir::scf::ForOp loop, Indices indices, Enter enter, Leave leave);
  Widened runIf(mlir::scf::IfOp branch, Indices indices, Enter enter, Leave leave);
  Widened runWhile(mlir::scf::WhileOp loop, Indices indices, Enter enter, Leave leave);
  /// A block that begins with these values of the variables and hands on their last values.
  mlir::LogicalResult runBlock(mlir::Block &block, Indices indices, mlir::ValueRange values,
                               Enter enter, Leave leave);
  /// `wider` has the results of `op`, and then the variables.
  mlir::Operation *replace(mlir::Operation *op, mlir::Operation *wider, Indices indices);

  llvm::SmallVector<mlir::Value> get(Indices indices) const;
  void set(Indices indices, mlir::ValueRange values);

  mlir::RewriterBase &rewriter;
  llvm::SmallVector<mlir::Value> current;
  /// The variables that change inside of an op with regions.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> changes;
};

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_VARIABLES_H
