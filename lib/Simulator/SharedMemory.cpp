//===- SharedMemory.cpp - the tiles of one block in memory on chip ----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/SharedMemory.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace llvm;

namespace attn::sim {

void SharedMemory::add(Place place, bool withNumbers) {
  for (Stage &stage : place.stages) {
    stage.written.resize(place.rows);
    if (withNumbers)
      stage.data.assign(place.rows * place.columns, std::numeric_limits<float>::quiet_NaN());
  }
  places.push_back(std::move(place));
}

static StringRef describe(Access::Kind kind) {
  switch (kind) {
  case Access::Kind::ThreadWrite:
    return "written by threads";
  case Access::Kind::ThreadRead:
    return "read by threads";
  case Access::Kind::SumWrite:
    return "the sum of this product";
  case Access::Kind::WeightRead:
    return "read by this product";
  case Access::Kind::GatherWrite:
    return "written by this gathering of rows";
  case Access::Kind::CopyWrite:
    return "written by this copy";
  case Access::Kind::ProductRead:
    return "read by this product";
  case Access::Kind::StoreRead:
    return "read by this store";
  }
  return "";
}

std::string SharedMemory::describeStage(const Place &place, unsigned stage) const {
  if (isTensorMemory)
    return "a place in tensor memory";
  if (place.stages.size() == 1)
    return "a shared tile";
  return "stage " + std::to_string(stage) + " of a shared ring";
}

/// Why `access` may not happen now, because of `past`, which it conflicts with.
std::optional<Finding> SharedMemory::checkAgainst(const Access &past, const Access &access,
                                                  ArrayRef<const Agent *> agents,
                                                  const Place &place, unsigned stage) {
  if (!past.rect.intersects(access.rect))
    return std::nullopt;
  // The threads of a warpgroup write the same elements each time.
  if (past.kind == Access::Kind::ThreadWrite && access.kind == past.kind &&
      past.fiber == access.fiber)
    return std::nullopt;
  // Each of them has its own rows.
  if (isTensorMemory && past.isOfThreads() && access.isOfThreads() && past.fiber == access.fiber)
    return std::nullopt;
  bool isKnown = true, isFenced = true;
  for (const Agent *agent : agents)
    for (Epoch epoch : past.epochs) {
      isKnown &= agent->knowledge.all.knows(epoch);
      isFenced &= agent->knowledge.fenced.knows(epoch);
    }
  std::string where = describeStage(place, stage);
  std::string note = where + " is " + describe(past.kind).str();
  Finding::Note allocated{place.op,
                          isTensorMemory ? "the place is this" : "the shared memory is this"};
  if (!isKnown && access.isWrite()) {
    std::string text = past.isWrite() ? " overwritten while it may still be written"
                                      : " overwritten before all its readers are known to be done";
    return Finding{
        Finding::Kind::EarlyWrite, access.op, where + text, {{past.op, note}, allocated}};
  }
  if (!isKnown)
    return Finding{Finding::Kind::EarlyRead,
                   access.op,
                   where + " read before the write to it is known to be done",
                   {{past.op, note}, allocated}};
  if (!isFenced && past.isWrite() && !past.isAsync() && access.isAsync())
    return Finding{Finding::Kind::MissingFence,
                   access.op,
                   where + " used by asynchronous hardware without a tile.fence async_shared after "
                           "threads wrote it",
                   {{past.op, note}, allocated}};
  return std::nullopt;
}

/// Other places at the same bytes: everything about them must be over, and is lost.
std::optional<Finding> SharedMemory::checkAliases(unsigned index, unsigned stage,
                                                  const Access &access,
                                                  ArrayRef<const Agent *> agents) {
  Place &place = places[index];
  int64_t begin = place.offset + stage * place.stageBytes, end = begin + place.stageBytes;
  for (auto [otherIndex, other] : enumerate(places)) {
    if (otherIndex == index)
      continue;
    for (auto [otherStage, old] : enumerate(other.stages)) {
      int64_t first = other.offset + int64_t(otherStage) * other.stageBytes;
      if (first >= end || begin >= first + other.stageBytes)
        continue;
      Access whole = access;
      whole.rect = {0, other.rows, 0, other.columns};
      for (auto *list : {&old.reads, &old.writes})
        for (const Access &past : *list)
          if (auto finding = checkAgainst(past, whole, agents, other, otherStage))
            return finding;
      old.reads.clear();
      old.writes.clear();
      old.written.reset();
    }
  }
  return std::nullopt;
}

std::optional<Finding> SharedMemory::access(unsigned index, unsigned stageIndex, Access access,
                                            ArrayRef<const Agent *> agents) {
  Place &place = places[index];
  Stage &stage = place.stages[stageIndex];
  // A reader that is not done says more than the writer before.
  if (access.isWrite())
    for (const Access &past : stage.reads)
      if (auto finding = checkAgainst(past, access, agents, place, stageIndex))
        return finding;
  for (const Access &past : stage.writes)
    if (auto finding = checkAgainst(past, access, agents, place, stageIndex))
      return finding;
  if (!access.isWrite()) {
    for (int64_t row = access.rect.rowBegin; row < access.rect.rowEnd; ++row)
      if (!stage.written.test(row))
        return Finding{Finding::Kind::Uninitialized,
                       access.op,
                       describeStage(place, stageIndex) + " read at row " + std::to_string(row) +
                           ", which nobody has written",
                       {{place.op, "the shared memory is this"}}};
    // A later read by the same party says all that an earlier one did.
    erase_if(stage.reads, [&](const Access &past) {
      return past.fiber == access.fiber && past.kind == access.kind &&
             access.rect.contains(past.rect);
    });
    stage.reads.push_back(std::move(access));
    return std::nullopt;
  }
  if (auto finding = checkAliases(index, stageIndex, access, agents))
    return finding;
  auto isCovered = [&](const Access &past) { return access.rect.contains(past.rect); };
  erase_if(stage.writes, isCovered);
  erase_if(stage.reads, isCovered);
  stage.written.set(access.rect.rowBegin, access.rect.rowEnd);
  stage.writes.push_back(std::move(access));
  return std::nullopt;
}

} // namespace attn::sim
