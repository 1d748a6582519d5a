//===- BlockConverter.h - the body of a grid as a program of tiles -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//
// Tensors of room 3 are one of three things on tiles, and the converter keeps them apart:
//
//   slices of kernel arguments        -> a memref and a position (ArgumentSlice); nothing is read
//   before an op needs it running state and what follows it -> register tiles (the IRMapping)
//   destinations that are only written -> nothing: tensor.empty has no meaning here
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_BLOCKCONVERTER_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_BLOCKCONVERTER_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <limits>

namespace attn {

/// A part of a kernel argument: `position` is global and has the argument's rank; the tile covers
/// the last dimensions.
struct ArgumentSlice {
  mlir::Value memref;
  llvm::SmallVector<mlir::Value> position;
  /// Elements of the dimensions the slice keeps, as values of index type.
  llvm::SmallVector<mlir::Value> sizes;
};

/// The kernel's argument for each argument of the function and each result of its grids.
using KernelArguments = llvm::DenseMap<mlir::Value, unsigned>;

/// Converts the body of one grid into the body of `kernel`.
class BlockConverter {
public:
  BlockConverter(mlir::func::FuncOp source, mlir::scf::ForallOp grid, mlir::func::FuncOp kernel,
                 int64_t blockM, int64_t blockN);

  mlir::LogicalResult convert(const KernelArguments &arguments);

private:
  /// The maximum of no score, and the log-sum-exp of a row that keeps no key.
  static constexpr double kLowest = -std::numeric_limits<double>::infinity();
  /// Of a row's sum: one for each lane that holds elements of the row.
  static constexpr int64_t kNumParts = 4;

  // BlockConverter.cpp: structure.
  mlir::LogicalResult convertBlockIds();
  mlir::LogicalResult convertBody(mlir::Block &body);
  mlir::LogicalResult convertOp(mlir::Operation &op);
  mlir::LogicalResult convertFor(mlir::scf::ForOp op);
  mlir::LogicalResult convertIf(mlir::scf::IfOp op);
  mlir::LogicalResult convertSlice(mlir::tensor::ExtractSliceOp op);
  mlir::LogicalResult convertInsert(mlir::tensor::ParallelInsertSliceOp op);
  /// On scalars as it is, on tensors with their tiles as results.
  mlir::LogicalResult cloneElementwise(mlir::Operation &op);
  /// The value in the kernel; scalars of the function around the grid are cloned on first use.
  /// Null, with a diagnostic at `user`, if it has no form here.
  mlir::Value lookup(mlir::Operation *user, mlir::Value value);
  mlir::Value lookup(mlir::Operation *user, mlir::OpFoldResult value);
  /// The tile or number that a value has become; reports memory, of which a slice is to be read.
  mlir::Value lookupInRegisters(mlir::Operation *user, mlir::Value value);
  /// The constant shape of a tensor of the block: dynamic rows are block_m. Null, with a diagnostic
  /// at `user`, if it has none.
  mlir::RankedTensorType getTileType(mlir::Operation *user, mlir::RankedTensorType type);

  // MergeConverter.cpp: partial results.
  mlir::LogicalResult convertMerge(MergeOp op);

  // StepConverter.cpp: arithmetic.
  mlir::LogicalResult convertStep(OnlineAttentionOp op);
  mlir::LogicalResult convertNormalize(NormalizeOp op);
  struct RowWeights {
    mlir::Value weights, factor;
  };
  RowWeights emitRowWeights(mlir::Value t, mlir::Value old, mlir::Value max);
  /// Inlines a region on tiles of coordinates; returns the yielded tile.
  mlir::Value inlineRegion(mlir::Region &region, mlir::ValueRange arguments,
                           mlir::RankedTensorType shape, mlir::Value isFalse = {});
  mlir::Value splat(mlir::Value scalar, llvm::ArrayRef<int64_t> shape);
  mlir::Value constant(double value, llvm::ArrayRef<int64_t> shape);
  mlir::Value rowsToTile(mlir::Value rows, int64_t columns);
  mlir::Value isEqual(mlir::Value tile, double value);
  /// The sums of rows, whole.
  mlir::Value sumParts(mlir::Value sums);

  mlir::func::FuncOp source;
  mlir::scf::ForallOp grid;
  mlir::func::FuncOp kernel;
  mlir::ImplicitLocOpBuilder b;
  mlir::IRMapping mapping;
  llvm::DenseMap<mlir::Value, ArgumentSlice> slices;
  /// Tiles side by side that together are a value too wide for one: what a merge makes.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> pieces;
  int64_t blockM, blockN;
  /// Running sums of rows, which stay apart by lanes (M x 4 tiles) until the loops are over. Empty
  /// where other ops than steps and control flow take part.
  llvm::DenseSet<mlir::Value> partialSums;
  /// The scale of all steps when it is a positive constant and nothing but masks comes between it
  /// and the softmax: running maxima are then of unscaled scores.
  std::optional<double> foldedScale;
};

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_BLOCKCONVERTER_H
