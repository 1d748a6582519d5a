//===- Bound.h - symbolic bounds of a mask ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//
//
// Integer and boolean expressions over two positions and values that are constant in a block.
// Expressions are hash-consed and kept in a linear normal form, so that two equal bounds are one
// pointer, differences cancel, and statically known values fold away. An expression has two
// readers: `evaluate` gives its number, `Emitter` its arith operations.
//
//===------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_MASKTILES_BOUND_H
#define ATTN_LIB_ANALYSIS_MASKTILES_BOUND_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <map>
#include <optional>
#include <string>

namespace attn {

/// The position of a mask that runs while a block, which owns some of the other one, is computed.
enum class MaskAxis { Rows, Keys };

namespace bound {

/// The named unknowns. `Fixed` and `Running` are the positions, m and n for a block of rows, n and
/// m for one of keys; they never occur in a finished bound. The others are those of a block: what
/// it owns, [FixedBegin, FixedEnd), and how many positions there are to run over.
enum class Symbol { Fixed, Running, FixedBegin, FixedEnd, NumRunning };

/// Of signed integers; an index counts as 64.
inline unsigned bitsOf(mlir::Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

struct ExprNode;
using Expr = const ExprNode *;

struct ExprNode {
  enum class Kind {
    // Integers.
    Constant, // constant
    Symbol,   // symbol
    Scalar,   // value: an integer that neither position reaches
    Sum,      // constant + sum of coefficients[i] * operands[i]
    FloorDiv, // operands[0] / operands[1], the divisor is positive
    Product,  // operands[0] * operands[1], neither constant; operands[0] is positive
    Min,      // of all operands
    Max,      // of all operands
    Select,   // operands[0] ? operands[1] : operands[2]
    Clamp,    // operands[0], or the nearer of coefficients = {least, greatest} beyond them
    Read,     // value[leading..., operands[0]]: a tensor that is non-decreasing along its last dim
    Search,   // first i in [0, NumRunning] with value[leading..., i + operands[0]] >= operands[1];
              // with operands[2], a read where Running is i, its value takes the place of i
    // Booleans.
    Bool,        // constant
    Truth,       // value: an i1 that neither position reaches
    Not,         // of a Truth
    NonNegative, // operands[0] >= 0
    And,         // of all operands
    Or           // of all operands
  };
  Kind kind;
  unsigned id = 0;
  int64_t constant = 0;
  Symbol symbol = Symbol::Fixed;
  mlir::Value value = {};
  // Initialized, so that aggregates may leave them out.
  // NOLINTBEGIN(readability-redundant-member-init)
  llvm::SmallVector<mlir::Value, 2> leading = {};
  llvm::SmallVector<Expr, 4> operands = {};
  llvm::SmallVector<int64_t, 4> coefficients = {};
  // NOLINTEND(readability-redundant-member-init)
  /// What the values of this expression are known to lie in, both ends inclusive.
  int64_t least = 0, greatest = 0;
  bool usesFixed = false, usesRunning = false;
  /// Whether its values may be too large for sums with positions. Only what is wide by itself, the
  /// operand of a Clamp and the last operand of a Search are exact then.
  bool isWide = false;

  bool uses(Symbol position) const { return position == Symbol::Fixed ? usesFixed : usesRunning; }
  bool isConstant() const { return kind == Kind::Constant; }
  bool isConstant(int64_t c) const { return isConstant() && constant == c; }
  /// The read whose value a search takes in place of the position, or null.
  Expr getThrough() const { return operands.size() > 2 ? operands[2] : nullptr; }
  bool isTrue() const { return kind == Kind::Bool && constant; }
  bool isFalse() const { return kind == Kind::Bool && !constant; }
};

/// Positions and index scalars are taken to be smaller than this, so that sums of a few of them are
/// known to fit 32 bits. Beyond `unbounded` nothing is known.
inline constexpr int64_t positionLimit = int64_t(1) << 28;
/// Limits of numbers are multiples of this, so that neighboring conditions have the same limits.
inline constexpr int64_t limitStep = int64_t(1) << 16;
/// Beyond this a number is wide. Two that are not have a sum of 32 bits, and so has one with
/// positions.
inline constexpr int64_t narrowLimit = (int64_t(1) << 30) - limitStep;
inline constexpr int64_t unbounded = int64_t(1) << 62;

/// The constants that bound a number from both sides, as in min(max(x, least), greatest); nothing
/// for others.
std::optional<std::pair<int64_t, int64_t>> findConstantBounds(mlir::Value value);

/// Makes expressions and owns them. All factories fold.
class ExprPool {
public:
  ExprPool();
  Expr constant(int64_t c);
  Expr symbol(Symbol symbol);
  /// A block constant whose value lies in [least, greatest].
  Expr scalar(mlir::Value value, int64_t least, int64_t greatest);
  /// scale * a + b.
  Expr scaleAdd(int64_t scale, Expr a, Expr b);
  Expr add(Expr a, Expr b) { return scaleAdd(1, a, b); }
  Expr add(Expr a, int64_t c) { return scaleAdd(1, a, constant(c)); }
  Expr sub(Expr a, Expr b) { return scaleAdd(-1, b, a); }
  Expr scale(Expr a, int64_t c) { return scaleAdd(c, a, constant(0)); }
  /// The divisor must be positive for every value of its unknowns.
  Expr floorDiv(Expr a, Expr divisor);
  Expr ceilDiv(Expr a, int64_t divisor) { return floorDiv(add(a, divisor - 1), constant(divisor)); }
  /// `positive` must be positive for every value of its unknowns.
  Expr product(Expr positive, Expr a);
  Expr min(llvm::ArrayRef<Expr> operands) { return extremum(ExprNode::Kind::Min, operands); }
  Expr max(llvm::ArrayRef<Expr> operands) { return extremum(ExprNode::Kind::Max, operands); }
  Expr select(Expr condition, Expr a, Expr b);
  /// Both ends are narrow.
  Expr clamp(Expr a, int64_t least, int64_t greatest);
  Expr read(mlir::Value tensor, llvm::ArrayRef<mlir::Value> leading, Expr index);
  /// `through` is a read at the running position, or null.
  Expr search(mlir::Value tensor, llvm::ArrayRef<mlir::Value> leading, Expr offset, Expr least,
              Expr through = nullptr);

  Expr boolean(bool b);
  Expr truth(mlir::Value value, bool negated);
  Expr nonNegative(Expr a);
  Expr lessEqual(Expr a, Expr b) { return nonNegative(sub(b, a)); }
  Expr less(Expr a, Expr b) { return nonNegative(add(sub(b, a), -1)); }
  Expr conjunction(llvm::ArrayRef<Expr> operands);
  Expr disjunction(llvm::ArrayRef<Expr> operands);

  /// Whether a coefficient grew too large for 64-bit arithmetic; the expressions made since, and
  /// what was derived from them, are then void.
  bool hasOverflowed() const { return overflowed; }

private:
  Expr extremum(ExprNode::Kind kind, llvm::ArrayRef<Expr> operands);
  Expr junction(ExprNode::Kind kind, llvm::ArrayRef<Expr> operands);
  Expr intern(ExprNode node);

  bool overflowed = false;
  std::deque<ExprNode> nodes;
  llvm::DenseMap<llvm::hash_code, llvm::SmallVector<Expr, 1>> interned;
};

/// The values of the unknowns for `evaluate`.
struct Environment {
  int64_t fixedBegin = 0, fixedEnd = 0, numRunning = 0;
  /// An integer or i1 value that is constant in the block (inside or outside the mask region).
  llvm::function_ref<int64_t(mlir::Value)> scalar;
  /// An element of a captured tensor.
  llvm::function_ref<int64_t(mlir::Value tensor, llvm::ArrayRef<int64_t>)> element;
  /// Where a search is.
  int64_t running = 0;
};

int64_t evaluate(Expr expr, const Environment &environment);

/// Writes expressions as operations at the insertion point of `builder`. Each expression, and each
/// scalar of the mask region, is written once.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc, mlir::Region *mask)
      : builder(builder), loc(loc), mask(mask) {}

  void bind(Symbol symbol, mlir::Value value) { symbols[symbol] = value; }
  /// Gives the value of a block argument of the mask here.
  void bind(mlir::Value argument, mlir::Value value) { scalars.map(argument, value); }
  mlir::Value emit(Expr expr);

private:
  mlir::Value emitFresh(Expr expr);
  /// The terms of one sign of a sum, as a positive amount; null when there is none.
  mlir::Value emitTerms(Expr sum, bool negative, bool withConstant = true);
  mlir::Value emitSum(Expr expr);
  mlir::Value emitNonNegative(Expr expr);
  mlir::Value emitSearch(Expr expr);
  mlir::Value emitClamp(Expr expr);
  /// A number of any size, as a signed integer that holds it.
  mlir::Value emitWide(Expr expr);
  mlir::Value emitWideSum(Expr sum);
  mlir::Value emitWideQuotient(Expr expr);
  /// A block constant of the mask region, its operations cloned to the insertion point.
  mlir::Value emitScalar(mlir::Value value);
  mlir::Value emitElement(mlir::Value tensor, llvm::ArrayRef<mlir::Value> leading,
                          mlir::Value last);
  /// An index that an element of another tensor tells, which may be any number.
  mlir::Value emitInside(mlir::Value tensor, mlir::Value index);
  mlir::Value constant(int64_t c);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Region *mask;
  mlir::IRMapping scalars;
  std::map<Symbol, mlir::Value> symbols;
  llvm::DenseMap<Expr, mlir::Value> emitted;
  llvm::DenseMap<int64_t, mlir::Value> constants;
};

/// Names for people: `m0` is the first row of a block of rows, `n0` the first key of one of keys.
/// Scalars are numbered as they are met.
struct Names {
  explicit Names(MaskAxis running) : running(running) {}
  llvm::StringRef operator[](Symbol symbol) const;
  std::string operator()(mlir::Value value, llvm::StringRef prefix);

private:
  MaskAxis running;
  llvm::DenseMap<mlir::Value, std::string> values;
};

/// Prints for people: `max(0, m0 - s0)`.
std::string toString(Expr expr, Names &names);

} // namespace bound
} // namespace attn

#endif // ATTN_LIB_ANALYSIS_MASKTILES_BOUND_H
