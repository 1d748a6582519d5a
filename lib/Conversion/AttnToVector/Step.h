//===- Step.h - one step of the online softmax, tile by tile ------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_STEP_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_STEP_H

#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Conversion/AttnToVector/KernelFunctions.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/StringMap.h"

namespace attn {

/// A run-time number of rows or keys and its known bounds.
struct Extent {
  mlir::Value value;
  /// At least `value`; equal to it if `isStatic`.
  int64_t bound = 0;
  bool isStatic = false;
};

/// The extent of dimension 0 of `memref`, which is what `op` calls `name`; reports one without a
/// bound.
mlir::FailureOr<Extent> getBoundedExtent(Emitter &b, mlir::Operation *op, llvm::StringRef name,
                                         mlir::Value memref);

/// The stack buffers of one block. Steps of a block run one after the other and share them by name
/// and type.
class Scratch {
public:
  /// A buffer for `user`, of f32, aligned to a cache line, allocated on entry of the block around
  /// it.
  mlir::Value get(mlir::Operation *user, llvm::StringRef name, llvm::ArrayRef<int64_t> shape);
  /// The block around `user` whose stack holds its buffers: a body of a parallel loop, or that of
  /// the function.
  static mlir::Block *getBlock(mlir::Operation *user);

private:
  llvm::DenseMap<mlir::Block *, llvm::StringMap<mlir::Value>> buffers;
};

/// How an operand of a matrix product lies in memory. A word is 32 bits and what one lane of one
/// instruction multiplies: an f32, or two neighbouring bf16 along the summed dimension.
enum class WordKind { F32, BF16Pair };

/// A matrix that stays for a block, transposed once: words (depth, rows rounded up to lanes), zeros
/// in the rows that are not there.
struct PackedMatrix {
  mlir::Value words;
  WordKind kind = WordKind::F32;
  /// Words along the last dimension.
  int64_t depth = 0;
};

/// Packs matrices where they are defined; every step of a block on one matrix shares its packed
/// form.
class MatrixPacker {
public:
  PackedMatrix get(mlir::Operation *user, mlir::Value matrix, const Extent &rows, bool mayPair,
                   const VectorTarget &target, Scratch &scratch);

  /// The matrix as a tile of f32 (emitF32Tile).
  mlir::Value copy(mlir::Operation *user, mlir::Value matrix, const Extent &rows,
                   const VectorTarget &target, Scratch &scratch);

private:
  llvm::DenseMap<std::tuple<mlir::Value, mlir::Block *, unsigned>, PackedMatrix> packed;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, mlir::Value> copies;
};

/// State that the steps of a module share.
struct Shared {
  Scratch scratch;
  MatrixPacker packer;
  KernelFunctions functions;
};

/// out[r][l] = scale * sum_d rows[r][d] * packed[d][l], and the maxima over r.
struct ScoreProduct {
  PackedMatrix packed;
  /// Lanes that are computed, a multiple of a register's lanes, and its bound.
  mlir::Value paddedLanes;
  int64_t laneStride = 0;
  /// (count, D), in the form that `packed` is multiplied with.
  mlir::Value rows;
  Extent count;
  /// Null: 1.
  mlir::Value scale;
  mlir::Value out;
  /// (laneStride); null where they are not asked for.
  mlir::Value maxima;
  /// paddedLanes is a multiple of getLaneUnit: where that is a tile of registers, nothing is left
  /// over.
  bool hasWholeTiles = false;
};
/// Lanes of a tile of registers, if they divide `laneStride` and are a power of two; else those of
/// a register. Lanes beyond the last one hold zeros in a packed matrix.
int64_t getLaneUnit(const VectorTarget &target, int64_t laneStride);
void emitScores(Emitter &b, const ScoreProduct &product);
/// The same, by a function that products of such tiles share.
void callScores(Emitter &b, const ScoreProduct &product, KernelFunctions &functions);

/// acc[l][:] = factor[l] * acc[l][:] + sum_t weights[t][l] * matrix[t][:].
struct SumProduct {
  WordKind kind = WordKind::F32;
  /// Scratch, of words of pairs of terms where `kind` says so.
  mlir::Value weights;
  /// Terms lie along its rows: weights[l][t].
  bool termsAreColumns = false;
  Extent terms;
  mlir::Value acc;
  /// Accumulators are of a whole sequence, and in no cache that is near.
  bool isFar = false;
  Extent rows;
  int64_t columns = 0;
  /// (terms, columns), in the form that weights are multiplied with: scratch as wide as whole
  /// registers, or memory of the caller.
  mlir::Value matrix;
  bool isScratch = false;
  /// (terms): which rows of the matrix may be read; null: all.
  mlir::Value kept;
  /// (rows); null: 1.
  mlir::Value factor;
};
void emitSums(Emitter &b, const SumProduct &product);
/// The same, by a function that products of such tiles share.
void callSums(Emitter &b, const SumProduct &product, KernelFunctions &functions);

/// One online_attention op being lowered. Scratch matrices have one row per key or pair of keys and
/// one column per query row, so that lanes are rows and no reduction crosses lanes.
struct Step {
  OnlineAttentionOp op;
  Extent rows, keys;
  /// rows rounded up to a multiple of lanes, and its bound.
  mlir::Value paddedRows;
  int64_t rowStride = 0;
  WordKind kind = WordKind::F32;
  PackedMatrix query;
  /// (keys, D) in f32, or the op's key itself in pairs.
  mlir::Value key;
  /// (keys, Dv) in f32, or words (pairs of keys, Dv rounded up to lanes).
  mlir::Value value;
  /// Scores, then probabilities in place: f32 or words of pairs of keys.
  mlir::Value scores;
  /// As scores, f32: the factors of probabilities in front of values; null where they are 1.
  mlir::Value factors;
  /// (keys): 1 where some row keeps the key, else 0; null where no key can be dropped.
  mlir::Value kept;
  /// (rowStride): the maximum of this tile's scores, then the factor of the old state.
  mlir::Value rowScratch;

  int64_t valueDim() { return mlir::cast<mlir::MemRefType>(op.getValue().getType()).getDimSize(1); }
  bool hasRegions() { return !op.getScore().empty() || !op.getMask().empty(); }
};

/// Lowers one step and erases it.
mlir::LogicalResult lowerStep(OnlineAttentionOp op, const VectorTarget &target, Shared &shared);

// The parts of a step, in the order in which they run.

/// Puts keys into the form that the product with queries reads: none for f32.
void emitKeyPacking(Emitter &b, Step &step, Scratch &scratch);
/// scores = mask ? score(scores) : -inf, and the maximum over n into rowScratch; factors of weights
/// into `factors`, which keys are kept into `kept`.
void emitScoreRegions(Emitter &b, Step &step);
/// Puts values into the form that the product with probabilities reads: none for f32. Those of keys
/// that no row keeps become zeros, for they may hold anything.
void emitValuePacking(Emitter &b, Step &step, Scratch &scratch);
/// The running maximum and sum, probabilities times their factors in place of scores, and into
/// rowScratch the factor of the accumulator.
void emitSoftmax(Emitter &b, Step &step);
/// acc + a * b over words; one instruction.
mlir::Value emitDot(Emitter &b, WordKind kind, mlir::Value x, mlir::Value y, mlir::Value acc);

/// kept[n] = 1 for the keys whose row of `matrix` holds something else than `nothing`, else 0. NaN
/// is something: what is kept must show it.
void emitKept(Emitter &b, mlir::Value matrix, mlir::Value keys, mlir::Value paddedLanes,
              double nothing, mlir::Value kept);
/// The same of a matrix with keys in lanes: the columns that hold something else.
void emitKeptLanes(Emitter &b, mlir::Value matrix, mlir::Value rows, mlir::Value paddedLanes,
                   double nothing, mlir::Value kept);
/// i1: kept[n] says that some row keeps key n.
mlir::Value emitIsKept(Emitter &b, mlir::Value kept, mlir::Value n);

/// The first `count` rows of `source`, of any float type, as f32 scratch with columns rounded up to
/// lanes; zeros for rows that are not kept, if `kept` is there.
mlir::Value emitF32Tile(Emitter &b, mlir::Operation *user, llvm::StringRef name, mlir::Value source,
                        const Extent &count, mlir::Value kept, Scratch &scratch);

/// Calls body(column, mask) for every register of a row of `columns` elements; mask is null where
/// all lanes exist.
void forColumns(Emitter &b, int64_t columns,
                llvm::function_ref<void(mlir::Value, mlir::Value)> body);

/// Lowers one step of gradients and erases it.
mlir::LogicalResult lowerGradStep(GradDeltaStepOp op, const VectorTarget &target, Shared &shared);
mlir::LogicalResult lowerGradStep(GradQueryStepOp op, const VectorTarget &target, Shared &shared);
mlir::LogicalResult lowerGradStep(GradFusedStepOp op, const VectorTarget &target, Shared &shared);
mlir::LogicalResult lowerGradStep(GradCapturedStepOp op, const VectorTarget &target,
                                  Shared &shared);
mlir::LogicalResult lowerGradStep(GradKeyValueStepOp op, const VectorTarget &target,
                                  Shared &shared);

/// The other ops on buffers; each is erased.
mlir::LogicalResult lowerGradRows(GradRowsOp op, const VectorTarget &target);
mlir::LogicalResult lowerGradDeltaEnd(GradDeltaEndOp op, const VectorTarget &target);
mlir::LogicalResult lowerGradEnd(GradEndOp op, const VectorTarget &target);
mlir::LogicalResult lowerNormalize(NormalizeOp op, const VectorTarget &target);
/// s17: the part of `lse` for which f32 has no digits, in base 2; `lse` is `maximum` and `sumLog2`
/// together.
mlir::Value emitLow(Emitter &b, mlir::Value lse, mlir::Value maximum, mlir::Value sumLog2);

mlir::LogicalResult lowerMerge(MergeOp op, const VectorTarget &target);
/// linalg.fill and memref.copy, of buffers of any rank; succeeds with nothing done for those that
/// are not plain.
mlir::LogicalResult lowerFill(mlir::linalg::FillOp op, const VectorTarget &target);
mlir::LogicalResult lowerCopy(mlir::memref::CopyOp op, const VectorTarget &target);
/// Loops over elements: for the little that is not worth a kernel.
mlir::LogicalResult lowerGeneric(mlir::linalg::GenericOp op);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_STEP_H
