//===- Letters.cpp - dimensions by use ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Compiler/Function.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace llvm;

namespace attn {

StringRef getName(Letter letter) {
  static constexpr StringLiteral names[] = {"B", "H", "Hkv", "M", "N", "D", "Dv", ""};
  return names[size_t(letter)];
}

namespace {
class LetterFinder {
public:
  explicit LetterFinder(mlir::func::FuncOp function) : function(function) {
    for (mlir::Type type : function.getArgumentTypes())
      add(type);
    for (mlir::Type type : function.getResultTypes())
      add(type);
  }

  SmallVector<DimRules> run() {
    function.walk([&](AttentionOp op) { visit(op); });
    return std::move(rules);
  }

private:
  void add(mlir::Type type) {
    auto tensor = dyn_cast<mlir::RankedTensorType>(type);
    rules.emplace_back(tensor ? tensor.getRank() : 0);
  }

  /// The argument that a value is, seen through casts and assumptions.
  DimRules *find(mlir::Value value) {
    while (value && isa_and_nonnull<mlir::tensor::CastOp, AssumeOp>(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    auto argument = dyn_cast_or_null<mlir::BlockArgument>(value);
    bool isOurs = argument && argument.getOwner() == &function.getBody().front();
    return isOurs ? &rules[argument.getArgNumber()] : nullptr;
  }

  static void assign(DimRules *dims, ArrayRef<Letter> letters) {
    if (dims && dims->size() == letters.size())
      for (auto [dim, letter] : zip_equal(*dims, letters))
        if (dim.letter == Letter::None || dim.isAtLeast)
          dim = {letter, false};
  }

  /// A dimension that is read at the positions of `letter`.
  static void assignLeast(DimRules *dims, size_t dim, Letter letter) {
    if (dims && dim < dims->size() && (*dims)[dim].letter == Letter::None)
      (*dims)[dim] = {letter, true};
  }

  void visit(AttentionOp op) {
    // Positions of an op elsewhere than at zeros are not those of its operands.
    bool isWhole = op.getOrigin().empty();
    assign(find(op.getQuery()), {Letter::B, Letter::H, Letter::M, Letter::D});
    assign(find(op.getKey()), {Letter::B, Letter::Hkv, Letter::N, Letter::D});
    assign(find(op.getValue()), {Letter::B, Letter::Hkv, Letter::N, Letter::Dv});
    if (op.getSink())
      assign(find(op.getSink()), {Letter::H});
    for (mlir::OpOperand &use : op->getUses()) {
      if (use.getOwner()->getParentOp() != function || !isa<mlir::func::ReturnOp>(use.getOwner()))
        continue;
      DimRules *dims = &rules[function.getNumArguments() + use.getOperandNumber()];
      if (use.get() == op.getOutput())
        assign(dims, {Letter::B, Letter::H, Letter::M, Letter::Dv});
      else
        assign(dims, {Letter::B, Letter::H, Letter::M});
    }
    if (!isWhole)
      return;
    for (mlir::Region *region : {&op.getScore(), &op.getMask()})
      visit(*region);
    for (auto [rule, capture] : zip_equal(getCaptureRules(op), op.getCaptures()))
      for (auto [dim, name] : enumerate(rule.dims))
        for (Letter letter : {Letter::B, Letter::H, Letter::M, Letter::N})
          if (StringRef(&name, 1) == getName(letter))
            assignLeast(find(capture), dim, letter);
  }

  /// A tensor read at [%h, %n] has at least H rows and N columns: the region's last four arguments
  /// are the positions b, h, m, n.
  void visit(mlir::Region &region) {
    if (region.empty())
      return;
    static constexpr Letter letters[] = {Letter::B, Letter::H, Letter::M, Letter::N};
    unsigned first = region.getNumArguments() - 4;
    region.walk([&](mlir::tensor::ExtractOp extract) {
      for (auto [dim, index] : enumerate(extract.getIndices())) {
        auto argument = dyn_cast<mlir::BlockArgument>(index);
        if (argument && argument.getOwner() == &region.front() && argument.getArgNumber() >= first)
          assignLeast(find(extract.getTensor()), dim, letters[argument.getArgNumber() - first]);
      }
    });
  }

  mlir::func::FuncOp function;
  SmallVector<DimRules> rules;
};
} // namespace

SmallVector<DimRules> findLetters(mlir::func::FuncOp function) {
  return LetterFinder(function).run();
}

} // namespace attn
