//===- Rings.cpp - places that are filled in turn, as rings ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Tile/Rings.h"

using namespace mlir;
using namespace attn::tile;

int64_t Ring::countBytes() const {
  AllocSharedOp tile = uses.place;
  int64_t bytes = tile.getType().getStageBytes();
  for (const Passenger &passenger : passengers) {
    AllocSharedOp row = passenger.uses.place;
    bytes += row.getType().getStageBytes();
  }
  return bytes;
}

/// A barrier counts the bytes of a copy (barrier_expect_c1).
static LogicalResult checkBytes(const Ring &ring) {
  AllocSharedOp place = ring.uses.place;
  int64_t bytes = ring.countBytes();
  if (bytes < 1 << 20)
    return success();
  return place.emitOpError(
             "expected a place of fewer than 1048576 bytes, which a barrier can count, got ")
         << bytes;
}

/// Threads gather rows of a constant number of whole pieces (gather_async_c2).
static LogicalResult checkGathered(const PlaceLifetimes &uses) {
  if (!uses.isGathered())
    return success();
  for (const Lifetime &lifetime : uses.lifetimes) {
    auto copy = cast<CopyOp>(lifetime.fill);
    auto type = cast<SharedType>(copy.getDest().getType());
    auto source = cast<MemRefType>(copy.getSource().getType());
    if (!canGatherRows(source, type))
      return copy.emitOpError("expected pages whose rows are a constant multiple of ")
             << attn::kChunkBytes << " bytes and fit a warp, got " << source << " and " << type;
  }
  return success();
}

LogicalResult attn::tile::checkRing(const Ring &ring) {
  return success(succeeded(checkBytes(ring)) && succeeded(checkGathered(ring.uses)));
}

/// Whether all lifetimes of a row lie within those of the tile, which a product ends. The tile's
/// barrier counts bytes.
static bool travelsWith(const PlaceLifetimes &row, const PlaceLifetimes &tile) {
  if (tile.isStored() || tile.isGathered() || row.writer != tile.writer ||
      row.lifetimes.size() != tile.lifetimes.size())
    return false;
  return llvm::all_of(llvm::zip_equal(row.lifetimes, tile.lifetimes), [](auto pair) {
    auto &[inner, outer] = pair;
    auto isWithin = [&](const auto &entry) {
      auto readers = outer.readers.find(entry.first);
      return readers != outer.readers.end() && isa<MmaOp>(readers->second.last) &&
             entry.second.last->isBeforeInBlock(readers->second.last);
    };
    return inner.fill->getBlock() == outer.fill->getBlock() &&
           llvm::all_of(inner.readers, isWithin);
  });
}

FailureOr<std::vector<Ring>> attn::tile::findRings(MutableArrayRef<PlaceLifetimes> places) {
  std::vector<Ring> rings;
  SmallVector<PlaceLifetimes> rows;
  for (PlaceLifetimes &place : places) {
    bool isRow = place.place.getType().isRow();
    (isRow ? rows.emplace_back() : rings.emplace_back().uses) = std::move(place);
  }
  for (PlaceLifetimes &place : rows) {
    auto ring = llvm::find_if(
        rings, [&](const Ring &candidate) { return travelsWith(place, candidate.uses); });
    if (ring == rings.end())
      return place.place.emitOpError("expected a row that is filled beside a tile, and read before "
                                     "the tile's last product, got one that is alone");
    ring->passengers.push_back({std::move(place), Value()});
  }
  return rings;
}
