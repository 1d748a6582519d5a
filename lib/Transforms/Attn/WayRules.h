//===- WayRules.h - the ways of a function ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A way is one of several kernels for the same function. Extents of a call and the device decide
// which way it takes: some calls have few rows, others few keys. This is the list of ways, in the
// order in which a call tries them. It is policy: results never depend on it.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_WAYRULES_H
#define ATTN_LIB_TRANSFORMS_ATTN_WAYRULES_H

#include "lib/Transforms/Attn/ScheduleRule.h"
#include <string>
#include <vector>

namespace attn {

/// Words of the option `way`, which says which ways a function has. The word `auto` means all ways
/// of the rule, and `lengths` the ways for short and for other sequences. Each further word makes
/// the way of that name the only one.
inline constexpr llvm::StringLiteral kWays[] = {"auto", "lengths", "short", "long",
                                                "few",  "narrow",  "groups"};

/// A range of a size that a call has: rows, keys, query heads for each key head, or the GB that the
/// memory of its device moves in a second.
struct CallRange {
  enum class Size : uint8_t { Rows, Keys, Group, MemoryRate };
  Size size;
  int64_t least = 0, most = LengthChoice::kAny;
};
/// Of a call for which all of them hold.
using CallRanges = llvm::SmallVector<CallRange, 4>;

struct WayChoice {
  std::string name;
  /// The calls that it is for: those for which one of these conditions holds.
  llvm::SmallVector<CallRanges, 2> when;
  /// Slots for the query heads of a key head, whose rows are packed; 0: rows are rows.
  int64_t slots = 0;
  /// None: what the rule chooses for the packed rows.
  std::optional<Choice> choice = std::nullopt;
};

/// The way of packed rows that somebody asks for, for all calls that have room in a block.
WayChoice choosePacked(const Machine &machine, int64_t slots);

/// The ways that `way` asks for, without the one for all other calls. `canPack`: heads can be rows.
std::vector<WayChoice> chooseWays(const Machine &machine, const GPUProblem &problem,
                                  llvm::StringRef way, bool canPack);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_WAYRULES_H
