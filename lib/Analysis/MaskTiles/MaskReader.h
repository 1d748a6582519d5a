//===- MaskReader.h - a mask region as a disjunction ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_MASKREADER_H
#define ATTN_LIB_ANALYSIS_MASKTILES_MASKREADER_H

#include "lib/Analysis/MaskTiles/MaskSet.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attn {

/// A literal is an integer expression, meaning `expr >= 0`, or a Truth or its Not.
using Conjunction = llvm::SmallVector<bound::Expr, 4>;
/// No disjunct is false, an empty disjunct is true. Since all sets are covers, a condition that
/// cannot be decided is true in either polarity.
using Disjunction = llvm::SmallVector<Conjunction, 2>;

inline bool isBoolean(bound::Expr literal) {
  using Kind = bound::ExprNode::Kind;
  return literal->kind == Kind::Truth || literal->kind == Kind::Not;
}

/// From a region to disjunctive normal form.
class MaskReader {
public:
  MaskReader(bound::ExprPool &pool, mlir::Region &mask, MaskAxis running, FactOf factOf)
      : pool(pool), mask(mask), factOf(factOf) {
    bool rowsRun = running == MaskAxis::Rows;
    fixed = mask.getArgument(rowsRun ? 3 : 2);
    this->running = mask.getArgument(rowsRun ? 2 : 3);
  }

  Disjunction read(mlir::Value keep, bool polarity) {
    auto known = conditions[polarity].find(keep);
    if (known != conditions[polarity].end())
      return known->second;
    Disjunction result = readFresh(keep, polarity);
    if (result.size() > maxDisjuncts)
      result = anything();
    conditions[polarity][keep] = result;
    return result;
  }

  /// Whether all that was read so far covers no more than it says.
  bool isExact() const { return exact; }

private:
  /// A condition that cannot be decided.
  Disjunction anything() {
    exact = false;
    return {{}};
  }
  Disjunction readFresh(mlir::Value keep, bool polarity);
  Disjunction compare(mlir::arith::CmpIOp op, bool polarity);
  /// a - b >= slack, with minima, maxima and selections of a and b split into cases.
  Disjunction atLeast(mlir::Value a, mlir::Value b, int64_t slack);
  std::optional<Disjunction> splitCases(mlir::Value value, bool isLeft,
                                        llvm::function_ref<Disjunction(mlir::Value)> with);
  Disjunction both(const Disjunction &a, const Disjunction &b);
  Disjunction either(const Disjunction &a, const Disjunction &b);
  Disjunction exclusive(mlir::Value a, mlir::Value b, bool polarity);
  bool addLiteral(Conjunction &conjunction, bound::Expr literal);
  bool implies(bound::Expr a, bound::Expr b);

  /// The integer as an expression of the positions; null when it is not one.
  bound::Expr translate(mlir::Value value);
  bound::Expr translateOp(mlir::Operation *op);
  bound::Expr translateDivision(mlir::Operation *op);
  bound::Expr translateRead(mlir::tensor::ExtractOp op);
  bound::Expr scalar(mlir::Value value, int64_t least, int64_t greatest);
  bool isPositional(mlir::Value value);
  bool fits(bound::Expr expr, mlir::Type type);

  bound::ExprPool &pool;
  mlir::Region &mask;
  mlir::Value fixed, running;
  FactOf factOf;
  bool exact = true;
  /// Cases multiply when values are shared, so their number over the whole region is limited.
  unsigned caseBudget = 64;
  llvm::DenseMap<mlir::Value, Disjunction> conditions[2];
  llvm::DenseMap<mlir::Value, bound::Expr> translated;
  llvm::DenseMap<mlir::Value, bool> positional;
};

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_MASKREADER_H
