//===- ScoreExtremes.h - scores at the ends of f32 -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Masks are also written as scores: -inf, or the lowest finite number, added to or put in place of
// the others. Such a score drops its key, or is too large to be multiplied by log2(e). Most score
// functions make none, and their kernels pay for neither.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_SCOREEXTREMES_SCOREEXTREMES_H
#define ATTN_LIB_ANALYSIS_SCOREEXTREMES_SCOREEXTREMES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Region.h"

namespace attn {

/// The largest f32 whose product with log2(e), rounded to f32, is finite.
constexpr float kLargestScore = 0x1.62e42ep127f;

/// log2(e) as kernels have it: the base of scores and of their logarithms that are of base 2.
constexpr float kF32Log2e = 0x1.715476p0f;

/// From this log-sum-exp of base 2 on, f32 has too few digits for both the sum and the scores.
/// Rounding of the scores and of the sum takes at most the part kLse2Rounding of it.
constexpr float kLargeLse2 = 0x1p20f, kLse2Rounding = 0x1p-21f;

/// On attn.row_delta and attn.grad_rows: a neg_lse2 that large is made larger by that part, so that
/// the weight of a row's greatest score is above 1 before it is bounded (g3), and not 0.
constexpr llvm::StringLiteral kRoundsUpAttrName = "attn.rounds_up";

/// Whether a score region may turn a moderate score into -inf: an infinity, the logarithm of 0 or
/// what it reads reaches its result as a term. Factors that are read are taken for moderate, and so
/// are scores before the region. False for an empty region.
bool mayDropKeys(mlir::Region &score);

/// Whether it may do so by the ops of the region alone, without its reads.
bool dropsKeysItself(mlir::Region &score);

/// Whether it may make a finite score beyond kLargestScore, in the same sense: of a constant of
/// that size, or of what it reads.
bool mayExceedLargestScore(mlir::Region &score);

/// `score`, of a float type, at most kLargestScore in magnitude; -inf and NaN stay.
mlir::Value emitBoundedScore(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value score);

/// Whether emitBoundedScore made it, of a score or of a tile of scores.
bool isBoundedScore(mlir::Value score);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_SCOREEXTREMES_SCOREEXTREMES_H
