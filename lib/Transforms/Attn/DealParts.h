//===- DealParts.h - parts that sequences get by their lengths --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Where each sequence of a batch has as many parts of its keys as any other, a long one alone works
// on a few blocks when all others have ended. Here parts have about one length in all sequences:
// two grids in front of the attention count the keys of each sequence, and deal parts to slots, the
// longest parts to the first slots. A block of the attention takes the part of its slot, and a
// merge joins the slots of a sequence, which follow one another.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_DEALPARTS_H
#define ATTN_LIB_TRANSFORMS_ATTN_DEALPARTS_H

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// The numbers that grids in front have computed, in i32.
struct DealtParts {
  /// (slots, 1, 1, 4): of each slot its sequence, which part of that it has, the first key of the
  /// part, and how many keys it has.
  mlir::Value slots;
  /// (slots, 1, 1, 2): the first slot of each sequence, and how many it has.
  mlir::Value sequences;
};

/// The part of a block.
struct DealtPart {
  mlir::Value sequence, part;
  /// Within the keys that there are.
  mlir::Value begin, keys;
};

/// Why the parts of a grid over (B, H, tiles) cannot be dealt: its mask does not bound the keys of
/// a sequence by what grids in front can compute, for all heads alike. Empty if they can be.
llvm::StringRef refuseDeal(mlir::scf::ForallOp grid, OnlineAttentionOp op);

/// Deals the parts of a grid that is not refused to so many slots, before it.
DealtParts dealParts(mlir::RewriterBase &rewriter, mlir::scf::ForallOp grid, OnlineAttentionOp op,
                     mlir::Value slots);

/// The part of a slot; `keys` there are in all.
DealtPart emitDealtPart(mlir::OpBuilder &builder, mlir::Location loc, const DealtParts &dealt,
                        mlir::Value slot, mlir::Value keys);

/// The first slot of a sequence and their number, of `slots` in all.
std::pair<mlir::Value, mlir::Value> emitSlotsOf(mlir::OpBuilder &builder, mlir::Location loc,
                                                const DealtParts &dealt, mlir::Value sequence,
                                                mlir::Value slots);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_DEALPARTS_H
