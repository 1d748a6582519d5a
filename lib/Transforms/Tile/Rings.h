//===- Rings.h - places that are filled in turn, as rings --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_TILE_RINGS_H
#define ATTN_LIB_TRANSFORMS_TILE_RINGS_H

#include "lib/Transforms/Tile/Lifetimes.h"

namespace attn::tile {

/// A row that comes and goes with the tile of a ring: its lifetimes are those of the tile, in
/// order.
struct Passenger {
  PlaceLifetimes uses;
  mlir::Value place;
};

/// A place, as a ring.
struct Ring {
  PlaceLifetimes uses;
  mlir::Value place, full, empty;
  llvm::SmallVector<Passenger, 2> passengers;
  /// Where the writer and each reader stand: the index of a slot among those of the kernel.
  std::optional<unsigned> writerSlot;
  llvm::SmallDenseMap<RoleAttr, unsigned> readerSlots;
  /// Of a place that threads of one role fill and read: the ring whose slot says which stage.
  const Ring *guide = nullptr;

  /// Of one use: of the tile and of what travels with it.
  int64_t countBytes() const;
  std::optional<unsigned> getReaderSlot(RoleAttr role) const {
    if (guide)
      return guide->getReaderSlot(role);
    auto it = readerSlots.find(role);
    return it == readerSlots.end() ? std::nullopt : std::optional(it->second);
  }
};

/// A ring for each tile, with the rows that travel with it.
mlir::FailureOr<std::vector<Ring>> findRings(llvm::MutableArrayRef<PlaceLifetimes> places);

/// Whether a barrier can count the bytes of a use, and threads gather what they gather.
mlir::LogicalResult checkRing(const Ring &ring);

} // namespace attn::tile

#endif // ATTN_LIB_TRANSFORMS_TILE_RINGS_H
