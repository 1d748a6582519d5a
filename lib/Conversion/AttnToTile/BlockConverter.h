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

#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Conversion/AttnToTile/CapturedSum.h"
#include "lib/Conversion/AttnToTile/RowNumbers.h"
#include "lib/Conversion/AttnToTile/TileBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace attn {

/// The kernel's argument for each argument of the function and each result of its grids.
using KernelArguments = llvm::DenseMap<mlir::Value, unsigned>;

/// The sum of gradients of queries that blocks which own keys add to, in f32 and in scratch:
/// (B, H, tiles of rows, matrix), where the matrix has `running` rows by D columns, or, transposed,
/// the other way round.
struct QuerySum {
  mlir::Value memref;
  int64_t running;
  bool isTransposed;
  /// Whether the block adds to it, not reads it.
  bool isAdded;
};

/// Where rows of a slice lie, past which others may lie.
enum class Lie { InOrder, InPages, InSequences };
Lie getLie(const ArgumentSlice &slice);

/// Converts the body of one grid into the body of `kernel`. It knows loops, slices and scalars; a
/// recipe (Recipes.h) says what an op of attention becomes, and works with its members.
class BlockConverter {
public:
  BlockConverter(mlir::func::FuncOp source, mlir::scf::ForallOp grid, mlir::func::FuncOp kernel);

  /// `parts` are numbers that are the first size of a kernel's argument.
  mlir::LogicalResult convert(const KernelArguments &arguments,
                              const llvm::SmallMapVector<mlir::Value, unsigned, 2> &parts);

  /// The value in the kernel; scalars of the function around the grid are cloned on first use.
  /// Null, with a diagnostic at `user`, if it has no form here.
  mlir::Value lookup(mlir::Operation *user, mlir::Value value);
  mlir::Value lookup(mlir::Operation *user, mlir::OpFoldResult value);
  /// The tile or number that a value has become; reports memory, since only slices of memory are
  /// read.
  mlir::Value lookupInRegisters(mlir::Operation *user, mlir::Value value);
  /// Where values that no loop or branch changes are computed, once for all of them.
  void moveBeforeLoops();
  /// The slice of an argument that the value is, or null.
  const ArgumentSlice *findSlice(mlir::Value value) const;
  /// The numbers of rows that the kernels of a gradient keep in this memory, or null.
  const RowNumbers *findRowNumbers(mlir::Value memref) const;
  /// The result has been stored where `slice` is.
  void setStored(mlir::Value result, ArgumentSlice slice) { slices[result] = std::move(slice); }
  /// The addends that the block has not added yet to `sum`, the sum of a captured tensor.
  llvm::SmallVector<mlir::Value> getUnadded(mlir::Value sum);
  void setUnadded(mlir::Value sum, mlir::ValueRange rows) { unadded[sum] = llvm::to_vector(rows); }

  mlir::scf::ForallOp grid;
  TileBuilder builder;
  /// Of tiles and scalars.
  mlir::IRMapping mapping;
  /// The part of the grid's last dimension that a block owns: the rows of its tiles.
  int64_t rows;
  /// Whether blocks with the last rows start first: blocks start in order, those with the most work
  /// should be the first.
  bool lastFirst = true;
  /// Of a grid of the fused form: a block that owns keys adds to it, one that owns rows reads it.
  std::optional<QuerySum> querySum;
  /// Of a grid before those: the sums that its blocks start with zeros, and rows of their tiles.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>, 1> zeroed;
  llvm::SmallVector<RowNumbers, 2> rowNumbers;
  /// Whether each of its sums is the business of a role of its own.
  bool dividesSums = false;
  /// Of a grid that makes the gradient of a captured tensor.
  std::optional<CapturedSum> captured;

private:
  mlir::LogicalResult convertBlockIds();
  mlir::LogicalResult convertOwnedIds(mlir::ValueRange ivs);
  mlir::LogicalResult convertBody(mlir::Block &body);
  /// Of a grid whose sum other grids have made: without the ops that make the sum.
  mlir::LogicalResult convertEnd();
  mlir::LogicalResult convertOp(mlir::Operation &op);
  mlir::LogicalResult convertFor(mlir::scf::ForOp op);
  /// A loop whose turns are blocks: its body, for the turn that the block is.
  mlir::LogicalResult convertTurn(mlir::scf::ForOp op, unsigned dim);
  mlir::LogicalResult convertYield(mlir::scf::YieldOp op);
  /// Whether the value is the sum of a captured tensor, which is in memory.
  bool isSum(mlir::Value value) const {
    return captured && mlir::isa<mlir::RankedTensorType>(value.getType());
  }
  /// Adds the values that control flow carries for the value.
  mlir::LogicalResult appendCarried(mlir::Operation *user, mlir::Value value,
                                    llvm::SmallVectorImpl<mlir::Value> &carried);
  /// The values are carried from now on.
  void mapCarried(mlir::ValueRange values, mlir::ValueRange carried);
  mlir::LogicalResult convertIf(mlir::scf::IfOp op);
  mlir::LogicalResult convertFill(mlir::linalg::FillOp op);
  mlir::LogicalResult convertDim(mlir::tensor::DimOp op);
  mlir::LogicalResult convertExtract(mlir::tensor::ExtractOp op);
  mlir::LogicalResult convertSinks(mlir::tensor::ExtractSliceOp op, PackSinkOp pack);
  mlir::LogicalResult convertSlice(mlir::tensor::ExtractSliceOp op);
  mlir::LogicalResult checkStored(mlir::tensor::ParallelInsertSliceOp op, mlir::Value memref,
                                  const ArgumentSlice &slice);
  mlir::LogicalResult storeNumbers(mlir::tensor::ParallelInsertSliceOp op, mlir::Value memref,
                                   mlir::tensor::FromElementsOp numbers);
  mlir::LogicalResult convertInsert(mlir::tensor::ParallelInsertSliceOp op);
  /// On scalars as it is, on tensors with their tiles as results.
  mlir::LogicalResult cloneElementwise(mlir::Operation &op);
  mlir::LogicalResult convertSelect(mlir::arith::SelectOp op);
  mlir::LogicalResult convertConstant(mlir::arith::ConstantOp op);
  /// The constant shape of a tensor of the block: dynamic rows are the block's. Null, with a
  /// diagnostic at `user`, if it has none.
  mlir::RankedTensorType getTileType(mlir::Operation *user, mlir::Value tensor);

  mlir::func::FuncOp source;
  mlir::func::FuncOp kernel;
  llvm::DenseMap<mlir::Value, ArgumentSlice> slices;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> unadded;
  /// Running sums of rows, which stay apart by lanes (M x 4 tiles) until the loops are over. Empty
  /// where other ops than steps and control flow take part.
  llvm::DenseSet<mlir::Value> partialSums;
};

/// Whether the blocks of all heads start with the first tile, then with the next one, as the
/// mapping of the grid says.
bool startsHeads(mlir::scf::ForallOp grid);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_BLOCKCONVERTER_H
