//===- Lifetimes.h - the fill and the readers of a place, and their span -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// A fill is an op that writes a place. Its readers are the ops that see it: ops after it in its
// block, or nested in ops after it there, up to the next fill. So a fill lives from itself to an op
// of its own block, the last one that reads the place or has such an op inside:
//
//   %p = tile.alloc_shared
//   scf.for {
//     tile.copy to %p            the fill
//     scf.for {
//       tile.mma %p ..           a reader; its group's first and last op is this inner loop
//     }
//   }                            the next turn's fill is another one in time, but the same op
//
// An op that reads a place in any other way has no order that barriers could keep, and is an error.

#ifndef ATTN_LIB_TRANSFORMS_TILE_LIFETIMES_H
#define ATTN_LIB_TRANSFORMS_TILE_LIFETIMES_H

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace attn::tile {

/// Whether threads gather the rows of the copy, since a table finds them in pages without boxes.
bool isGathered(CopyOp copy);

/// The op of the fill's block that is or has `op`, if it comes after the fill; else null.
mlir::Operation *findBehind(mlir::Operation *fill, mlir::Operation *op);

/// How one role reads a fill.
struct Readers {
  llvm::SmallVector<mlir::OpOperand *> uses;
  /// In the fill's block: the first and the last op that reads or has a reader inside.
  mlir::Operation *first = nullptr, *last = nullptr;
};

/// From an op that fills a place to its last readers.
struct Lifetime {
  /// A tile.copy, a tile.store or a tile.transpose.
  mlir::Operation *fill = nullptr;
  llvm::MapVector<RoleAttr, Readers> readers;
};

/// A place of room 5 and all of its fills, in the program's order.
struct PlaceLifetimes {
  AllocSharedOp place;
  llvm::SmallVector<Lifetime> lifetimes;
  /// The role that fills it.
  RoleAttr writer;
  llvm::SmallSetVector<RoleAttr, 2> readers;
  /// Those of which no product after their reads brings the threads together. Known from the start:
  /// passes that give branches and loops results replace the ops that have readers inside.
  llvm::SmallSetVector<RoleAttr, 2> threadReaders;

  /// Filled by at most one op, at most once.
  bool isOnce() const;
  /// Read by a loop after the fill: it stays as it is for long.
  bool isHeld() const;
  /// Filled by all threads of the writer: with a register tile, or with one of another place.
  bool isStored() const { return mlir::isa<StoreOp, TransposeOp>(lifetimes.front().fill); }
  /// Filled with rows that all threads of the writer gather.
  bool isGathered() const;
  /// By the unit that multiplies, not by threads.
  bool isReadByProducts() const;
  bool isReadByThreads(RoleAttr role) const { return threadReaders.contains(role); }
  /// Threads of one role hand tiles over to each other.
  bool isLocal() const { return isStored() && readers.size() == 1 && readers[0] == writer; }
};

/// The places of a kernel that are filled and read, in the order of their first fills; an error at
/// both ops where a reader has no fill of its own.
mlir::FailureOr<llvm::SmallVector<PlaceLifetimes>> findLifetimes(mlir::func::FuncOp kernel);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_LIFETIMES_H
