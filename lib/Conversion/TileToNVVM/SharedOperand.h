//===- SharedOperand.h - shared tiles as products read them -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_SHAREDOPERAND_H
#define ATTN_LIB_CONVERSION_TILETONVVM_SHAREDOPERAND_H

#include "dialects/Tile/IR/TileOps.h"

namespace attn::tile {

/// A shared tile as an operand: where the block of 8-row groups for (row or column, k) starts,
/// relative to the tile.
///
/// K-major (K along the rows in memory): rows of a slab hold `swizzle` bytes of K, one k step is 32
/// bytes of them. MN-major: rows are K, a k step is 16 of them, and the M or N extent runs along
/// the slabs.
struct SharedOperand {
  /// Whose descriptors: those of wgmma, or of tcgen05.mma.
  enum class Form { Warpgroup, Tensor };

  SharedType type;
  bool isKMajor;
  Form form;

  int64_t getOffset(int64_t mn, int64_t kStep) const;
  /// The bits of the descriptor that do not depend on the address.
  uint64_t getDescriptorBits() const;
  /// i64: the descriptor of the tile's start.
  mlir::Value emitDescriptor(mlir::OpBuilder &builder, mlir::Location loc,
                             mlir::Value pointer) const;
};

/// descriptor + bytes: addresses below 256 KiB never carry out of the address field.
mlir::Value advanceDescriptor(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value descriptor,
                              int64_t bytes);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_SHAREDOPERAND_H
