//===- Global.h - how elements of memory are accessed --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_TILETONVVM_GLOBAL_H
#define ATTN_LIB_CONVERSION_TILETONVVM_GLOBAL_H

#include "lib/Conversion/TileToNVVM/Registers.h"

namespace attn::tile {

/// The type in memory: an index takes 64 bits there, and 32 bits in registers.
mlir::Type getMemoryType(mlir::Type elementType);
int64_t getBytes(mlir::Type elementType);
/// An element from memory as registers hold it, or the other way round.
mlir::Value castIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type,
                      mlir::Value value);
/// Both conditions; either may be null.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);
/// A register's elements [first, first + width) as one value to access memory with.
mlir::Value makeVector(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::ArrayRef<mlir::Value> elements, int64_t first, int64_t width);
/// One reduction for all elements, or one for each where the machine adds no neighbours at once;
/// nobody waits for its result. Where `keep` is given and false there is none: one instruction with
/// a predicate, not a branch around it.
void emitAdd(mlir::OpBuilder &builder, mlir::Location loc, const attn::Machine &machine,
             mlir::Value pointer, mlir::ArrayRef<mlir::Value> elements, mlir::Value keep = {});

//===----------------------------------------------------------------------------------------===//
// Tiles in fragments
//===----------------------------------------------------------------------------------------===//

/// Of a block of 16 x 8, in #tile.acc.
inline constexpr int64_t kLaneElements = 4;

/// The tile of the argument that holds an element.
mlir::Value emitFragmentTile(mlir::OpBuilder &builder, mlir::Location loc,
                             const GlobalArgument &global, mlir::ValueRange indices);
/// The address of an element whose tile lies in fragments.
mlir::Value emitFragmentAddress(mlir::OpBuilder &builder, mlir::Location loc,
                                const GlobalArgument &global, mlir::ValueRange indices);

/// Where a warp's part of a tile lies in memory of fragments, and a lane's in there.
struct FragmentPlace {
  mlir::Value warpBytes, laneBytes;
  /// Whether memory has the warp's rows, or null if memory has all rows.
  mlir::Value isInside;
  int64_t numBytes = 0;
};
/// An error at the op if its warps do not have the tile in fragments.
mlir::FailureOr<FragmentPlace> findFragments(mlir::Operation *op, const PatternContext &context,
                                             mlir::RankedTensorType type,
                                             const GlobalArgument &global,
                                             mlir::OpBuilder &builder);

void populateElementPatterns(mlir::RewritePatternSet &patterns, const PatternContext &context);

} // namespace attn::tile

#endif // ATTN_LIB_CONVERSION_TILETONVVM_GLOBAL_H
