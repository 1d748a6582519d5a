//===- Gathering.cpp - rows that threads copy from wherever a table says ----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Threads write the tile, yet later than they say so: what they gather lands on its own, and not
// even they know when. A gathering is therefore an epoch of a component of its own, which nobody
// knows but those who wait for the barrier at which the threads arrive once it has landed. That
// arrival tells nothing else of the threads. Their proxy is the generic one: a product sees the
// tile after a fence of whoever knows of it.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/BlockRun.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace attn::sim {

/// Of the rows of a tile, those that the fiber's threads copy.
void BlockRun::takeShare(const Fiber &fiber, Copy &copy, int64_t rows) {
  int64_t parts = fiber.role->warpgroups, part = fiber.getRoleWarpgroup();
  copy.rowBegin = rows * part / parts;
  copy.rowEnd = rows * (part + 1) / parts;
}

void BlockRun::gatherAsync(Fiber &fiber, const Instruction &instruction) {
  unsigned argument = fiber.registers[instruction.in[0]].index;
  const Memory &memory = arguments[argument].memory;
  size_t rank = memory.shape.size();
  const Value &dest = fiber.registers[instruction.in[2 + rank]];
  Copy copy{&instruction, &memory,   argument, getOffsets(fiber, instruction, 1, rank),
            dest.index,   dest.stage};
  if (!checkBox(instruction.op, memory))
    return;
  Place &place = shared.getPlace(dest.index);
  takeShare(fiber, copy, place.rows);
  copy.epoch = {fiber.gatherComponent, ++fiber.gatherings};
  SmallVector<const Agent *, 2> agents;
  append_range(agents, fiber.getAgents());
  report(shared.access(dest.index, dest.stage,
                       {Access::Kind::GatherWrite,
                        {copy.rowBegin, copy.rowEnd, 0, place.columns},
                        {copy.epoch},
                        instruction.op,
                        fiber.index},
                       agents));
  touchBox(fiber, copy, GlobalAccesses::Kind::Read, copy.rowBegin, copy.rowEnd, copy.epoch);

  // Of a lane: two shuffles, the address, whether there is a row, and the copy.
  constexpr double kInstructions = 8, kPieceBytes = 16;
  const Costs &costs = program.machine->costs;
  double bytes = double(place.stageBytes) / double(fiber.role->warpgroups);
  if (!isRandom)
    fiber.time = use(Resource::Issue, std::max(fiber.time, fiber.rowsFound),
                     bytes / kPieceBytes * kInstructions / costs.lanes);
  double begin = fiber.time, end = timeCopy(fiber, copy, place);
  copy.begin = begin;
  fiber.gatheringsEnd = std::max(fiber.gatheringsEnd, end);
  copies.push_back(std::move(copy));
  addEvent(end, Event::Kind::Gather, copies.size() - 1, fiber.index);
  if (isRandom)
    fiber.time += pickTime(fiber, 0);
}

void BlockRun::copyShare(Fiber &fiber, const Instruction &instruction) {
  unsigned argument = fiber.registers[instruction.in[0]].index;
  const Memory &memory = arguments[argument].memory;
  size_t rank = memory.shape.size();
  const Value &dest = fiber.registers[instruction.in[1 + rank]];
  Copy copy{&instruction, &memory,   argument, getOffsets(fiber, instruction, 1, rank),
            dest.index,   dest.stage};
  if (!checkBox(instruction.op, memory))
    return;
  Place &place = shared.getPlace(dest.index);
  takeShare(fiber, copy, place.rows);
  // Numbers of a row are the last one's.
  if (copy.rowBegin == copy.rowEnd)
    return;
  copy.epoch = {fiber.gatherComponent, ++fiber.gatherings};
  SmallVector<const Agent *, 2> agents;
  append_range(agents, fiber.getAgents());
  report(shared.access(dest.index, dest.stage,
                       {Access::Kind::GatherWrite,
                        {copy.rowBegin, copy.rowEnd, 0, place.columns},
                        {copy.epoch},
                        instruction.op,
                        fiber.index},
                       agents));
  touchBox(fiber, copy, GlobalAccesses::Kind::Read, copy.rowBegin, copy.rowEnd, copy.epoch);

  // Of a piece: its address and the copy.
  constexpr double kInstructions = 4, kPieceBytes = 16;
  double bytes = double(place.stageBytes) / double(fiber.role->warpgroups);
  if (!isRandom)
    fiber.time = use(Resource::Issue, fiber.time,
                     bytes / kPieceBytes * kInstructions / program.machine->costs.lanes);
  copy.begin = fiber.time;
  double end = timeCopy(fiber, copy, place);
  fiber.gatheringsEnd = std::max(fiber.gatheringsEnd, end);
  copies.push_back(std::move(copy));
  addEvent(end, Event::Kind::Share, copies.size() - 1, fiber.index);
  if (isRandom)
    fiber.time += pickTime(fiber, 0);
}

/// The threads know of their own shares, and others of these after they have met.
void BlockRun::waitForShares(Fiber &fiber, const Instruction &instruction) {
  if (fiber.gatheringsEnd > fiber.time)
    record(getName(fiber), "wait: copies", fiber.time, fiber.gatheringsEnd, instruction.op);
  fiber.time = std::max(fiber.time, fiber.gatheringsEnd);
  for (Agent *agent : fiber.getAgents())
    agent->knowledge.all.raise(fiber.gatherComponent, fiber.gatherings);
}

void BlockRun::arriveLanded(Fiber &fiber, const Instruction &instruction) {
  int32_t stage = 0;
  if (!getBarrier(fiber, instruction, 0, stage))
    return;
  arrivals.push_back({instruction.op,
                      fiber.registers[instruction.in[0]].index,
                      stage,
                      {fiber.gatherComponent, fiber.gatherings}});
  double end = std::max(fiber.time, fiber.gatheringsEnd);
  addEvent(end + (isRandom ? pickTime(fiber, 0) : 0), Event::Kind::Arrival, arrivals.size() - 1,
           fiber.index);
  fiber.time += pickTime(fiber, program.machine->costs.arriveLatency);
}

void BlockRun::land(const Arrival &arrival, double time) {
  // Not through the asynchronous proxy: `learn` would say that no fence is needed.
  Agent gathered;
  gathered.knowledge.all.raise(arrival.gathered.component, arrival.gathered.time);
  report(barriers[arrival.barrier][arrival.stage].arrive(arrival.op, gathered, program.threads));
  wakeAtBarrier(arrival.barrier, arrival.stage, time);
}

} // namespace attn::sim
