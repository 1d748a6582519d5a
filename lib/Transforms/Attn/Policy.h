//===- Policy.h - what somebody has measured of a machine -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A policy is data about a machine: which of the sizes that it can do are the fastest. Its rows are
// in a file of their own for each machine (HopperRows.h). Nothing else holds them. A machine that
// nobody has measured has no rows: the rule then takes the widest block that fits.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_POLICY_H
#define ATTN_LIB_TRANSFORMS_ATTN_POLICY_H

#include "lib/Transforms/Attn/ScheduleRule.h"
#include "llvm/ADT/ArrayRef.h"

namespace attn {

/// The traits of a problem that decide between rows of the tables.
enum Trait : unsigned {
  Masked = 1,
  BiasUnderMask = 2,
  /// Of more than sorted tables of rows (RegionWork::gathersRowsAlone).
  Gathers = 4,
  Long = 8,
  Split = 16,
  /// Neither a mask nor a score.
  Plain = 32,
  /// Weights have factors, which are made while weights and the accumulator live.
  Factors = 64,
  /// The mask bounds keys from both sides, and does little besides: a window, whose rows have few
  /// keys whatever the length.
  Window = 128,
  /// A mask of one comparison, as causal ones are, and no score: full tiles have nothing but
  /// products and exponentials, whose energy counts.
  Edge = 256,
  /// Values of more than 128 columns.
  WideValues = 512,
  /// Sorted tables tell where rows stand.
  RowTables = 1024
};

/// A row holds for D and Dv up to `columns`, problems with one of the traits `any` (0: all) and
/// none of `none`.
struct Row {
  llvm::StringLiteral rule;
  int64_t columns;
  unsigned any = 0, none = 0;
  /// Of what it has, blocks recompute and have a tail where they stay, hold and begin apart where
  /// that helps (chooseForCUDA), and keep columns of a query that has more. No row has a slack
  /// above 0, since errors are greater with one than with exact maxima.
  Schedule schedule;
  /// The most that regions may do with so many keys without spills.
  int64_t mostWork = 0;
  /// The most that they may do where blocks stay, under a mask alone; blocks of others go.
  int64_t mostStaying = -1;
  /// As mostStaying, where scores read tensors too.
  int64_t mostBiased = -1;
};

/// For calls that are short. All of its blocks stay.
struct LengthRow {
  /// For D or Dv of `leastColumns` at least.
  int64_t leastColumns = 0;
  Row row;
  /// A call is short by up to so many rows and keys, or by `either` of the two.
  int64_t mostRows = LengthChoice::kAny, mostKeys = LengthChoice::kAny;
  bool either = false;
};

/// Which calls take the ways of a machine that were measured for some calls only.
struct WayBounds {
  /// The fewest keys with which decoding packs heads that have keys of their own. Blocks then read
  /// keys in parts; fewer keys are soon read. 0: such heads are not packed.
  int64_t decodedKeys = 0;
  /// Calls of `fewRows`: up to so many rows, and more keys than a short sequence has.
  int64_t mostFewRows = 0, mostShortKeys = 0;
  /// Calls of `narrowRows`: their keys fill one tile of `narrowKeys`, or two, but not one of
  /// `wideKeys`; they have `leastNarrowRows` at least, and memory moves so many GB in a second.
  int64_t narrowKeys = 0, wideKeys = 0, leastNarrowRows = 0, leastNarrowRate = 0;
};

/// The tables of one machine. The first row that holds decides.
struct Policy {
  /// For calls of all lengths.
  llvm::ArrayRef<Row> rows;
  llvm::ArrayRef<LengthRow> lengthRows;
  llvm::ArrayRef<Row> fewRows, narrowRows;
  /// For elements of 8 bits.
  llvm::ArrayRef<Row> byteRows;
  WayBounds ways;
  /// Of rings of keys and values.
  int64_t stages = 2;
  /// The most keys of a step under a mask, where warps multiply.
  int64_t mostMaskedKeys = 256;
};

/// The policy of the machine of that name.
const Policy &getPolicy(const Machine &machine);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_POLICY_H
