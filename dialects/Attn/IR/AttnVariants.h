//===- AttnVariants.h - building score and mask regions ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNVARIANTS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNVARIANTS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/AttnPositions.h"

namespace attn {

/// The global position a score or mask function is asked about, and the lengths that alignment
/// needs.
struct Position {
  mlir::Value b, h, m, n;
  /// Run-time M and N of the whole problem.
  mlir::Value queryLength, keyLength;
};

/// Emits `keep` (i1) of one mask variant at a position. `captures` are the tensors the variant
/// reads.
mlir::Value buildMask(mlir::OpBuilder &builder, mlir::Location loc, mlir::Attribute variant,
                      const Position &at, mlir::ValueRange captures);

/// Emits the score (f32) of one score variant, from the score `s` before it, at the insertion
/// point, in a region of an op; values that are the same for all elements go in front of that op.
mlir::Value buildScore(mlir::OpBuilder &builder, mlir::Location loc, mlir::Attribute variant,
                       mlir::Value s, const Position &at, mlir::ValueRange captures);

/// True for variants of the score, false for variants of the mask and for positions.
bool isScoreVariant(mlir::Attribute variant);

/// One tensor that a variant reads: its dimensions, a letter each (`R` is its own), and kind of
/// element.
struct CaptureRule {
  llvm::StringRef name, dims;
  bool isFloat;
};

/// The tensors that a variant reads, in their order; nothing for an attribute that is no variant.
std::optional<llvm::SmallVector<CaptureRule>> getCaptureRules(mlir::Attribute variant);

/// The same for all variants of an op: a rule for each of its captures.
llvm::SmallVector<CaptureRule> getCaptureRules(ScoredOpInterface op);

/// Which positions the op's regions, variants and captured tensors mean; null: the op's own.
PositionsAttr findPositions(ScoredOpInterface op);

/// Whether a captured tensor that is read at b, h, m or n (0 to 3) is read at the op's own.
bool readsOwn(ScoredOpInterface op, unsigned position);

/// Of a read of a captured tensor: the dimensions that are read at the op's own positions wherever
/// regions mean those of a whole (s29), `array<i64>`.
constexpr llvm::StringLiteral kOwnAttrName = "attn.own";

/// Whether an operand of a read is such an index.
bool isOwnIndex(mlir::OpOperand &index);

/// Replaces the op's `variants` by regions: scores compose in order, masks are conjoined, regions
/// already there come first. Positions are computed at the beginning of each region. Does nothing
/// to an op without variants.
void expandVariants(mlir::RewriterBase &rewriter, ScoredOpInterface op);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNVARIANTS_H
