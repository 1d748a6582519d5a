//===- TileOps.h - operations of the tile dialect ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECTS_TILE_IR_TILEOPS_H
#define ATTN_DIALECTS_TILE_IR_TILEOPS_H

#include "dialects/Tile/IR/TileDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileOps.h.inc"

namespace attn::tile {

/// The threads that run an op: the role around it, or the whole block.
struct RoleInfo {
  /// The first warpgroup of the block that plays the role, and how many do.
  int64_t firstWarpgroup = 0, warpgroups = 0;
  /// One thread runs the region.
  bool isElected = false;
};

/// Describes the role around an op of a kernel.
RoleInfo getRole(mlir::Operation *op);

/// The role of its kernel that an op names in `tile.role`; null without one.
RoleAttr getKernelRole(mlir::Operation *op);
/// Whether each warpgroup of the role computes one part of the rows.
bool takesParts(RoleAttr role, PartBeginOp op);

/// Where the last of the kernel's places and barriers ends that have an offset, in bytes.
int64_t getSharedBytes(mlir::Operation *kernel);

/// Where so many bytes of shared memory end; far ones end with the last number there is.
int64_t getSharedEnd(int64_t begin, int64_t bytes);

/// Whether threads can gather rows of the source into a tile: in pieces of 16 bytes, of which a row
/// of the tile has at most as many as a warp has lanes (gather_async_c2).
bool canGatherRows(mlir::MemRefType source, SharedType dest);

/// The f32 that a value is in every launch; nothing of other values, and of none.
std::optional<float> getConstantF32(mlir::Value value);

/// The tile of a register tile or of an accumulator in flight.
mlir::RankedTensorType getTileType(mlir::Type type);

} // namespace attn::tile

#endif // ATTN_DIALECTS_TILE_IR_TILEOPS_H
