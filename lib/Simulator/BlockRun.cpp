//===- BlockRun.cpp - the scheduler of one thread block ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/BlockRun.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>

using namespace llvm;
using mlir::Operation;

namespace attn::sim {

BlockRun::BlockRun(const Program &program, ArrayRef<Argument> arguments, const Options &options,
                   const int64_t (&grid)[3], const int64_t (&block)[3], GlobalAccesses *accesses)
    : program(program), arguments(arguments), options(options), accesses(accesses),
      isRandom(options.seed.has_value()), randomState(options.seed.value_or(0)) {
  std::copy_n(grid, 3, this->grid);
  std::copy_n(block, 3, this->block);
  // Blocks differ, and so do neighbouring seeds.
  for (int64_t id : block)
    randomState = randomState * 0x9e3779b97f4a7c15 + uint64_t(id) + 1;
  nextRandom();
  setUp();
}

//===----------------------------------------------------------------------------------------===//
// Time
//===----------------------------------------------------------------------------------------===//

/// splitmix64.
uint64_t BlockRun::nextRandom() {
  uint64_t z = randomState += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// In [0, 1).
double BlockRun::pickRandom() { return double(nextRandom() >> 11) * 0x1p-53; }

double BlockRun::pickTime(Fiber &fiber, double cycles) {
  return isRandom ? fiber.slowness * std::exp2(13 * pickRandom()) : cycles;
}

double BlockRun::use(Resource resource, double from, double cycles) {
  double &end = free[unsigned(resource)];
  end = std::max(end, from) + cycles;
  result.busy[unsigned(resource)] += cycles;
  return end;
}

void BlockRun::work(Fiber &fiber, const Instruction &instruction) {
  if (isRandom)
    return;
  const Work &work = instruction.work;
  if (work.issue > 0) {
    double begin = fiber.getPosition();
    fiber.issueEnd = use(Resource::Issue, begin, work.issue);
    record(getName(fiber), instruction.op->getName().stripDialect(), fiber.issueEnd - work.issue,
           fiber.issueEnd, instruction.op);
  }
  if (work.exp > 0) {
    fiber.expEnd = use(Resource::Exp, std::max(fiber.time, fiber.expEnd), work.exp);
    record("exp", getName(fiber), fiber.expEnd - work.exp, fiber.expEnd, instruction.op);
  }
  if (work.isReduction) {
    settle(fiber, instruction.op);
    fiber.time += program.machine->costs.exchangeLatency;
  }
}

/// Waits for the elementwise work so far.
void BlockRun::settle(Fiber &fiber, Operation *op) {
  double end = std::max(fiber.issueEnd, fiber.expEnd);
  if (fiber.expEnd > fiber.getPosition())
    record(getName(fiber), "wait: exp", fiber.getPosition(), fiber.expEnd, op);
  fiber.time = std::max(fiber.time, end);
}

void BlockRun::record(const std::string &track, StringRef name, double begin, double end,
                      Operation *op) {
  if (options.timeline && end > begin)
    options.timeline->spans.push_back(
        {track, name.str(), begin, end, describeLocation(op->getLoc())});
}

std::string BlockRun::getName(const Fiber &fiber) const {
  if (fiber.role->warpgroups == 1)
    return fiber.role->name;
  return fiber.role->name + " " + std::to_string(fiber.getRoleWarpgroup());
}

//===----------------------------------------------------------------------------------------===//
// The scheduler
//===----------------------------------------------------------------------------------------===//

void BlockRun::setUp() {
  result.traffic.resize(arguments.size());
  unsigned count = program.numWarpgroups;
  fibers.resize(count);
  for (auto [index, fiber] : enumerate(fibers)) {
    fiber.index = index;
    fiber.role = &program.block;
    fiber.registers.resize(program.numRegisters);
    fiber.leader.component = 2 * index;
    fiber.rest.component = 2 * index + 1;
    fiber.productComponent = 2 * count + index;
    fiber.storeComponent = 3 * count + index;
    fiber.gatherComponent = 4 * count + index;
    // One in three is slow: another may lap it.
    fiber.slowness = isRandom && nextRandom() % 3 == 0 ? 64 : 1;
    for (auto [number, argument] : enumerate(arguments)) {
      Value &value = fiber.registers[program.arguments[number]];
      value.kind = argument.isScalar ? Value::Kind::Scalar : Value::Kind::Memory;
      value.lane = argument.scalar;
      value.index = number;
    }
  }
  for (auto [op, offset] : zip_equal(program.places, program.placeOffsets)) {
    auto type = mlir::cast<tile::SharedType>(op->getResult(0).getType());
    Place place;
    place.op = op;
    place.rows = type.getNumRows();
    place.columns = type.getNumColumns();
    place.offset = offset;
    place.stageBytes = type.getStageBytes();
    place.number = getNumber(type.getElementType()).value_or(Number::F32);
    place.stages.resize(type.getStages());
    shared.add(std::move(place), options.numbers);
  }
  setUpTensorMemory();
  unsigned component = 5 * count;
  for (Operation *op : program.barriers) {
    auto init = mlir::cast<tile::BarrierInitOp>(op);
    auto &array = barriers.emplace_back();
    for (int64_t stage = 0; stage < mlir::cast<tile::BarrierType>(init.getType()).getStages();
         ++stage)
      array.emplace_back(op, int64_t(init.getArrivals()), component++);
    // Nobody knows of it yet.
    for (Barrier &barrier : array)
      barrier.initialized = {0, std::numeric_limits<uint32_t>::max()};
  }
}

bool BlockRun::report(std::optional<Finding> finding) {
  if (!finding)
    return false;
  // Loops find the same again.
  for (const Finding &known : result.findings)
    if (known.kind == finding->kind && known.op == finding->op)
      return true;
  result.findings.push_back(std::move(*finding));
  return true;
}

void BlockRun::addEvent(double time, Event::Kind kind, size_t index, uint32_t fiber) {
  events.push({time, numEvents++, kind, index, fiber});
}

double BlockRun::getNextTime(const Fiber &besides) const {
  double time = events.empty() ? std::numeric_limits<double>::infinity() : events.top().time;
  for (const Fiber &fiber : fibers)
    if (&fiber != &besides && fiber.state == Fiber::State::Ready)
      time = std::min(time, fiber.getPosition());
  return time;
}

/// Runs a fiber up to and with the next instruction that others can see; or not that far, if it is
/// not its turn yet.
Error BlockRun::step(Fiber &fiber) {
  while (true) {
    const Instruction &instruction = program.instructions[fiber.pc];
    bool meets = isMeeting(instruction.code);
    if (!isRandom) {
      if (meets)
        settle(fiber, instruction.op);
      bool isShared = meets || instruction.work.issue > 0 || instruction.work.exp > 0;
      if (isShared && fiber.getPosition() > getNextTime(fiber))
        return Error::success();
    }
    result.work += instruction.getEffort(options.numbers);
    if (result.work > options.maxWork)
      return makeOpError(instruction.op, "expected a block that ends within " +
                                             Twine(options.maxWork) +
                                             " units of work (64 an instruction, 1 an element)");
    ++fiber.pc;
    if (Error error = execute(fiber, instruction))
      return error;
    if (meets || fiber.state != Fiber::State::Ready || isStopped())
      return Error::success();
  }
}

Error BlockRun::execute(Fiber &fiber, const Instruction &instruction) {
  Code code = instruction.code;
  if (!fiber.products.empty())
    checkRegisters(fiber, instruction);
  if (code <= Code::End)
    return executeControl(fiber, instruction);
  if (code <= Code::Warpgroup)
    return executeScalar(fiber, instruction);
  if (code <= Code::MmaRegisters)
    return executeTile(fiber, instruction);
  executeMeeting(fiber, instruction);
  return Error::success();
}

Error BlockRun::executeControl(Fiber &fiber, const Instruction &instruction) {
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  switch (instruction.code) {
  case Code::Jump:
    fiber.pc = instruction.targets[0];
    break;
  case Code::JumpIfNot:
    if (!get(0).lane.i)
      fiber.pc = instruction.targets[0];
    break;
  case Code::Move: {
    // All at once: a loop may swap its values.
    SmallVector<Value, 8> values;
    for (unsigned source : instruction.in)
      values.push_back(fiber.registers[source]);
    for (auto [target, value] : zip_equal(instruction.out, values))
      fiber.registers[target] = std::move(value);
    break;
  }
  case Code::ForTest:
    if (get(0).lane.i >= get(1).lane.i)
      fiber.pc = instruction.targets[0];
    break;
  case Code::ForStep:
    if (get(1).lane.i <= 0)
      return makeOpError(instruction.op, "expected a positive step, got " + Twine(get(1).lane.i));
    get(0).lane.i += get(1).lane.i;
    break;
  case Code::Roles:
    fiber.role = &program.roles[program.roleOf[fiber.index]];
    fiber.pc = instruction.targets[fiber.index];
    break;
  case Code::Rejoin:
    settle(fiber, instruction.op);
    fiber.role = &program.block;
    break;
  default:
    fiber.state = Fiber::State::Done;
    settle(fiber, instruction.op);
  }
  return Error::success();
}

void BlockRun::wakeAtBarrier(int32_t barrier, int32_t stage, double time) {
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::AtBarrier && fiber.barrier == barrier &&
        fiber.stage == stage && barriers[barrier][stage].passes(fiber.parity)) {
      fiber.state = Fiber::State::Ready;
      if (!isRandom && time > fiber.time)
        record(getName(fiber), "wait: barrier", fiber.time, time,
               program.instructions[fiber.pc].op);
      fiber.time = std::max(fiber.time, time) + (isRandom ? pickTime(fiber, 0) : 0);
    }
}

void BlockRun::handle(const Event &event) {
  switch (event.kind) {
  case Event::Kind::Copy: {
    Copy &copy = copies[event.index];
    if (options.numbers)
      moveBox(copy, /*toShared=*/true, 0, shared.getPlace(copy.place).rows);
    Barrier &barrier = barriers[copy.barrier][copy.barrierStage];
    report(barrier.finishCopy(copy.instruction->op, shared.getPlace(copy.place).stageBytes));
    wakeAtBarrier(copy.barrier, copy.barrierStage, event.time);
    return;
  }
  case Event::Kind::Product:
    return compute(fibers[event.fiber], *products[event.index]);
  case Event::Kind::Signal:
    return signal(*products[event.index], event.time);
  case Event::Kind::Gather:
  case Event::Kind::Share:
    if (const Copy &copy = copies[event.index]; options.numbers)
      moveBox(copy, /*toShared=*/true, copy.rowBegin, copy.rowEnd);
    return;
  case Event::Kind::Arrival:
    return land(arrivals[event.index], event.time);
  case Event::Kind::Store:
    if (options.numbers)
      moveBox(copies[event.index], /*toShared=*/false, 0,
              shared.getPlace(copies[event.index].place).rows);
  }
}

Expected<bool> BlockRun::advance() {
  if (isStopped())
    return false;
  Fiber *next = nullptr;
  for (Fiber &fiber : fibers)
    if (fiber.state == Fiber::State::Ready && (!next || fiber.getPosition() < next->getPosition()))
      next = &fiber;
  if (!events.empty() && (!next || events.top().time <= next->getPosition())) {
    Event event = events.top();
    events.pop();
    now = std::max(now, event.time);
    handle(event);
    return true;
  }
  if (!next)
    return false;
  now = std::max(now, next->getPosition());
  if (Error error = step(*next))
    return std::move(error);
  return true;
}

BlockResult BlockRun::finish() {
  if (!isStopped()) {
    bool isDone = all_of(fibers, [](Fiber &f) { return f.state == Fiber::State::Done; });
    isDone ? checkEnd() : reportDeadlock();
  }
  result.cycles = now;
  for (Fiber &fiber : fibers)
    result.cycles = std::max(result.cycles, fiber.time);
  return std::move(result);
}

Expected<BlockResult> BlockRun::run() {
  while (true) {
    Expected<bool> goesOn = advance();
    if (!goesOn)
      return goesOn.takeError();
    if (!*goesOn)
      return finish();
  }
}

//===----------------------------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------------------------===//

void BlockRun::reportDeadlock() {
  Finding finding{Finding::Kind::Deadlock, nullptr, "", {}};
  for (Fiber &fiber : fibers) {
    if (fiber.state == Fiber::State::Done)
      continue;
    if (fiber.state == Fiber::State::AtNamedBarrier) {
      Operation *op = program.instructions[fiber.pc - 1].op;
      const NamedBarrier &barrier = named[fiber.named];
      finding.notes.push_back({op, getName(fiber) +
                                       " waits here: " + std::to_string(barrier.arrived) + " of " +
                                       std::to_string(barrier.threads) + " threads have come to " +
                                       (fiber.named ? "named barrier " + std::to_string(fiber.named)
                                                    : std::string("the barrier of the block"))});
      continue;
    }
    Operation *op = program.instructions[fiber.pc].op;
    const Barrier &barrier = barriers[fiber.barrier][fiber.stage];
    finding.notes.push_back({op, getName(fiber) + " waits here for barrier " +
                                     std::to_string(fiber.stage) + " of its array, phase " +
                                     std::to_string(barrier.getPhase()) + ": " +
                                     barrier.describe()});
    if (barrier.hasBytesMissing() && finding.kind == Finding::Kind::Deadlock) {
      finding.kind = Finding::Kind::Transaction;
      finding.op = op;
      finding.text = "the barrier is never complete: " + barrier.describe();
      finding.notes.insert(finding.notes.end(), barrier.getNotes().begin(),
                           barrier.getNotes().end());
    }
    finding.notes.push_back({barrier.getOp(), "the barrier is initialised here"});
  }
  if (finding.kind == Finding::Kind::Deadlock) {
    finding.op = finding.notes.front().op;
    finding.text = "no role of the block can go on";
  }
  report(std::move(finding));
}

void BlockRun::checkEnd() {
  checkTensorEnd();
  for (Fiber &fiber : fibers) {
    for (const auto &product : fiber.products)
      if (product->group > fiber.groupsComplete)
        report(Finding{Finding::Kind::Unfinished,
                       product->instruction->op,
                       "no tile.mma_wait covers this product before its role ends",
                       {}});
    if (fiber.stores > fiber.storesComplete)
      report(Finding{Finding::Kind::Unfinished,
                     fiber.lastStore,
                     "no tile.store_wait follows this store: its shared tile may be gone before "
                     "it is read",
                     {}});
  }
  for (const Copy &copy : copies)
    if (copy.epoch.time &&
        none_of(fibers, [&](Fiber &fiber) { return fiber.leader.knowledge.all.knows(copy.epoch); }))
      report(Finding{Finding::Kind::Unfinished,
                     copy.instruction->op,
                     "nobody waits for this copy: it may be in flight when the block ends",
                     {}});
}

} // namespace attn::sim
