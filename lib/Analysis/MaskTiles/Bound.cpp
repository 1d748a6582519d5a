//===- Bound.cpp - symbolic bounds of a mask --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===------------------------------------------------------------------------------------===//

#include "lib/Analysis/MaskTiles/Bound.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace attn::bound {

using Kind = ExprNode::Kind;

/// Interval arithmetic that never leaves [-unbounded, unbounded].
static int64_t saturate(__int128 x) {
  if (x > unbounded)
    return unbounded;
  return x < -unbounded ? -unbounded : int64_t(x);
}

static int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static bool same(const ExprNode &a, const ExprNode &b) {
  return a.kind == b.kind && a.constant == b.constant && a.symbol == b.symbol &&
         a.value == b.value && a.leading == b.leading && a.operands == b.operands &&
         a.coefficients == b.coefficients;
}

static bool isWide(const ExprNode &node) {
  switch (node.kind) {
  case Kind::Scalar:
  case Kind::Read:
    return node.least < -narrowLimit || node.greatest > narrowLimit;
  case Kind::Sum:
  case Kind::FloorDiv:
  case Kind::Product:
  case Kind::Min:
  case Kind::Max:
  case Kind::Select:
    return llvm::any_of(node.operands, [](Expr operand) { return operand->isWide; });
  default:
    return false;
  }
}

std::optional<std::pair<int64_t, int64_t>> findConstantBounds(Value value) {
  auto lower = value.getDefiningOp<arith::MinSIOp>();
  auto raised = lower ? lower.getLhs().getDefiningOp<arith::MaxSIOp>() : arith::MaxSIOp();
  APInt least, greatest;
  if (!raised || !matchPattern(raised.getRhs(), m_ConstantInt(&least)) ||
      !matchPattern(lower.getRhs(), m_ConstantInt(&greatest)) || least.sgt(greatest))
    return std::nullopt;
  return std::pair(least.getSExtValue(), greatest.getSExtValue());
}

Expr ExprPool::intern(ExprNode node) {
  llvm::hash_code hash = llvm::hash_combine(
      node.kind, node.constant, node.symbol, node.value.getAsOpaquePointer(),
      llvm::hash_combine_range(node.operands.begin(), node.operands.end()),
      llvm::hash_combine_range(node.coefficients.begin(), node.coefficients.end()));
  auto &bucket = interned[hash];
  for (Expr known : bucket)
    if (same(*known, node))
      return known;
  node.id = nodes.size();
  // A search runs over positions of its own.
  ArrayRef<Expr> operands = node.operands;
  for (Expr operand : node.kind == Kind::Search ? operands.take_front(2) : operands) {
    node.usesFixed |= operand->usesFixed;
    node.usesRunning |= operand->usesRunning;
  }
  node.isWide = isWide(node);
  nodes.push_back(std::move(node));
  bucket.push_back(&nodes.back());
  return &nodes.back();
}

ExprPool::ExprPool() {
  // Sums are in order of creation: positions come before scalars.
  for (Symbol s :
       {Symbol::Fixed, Symbol::Running, Symbol::FixedBegin, Symbol::FixedEnd, Symbol::NumRunning})
    symbol(s);
}

Expr ExprPool::constant(int64_t c) {
  return intern({.kind = Kind::Constant, .constant = c, .least = c, .greatest = c});
}

Expr ExprPool::symbol(Symbol symbol) {
  ExprNode node{.kind = Kind::Symbol, .symbol = symbol, .least = 0, .greatest = positionLimit};
  // A block owns at least one position.
  if (symbol == Symbol::FixedEnd)
    node.least = 1;
  node.usesFixed = symbol == Symbol::Fixed;
  node.usesRunning = symbol == Symbol::Running;
  return intern(std::move(node));
}

Expr ExprPool::scalar(Value value, int64_t least, int64_t greatest) {
  return intern({.kind = Kind::Scalar, .value = value, .least = least, .greatest = greatest});
}

Expr ExprPool::scaleAdd(int64_t factor, Expr a, Expr b) {
  // std::map keeps the terms in order of creation, which makes the form canonical.
  std::map<unsigned, std::pair<Expr, __int128>> terms;
  __int128 total = 0;
  auto addTerm = [&](Expr term, __int128 coefficient) {
    auto &known = terms[term->id];
    known = {term, known.second + coefficient};
  };
  auto accumulate = [&](Expr expr, __int128 scale) {
    if (expr->isConstant() || expr->kind == Kind::Sum)
      total += scale * expr->constant;
    else
      addTerm(expr, scale);
    if (expr->kind == Kind::Sum)
      for (auto [operand, coefficient] : llvm::zip_equal(expr->operands, expr->coefficients))
        addTerm(operand, scale * coefficient);
  };
  accumulate(a, factor);
  accumulate(b, 1);

  // The first bound keeps products with positions within 64 bits.
  auto fits = [&](__int128 x, int64_t limit) {
    overflowed |= x >= limit || x <= -limit;
    return x < limit && x > -limit ? int64_t(x) : 0;
  };
  ExprNode node{.kind = Kind::Sum, .constant = fits(total, unbounded)};
  __int128 least = total, greatest = total;
  for (auto &[id, term] : terms) {
    Expr operand = term.first;
    int64_t coefficient = fits(term.second, int64_t(1) << 32);
    if (coefficient == 0)
      continue;
    node.operands.push_back(operand);
    node.coefficients.push_back(coefficient);
    bool up = coefficient > 0;
    least += __int128(coefficient) * (up ? operand->least : operand->greatest);
    greatest += __int128(coefficient) * (up ? operand->greatest : operand->least);
  }
  if (node.operands.empty())
    return constant(node.constant);
  if (node.constant == 0 && node.operands.size() == 1 && node.coefficients[0] == 1)
    return node.operands[0];
  node.least = saturate(least);
  node.greatest = saturate(greatest);
  return intern(std::move(node));
}

Expr ExprPool::floorDiv(Expr a, Expr divisor) {
  if (divisor->isConstant(1))
    return a;
  if (!divisor->isConstant()) {
    bool natural = a->least >= 0;
    return intern({.kind = Kind::FloorDiv,
                   .operands = {a, divisor},
                   .least = natural ? 0 : a->least,
                   .greatest = std::max<int64_t>(a->greatest, natural ? 0 : -1)});
  }
  int64_t d = divisor->constant;
  if (a->isConstant())
    return constant(floorDivide(a->constant, d));
  if (a->least > -unbounded && a->greatest < unbounded &&
      floorDivide(a->least, d) == floorDivide(a->greatest, d))
    return constant(floorDivide(a->least, d));
  // Whole multiples of the divisor leave the division.
  Expr whole = constant(0), rest = a;
  if (a->kind == Kind::Sum) {
    whole = constant(floorDivide(a->constant, d));
    for (auto [operand, coefficient] : llvm::zip_equal(a->operands, a->coefficients))
      if (coefficient % d == 0)
        whole = scaleAdd(coefficient / d, operand, whole);
    rest = scaleAdd(-d, whole, a);
    if (!whole->isConstant(0))
      return add(whole, floorDiv(rest, divisor));
  }
  return intern({.kind = Kind::FloorDiv,
                 .operands = {rest, divisor},
                 .least = floorDivide(rest->least, d),
                 .greatest = floorDivide(rest->greatest, d)});
}

Expr ExprPool::product(Expr positive, Expr a) {
  if (positive->isConstant())
    return scale(a, positive->constant);
  if (a->isConstant())
    return scale(positive, a->constant);
  if (a->kind == Kind::Sum) {
    Expr total = scale(positive, a->constant);
    for (auto [operand, coefficient] : llvm::zip_equal(a->operands, a->coefficients))
      total = scaleAdd(coefficient, product(positive, operand), total);
    return total;
  }
  bool natural = a->least >= 0;
  return intern({.kind = Kind::Product,
                 .operands = {positive, a},
                 .least = natural ? 0 : -unbounded,
                 .greatest = unbounded});
}

Expr ExprPool::extremum(Kind kind, ArrayRef<Expr> operands) {
  bool isMin = kind == Kind::Min;
  SmallVector<Expr, 4> kept;
  auto insert = [&](Expr candidate) {
    // An operand is dropped when another one is always as small (Min) or as large (Max).
    auto beats = [&](Expr a, Expr b) {
      Expr gap = isMin ? sub(b, a) : sub(a, b);
      return gap->least >= 0;
    };
    if (llvm::any_of(kept, [&](Expr other) { return beats(other, candidate); }))
      return;
    llvm::erase_if(kept, [&](Expr other) { return beats(candidate, other); });
    kept.push_back(candidate);
  };
  for (Expr operand : operands) {
    if (operand->kind != kind) {
      insert(operand);
      continue;
    }
    for (Expr inner : operand->operands)
      insert(inner);
  }
  if (kept.size() == 1)
    return kept[0];
  llvm::sort(kept, [](Expr a, Expr b) { return a->id < b->id; });
  ExprNode node{
      .kind = kind, .operands = kept, .least = kept[0]->least, .greatest = kept[0]->greatest};
  for (Expr operand : kept) {
    node.least =
        isMin ? std::min(node.least, operand->least) : std::max(node.least, operand->least);
    node.greatest = isMin ? std::min(node.greatest, operand->greatest)
                          : std::max(node.greatest, operand->greatest);
  }
  return intern(std::move(node));
}

Expr ExprPool::select(Expr condition, Expr a, Expr b) {
  if (condition->isTrue() || a == b)
    return a;
  if (condition->isFalse())
    return b;
  return intern({.kind = Kind::Select,
                 .operands = {condition, a, b},
                 .least = std::min(a->least, b->least),
                 .greatest = std::max(a->greatest, b->greatest)});
}

Expr ExprPool::clamp(Expr a, int64_t least, int64_t greatest) {
  if (a->least >= least && a->greatest <= greatest)
    return a;
  if (a->least >= greatest)
    return constant(greatest);
  if (a->greatest <= least)
    return constant(least);
  return intern({.kind = Kind::Clamp,
                 .operands = {a},
                 .coefficients = {least, greatest},
                 .least = std::max(a->least, least),
                 .greatest = std::min(a->greatest, greatest)});
}

Expr ExprPool::read(Value tensor, ArrayRef<Value> leading, Expr index) {
  Type type = cast<RankedTensorType>(tensor.getType()).getElementType();
  unsigned width = bitsOf(type);
  int64_t limit = width >= 63 ? unbounded : int64_t(1) << (width - 1);
  return intern({.kind = Kind::Read,
                 .value = tensor,
                 .leading = SmallVector<Value, 2>(leading),
                 .operands = {index},
                 .least = -limit,
                 .greatest = limit});
}

Expr ExprPool::search(Value tensor, ArrayRef<Value> leading, Expr offset, Expr least,
                      Expr through) {
  SmallVector<Expr, 4> operands = {offset, least};
  if (through)
    operands.push_back(through);
  return intern({.kind = Kind::Search,
                 .value = tensor,
                 .leading = SmallVector<Value, 2>(leading),
                 .operands = std::move(operands),
                 .least = 0,
                 .greatest = positionLimit});
}

Expr ExprPool::boolean(bool b) { return intern({.kind = Kind::Bool, .constant = b}); }

Expr ExprPool::truth(Value value, bool negated) {
  Expr truth = intern({.kind = Kind::Truth, .value = value});
  return negated ? intern({.kind = Kind::Not, .operands = {truth}}) : truth;
}

Expr ExprPool::nonNegative(Expr a) {
  if (a->least >= 0)
    return boolean(true);
  if (a->greatest < 0)
    return boolean(false);
  return intern({.kind = Kind::NonNegative, .operands = {a}});
}

Expr ExprPool::junction(Kind kind, ArrayRef<Expr> operands) {
  bool isAnd = kind == Kind::And;
  llvm::SmallVector<Expr, 4> kept;
  for (Expr operand : operands) {
    if (operand->kind == Kind::Bool) {
      if (operand->isTrue() != isAnd)
        return operand;
      continue;
    }
    if (!llvm::is_contained(kept, operand))
      kept.push_back(operand);
  }
  if (kept.empty())
    return boolean(isAnd);
  if (kept.size() == 1)
    return kept[0];
  return intern({.kind = kind, .operands = kept});
}

Expr ExprPool::conjunction(ArrayRef<Expr> operands) { return junction(Kind::And, operands); }
Expr ExprPool::disjunction(ArrayRef<Expr> operands) { return junction(Kind::Or, operands); }

static std::string list(StringRef name, Expr expr, Names &names) {
  std::string text = name.str() + "(";
  llvm::interleave(
      expr->operands, [&](Expr operand) { text += toString(operand, names); },
      [&] { text += ", "; });
  return text + ")";
}

StringRef Names::operator[](Symbol symbol) const {
  static constexpr StringLiteral ofRows[] = {"m", "n", "m0", "m1", "N"};
  static constexpr StringLiteral ofKeys[] = {"n", "m", "n0", "n1", "M"};
  return (running == MaskAxis::Keys ? ofRows : ofKeys)[unsigned(symbol)];
}

std::string Names::operator()(Value value, StringRef prefix) {
  std::string &name = values[value];
  if (name.empty())
    name = prefix.str() + std::to_string(values.size() - 1);
  return name;
}

static std::string sumToString(Expr expr, Names &names) {
  std::string text;
  auto append = [&](bool negative, const std::string &term) {
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    text += term;
  };
  // Positive terms first: `m0 - s0`, not `-s0 + m0`.
  for (bool negative : {false, true})
    for (auto [operand, coefficient] : llvm::zip_equal(expr->operands, expr->coefficients)) {
      if ((coefficient < 0) != negative)
        continue;
      int64_t factor = negative ? -coefficient : coefficient;
      std::string term = toString(operand, names);
      if (operand->kind == Kind::Clamp && operand->operands[0]->kind == Kind::Sum)
        term.insert(0, "(").append(")");
      append(negative, factor == 1 ? term : std::to_string(factor) + " * " + term);
    }
  if (expr->constant)
    append(expr->constant < 0, std::to_string(std::abs(expr->constant)));
  return text;
}

std::string toString(Expr expr, Names &names) {
  auto operand = [&](unsigned i) { return toString(expr->operands[i], names); };
  switch (expr->kind) {
  case Kind::Constant:
    return std::to_string(expr->constant);
  case Kind::Symbol:
    return names[expr->symbol].str();
  case Kind::Scalar:
  case Kind::Truth:
    return names(expr->value, "s");
  case Kind::Sum:
    return sumToString(expr, names);
  case Kind::FloorDiv:
    return "floor((" + operand(0) + ") / " + operand(1) + ")";
  case Kind::Product:
    return operand(0) + " * (" + operand(1) + ")";
  case Kind::Min:
    return list("min", expr, names);
  case Kind::Max:
    return list("max", expr, names);
  case Kind::Select:
    return "(" + operand(0) + " ? " + operand(1) + " : " + operand(2) + ")";
  case Kind::Clamp:
    // A number beyond all positions is as good as its clamped value.
    return operand(0);
  case Kind::Read:
    return names(expr->value, "t") + "[" + operand(0) + "]";
  case Kind::Search:
    return "first(" + names(expr->value, "t") + " >= " + operand(1) + ")";
  case Kind::Bool:
    return expr->constant ? "true" : "false";
  case Kind::Not:
    return "!" + operand(0);
  case Kind::NonNegative:
    return operand(0) + " >= 0";
  case Kind::And:
    return list("and", expr, names);
  case Kind::Or:
    return list("or", expr, names);
  }
  return "";
}

} // namespace attn::bound
