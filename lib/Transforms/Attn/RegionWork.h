//===- RegionWork.h - what score and mask regions ask of a tile -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_REGIONWORK_H
#define ATTN_LIB_TRANSFORMS_ATTN_REGIONWORK_H

#include "dialects/Attn/IR/AttnOps.h"

namespace attn {

struct RegionWork {
  /// Whether tensors are read at places that differ within a tile.
  bool gathers = false;
  /// Whether a function is computed that a GPU has no instructions for.
  bool isLong = false;
  /// Operations for every score, where a read counts seven, and three times those for every key,
  /// whose results threads keep for all keys of a tile. A measure of the registers that regions
  /// take in addition to the tiles.
  int64_t weight = 0;
  /// Conditions on rows alone, which threads keep for each column of a tile where rows run.
  int64_t rowConditions = 0;
  /// Whether some of these places are no distances of row and key, of which a thread reads half,
  /// nor in sorted tables at rows alone.
  bool gathersApart = false;
  /// Whether all of them are in sorted tables at rows alone. Where keys run, a thread reads such a
  /// table once for each of its rows, and bounds of loops are found in it: it is a position of a
  /// row as much as the row's own.
  bool gathersRowsAlone = false;
  /// Reads of sorted tables, and positions that a number of the call is added to.
  int64_t tables = 0, shifts = 0;
  /// Conditions on a row and a key together: a mask that bounds keys from both sides has two.
  int64_t scoreConditions = 0;
};

/// The work of a score or mask region.
RegionWork measureRegion(mlir::Region &region);
/// The work of both regions of `op`.
RegionWork measureRegions(mlir::Operation *op);

/// Numbers of each score, or of what is read for it, that a gradient's region is computed from:
/// what the score's region computes too counts once, whatever it is made of.
int64_t countKeptScores(mlir::Region &score, mlir::Region &grad);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_REGIONWORK_H
