//===- InferFacts.cpp - dimensions by use -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnVariants.h"
#include "lib/Tools/AttnRun/Source.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace llvm;

namespace attn {

namespace {
class FactsFinder {
public:
  FactsFinder(mlir::func::FuncOp function, Source &source) : function(function), source(source) {}

  void run() {
    function.walk([&](AttentionOp op) { visitAttention(op); });
    function.walk([&](AssumeOp op) {
      if (ValueFacts *facts = find(op->getOperand(0)))
        facts->isSorted = true;
    });
  }

private:
  /// The argument that a value is, seen through casts and assumptions.
  ValueFacts *find(mlir::Value value) {
    while (mlir::Operation *op = value.getDefiningOp()) {
      if (!isa<mlir::tensor::CastOp, AssumeOp>(op))
        return nullptr;
      value = op->getOperand(0);
    }
    auto argument = cast<mlir::BlockArgument>(value);
    bool isOurs = argument.getOwner() == &function.getBody().front();
    return isOurs ? &source.arguments[argument.getArgNumber()] : nullptr;
  }

  static void assign(ValueFacts *facts, size_t dim, StringRef letter) {
    if (!facts || dim >= facts->dims.size())
      return;
    std::string &known = facts->dims[dim];
    if (known == "?")
      known = letter.str();
    else if ((known == "M" && letter == "N") || (known == "N" && letter == "M"))
      known = "MN";
  }

  static void assignAll(ValueFacts *facts, ArrayRef<StringRef> letters) {
    if (facts && facts->dims.size() == letters.size())
      for (auto [dim, letter] : enumerate(letters))
        assign(facts, dim, letter);
  }

  void visitAttention(AttentionOp op) {
    assignAll(find(op.getQuery()), {"B", "H", "M", "D"});
    assignAll(find(op.getKey()), {"B", "Hkv", "N", "D"});
    assignAll(find(op.getValue()), {"B", "Hkv", "N", "Dv"});
    if (op.getSink())
      assignAll(find(op.getSink()), {"H"});
    for (auto [rule, capture] : zip_equal(getCaptureRules(op), op.getCaptures()))
      for (size_t dim = 0; dim < rule.dims.size(); ++dim)
        if (rule.dims[dim] != 'R')
          assign(find(capture), dim, rule.dims.substr(dim, 1));
    for (mlir::Operation *user : op->getUsers())
      if (user->getParentOp() == function && user->hasTrait<mlir::OpTrait::IsTerminator>())
        visitReturn(op, user);
    for (mlir::Region *region : {&op.getScore(), &op.getMask()})
      visitRegion(*region);
  }

  void visitReturn(mlir::Operation *op, mlir::Operation *terminator) {
    for (auto [index, value] : enumerate(terminator->getOperands())) {
      if (value.getDefiningOp() != op || index >= source.results.size())
        continue;
      if (value == op->getResult(0))
        assignAll(&source.results[index], {"B", "H", "M", "Dv"});
      else
        assignAll(&source.results[index], {"B", "H", "M"});
    }
  }

  /// A tensor read at [%h, %n] has dimensions H and N: the region's last four arguments are the
  /// positions b, h, m, n.
  void visitRegion(mlir::Region &region) {
    if (region.empty())
      return;
    static constexpr StringLiteral letters[] = {"B", "H", "M", "N"};
    unsigned first = region.getNumArguments() - 4;
    region.walk([&](mlir::tensor::ExtractOp extract) {
      for (auto [dim, index] : enumerate(extract.getIndices())) {
        auto argument = dyn_cast<mlir::BlockArgument>(index);
        if (argument && argument.getOwner() == &region.front() && argument.getArgNumber() >= first)
          assign(find(extract.getTensor()), dim, letters[argument.getArgNumber() - first]);
      }
    });
  }

  mlir::func::FuncOp function;
  Source &source;
};
} // namespace

void inferFacts(mlir::func::FuncOp function, Source &source) {
  FactsFinder(function, source).run();
}

} // namespace attn
