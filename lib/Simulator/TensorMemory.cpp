//===- TensorMemory.cpp - sums of products in tensor memory -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// A place of the kernel is one place for each unit, in the unit's share of the columns. The first
// thread of a unit asks for a product, so that what the other threads have done must be known to
// it: they meet before. The product's accesses are over when its barrier says so.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Tile/IR/TileTensorOps.h"
#include "lib/Simulator/BlockRun.h"

using namespace llvm;

namespace attn::sim {

static int64_t getUnits(const Program &program, tile::TensorPlaceOp op) {
  return op.getType().getNumRows() / program.machine->product.rows;
}

//===----------------------------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------------------------===//

void BlockRun::setUpTensorMemory() {
  for (mlir::Operation *op : program.tensorPlaces) {
    auto placed = mlir::cast<tile::TensorPlaceOp>(op);
    int64_t units = getUnits(program, placed);
    int64_t share = placed.getColumns().getType().getCount() / units;
    // The places of a kernel's roles are as many as its fibers, some of which nobody uses.
    for (int64_t unit = 0; unit < program.numWarpgroups; ++unit) {
      Place place;
      place.op = op;
      place.rows = program.machine->product.rows;
      place.columns = placed.getType().getNumColumns();
      place.offset = (unit * share + int64_t(placed.getFirst())) * 4;
      place.stageBytes = placed.getType().getWords() * 4;
      place.number = getNumber(placed.getType().getElementType()).value_or(Number::F32);
      place.stages.resize(1);
      tensor.add(std::move(place), options.numbers);
    }
  }
}

void BlockRun::allocTensor(Fiber &fiber, const Instruction &instruction) {
  if (!fiber.isIssuer())
    return;
  tensorColumns = mlir::cast<tile::AllocTensorOp>(instruction.op).getType().getCount();
  tensorEpoch = fiber.leader.tick();
  tensorOp = instruction.op;
}

void BlockRun::deallocTensor(Fiber &fiber, const Instruction &instruction) {
  if (!fiber.isIssuer())
    return;
  // As if it wrote all of it: nobody may access it still.
  for (auto [index, op] : enumerate(program.tensorPlaces))
    for (int64_t unit = 0; unit < program.numWarpgroups; ++unit) {
      int32_t place = int32_t(index * program.numWarpgroups + unit);
      report(tensor.access(place, 0,
                           {Access::Kind::SumWrite,
                            tensor.getPlace(place).getWhole(),
                            {fiber.leader.tick()},
                            instruction.op,
                            fiber.index},
                           {&fiber.leader}));
    }
  tensorColumns = 0;
}

void BlockRun::placeTensor(Fiber &fiber, const Instruction &instruction) {
  Value &value = fiber.registers[instruction.out[0]];
  value = Value();
  value.kind = Value::Kind::Tensor;
  value.index = int32_t(instruction.value * program.numWarpgroups + fiber.getRoleWarpgroup());
  auto place = mlir::cast<tile::TensorPlaceOp>(instruction.op);
  if (fiber.role->isElected || fiber.getRoleWarpgroup() >= getUnits(program, place))
    report(Finding{Finding::Kind::Invalid,
                   instruction.op,
                   "expected a role of as many units as the place has rows for",
                   {}});
  for (Agent *agent : fiber.getAgents())
    if (!tensorColumns || !agent->knowledge.all.knows(tensorEpoch)) {
      report(Finding{Finding::Kind::Invalid,
                     instruction.op,
                     "columns used before a tile.sync tells where they begin, or after they were "
                     "given back",
                     {}});
      return;
    }
}

//===----------------------------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------------------------===//

void BlockRun::accessTensor(Fiber &fiber, Access::Kind kind, mlir::Operation *op, int32_t place) {
  Access access{kind, tensor.getPlace(place).getWhole(), {}, op, fiber.index};
  SmallVector<const Agent *, 2> agents;
  for (Agent *agent : fiber.getAgents()) {
    access.epochs.push_back(agent->tick());
    agents.push_back(agent);
  }
  report(tensor.access(place, 0, std::move(access), agents));
}

void BlockRun::moveTensor(Fiber &fiber, double bytes) {
  fiber.time += pickTime(fiber, bytes / program.machine->costs.tensorBytes +
                                    program.machine->costs.waitLatency);
}

void BlockRun::loadTensor(Fiber &fiber, const Instruction &instruction) {
  int32_t place = fiber.registers[instruction.in[0]].index;
  accessTensor(fiber, Access::Kind::ThreadRead, instruction.op, place);
  TileRef tile;
  if (options.numbers) {
    tile = makeTile(*instruction.tile);
    tile->numbers = tensor.getStage(place, 0).data;
  }
  setTile(fiber, instruction, std::move(tile));
  moveTensor(fiber, double(tensor.getPlace(place).stageBytes * program.threads));
}

void BlockRun::storeTensor(Fiber &fiber, const Instruction &instruction) {
  const Value &source = fiber.registers[instruction.in[0]];
  int32_t place = fiber.registers[instruction.in[1]].index;
  accessTensor(fiber, Access::Kind::ThreadWrite, instruction.op, place);
  if (source.tile && !source.tile->numbers.empty())
    tensor.getStage(place, 0).data = source.tile->numbers;
  moveTensor(fiber, double(tensor.getPlace(place).stageBytes * program.threads));
}

void BlockRun::scaleTensor(Fiber &fiber, const Instruction &instruction) {
  int32_t index = fiber.registers[instruction.in[0]].index;
  const Value &factors = fiber.registers[instruction.in[1]];
  Place &place = tensor.getPlace(index);
  accessTensor(fiber, Access::Kind::ThreadRead, instruction.op, index);
  accessTensor(fiber, Access::Kind::ThreadWrite, instruction.op, index);
  if (options.numbers && factors.tile) {
    float *data = tensor.getStage(index, 0).data.data();
    for (int64_t row = 0; row < place.rows; ++row)
      for (int64_t column = 0; column < place.columns; ++column)
        data[row * place.columns + column] *= factors.tile->numbers[row];
  }
  moveTensor(fiber, 2.0 * double(place.stageBytes * program.threads));
}

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

void BlockRun::multiplyTensor(Fiber &fiber, const Instruction &instruction) {
  if (fiber.role->isElected) {
    report(Finding{Finding::Kind::Invalid,
                   instruction.op,
                   "expected all threads of a unit at a product, got the elected one of role '" +
                       fiber.role->name + "'",
                   {}});
    return;
  }
  constexpr unsigned kBarrier = 3;
  auto product = std::make_shared<Product>();
  product->instruction = &instruction;
  product->group = ++fiber.groupsCommitted;
  product->component = fiber.productComponent;
  product->lhs = fiber.registers[instruction.in[0]];
  product->rhs = fiber.registers[instruction.in[1]];
  product->sum = fiber.registers[instruction.in[2]].index;
  if (!getBarrier(fiber, instruction, kBarrier, product->barrierStage))
    return;
  // When it is done, what the others wait for may be filled or signalled again.
  if (!fiber.leader.knowledge.all.knows(fiber.restWaited))
    report(
        Finding{Finding::Kind::Phase,
                instruction.op,
                "threads of the unit may still wait for a barrier, of which another phase may end "
                "after this product: they have not met since",
                {}});
  product->barrier = fiber.registers[instruction.in[kBarrier]].index;
  product->started = fiber.leader.knowledge;

  Epoch over{fiber.productComponent, product->group};
  auto access = [&](SharedMemory &memory, const Value &operand, Access::Kind kind, Rect rect) {
    report(memory.access(operand.index, operand.stage,
                         {kind, rect, {over}, instruction.op, fiber.index}, {&fiber.leader}));
  };
  if (product->lhs.kind == Value::Kind::Shared) {
    access(shared, product->lhs, Access::Kind::ProductRead,
           getSharedRows(*product, fiber.getRoleWarpgroup()));
  } else {
    access(tensor, product->lhs, Access::Kind::WeightRead,
           tensor.getPlace(product->lhs.index).getWhole());
  }
  access(shared, product->rhs, Access::Kind::ProductRead,
         shared.getPlace(product->rhs.index).getWhole());
  Value sum;
  sum.index = product->sum;
  Rect whole = tensor.getPlace(product->sum).getWhole();
  if (instruction.isAdd && !tensor.getStage(product->sum, 0).written.all())
    report(Finding{Finding::Kind::Uninitialized,
                   instruction.op,
                   "adds to a place in tensor memory that nobody has written",
                   {{tensor.getPlace(product->sum).op, "the place is this"}}});
  access(tensor, sum, Access::Kind::SumWrite, whole);

  result.flops += 2.0 * double(instruction.m * instruction.n * instruction.k);
  result.elementBits = unsigned(instruction.value);
  auto [readAt, end] = time(fiber, *product);
  fiber.productsEnd = product->end = end;
  products.push_back(product);
  if (options.numbers)
    addEvent(readAt, Event::Kind::Product, products.size() - 1, fiber.index);
  addEvent(end, Event::Kind::Signal, products.size() - 1, fiber.index);
  fiber.time += pickTime(fiber, 8);
}

void BlockRun::computeTensor(Product &product, int64_t unit) {
  const Instruction &instruction = *product.instruction;
  std::vector<float> &to = tensor.getStage(product.sum, 0).data;
  if (!instruction.isAdd)
    std::fill(to.begin(), to.end(), 0.0f);
  Matrix a = product.lhs.kind == Value::Kind::Shared
                 ? getSharedLhs(product, unit)
                 : Matrix{tensor.getStage(product.lhs.index, 0).data.data(), instruction.k, 1};
  multiply(to.data(), a, getRhs(product), instruction.m, instruction.n, instruction.k);
}

/// The product is done: so says one arrival, which knows what its issuer knew.
void BlockRun::signal(Product &product, double time) {
  Agent hardware;
  hardware.knowledge = product.started;
  hardware.knowledge.learn({product.component, product.group});
  Barrier &barrier = barriers[product.barrier][product.barrierStage];
  report(barrier.arrive(product.instruction->op, hardware));
  wakeAtBarrier(product.barrier, product.barrierStage, time);
}

void BlockRun::checkTensorEnd() {
  if (tensorColumns)
    report(Finding{Finding::Kind::Unfinished,
                   tensorOp,
                   "no tile.dealloc_tensor gives these columns back before the block ends",
                   {}});
  for (const auto &product : products) {
    if (product->instruction->code != Code::MmaTensor)
      continue;
    if (none_of(fibers, [&](const Fiber &fiber) {
          return fiber.leader.knowledge.all.knows({product->component, product->group});
        }))
      report(Finding{Finding::Kind::Unfinished,
                     product->instruction->op,
                     "nobody waits for this product: it may be in flight when the block ends",
                     {}});
  }
}

} // namespace attn::sim
