//===- ExtentFinder.h - collects the extents of a function ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Groups, expressions and rules grow together, as ops are visited: AttentionExtents.cpp,
// ViewExtents.cpp and FindExtents.cpp have the ops.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_EXTENTS_EXTENTFINDER_H
#define ATTN_LIB_ANALYSIS_EXTENTS_EXTENTFINDER_H

#include "dialects/Attn/IR/AttnCacheOps.h"
#include "lib/Analysis/Extents/FindExtents.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/IntEqClasses.h"

namespace attn {

class ExtentFinder {
public:
  explicit ExtentFinder(mlir::func::FuncOp function) : function(function) {}

  FunctionExtents run();

private:
  //===- Groups -----------------------------------------------------------------------------===//
  using Groups = llvm::SmallVector<unsigned, 4>;
  /// Of a tensor's dimensions; made when first asked for.
  const Groups &getGroups(mlir::Value value);
  unsigned addGroup() {
    classes.grow(numGroups + 1);
    return numGroups++;
  }
  void join(unsigned a, unsigned b) { classes.join(a, b); }
  void join(const Groups &a, const Groups &b) {
    for (auto [left, right] : llvm::zip(a, b))
      join(left, right);
  }
  void join(mlir::Value a, mlir::Value b) { join(Groups(getGroups(a)), Groups(getGroups(b))); }

  //===- Expressions ------------------------------------------------------------------------===//
  std::optional<Extent> getExtent(mlir::OpFoldResult value);
  std::optional<Extent> getExtent(mlir::Value value, unsigned depth = 0);
  std::optional<Extent> computeExtent(mlir::Value value, unsigned depth);
  void require(ExtentRule::Kind kind, Extent left, Extent right, Letter letter = Letter::None) {
    extents.rules.push_back({kind, std::move(left), std::move(right), letter});
  }
  /// The group is the value.
  void define(mlir::Operation *op, unsigned group, mlir::OpFoldResult value);
  void setUnknown(mlir::Operation *op, const llvm::Twine &reason) {
    if (extents.unknown)
      return;
    extents.unknown = op;
    extents.reason = reason.str();
  }

  //===- Ops --------------------------------------------------------------------------------===//
  void visit(mlir::Operation *op);
  void visit(AttentionOp op);
  void visit(AttentionGradOp op);
  void visitScores(ScoredOpInterface op);
  void visitReads(ScoredOpInterface op, mlir::Region &region);
  void requireRead(ScoredOpInterface op, mlir::Value tensor, size_t dim, size_t position,
                   int64_t shift = 0);
  void visit(MergeOp op);
  void visit(PagedOp op);
  void visit(RaggedOp op);
  void visit(PlaceOp op);
  void visitMoved(mlir::Operation *op, const MovedRows &rows);
  void visit(ScaledOp op);
  void joinOffsets(unsigned batches, mlir::Value offsets);
  void visit(mlir::tensor::ExtractOp op);
  void visitSlice(mlir::OffsetSizeAndStrideOpInterface op, mlir::Value whole, mlir::Value part,
                  const llvm::SmallBitVector &dropped);
  void requireWithin(mlir::Operation *op, unsigned whole, mlir::OpFoldResult offset,
                     mlir::OpFoldResult size, mlir::OpFoldResult stride);
  void visit(mlir::linalg::LinalgOp op);
  void visit(mlir::func::ReturnOp op);

  //===- Letters ----------------------------------------------------------------------------===//
  /// The dimensions of the argument that a value is.
  ExtentDims *findArgument(mlir::Value value);
  void setLetters(ExtentDims *dims, llvm::ArrayRef<Letter> letters) {
    if (dims && dims->size() == letters.size())
      for (auto [dim, letter] : llvm::zip_equal(*dims, letters))
        if (dim.letter == Letter::None)
          dim.letter = letter;
  }
  void useLeaders();

  void dropKnownRules();

  mlir::func::FuncOp function;
  FunctionExtents extents;
  /// Groups that were made, of which some have become one.
  llvm::IntEqClasses classes;
  unsigned numGroups = 0;
  llvm::DenseMap<mlir::Value, Groups> groups;
  llvm::DenseMap<mlir::Value, std::optional<Extent>> expressions;
  /// Of offsets: the rows of all sequences.
  llvm::DenseMap<mlir::Value, unsigned> totals;
  /// Dimensions of arguments that regions read at positions; whole tensors name theirs first.
  struct Read {
    ExtentDims *dims;
    size_t dim;
    Letter letter;
  };
  llvm::SmallVector<Read> reads;
};

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_EXTENTS_EXTENTFINDER_H
