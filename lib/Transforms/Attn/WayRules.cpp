//===- WayRules.cpp - the ways of a function -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Transforms/Attn/WayRules.h"

using namespace attn;
using Size = CallRange::Size;

/// Rows of packed heads in a block that somebody asks for: two tiles of one consumer, the second of
/// which finds keys and values in the cache.
static constexpr int64_t kMostPackedRows = 128;
/// Packed rows of one tile, and the rows of a head, where the rule decides.
static constexpr int64_t kPackedTile = 64, kMostDecodedRows = 32;
/// The fewest keys with which decoding packs heads that have keys of their own. Blocks then read
/// keys in parts; fewer keys are soon read.
static constexpr int64_t kDecodedKeys = 1024;

/// The rows of a call with few of them: one tile of 128.
static constexpr int64_t kFewRows = 128;
/// The most keys of a short sequence.
static constexpr int64_t kShortKeys = 2048;

/// Calls with few keys: these fill one tile of 80, or two, but not one of 128. Rows are more than
/// two tiles of 128, since one of 192 would leave a third empty.
static constexpr int64_t kNarrowKeys = 80, kWideKeys = 128, kNarrowLeastRows = 257;
/// GB in a second that memory moves at least where narrow tiles are faster: an H200's 4800 and not
/// an H100's 3350, which waits for memory where keys are few (0.92 times as fast there).
static constexpr int64_t kNarrowMemoryRate = 4000;

WayChoice attn::choosePacked(int64_t slots) {
  return {"packed", {{{Size::Rows, 0, kMostPackedRows / slots}, {Size::Group, 0, slots}}}, slots};
}

/// Decoding: all rows of a group's heads fit one tile. A group takes the fewest slots that it fits.
/// A head with keys of its own leaves one of two slots empty.
static void addPacked(std::vector<WayChoice> &ways) {
  for (int64_t slots = 2; slots <= kPackedTile; slots *= 2) {
    int64_t rows = std::min(kMostDecodedRows, kPackedTile / slots);
    WayChoice &way = ways.emplace_back();
    way.name = "packed" + std::to_string(slots);
    way.slots = slots;
    way.when.push_back({{Size::Rows, 1, rows}, {Size::Group, slots / 2 + 1, slots}});
    if (slots == 2)
      way.when.push_back({{Size::Rows, 1, rows}, {Size::Group, 1, 1}, {Size::Keys, kDecodedKeys}});
  }
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
  std::vector<WayChoice> ways;
  if (isAuto && canPack && !problem.hasFactors)
    addPacked(ways);
  if (isAuto || way == "few")
    if (auto choice = chooseForFewRows(machine, problem))
      ways.push_back(
          {"few", {{{Size::Rows, 1, kFewRows}, {Size::Keys, kShortKeys + 1}}}, 0, choice});
  if (isAuto || way == "narrow")
    if (auto choice = chooseForFewKeys(machine, problem)) {
      CallRanges others = {{Size::Rows, kNarrowLeastRows}, {Size::MemoryRate, kNarrowMemoryRate}};
      CallRanges one = {{Size::Keys, 1, kNarrowKeys}},
                 two = {{Size::Keys, kWideKeys + 1, 2 * kNarrowKeys}};
      one.append(others);
      two.append(others);
      ways.push_back({"narrow", {one, two}, 0, choice});
    }
  if (isAuto || way == "lengths" || way == "short")
    if (auto length = chooseForLength(machine, problem))
      ways.push_back(getShortWay(*length));
  // One that is asked for by its name is for all calls.
  if (!isAuto && way != "lengths")
    for (WayChoice &each : ways)
      each.when = {{}};
  return ways;
}
