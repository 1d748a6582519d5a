//===- Async.cpp - copies, shared tiles and products ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/BlockRun.h"
#include "lib/Simulator/GlobalMemory.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>
#include <numeric>

using namespace llvm;
using mlir::Operation;

namespace attn::sim {

//===----------------------------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------------------------===//

SmallVector<int64_t, 5> BlockRun::getOffsets(Fiber &fiber, const Instruction &instruction,
                                             size_t first, size_t rank) {
  // Offsets that are further outside are outside alike, and sums with them do not overflow.
  constexpr int64_t most = int64_t(1) << 31;
  SmallVector<int64_t, 5> offsets;
  for (size_t i = 0; i < rank; ++i)
    offsets.push_back(
        std::clamp<int64_t>(fiber.registers[instruction.in[first + i]].lane.i, -most, most));
  return offsets;
}

/// Whether boxes of this memory have the strides and alignment that the hardware asks for.
bool BlockRun::checkBox(Operation *op, const Memory &memory) {
  int64_t bytes = getByteSize(memory.kind);
  for (size_t dim = 0; dim < memory.strides.size(); ++dim) {
    // Batches of a pool are pages.
    bool isPage = memory.paged && dim == 0, isLast = dim + 1 == memory.strides.size();
    int64_t stride = isPage ? memory.paged->pageStride : memory.strides[dim],
            size = isPage ? memory.paged->pages : memory.shape[dim];
    if (isLast ? stride == 1 : stride * bytes % 16 == 0 || size <= 1)
      continue;
    report(Finding{Finding::Kind::Invalid,
                   op,
                   "expected boxes of memory with contiguous rows at multiples of 16 bytes, got "
                   "stride " +
                       std::to_string(stride) + " in dimension " + std::to_string(dim),
                   {}});
    return false;
  }
  return true;
}

/// Rows [rowBegin, rowEnd) of a box; outside of the memory, zeros come and nothing goes.
void BlockRun::moveBox(const Copy &copy, bool toShared, int64_t rowBegin, int64_t rowEnd) {
  const Memory &memory = *copy.memory;
  Place &place = shared.getPlace(copy.place);
  std::vector<float> &data = shared.getStage(copy.place, copy.stage).data;
  size_t rank = memory.shape.size();
  int64_t base = 0;
  bool isInside = true;
  for (size_t dim = 0; dim < rank; ++dim) {
    base += dim + 2 == rank ? 0 : copy.offsets[dim] * memory.strides[dim];
    if (dim + 2 < rank)
      isInside &= copy.offsets[dim] >= 0 && copy.offsets[dim] < memory.shape[dim];
  }
  int64_t firstRow = copy.offsets[rank - 2], firstColumn = copy.offsets[rank - 1];
  int64_t columnBegin = std::clamp<int64_t>(-firstColumn, 0, place.columns),
          columnEnd =
              std::clamp<int64_t>(memory.shape[rank - 1] - firstColumn, columnBegin, place.columns);
  for (int64_t row = rowBegin; row < rowEnd; ++row) {
    float *line = data.data() + row * place.columns;
    int64_t at = firstRow + row;
    std::optional<int64_t> toRow;
    if (isInside && at >= 0)
      toRow = memory.getRowOffset(rank - 2, copy.offsets, at, /*ofBox=*/true);
    bool exists = toRow.has_value();
    int64_t offset = base + toRow.value_or(0) + columnBegin * memory.strides[rank - 1];
    if (toShared) {
      std::fill_n(line, place.columns, 0.0f);
      if (exists)
        readNumbers(memory, offset, memory.strides[rank - 1], columnEnd - columnBegin,
                    line + columnBegin);
    } else if (exists) {
      writeNumbers(memory, offset, memory.strides[rank - 1], columnEnd - columnBegin,
                   line + columnBegin);
    }
  }
}

void BlockRun::countTraffic(unsigned argument, ArrayRef<int64_t> offsets, int64_t rows,
                            int64_t columns) {
  const Memory &memory = arguments[argument].memory;
  size_t rank = offsets.size(), rowDim = rank > 1 && columns > 0 ? rank - 2 : rank - 1;
  for (size_t dim = 0; dim < rowDim; ++dim)
    if (offsets[dim] < 0 || offsets[dim] >= memory.shape[dim])
      return;
  auto clip = [&](size_t dim, int64_t size) {
    return std::pair(std::clamp<int64_t>(offsets[dim], 0, memory.shape[dim]),
                     std::clamp<int64_t>(offsets[dim] + size, 0, memory.shape[dim]));
  };
  auto [begin, end] = clip(rowDim, rows);
  int64_t width = 1;
  if (rowDim + 1 < rank) {
    auto [first, last] = clip(rank - 1, columns);
    width = last - first;
  }
  if (begin < end && width > 0)
    result.traffic[argument].join(
        {double((end - begin) * width * getByteSize(memory.kind)), begin, end});
}

/// Remembers rows of a box in global memory, which asynchronous hardware accesses up to the epoch,
/// or threads now.
void BlockRun::touchBox(Fiber &fiber, const Copy &copy, GlobalAccesses::Kind kind, int64_t rowBegin,
                        int64_t rowEnd, std::optional<Epoch> epoch) {
  unsigned argument = copy.argument;
  if (!isTracked(argument))
    return;
  if (epoch)
    accesses->begin({kind,
                     copy.instruction->op,
                     {block[0], block[1], block[2]},
                     fiber.index,
                     {*epoch},
                     /*isAsync=*/true},
                    fiber.getAgents());
  else
    beginAccess(fiber, copy.instruction->op, kind);
  SmallVector<int64_t, 5> first = copy.offsets;
  for (int64_t row = rowBegin; row < rowEnd; ++row) {
    first[first.size() - 2] = copy.offsets[first.size() - 2] + row;
    touchRow(argument, first, shared.getPlace(copy.place).columns);
  }
}

double BlockRun::timeCopy(Fiber &fiber, const Copy &copy, const Place &place) {
  double share = copy.rowEnd ? double(copy.rowEnd - copy.rowBegin) / double(place.rows) : 1;
  double bytes = double(place.stageBytes) * share, begin = fiber.time,
         end = begin + pickTime(fiber, 0);
  result.bytes += bytes;
  if (copy.rowBegin == 0)
    countTraffic(copy.argument, copy.offsets, place.rows, place.columns);
  if (isRandom)
    return end;
  const Costs &costs = program.machine->costs;
  end = use(Resource::Memory, begin, bytes / costs.memoryBytes) + costs.copyLatency / 2;
  end = std::max(end, begin + costs.copyLatency + bytes / costs.copyBytes);
  result.busy[unsigned(Resource::Shared)] += bytes / costs.sharedBytes;
  if (options.timeline)
    record("copies of " + options.timeline->getArgument(copy.argument),
           "stage " + std::to_string(copy.stage), begin, end, copy.instruction->op);
  return end;
}

void BlockRun::copyAsync(Fiber &fiber, const Instruction &instruction) {
  if (!fiber.isIssuer())
    return;
  unsigned argument = fiber.registers[instruction.in[0]].index;
  const Memory &memory = arguments[argument].memory;
  size_t rank = memory.shape.size();
  const Value &dest = fiber.registers[instruction.in[1 + rank]];
  Copy copy{&instruction, &memory,   argument, getOffsets(fiber, instruction, 1, rank),
            dest.index,   dest.stage};
  Barrier *barrier = getBarrier(fiber, instruction, 2 + rank, copy.barrierStage);
  if (!barrier || !checkBox(instruction.op, memory))
    return;
  int64_t page = memory.paged ? memory.paged->page : 1;
  if (copy.offsets[rank - 2] % std::gcd(page, shared.getPlace(dest.index).rows) != 0) {
    report(Finding{Finding::Kind::Invalid,
                   instruction.op,
                   "expected boxes that lie in one page, got rows from " +
                       std::to_string(copy.offsets[rank - 2]) + " on, and pages of " +
                       std::to_string(page),
                   {}});
    return;
  }
  copy.barrier = fiber.registers[instruction.in[2 + rank]].index;
  copy.epoch = barrier->getCopyEpoch();
  Place &place = shared.getPlace(dest.index);
  report(shared.access(
      dest.index, dest.stage,
      {Access::Kind::CopyWrite, place.getWhole(), {copy.epoch}, instruction.op, fiber.index},
      {&fiber.leader}));
  report(barrier->startCopy(instruction.op, place.stageBytes));
  touchBox(fiber, copy, GlobalAccesses::Kind::Read, 0, place.rows, copy.epoch);

  double begin = fiber.time, end = timeCopy(fiber, copy, place);
  copy.begin = begin;
  copies.push_back(std::move(copy));
  addEvent(end, Event::Kind::Copy, copies.size() - 1, fiber.index);
  fiber.time += pickTime(fiber, 10);
}

void BlockRun::storeAsync(Fiber &fiber, const Instruction &instruction) {
  if (!fiber.isIssuer())
    return;
  const Value &source = fiber.registers[instruction.in[0]];
  unsigned argument = fiber.registers[instruction.in[1]].index;
  const Memory &memory = arguments[argument].memory;
  if (!checkBox(instruction.op, memory))
    return;
  Copy copy{&instruction, &memory,
            argument,     getOffsets(fiber, instruction, 2, memory.shape.size()),
            source.index, source.stage};
  ++fiber.stores;
  fiber.lastStore = instruction.op;
  Place &place = shared.getPlace(source.index);
  report(shared.access(source.index, source.stage,
                       {Access::Kind::StoreRead,
                        place.getWhole(),
                        {{fiber.storeComponent, fiber.stores}},
                        instruction.op,
                        fiber.index},
                       {&fiber.leader}));
  // A wait for the store says that the tile has been read, not that memory has been written.
  touchBox(fiber, copy, GlobalAccesses::Kind::Write, 0, place.rows,
           Epoch{fiber.storeComponent, std::numeric_limits<uint32_t>::max()});
  double bytes = double(place.stageBytes), begin = fiber.time, end = begin + pickTime(fiber, 0);
  result.bytes += bytes;
  countTraffic(argument, copy.offsets, place.rows, place.columns);
  if (!isRandom) {
    end = use(Resource::Memory, begin, bytes / program.machine->costs.memoryBytes) + 200;
    record("stores", "store", begin, end, instruction.op);
  }
  fiber.storesEnd = std::max(fiber.storesEnd, end);
  copies.push_back(std::move(copy));
  // The tile is read at any time before it is known to have been.
  addEvent(begin + (end - begin) * (isRandom ? pickRandom() : 1), Event::Kind::Store,
           copies.size() - 1, fiber.index);
  fiber.time += pickTime(fiber, 10);
}

/// All threads of the fiber write part of a shared tile.
void BlockRun::accessByThreads(Fiber &fiber, Access::Kind kind, Operation *op, const Value &place,
                               Rect rect) {
  Access access{kind, rect, {}, op, fiber.index};
  SmallVector<const Agent *, 2> agents;
  for (Agent *agent : fiber.getAgents()) {
    access.epochs.push_back(agent->tick());
    agents.push_back(agent);
  }
  report(shared.access(place.index, place.stage, std::move(access), agents));
}

/// The part of tile.copy between its two meetings: each warpgroup writes some rows.
void BlockRun::copyThreads(Fiber &fiber, const Instruction &instruction) {
  unsigned argument = fiber.registers[instruction.in[0]].index;
  const Memory &memory = arguments[argument].memory;
  size_t rank = memory.shape.size();
  const Value &dest = fiber.registers[instruction.in[1 + rank]];
  Copy copy{&instruction, &memory,   argument, getOffsets(fiber, instruction, 1, rank),
            dest.index,   dest.stage};
  Place &place = shared.getPlace(dest.index);
  int64_t parts = fiber.role->warpgroups, part = fiber.getRoleWarpgroup();
  Rect rect = place.getWhole();
  rect.rowBegin = place.rows * part / parts;
  rect.rowEnd = place.rows * (part + 1) / parts;
  accessByThreads(fiber, Access::Kind::ThreadWrite, instruction.op, dest, rect);
  touchBox(fiber, copy, GlobalAccesses::Kind::Read, rect.rowBegin, rect.rowEnd, std::nullopt);
  if (options.numbers)
    moveBox(copy, /*toShared=*/true, rect.rowBegin, rect.rowEnd);
  double bytes = double(place.stageBytes) / double(parts);
  result.bytes += bytes;
  if (part == 0)
    countTraffic(argument, copy.offsets, place.rows, place.columns);
  fiber.time = isRandom
                   ? fiber.time + pickTime(fiber, 0)
                   : use(Resource::Memory, fiber.time, bytes / program.machine->costs.memoryBytes) +
                         program.machine->costs.copyLatency;
}

/// tile.store to shared memory: the warpgroup writes its rows.
void BlockRun::storeShared(Fiber &fiber, const Instruction &instruction) {
  const Value &source = fiber.registers[instruction.in[0]],
              &dest = fiber.registers[instruction.in[1]];
  const TileInfo &info = *instruction.tile;
  int64_t warpgroup = fiber.getRoleWarpgroup(), rows = info.getLocalRows();
  Rect rect{info.getRow(warpgroup, 0), info.getRow(warpgroup, rows - 1) + 1, 0, info.columns};
  accessByThreads(fiber, Access::Kind::ThreadWrite, instruction.op, dest, rect);
  if (source.tile && !source.tile->numbers.empty()) {
    float *data = shared.getStage(dest.index, dest.stage).data.data();
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(source.tile->numbers.data() + row * info.columns, info.columns,
                  data + info.getRow(warpgroup, row) * info.columns);
  }
  double bytes = double(rows * info.columns) * (info.number == Number::F32 ? 4 : 2);
  fiber.time = isRandom
                   ? fiber.time + pickTime(fiber, 0)
                   : use(Resource::Shared, fiber.time, bytes / program.machine->costs.sharedBytes);
}

/// tile.load_shared: the warpgroup reads its rows.
void BlockRun::loadShared(Fiber &fiber, const Instruction &instruction) {
  const Value &source = fiber.registers[instruction.in[0]];
  const TileInfo &info = *instruction.tile;
  int64_t warpgroup = fiber.getRoleWarpgroup(), rows = info.getLocalRows();
  Rect rect{info.getRow(warpgroup, 0), info.getRow(warpgroup, rows - 1) + 1, 0, info.columns};
  accessByThreads(fiber, Access::Kind::ThreadRead, instruction.op, source, rect);
  TileRef tile;
  if (options.numbers) {
    tile = makeTile(info);
    int64_t columns = shared.getPlace(source.index).columns;
    const float *data = shared.getStage(source.index, source.stage).data.data();
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(data + info.getRow(warpgroup, row) * columns, info.columns,
                  tile->numbers.data() + row * info.columns);
  }
  setTile(fiber, instruction, std::move(tile));
  work(fiber, instruction);
}

/// tile.transpose: one warpgroup reads a stage and writes another. Which bytes of a row are which
/// elements is the business of types.
void BlockRun::transpose(Fiber &fiber, const Instruction &instruction) {
  const Value &source = fiber.registers[instruction.in[0]],
              &dest = fiber.registers[instruction.in[1]];
  Place &from = shared.getPlace(source.index), &to = shared.getPlace(dest.index);
  accessByThreads(fiber, Access::Kind::ThreadRead, instruction.op, source, from.getWhole());
  accessByThreads(fiber, Access::Kind::ThreadWrite, instruction.op, dest, to.getWhole());
  if (options.numbers) {
    const float *read = shared.getStage(source.index, source.stage).data.data();
    float *written = shared.getStage(dest.index, dest.stage).data.data();
    for (int64_t row = 0; row < from.rows; ++row)
      for (int64_t column = 0; column < from.columns; ++column)
        written[column * to.columns + row] = read[row * from.columns + column];
  }
  double bytes = double(from.stageBytes + to.stageBytes);
  fiber.time = isRandom
                   ? fiber.time + pickTime(fiber, 0)
                   : use(Resource::Shared, fiber.time, bytes / program.machine->costs.sharedBytes);
}

/// tile.load_columns: all threads of the fiber read a row.
void BlockRun::loadColumns(Fiber &fiber, const Instruction &instruction) {
  const Value &source = fiber.registers[instruction.in[0]];
  const TileInfo &info = *instruction.tile;
  if (source.kind != Value::Kind::Shared) {
    report(Finding{Finding::Kind::Invalid,
                   instruction.op,
                   "expected a row in shared memory, which tile-promote-operands makes",
                   {}});
    return;
  }
  accessByThreads(fiber, Access::Kind::ThreadRead, instruction.op, source, {0, 1, 0, info.columns});
  TileRef tile;
  if (options.numbers) {
    tile = makeTile(info);
    const float *data = shared.getStage(source.index, source.stage).data.data();
    for (int64_t row = 0; row < tile->rows; ++row)
      std::copy_n(data, info.columns, tile->numbers.data() + row * info.columns);
  }
  setTile(fiber, instruction, std::move(tile));
  work(fiber, instruction);
}

//===----------------------------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------------------------===//

void BlockRun::readOperands(Fiber &fiber, const Product &product) {
  const Instruction &instruction = *product.instruction;
  SmallVector<const Agent *, 2> agents;
  for (Agent *agent : fiber.getAgents())
    agents.push_back(agent);
  auto read = [&](const Value &operand, Rect rect) {
    report(shared.access(
        operand.index, operand.stage,
        {program.machine->product.isAsync ? Access::Kind::ProductRead : Access::Kind::ThreadRead,
         rect,
         {{fiber.productComponent, product.group}},
         instruction.op,
         fiber.index},
        agents));
  };
  bool isLhsShared = product.lhs.kind == Value::Kind::Shared;
  if (isLhsShared) {
    Rect rect = getSharedRows(product, fiber.getRoleWarpgroup());
    rect.columnBegin += instruction.kept;
    if (rect.columnBegin < rect.columnEnd)
      read(product.lhs, rect);
  }
  read(product.rhs, shared.getPlace(product.rhs.index).getWhole());
}

std::pair<double, double> BlockRun::time(Fiber &fiber, const Product &product) {
  const Instruction &instruction = *product.instruction;
  const Costs &costs = program.machine->costs;
  ProductCost cost = getProductCost(
      *program.machine, instruction.m, instruction.n, instruction.k, unsigned(instruction.value),
      product.lhs.kind == Value::Kind::Shared ? instruction.k - instruction.kept : 0);
  double begin = std::max(fiber.time, fiber.productsEnd), end, readAt;
  if (isRandom) {
    end = begin + pickTime(fiber, 0);
    readAt = begin + (end - begin) * pickRandom();
  } else {
    double cycles = std::max(cost.tensor, cost.shared);
    double done = use(Resource::Tensor, begin, cycles);
    result.busy[unsigned(Resource::Tensor)] -= cycles - cost.tensor;
    result.busy[unsigned(Resource::Shared)] += cost.shared;
    record("tensor", getName(fiber) + (instruction.in.size() > 2 ? ": values" : ": scores"),
           done - cycles, done, instruction.op);
    end = readAt = done + costs.productLatency;
  }
  return {readAt, end};
}

void BlockRun::multiplyAsync(Fiber &fiber, const Instruction &instruction) {
  if (fiber.role->isElected) {
    report(Finding{Finding::Kind::Invalid,
                   instruction.op,
                   "expected all threads of a warpgroup to start a product, got the elected one of "
                   "role '" +
                       fiber.role->name + "'",
                   {}});
    return;
  }
  auto product = std::make_shared<Product>();
  product->instruction = &instruction;
  product->group = fiber.groupsCommitted + 1;
  product->lhs = fiber.registers[instruction.in[0]];
  product->rhs = fiber.registers[instruction.in[1]];
  if (instruction.in.size() > 2) {
    product->acc = fiber.registers[instruction.in[2]];
    product->accId = product->acc.id;
  }
  product->lhsTile = instruction.lhsTile;
  if (instruction.kept)
    product->kept = fiber.registers[instruction.keptRegister];
  product->resultId = ++numIds;
  for (Agent *agent : fiber.getAgents())
    product->started.join(agent->knowledge);

  readOperands(fiber, *product);
  result.flops += 2.0 * double(instruction.m * instruction.n * instruction.k);
  result.elementBits = unsigned(instruction.value);
  auto [readAt, end] = time(fiber, *product);
  fiber.productsEnd = product->end = end;
  if (options.numbers) {
    product->result = makeTile(*instruction.tile);
    std::fill(product->result->numbers.begin(), product->result->numbers.end(), NAN);
  }
  Value &value = fiber.registers[instruction.out[0]];
  value = Value();
  value.kind = Value::Kind::Tile;
  value.id = product->resultId;
  value.tile = product->result;
  fiber.products.push_back(product);
  if (options.numbers) {
    products.push_back(product);
    addEvent(readAt, Event::Kind::Product, products.size() - 1, fiber.index);
  }
  fiber.time += pickTime(fiber, 8);
}

Rect BlockRun::getSharedRows(const Product &product, int64_t unit) {
  const Instruction &instruction = *product.instruction;
  Rect rect = shared.getPlace(product.lhs.index).getWhole();
  (instruction.isMin ? rect.columnBegin : rect.rowBegin) = instruction.m * unit;
  (instruction.isMin ? rect.columnEnd : rect.rowEnd) = instruction.m * (unit + 1);
  return rect;
}

Matrix BlockRun::getSharedLhs(const Product &product, int64_t unit) {
  int64_t columns = shared.getPlace(product.lhs.index).columns;
  const float *data = shared.getStage(product.lhs.index, product.lhs.stage).data.data();
  int64_t first = product.instruction->m * unit;
  return product.instruction->isMin ? Matrix{data + first, 1, columns}
                                    : Matrix{data + first * columns, columns, 1};
}

Matrix BlockRun::getRhs(const Product &product) {
  int64_t columns = shared.getPlace(product.rhs.index).columns;
  const float *data = shared.getStage(product.rhs.index, product.rhs.stage).data.data();
  return product.instruction->isMax ? Matrix{data, 1, columns} : Matrix{data, columns, 1};
}

void BlockRun::compute(Fiber &fiber, Product &product) {
  product.isDone = true;
  const Instruction &instruction = *product.instruction;
  if (instruction.code == Code::MmaTensor)
    return computeTensor(product, fiber.getRoleWarpgroup());
  TileData &to = *product.result;
  if (product.acc.tile)
    to.numbers = product.acc.tile->numbers;
  else
    std::fill(to.numbers.begin(), to.numbers.end(), 0.0f);
  Matrix a = product.lhs.kind == Value::Kind::Shared
                 ? getSharedLhs(product, fiber.getRoleWarpgroup())
                 : Matrix{product.lhs.tile->numbers.data(), instruction.k, 1},
         b = getRhs(product);
  int64_t kept = instruction.kept;
  if (kept) {
    multiply(to.numbers.data(), {product.kept.tile->numbers.data(), kept, 1}, b, instruction.m,
             instruction.n, kept);
    a.data += kept * a.columnStride;
    b.data += kept * b.rowStride;
  }
  multiply(to.numbers.data(), a, b, instruction.m, instruction.n, instruction.k - kept);
  product.lhs = product.acc = product.kept = Value();
}

void BlockRun::waitForProducts(Fiber &fiber, const Instruction &instruction) {
  uint32_t pending = uint32_t(instruction.value);
  if (fiber.groupsCommitted > pending)
    fiber.groupsComplete = std::max(fiber.groupsComplete, fiber.groupsCommitted - pending);
  double end = fiber.time;
  for (const auto &product : fiber.products)
    if (product->group <= fiber.groupsComplete)
      end = std::max(end, product->end);
  record(getName(fiber), "wait: product", fiber.time, end, instruction.op);
  fiber.time = end;
  for (auto [from, to] : zip_equal(instruction.in, instruction.out)) {
    Value value = fiber.registers[from];
    for (const auto &product : fiber.products)
      if (product->resultId == value.id && product->group > fiber.groupsComplete)
        report(Finding{Finding::Kind::InFlight,
                       instruction.op,
                       "the accumulator is still in flight after this wait, which leaves " +
                           std::to_string(pending) + " groups pending",
                       {{product->instruction->op, product->group > fiber.groupsCommitted
                                                       ? "this product is in no group yet"
                                                       : "this product writes it"}}});
    fiber.registers[to] = std::move(value);
  }
  for (Agent *agent : fiber.getAgents()) {
    if (fiber.groupsComplete)
      agent->knowledge.learn({fiber.productComponent, fiber.groupsComplete});
    // All threads of the warpgroup have started what is complete.
    for (const auto &product : fiber.products)
      if (product->group <= fiber.groupsComplete)
        agent->knowledge.join(product->started);
  }
  erase_if(fiber.products,
           [&](const auto &product) { return product->group <= fiber.groupsComplete; });
}

/// Reports uses of the registers of products in flight.
void BlockRun::checkRegisters(Fiber &fiber, const Instruction &instruction) {
  if (instruction.code == Code::Move || instruction.code == Code::MmaWait ||
      instruction.code < Code::Constant)
    return;
  for (const auto &product : fiber.products) {
    const Instruction &origin = *product->instruction;
    // Products chain on one accumulator.
    for (unsigned source : instruction.in) {
      const Value &value = fiber.registers[source];
      if (value.kind != Value::Kind::Tile || value.id == 0)
        continue;
      bool isResult = value.id == product->resultId && instruction.code != Code::MmaAsync;
      if (isResult || (origin.in.size() > 2 && value.id == product->accId))
        report(Finding{Finding::Kind::InFlight,
                       instruction.op,
                       "reads registers of an accumulator while a product adds to them",
                       {{origin.op, "no tile.mma_wait covers this product yet"}}});
    }
    // A tile that takes the place of the lhs, a step later.
    if (instruction.code == Code::Elementwise && product->lhsTile &&
        instruction.fast == FastOp::Copy && instruction.tile->number == product->lhsTile->number &&
        instruction.tile->columns == product->lhsTile->columns)
      report(Finding{Finding::Kind::InFlight,
                     instruction.op,
                     "makes what replaces the registers that a product in flight reads; pass its "
                     "operand through the wait",
                     {{origin.op, "no tile.mma_wait covers this product yet"}}});
  }
}

} // namespace attn::sim
