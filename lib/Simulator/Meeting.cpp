//===- Meeting.cpp - barriers and fences ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/BlockRun.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using mlir::Operation;

namespace attn::sim {

/// The barrier that operand and, after it, slot stand for; null after a finding. Whoever touches it
/// must know that it is initialised.
Barrier *BlockRun::getBarrier(Fiber &fiber, const Instruction &instruction, unsigned operand,
                              int32_t &stage) {
  const Value &array = fiber.registers[instruction.in[operand]];
  int64_t use =
      operand + 1 < instruction.in.size() ? fiber.registers[instruction.in[operand + 1]].lane.i : 0;
  stage = int32_t(use % int64_t(barriers[array.index].size()));
  Barrier &barrier = barriers[array.index][stage];
  for (Agent *agent : fiber.getAgents())
    if (!agent->knowledge.all.knows(barrier.initialized)) {
      report(Finding{Finding::Kind::Invalid,
                     instruction.op,
                     "barrier used before a tile.sync makes its initialisation visible",
                     {{barrier.getOp(), "it is initialised here"}}});
      return nullptr;
    }
  return &barrier;
}

/// Lets a fiber go on after a wait: it now knows what the arrivals and copies knew. `wanted` phases
/// should be complete.
bool BlockRun::pass(Fiber &fiber, Barrier &barrier, int64_t wanted, Operation *op) {
  for (Agent *agent : fiber.getAgents())
    agent->knowledge.join(barrier.getCompleted());
  if (barrier.getPhase() == wanted)
    return true;
  report(Finding{Finding::Kind::Phase,
                 op,
                 getName(fiber) + " waits for " + std::to_string(wanted) +
                     " phases of the barrier and goes on after " +
                     std::to_string(barrier.getPhase()) + ", whose parity is the same",
                 {{barrier.getOp(), "the barrier is initialised here"}}});
  return false;
}

void BlockRun::wait(Fiber &fiber, const Instruction &instruction) {
  int32_t stage = 0;
  Barrier *barrier = getBarrier(fiber, instruction, 0, stage);
  if (!barrier)
    return;
  int32_t index = fiber.registers[instruction.in[0]].index;
  int64_t stages = barriers[index].size(), use = 0;
  if (instruction.in.size() > 1)
    use = fiber.registers[instruction.in[1]].lane.i;
  bool previous = instruction.value != 0;
  int64_t wanted = use / stages + (previous ? 0 : 1);
  unsigned parity = unsigned(use / stages & 1) ^ unsigned(previous);
  if (barrier->passes(parity)) {
    pass(fiber, *barrier, wanted, instruction.op);
    if (program.machine->product.form == attn::Product::Form::Tensor)
      fiber.restWaited = fiber.rest.tick();
    fiber.time += pickTime(fiber, program.machine->costs.waitLatency);
    return;
  }
  // Tries again when the phase is complete.
  --fiber.pc;
  fiber.state = Fiber::State::AtBarrier;
  fiber.barrier = index;
  fiber.stage = stage;
  fiber.parity = parity;
}

/// Threads of the fiber come to a named barrier; 0 is the block's.
void BlockRun::meet(Fiber &fiber, const Instruction &instruction, int64_t id, int64_t threads,
                    bool waits) {
  NamedBarrier &barrier = named[id];
  if (barrier.arrived == 0) {
    barrier.threads = threads;
    barrier.op = instruction.op;
  }
  int64_t count = fiber.role->isElected ? kLanes : program.threads;
  if (barrier.threads != threads || barrier.arrived + count > threads) {
    std::string text = "named barrier " + std::to_string(id) + " is for " +
                       std::to_string(threads) + " threads here, ";
    text += barrier.threads != threads
                ? "for " + std::to_string(barrier.threads) + " where others wait"
                : std::to_string(barrier.arrived + count) + " come";
    report(Finding{
        Finding::Kind::Phase, instruction.op, text, {{barrier.op, "the first to come is here"}}});
    return;
  }
  barrier.arrived += count;
  for (Agent *agent : fiber.getAgents())
    barrier.arriving.join(agent->knowledge);
  if (waits) {
    barrier.waiting.push_back(fiber.index);
    fiber.state = Fiber::State::AtNamedBarrier;
    fiber.named = id;
  }
  fiber.time += pickTime(fiber, program.machine->costs.arriveLatency);
  if (barrier.arrived < threads)
    return;
  for (unsigned index : barrier.waiting) {
    Fiber &waiting = fibers[index];
    for (Agent *agent : waiting.getAgents())
      agent->knowledge.join(barrier.arriving);
    waiting.state = Fiber::State::Ready;
    if (!isRandom && fiber.time > waiting.time)
      record(getName(waiting), "wait: named barrier", waiting.time, fiber.time, instruction.op);
    waiting.time = std::max(waiting.time, fiber.time) + (isRandom ? pickTime(waiting, 0) : 0);
  }
  barrier = NamedBarrier();
}

/// Which place, which stage: nobody else sees that.
void BlockRun::executeRing(Fiber &fiber, const Instruction &instruction) {
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  auto set = [&](Value::Kind kind) -> Value & {
    Value &value = fiber.registers[instruction.out[0]];
    value = Value();
    value.kind = kind;
    return value;
  };
  switch (instruction.code) {
  case Code::AllocShared:
    set(Value::Kind::Shared).index = int32_t(instruction.value);
    return;
  case Code::Slot:
    set(Value::Kind::Slot);
    return;
  case Code::Next: {
    int64_t use = get(0).lane.i;
    set(Value::Kind::Slot).lane.i = use + 1;
    return;
  }
  case Code::UnitSlot:
    set(Value::Kind::Slot).lane.i = fiber.getRoleWarpgroup();
    return;
  case Code::NextPhase: {
    auto slot = mlir::cast<tile::SlotType>(instruction.op->getResult(0).getType());
    int64_t use = get(0).lane.i;
    set(Value::Kind::Slot).lane.i = use + slot.getStages();
    return;
  }
  case Code::TensorPlace:
    return placeTensor(fiber, instruction);
  case Code::Stage: {
    int32_t place = get(0).index;
    int64_t use = get(1).lane.i;
    Value &value = set(Value::Kind::Shared);
    value.index = place;
    value.stage = int32_t(use % int64_t(shared.getPlace(place).stages.size()));
    return;
  }
  default:
    return;
  }
}

void BlockRun::executeBarrier(Fiber &fiber, const Instruction &instruction) {
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  int32_t stage = 0;
  switch (instruction.code) {
  case Code::BarrierInit: {
    Value &value = fiber.registers[instruction.out[0]];
    value = Value();
    value.kind = Value::Kind::Barrier;
    value.index = int32_t(instruction.value);
    // One thread of the role: the others see it after they met.
    if (fiber.isIssuer()) {
      Epoch epoch = fiber.leader.tick();
      for (Barrier &barrier : barriers[instruction.value])
        barrier.initialized = epoch;
    }
    return;
  }
  case Code::Expect:
    if (!fiber.isIssuer())
      return;
    if (Barrier *barrier = getBarrier(fiber, instruction, 0, stage)) {
      report(barrier->expect(instruction.op, fiber.leader, instruction.value));
      wakeAtBarrier(get(0).index, stage, fiber.time);
      fiber.time += pickTime(fiber, program.machine->costs.arriveLatency);
    }
    return;
  case Code::Arrive:
    if (Barrier *barrier = getBarrier(fiber, instruction, 0, stage)) {
      if (instruction.isMin && !fiber.role->isElected)
        report(barrier->arrive(instruction.op, fiber.rest, program.threads - 1));
      // The lanes of a warp meet before one of them arrives for all.
      else if (program.machine->product.form == attn::Product::Form::Registers)
        fiber.leader.knowledge.join(fiber.rest.knowledge);
      report(barrier->arrive(instruction.op, fiber.leader));
      wakeAtBarrier(get(0).index, stage, fiber.time);
      fiber.time += pickTime(fiber, program.machine->costs.arriveLatency);
    }
    return;
  case Code::Wait:
    return wait(fiber, instruction);
  case Code::Sync:
    return meet(fiber, instruction, 0, program.threads * program.numWarpgroups,
                /*waits=*/true);
  case Code::NamedBarrier: {
    int64_t id = get(0).lane.i;
    if (id >= 1 && id <= 15)
      return meet(fiber, instruction, id, instruction.value, /*waits=*/!instruction.isMin);
    // 0 belongs to tile.sync.
    report(Finding{Finding::Kind::OutOfBounds,
                   instruction.op,
                   "expected a named barrier from 1 to 15, got " + std::to_string(id),
                   {}});
    return;
  }
  case Code::Fence:
    for (Agent *agent : fiber.getAgents())
      agent->knowledge.fence();
    fiber.time += pickTime(fiber, program.machine->costs.arriveLatency);
    return;
  default:
    return;
  }
}

void BlockRun::executeMeeting(Fiber &fiber, const Instruction &instruction) {
  if (instruction.code <= Code::Stage)
    return executeRing(fiber, instruction);
  if (instruction.code <= Code::Fence)
    return executeBarrier(fiber, instruction);
  switch (instruction.code) {
  case Code::StoreShared:
    return storeShared(fiber, instruction);
  case Code::LoadColumns:
    return loadColumns(fiber, instruction);
  case Code::LoadShared:
    return loadShared(fiber, instruction);
  case Code::Transpose:
    return transpose(fiber, instruction);
  case Code::MarkRead:
    return markRead(fiber, instruction);
  case Code::ClearUnread:
    return clearUnread(fiber, instruction);
  case Code::CopyThreads:
    return copyThreads(fiber, instruction);
  case Code::CopyAsync:
    return copyAsync(fiber, instruction);
  case Code::FindRows:
    fiber.rowsFound = fiber.time + program.machine->costs.copyLatency;
    return;
  case Code::GatherAsync:
    return gatherAsync(fiber, instruction);
  case Code::ArriveLanded:
    return arriveLanded(fiber, instruction);
  case Code::CopyShare:
    return copyShare(fiber, instruction);
  case Code::CopyWait:
    return waitForShares(fiber, instruction);
  case Code::StoreAsync:
    return storeAsync(fiber, instruction);
  case Code::StoreWait:
    if (fiber.storesEnd > fiber.time)
      record(getName(fiber), "wait: store", fiber.time, fiber.storesEnd, instruction.op);
    fiber.time = std::max(fiber.time, fiber.storesEnd);
    fiber.storesComplete = fiber.stores;
    if (fiber.stores)
      fiber.leader.knowledge.learn({fiber.storeComponent, fiber.stores});
    return;
  case Code::MmaAsync:
    return multiplyAsync(fiber, instruction);
  case Code::MmaCommit:
    ++fiber.groupsCommitted;
    fiber.time += pickTime(fiber, 4);
    return;
  case Code::MmaWait:
    return waitForProducts(fiber, instruction);
  case Code::AllocTensor:
    return allocTensor(fiber, instruction);
  case Code::DeallocTensor:
    return deallocTensor(fiber, instruction);
  case Code::LoadTensor:
    return loadTensor(fiber, instruction);
  case Code::StoreTensor:
    return storeTensor(fiber, instruction);
  case Code::ScaleTensor:
    return scaleTensor(fiber, instruction);
  case Code::MmaTensor:
    return multiplyTensor(fiber, instruction);
  default:
    return;
  }
}

} // namespace attn::sim
