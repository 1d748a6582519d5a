//===- WayRules.cpp - the ways of a function -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/WayRules.h"
#include "dialects/Attn/IR/AttnViews.h"
#include "lib/Transforms/Attn/Policy.h"

using namespace attn;
using Size = CallRange::Size;

WayChoice attn::choosePacked(const Machine &machine, int64_t slots) {
  // Two tiles of one consumer, the second of which finds keys and values in the cache.
  int64_t rows = 2 * machine.getWarpgroupRows();
  return {"packed", {{{Size::Rows, 0, rows / slots}, {Size::Group, 0, slots}}}, slots};
}

/// Decoding: all rows of a group's heads fit one tile. A group takes the fewest slots that it fits.
/// A head with keys of its own leaves one of two slots empty.
static void addPacked(const Machine &machine, bool isFixed, std::vector<WayChoice> &ways) {
  int64_t tile = machine.getWarpgroupRows(), keys = getPolicy(machine).ways.decodedKeys;
  for (int64_t slots = 2; slots <= std::min(tile, kMostSlots); slots *= 2) {
    int64_t rows = tile / slots;
    WayChoice &way = ways.emplace_back();
    way.name = "packed" + std::to_string(slots);
    way.slots = slots;
    way.when.push_back({{Size::Rows, 1, rows}, {Size::Group, slots / 2 + 1, slots}});
    // The room of a cache decides nothing where parts are of fixed keys.
    if (slots == 2 && keys > 0)
      way.when.push_back(
          {{Size::Rows, 1, rows}, {Size::Group, 1, 1}, {Size::Keys, isFixed ? 0 : keys}});
  }
}

/// Few keys, for which wide tiles would multiply keys that do not exist.
static WayChoice getNarrowWay(const WayBounds &bounds, const Choice &choice) {
  CallRanges others = {{Size::Rows, bounds.leastNarrowRows},
                       {Size::MemoryRate, bounds.leastNarrowRate}};
  CallRanges one = {{Size::Keys, 1, bounds.narrowKeys}},
             two = {{Size::Keys, bounds.wideKeys + 1, 2 * bounds.narrowKeys}};
  one.append(others);
  two.append(others);
  return {"narrow", {one, two}, 0, choice};
}

static CallRanges upTo(Size size, int64_t most) {
  return most == LengthChoice::kAny ? CallRanges() : CallRanges{{size, 0, most}};
}

static WayChoice getShortWay(const LengthChoice &length) {
  CallRanges rows = upTo(Size::Rows, length.mostRows), keys = upTo(Size::Keys, length.mostKeys);
  WayChoice way{"short", {}, 0, length.choice};
  if (length.either) {
    way.when = {rows, keys};
  } else {
    rows.append(keys);
    way.when = {rows};
  }
  return way;
}

std::vector<WayChoice> attn::chooseWays(const Machine &machine, const GPUProblem &problem,
                                        llvm::StringRef way, bool canPack) {
  bool isAuto = way == "auto";
  const WayBounds &bounds = getPolicy(machine).ways;
  std::vector<WayChoice> ways;
  if (isAuto && canPack && !problem.hasFactors)
    addPacked(machine, problem.fixedSplit > 0, ways);
  if (isAuto || way == "few")
    if (auto choice = chooseForFewRows(machine, problem))
      ways.push_back(
          {"few",
           {{{Size::Rows, 1, bounds.mostFewRows}, {Size::Keys, bounds.mostShortKeys + 1}}},
           0,
           choice});
  if (isAuto || way == "narrow")
    if (auto choice = chooseForFewKeys(machine, problem))
      ways.push_back(getNarrowWay(bounds, *choice));
  if (isAuto || way == "lengths" || way == "short")
    if (auto length = chooseForLength(machine, problem))
      ways.push_back(getShortWay(*length));
  // One that is asked for by its name is for all calls.
  if (!isAuto && way != "lengths")
    for (WayChoice &each : ways)
      each.when = {{}};
  return ways;
}
