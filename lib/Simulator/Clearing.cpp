//===- Clearing.cpp - zeros for what a product does not read ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileClearOps.h"
#include "lib/Simulator/BlockRun.h"

using namespace llvm;

namespace attn::sim {

/// Each warp of the fiber writes its row of the marks.
void BlockRun::markRead(Fiber &fiber, const Instruction &instruction) {
  const Value &weights = fiber.registers[instruction.in[0]],
              &dest = fiber.registers[instruction.in[1]];
  int64_t warpgroup = fiber.getRoleWarpgroup(), warps = program.threads / kLanes;
  int64_t columns = shared.getPlace(dest.index).columns;
  accessByThreads(fiber, Access::Kind::ThreadWrite, instruction.op, dest,
                  {warps * warpgroup, warps * (warpgroup + 1), 0, columns});
  fiber.time += pickTime(fiber, program.machine->costs.exchangeLatency);
  if (!weights.tile)
    return;
  BitVector &read = marks[{dest.index, warpgroup}];
  read.clear();
  read.resize(weights.tile->columns);
  for (int64_t i = 0; i < weights.tile->size(); ++i)
    if (weights.tile->numbers[i] != 0)
      read.set(i % weights.tile->columns);
}

/// The threads of a role read what its warps have written.
void BlockRun::readMarks(Fiber &fiber, const Instruction &instruction, const Value &source) {
  int64_t warpgroups = fiber.role->warpgroups;
  Access access{
      Access::Kind::ThreadRead,
      {0, warpgroups * program.threads / kLanes, 0, shared.getPlace(source.index).columns},
      {},
      instruction.op,
      fiber.index};
  SmallVector<const Agent *, 2> agents;
  for (Agent *agent : fiber.getAgents()) {
    access.epochs.push_back(agent->tick());
    agents.push_back(agent);
  }
  report(shared.access(source.index, source.stage, std::move(access), agents));
}

/// Each thread of the role has a row of the stage, or every so many.
void BlockRun::clearUnread(Fiber &fiber, const Instruction &instruction) {
  const Value &dest = fiber.registers[instruction.in[0]],
              &source = fiber.registers[instruction.in[1]];
  int64_t warpgroups = fiber.role->warpgroups, warpgroup = fiber.getRoleWarpgroup();
  bool isOfMarks = bool(cast<tile::ClearUnreadOp>(instruction.op).getBy());
  if (isOfMarks)
    readMarks(fiber, instruction, source);
  Place &place = shared.getPlace(dest.index);
  int64_t threads = program.threads, first = std::min(place.rows, threads * warpgroup);
  int64_t end = warpgroups == 1 ? place.rows : std::min(place.rows, first + threads);
  if (first < end)
    accessByThreads(fiber, Access::Kind::ThreadWrite, instruction.op, dest,
                    {first, end, 0, place.columns});
  fiber.time += pickTime(fiber, program.machine->costs.exchangeLatency);
  std::vector<float> &data = shared.getStage(dest.index, dest.stage).data;
  if (data.empty())
    return;
  for (int64_t row = first; row < end; ++row) {
    bool isRead = !isOfMarks && row < source.lane.i;
    for (int64_t other = 0; isOfMarks && other < warpgroups; ++other) {
      const BitVector &read = marks[{source.index, other}];
      isRead |= row < int64_t(read.size()) && read.test(row);
    }
    if (!isRead)
      std::fill_n(data.begin() + row * place.columns, place.columns, 0.0f);
  }
}

} // namespace attn::sim
