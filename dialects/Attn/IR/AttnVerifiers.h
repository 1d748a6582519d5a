//===- AttnVerifiers.h - checks that the attn ops share -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_ATTN_IR_ATTNVERIFIERS_H
#define ATTN_DIALECTS_ATTN_IR_ATTNVERIFIERS_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

/// Two extents agree unless both are known and differ.
bool agree(int64_t a, int64_t b);
/// As diagnostics print it: `?` where it is not known.
std::string stringifyExtent(int64_t size);

/// The shape has `rank` dimensions, which are called `dims`.
mlir::LogicalResult checkRank(mlir::Operation *op, llvm::StringRef name, mlir::Type type,
                              int64_t rank, llvm::StringRef dims);

/// The extents called `dim` of `a` and `b` agree; `?` agrees with every extent.
mlir::LogicalResult checkExtent(mlir::Operation *op, llvm::StringRef dim, llvm::StringRef a,
                                int64_t sizeA, llvm::StringRef b, int64_t sizeB);

/// The elements are `allowed`, as `list` says.
mlir::LogicalResult checkElement(mlir::Operation *op, llvm::StringRef name, mlir::Type type,
                                 bool (*allowed)(mlir::Type), llvm::StringRef list);

mlir::LogicalResult checkF32(mlir::Operation *op, llvm::StringRef name, mlir::Type type);

inline bool isStorageFloat(mlir::Type type) {
  return type.isF16() || type.isBF16() || type.isF32();
}
/// Floats of 8 bits, which stand for numbers by themselves or with scales.
inline bool isNarrowFloat(mlir::Type type) {
  return mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(type);
}
/// Elements that products multiply.
inline bool isOperandFloat(mlir::Type type) { return isStorageFloat(type) || isNarrowFloat(type); }
constexpr llvm::StringLiteral kOperandFloats = "f8E4M3FN, f8E5M2, f16, bf16 or f32";
inline bool isF32OrF64(mlir::Type type) { return type.isF32() || type.isF64(); }

/// The operands that all have: query, key, value, sink, position, variants.
mlir::LogicalResult verifyScoredOp(ScoredOpInterface op);
/// A tensor of an element for each column of each row of the values: output and its gradient.
mlir::LogicalResult verifyLikeOutput(ScoredOpInterface op, llvm::StringRef name, mlir::Type type);
/// A tensor of an element for each row: the logarithm of its sum, and what comes of it.
mlir::LogicalResult verifyLikeLse(ScoredOpInterface op, llvm::StringRef name, mlir::Type type);

/// An operand or result, or null, and a letter for each of its dimensions: B, H, M, N, D, G for Hkv
/// and V for Dv.
struct Lettered {
  llvm::StringRef name;
  mlir::Value value;
  llvm::StringRef letters;
};

/// An extent that several state is the same, `?` between them or not.
mlir::LogicalResult verifySameExtents(mlir::Operation *op, llvm::ArrayRef<Lettered> all);

/// A position of an element has four coordinates, or none.
mlir::LogicalResult verifyOrigin(mlir::Operation *op, mlir::OperandRange origin);

/// Results of a destination-style op: none on buffers, the destinations' types on tensors.
mlir::LogicalResult verifyDestinations(mlir::DestinationStyleOpInterface op);

/// The mask region, which may be empty.
mlir::LogicalResult verifyMask(mlir::Operation *op, mlir::Region &mask);
/// The score and mask regions; both may be empty.
mlir::LogicalResult verifyScoreAndMask(mlir::Operation *op, mlir::Region &score,
                                       mlir::Region &mask);
/// The region of the score's adjoint, which may be empty.
mlir::LogicalResult verifyGradRegion(mlir::Operation *op, mlir::Region &grad);

} // namespace attn

#endif // ATTN_DIALECTS_ATTN_IR_ATTNVERIFIERS_H
