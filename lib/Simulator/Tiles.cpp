//===- Tiles.cpp - scalars and register tiles -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/BlockRun.h"
#include "lib/Simulator/GlobalMemory.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using mlir::Operation;

namespace attn::sim {

//===----------------------------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------------------------===//

static int64_t evaluate(mlir::AffineExpr expr, ArrayRef<int64_t> dims, ArrayRef<int64_t> symbols) {
  if (auto constant = mlir::dyn_cast<mlir::AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto dim = mlir::dyn_cast<mlir::AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = mlir::dyn_cast<mlir::AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = mlir::cast<mlir::AffineBinaryOpExpr>(expr);
  int64_t a = evaluate(binary.getLHS(), dims, symbols),
          b = evaluate(binary.getRHS(), dims, symbols);
  switch (expr.getKind()) {
  case mlir::AffineExprKind::Add:
    return a + b;
  case mlir::AffineExprKind::Mul:
    return a * b;
  case mlir::AffineExprKind::Mod:
    return b > 0 ? ((a % b) + b) % b : 0;
  case mlir::AffineExprKind::FloorDiv:
    return b > 0 ? (a >= 0 ? a / b : -((-a + b - 1) / b)) : 0;
  default:
    return b > 0 ? (a > 0 ? (a + b - 1) / b : -(-a / b)) : 0;
  }
}

/// A float as its type holds it.
static Lane roundLane(Lane lane, Number number) {
  if (number == Number::Integer)
    return lane;
  float value = float(lane.f);
  roundTo(number, &value, 1);
  return {.f = value};
}

static std::optional<int64_t> getOffset(const Memory &memory, ArrayRef<int64_t> indices) {
  int64_t offset = 0;
  for (auto [index, extent, stride] : zip_equal(indices, memory.shape, memory.strides)) {
    if (index < 0 || index >= extent)
      return std::nullopt;
    offset += index * stride;
  }
  return offset;
}

static Finding makeOutside(Operation *op, ArrayRef<int64_t> indices, const Memory &memory,
                           const char *verb = "reads") {
  return Finding{Finding::Kind::OutOfBounds,
                 op,
                 std::string(verb) + " element " + formatShape(indices) + " of memory of shape " +
                     formatShape(memory.shape),
                 {}};
}

/// One thread of the role stores.
void BlockRun::storeScalar(Fiber &fiber, const Instruction &instruction) {
  if (fiber.getRoleWarpgroup() != 0)
    return;
  unsigned argument = fiber.registers[instruction.in[1]].index;
  const Memory &memory = arguments[argument].memory;
  SmallVector<int64_t, 5> indices = getOffsets(fiber, instruction, 2, memory.shape.size());
  std::optional<int64_t> offset = getOffset(memory, indices);
  if (!offset) {
    report(makeOutside(instruction.op, indices, memory, "writes"));
    return;
  }
  if (isTracked(argument)) {
    beginAccess(fiber, instruction.op, GlobalAccesses::Kind::Write);
    touchRow(argument, indices, 1);
  }
  writeLane(memory, *offset, fiber.registers[instruction.in[0]].lane);
}

/// In one piece: a table of instructions.
Error BlockRun::executeScalar(Fiber &fiber, const Instruction &instruction) {
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  Lane lane{.i = 0};
  switch (instruction.code) {
  case Code::Constant:
    lane = instruction.constant.getScalar();
    break;
  case Code::Scalar: {
    const Lane *operands[4] = {};
    for (size_t i = 0; i < instruction.in.size() && i < 4; ++i)
      operands[i] = &get(i).lane;
    if (const char *why = instruction.scalar.run(&lane, operands, 1))
      return makeOpError(instruction.op, why);
    if (!instruction.op->getResult(0).getType().isF64())
      lane = roundLane(lane, instruction.number);
    break;
  }
  case Code::Affine: {
    SmallVector<int64_t, 4> values;
    for (size_t i = 0; i < instruction.in.size(); ++i)
      values.push_back(get(i).lane.i);
    unsigned numDims = instruction.map.getNumDims();
    bool isFirst = true;
    for (mlir::AffineExpr expr : instruction.map.getResults()) {
      int64_t value = evaluate(expr, ArrayRef(values).take_front(numDims),
                               ArrayRef(values).drop_front(numDims));
      lane.i = isFirst             ? value
               : instruction.isMin ? std::min(lane.i, value)
                                   : std::max(lane.i, value);
      isFirst = false;
    }
    break;
  }
  case Code::BlockId:
    lane.i = block[instruction.value];
    break;
  case Code::GridDim:
    lane.i = grid[instruction.value];
    break;
  case Code::Dim: {
    const Memory &memory = arguments[get(0).index].memory;
    int64_t dim = get(1).lane.i;
    if (get(0).kind != Value::Kind::Memory || dim < 0 || dim >= int64_t(memory.shape.size()))
      return makeOpError(instruction.op, "expected a dimension of an argument");
    lane.i = memory.getSize(dim);
    break;
  }
  case Code::LoadScalar: {
    const Memory &memory = arguments[get(0).index].memory;
    SmallVector<int64_t, 5> indices = getOffsets(fiber, instruction, 1, memory.shape.size());
    std::optional<int64_t> offset = getOffset(memory, indices);
    if (!offset) {
      report(makeOutside(instruction.op, indices, memory));
      break;
    }
    if (isTracked(get(0).index)) {
      beginAccess(fiber, instruction.op, GlobalAccesses::Kind::Read);
      touchRow(get(0).index, indices, 1);
    }
    lane = readLane(memory, *offset);
    break;
  }
  case Code::StoreScalar:
    storeScalar(fiber, instruction);
    return Error::success();
  default:
    lane.i = fiber.getRoleWarpgroup() * program.threads / program.machine->warpgroupThreads;
  }
  Value &value = fiber.registers[instruction.out[0]];
  value = Value();
  value.kind = Value::Kind::Scalar;
  value.lane = lane;
  return Error::success();
}

//===----------------------------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------------------------===//

TileRef BlockRun::makeTile(const TileInfo &info) const {
  auto tile = std::make_shared<TileData>();
  tile->rows = info.getLocalRows();
  tile->columns = info.columns;
  if (info.number == Number::Integer)
    tile->lanes.resize(tile->size());
  else
    tile->numbers.resize(tile->size());
  return tile;
}

void BlockRun::setTile(Fiber &fiber, const Instruction &instruction, TileRef tile) {
  Value &value = fiber.registers[instruction.out[0]];
  value = Value();
  value.kind = Value::Kind::Tile;
  // Constants and scalars are made where they are used, in no registers of their own.
  bool isFree = instruction.code == Code::TileConstant || instruction.code == Code::Broadcast;
  value.id = isFree ? 0 : ++numIds;
  value.tile = std::move(tile);
}

void BlockRun::beginAccess(Fiber &fiber, Operation *op, GlobalAccesses::Kind kind) {
  SmallVector<Epoch, 2> epochs;
  for (Agent *agent : fiber.getAgents())
    epochs.push_back(agent->tick());
  // No wait says that memory has been added to.
  bool isAsync = isa<tile::AddAsyncOp>(op);
  if (isAsync)
    epochs = {Epoch{fiber.storeComponent, std::numeric_limits<uint32_t>::max()}};
  accesses->begin({kind, op, {block[0], block[1], block[2]}, fiber.index, epochs, isAsync},
                  fiber.getAgents());
}

void BlockRun::touchRow(unsigned argument, ArrayRef<int64_t> indices, int64_t count) {
  ArrayRef<int64_t> shape = arguments[argument].memory.shape;
  if (shape.empty()) {
    report(accesses->touch(argument, 0, 0, 1));
    return;
  }
  int64_t row = 0, begin = std::max<int64_t>(indices.back(), 0),
          end = std::min(indices.back() + count, shape.back());
  for (auto [index, extent] : zip_equal(indices.drop_back(), shape.drop_back())) {
    if (index < 0 || index >= extent)
      return;
    row = row * extent + index;
  }
  if (begin < end)
    report(accesses->touch(argument, row, begin, end));
}

/// Remembers that the fiber accesses its rows of a tile in global memory.
void BlockRun::touchTile(Fiber &fiber, const Instruction &instruction, unsigned argument,
                         ArrayRef<int64_t> offsets, GlobalAccesses::Kind kind) {
  beginAccess(fiber, instruction.op, kind);
  const TileInfo &info = *instruction.tile;
  int64_t warpgroup = fiber.getRoleWarpgroup(), rows = info.getLocalRows();
  bool isInOrder = info.rowsOf.empty();
  if (info.isVector) {
    SmallVector<int64_t, 5> first(offsets);
    for (int64_t row = 0; row < rows; row += isInOrder ? rows : 1) {
      first.back() = offsets.back() + info.getRow(warpgroup, row);
      touchRow(argument, first, isInOrder ? rows : 1);
    }
    return;
  }
  ArrayRef<int64_t> shape = arguments[argument].memory.shape;
  size_t rowDim = shape.size() - 2;
  int64_t base = 0, begin = offsets.back(),
          end = std::min(offsets.back() + info.columns, shape.back());
  for (size_t dim = 0; dim < rowDim; ++dim) {
    if (offsets[dim] < 0 || offsets[dim] >= shape[dim])
      return;
    base = base * shape[dim] + offsets[dim];
  }
  for (int64_t row = 0; row < rows && begin < end; ++row) {
    int64_t at = offsets[rowDim] + info.getRow(warpgroup, row);
    if (at >= 0 && at < shape[rowDim])
      report(accesses->touch(argument, base * shape[rowDim] + at, begin, end));
  }
}

/// Reads or writes the tile that covers the last dimensions of memory. In one piece: every branch
/// needs the same offsets, strides and bounds.
Error BlockRun::access(Fiber &fiber, const Instruction &instruction, Value &tile, bool isStore) {
  const Value &argument = fiber.registers[instruction.in[isStore ? 1 : 0]];
  if (argument.kind != Value::Kind::Memory)
    return makeOpError(instruction.op, "expected an argument of the kernel as its memory");
  const Memory &memory = arguments[argument.index].memory;
  size_t rank = memory.shape.size();
  const TileInfo &info = *instruction.tile;
  SmallVector<int64_t, 5> offsets = getOffsets(fiber, instruction, isStore ? 2 : 1, rank);
  size_t rowDim = info.isVector ? rank - 1 : rank - 2;
  int64_t base = 0;
  for (size_t dim = 0; dim < rank; ++dim) {
    base += dim == rowDim ? 0 : offsets[dim] * memory.strides[dim];
    // Elements that no bound of the tile covers are not guarded, nor are elements in front of the
    // first column.
    bool isOutside = offsets[dim] < 0 || (dim < rowDim && offsets[dim] >= memory.shape[dim]);
    if (dim != rowDim && isOutside && offsets[rowDim] < memory.shape[rowDim]) {
      report(makeOutside(instruction.op, offsets, memory));
      return Error::success();
    }
  }
  result.bytes += double(info.getLocalRows() * info.columns * getByteSize(memory.kind));
  // The first warpgroup counts for all, whose rows are apart.
  if (fiber.isIssuer())
    countTraffic(argument.index, offsets, info.getLocalRows() * fiber.role->warpgroups,
                 info.isVector ? 0 : info.columns);
  if (isTracked(argument.index))
    touchTile(fiber, instruction, argument.index, offsets,
              instruction.isAdd ? GlobalAccesses::Kind::Add
              : isStore         ? GlobalAccesses::Kind::Write
                                : GlobalAccesses::Kind::Read);
  if (!tile.tile)
    return Error::success();
  int64_t stride = info.isVector ? 1 : memory.strides[rank - 1];
  int64_t columns = info.isVector ? 1
                                  : std::clamp<int64_t>(memory.shape[rank - 1] - offsets[rank - 1],
                                                        0, info.columns);
  for (int64_t row = 0; row < info.getLocalRows(); ++row) {
    int64_t global = info.getRow(fiber.getRoleWarpgroup(), row), at = offsets[rowDim] + global;
    if (at < 0) {
      report(makeOutside(instruction.op, offsets, memory));
      return Error::success();
    }
    // As the hardware's code: only the upper bound is checked.
    std::optional<int64_t> toRow = memory.getRowOffset(rowDim, offsets, at);
    if (!toRow)
      continue;
    int64_t offset = base + *toRow;
    TileData &data = *tile.tile;
    if (data.lanes.empty()) {
      float *line = data.numbers.data() + row * info.columns;
      if (instruction.isAdd)
        addNumbers(memory, offset, stride, columns, line);
      else if (isStore)
        writeNumbers(memory, offset, stride, columns, line);
      else
        readNumbers(memory, offset, stride, columns, line);
      continue;
    }
    for (int64_t column = 0; column < columns; ++column) {
      Lane &lane = data.lanes[row * info.columns + column];
      if (isStore)
        writeLane(memory, offset + column * stride, lane);
      else
        lane = readLane(memory, offset + column * stride);
    }
  }
  return Error::success();
}

/// The place that element i of a tile is at, by one register for each dimension.
static void readIndices(const Fiber &fiber, ArrayRef<unsigned> registers, int64_t i,
                        MutableArrayRef<int64_t> indices) {
  for (auto [index, number] : zip(indices, registers)) {
    const Value &value = fiber.registers[number];
    index = value.tile ? value.tile->lanes[i].i : value.lane.i;
  }
}

/// Without numbers nobody knows where, and who adds waits for nobody.
void BlockRun::scatterAdd(Fiber &fiber, const Instruction &instruction) {
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  unsigned argument = get(1).index;
  const Memory &memory = arguments[argument].memory;
  if (!options.numbers)
    return;
  const TileData &values = *get(0).tile, &keep = *get(instruction.in.size() - 1).tile;
  SmallVector<int64_t, 5> indices(memory.shape.size());
  if (isTracked(argument))
    beginAccess(fiber, instruction.op, GlobalAccesses::Kind::Add);
  for (int64_t i = 0; i < values.size(); ++i) {
    if (!keep.lanes[i].i)
      continue;
    readIndices(fiber, ArrayRef(instruction.in).drop_front(2), i, indices);
    std::optional<int64_t> offset = getOffset(memory, indices);
    if (!offset) {
      report(makeOutside(instruction.op, indices, memory, "adds to"));
      return;
    }
    if (isTracked(argument))
      touchRow(argument, indices, 1);
    addNumbers(memory, *offset, /*stride=*/1, /*count=*/1, &values.numbers[i]);
    result.bytes += getByteSize(memory.kind);
  }
}

void BlockRun::gather(Fiber &fiber, const Instruction &instruction, TileData &to) {
  unsigned argument = fiber.registers[instruction.in[0]].index;
  const Memory &memory = arguments[argument].memory;
  SmallVector<int64_t, 5> indices(memory.shape.size());
  if (isTracked(argument))
    beginAccess(fiber, instruction.op, GlobalAccesses::Kind::Read);
  for (int64_t i = 0; i < to.size(); ++i) {
    readIndices(fiber, ArrayRef(instruction.in).drop_front(), i, indices);
    std::optional<int64_t> offset = getOffset(memory, indices);
    if (!offset) {
      report(makeOutside(instruction.op, indices, memory));
      return;
    }
    if (isTracked(argument))
      touchRow(argument, indices, 1);
    Lane lane = readLane(memory, *offset);
    if (to.lanes.empty())
      to.numbers[i] = float(lane.f);
    else
      to.lanes[i] = lane;
  }
}

Error BlockRun::elementwise(Fiber &fiber, const Instruction &instruction, TileData &to) {
  int64_t count = to.size();
  size_t numOperands = instruction.in.size();
  if (instruction.fast != FastOp::None && to.lanes.empty()) {
    const float *in[3] = {};
    for (size_t i = 0; i < numOperands; ++i)
      in[i] = fiber.registers[instruction.in[i]].tile->numbers.data();
    runFast(instruction.fast, to.numbers.data(), in, count);
    roundTo(instruction.tile->number, to.numbers.data(), count);
    return Error::success();
  }
  const Lane *in[3] = {};
  for (size_t i = 0; i < numOperands && i < 3; ++i) {
    const Value &operand = fiber.registers[instruction.in[i]];
    if (operand.tile && operand.tile->numbers.empty()) {
      in[i] = operand.tile->lanes.data();
      continue;
    }
    std::vector<Lane> &lanes = scratch[i];
    lanes.assign(count, operand.lane);
    if (operand.tile)
      for (int64_t element = 0; element < count; ++element)
        lanes[element].f = operand.tile->numbers[element];
    in[i] = lanes.data();
  }
  std::vector<Lane> &out = to.lanes.empty() ? scratch[3] : to.lanes;
  out.resize(count);
  if (const char *why = instruction.scalar.run(out.data(), in, count))
    return makeOpError(instruction.op, why);
  if (to.lanes.empty()) {
    for (int64_t element = 0; element < count; ++element)
      to.numbers[element] = float(out[element].f);
    roundTo(instruction.tile->number, to.numbers.data(), count);
  }
  return Error::success();
}

/// A value for each row to all columns.
static void broadcast(const TileData &rows, TileData &to) {
  for (int64_t row = 0; row < to.rows; ++row)
    if (to.lanes.empty())
      std::fill_n(to.numbers.data() + row * to.columns, to.columns, rows.numbers[row]);
    else
      std::fill_n(to.lanes.data() + row * to.columns, to.columns, rows.lanes[row]);
}

/// The columns of each row, in one part or one for each lane, and what they begin with.
static void reduce(const Instruction &instruction, const TileData &source, const TileData *inits,
                   TileData &to) {
  bool isMax = instruction.isMax;
  if (!source.numbers.empty()) {
    reduceRows(to.numbers.data(), source.numbers.data(), source.rows, source.columns, to.columns,
               isMax);
    if (inits)
      for (auto [total, init] : llvm::zip_equal(to.numbers, inits->numbers))
        total = isMax ? std::max(total, init) : total + init;
    roundTo(instruction.tile->number, to.numbers.data(), to.size());
    return;
  }
  for (int64_t i = 0; i < source.size(); ++i) {
    int64_t column = i % source.columns, part = to.columns > 1 ? column / 2 % to.columns : 0;
    int64_t &total = to.lanes[i / source.columns * to.columns + part].i, value = source.lanes[i].i;
    bool isFirst = column == 2 * part;
    total = isFirst ? value : isMax ? std::max(total, value) : total + value;
  }
  if (inits)
    for (auto [total, init] : llvm::zip_equal(to.lanes, inits->lanes))
      total.i = isMax ? std::max(total.i, init.i) : total.i + init.i;
}

/// Of sixteen rows each, the sums of diagonals where these begin.
static void sumDiagonals(const TileData &source, TileData &to) {
  constexpr int64_t rows = 16;
  std::fill(to.numbers.begin(), to.numbers.end(), 0.0f);
  for (int64_t row = 0; row < source.rows; ++row)
    for (int64_t column = 0; column < source.columns; ++column) {
      int64_t steps = std::min(row % rows, column);
      to.numbers[(row - steps) * to.columns + column - steps] +=
          source.numbers[row * source.columns + column];
    }
}

/// Without numbers all votes are for true: what tells tiles apart keeps them whole.
void BlockRun::vote(Fiber &fiber, const Instruction &instruction) {
  Value &value = fiber.registers[instruction.out[0]];
  TileRef source = fiber.registers[instruction.in[0]].tile;
  auto isTrue = [](Lane lane) { return lane.i != 0; };
  value = Value();
  value.kind = Value::Kind::Scalar;
  value.lane.i = !source             ? 1
                 : instruction.isMax ? any_of(source->lanes, isTrue)
                                     : all_of(source->lanes, isTrue);
}

/// The product of a program of room 4, added to `to`.
void BlockRun::multiplyRegisters(const Instruction &instruction, const TileData &lhs,
                                 const TileData &rhs, TileData &to) {
  Matrix a = instruction.isMin ? Matrix{lhs.numbers.data(), 1, lhs.columns}
                               : Matrix{lhs.numbers.data(), lhs.columns, 1};
  Matrix b = instruction.isMax ? Matrix{rhs.numbers.data(), 1, rhs.columns}
                               : Matrix{rhs.numbers.data(), rhs.columns, 1};
  multiply(to.numbers.data(), a, b, instruction.m, instruction.n, instruction.k);
  result.flops += 2.0 * double(instruction.m * instruction.n * instruction.k);
}

/// In one piece: a table of instructions.
Error BlockRun::executeTile(Fiber &fiber, const Instruction &instruction) {
  work(fiber, instruction);
  auto get = [&](unsigned operand) -> Value & { return fiber.registers[instruction.in[operand]]; };
  if (instruction.code == Code::Store) {
    if (isa<tile::AddAsyncOp>(instruction.op)) {
      ++fiber.stores;
      fiber.lastStore = instruction.op;
    }
    return access(fiber, instruction, get(0), /*isStore=*/true);
  }
  if (instruction.code == Code::ScatterAdd) {
    scatterAdd(fiber, instruction);
    return Error::success();
  }
  if (instruction.code == Code::Vote) {
    vote(fiber, instruction);
    return Error::success();
  }
  if (!options.numbers) {
    if (instruction.code == Code::Load) {
      Value nothing;
      if (Error error = access(fiber, instruction, nothing, /*isStore=*/false))
        return error;
    }
    // The same registers under another layout stay the same registers.
    uint32_t id = instruction.code == Code::ConvertLayout ? get(0).id : 0;
    setTile(fiber, instruction, nullptr);
    if (id)
      fiber.registers[instruction.out[0]].id = id;
    return Error::success();
  }
  TileRef tile = makeTile(*instruction.tile);
  TileData &to = *tile;
  auto fill = [&](Lane lane) {
    std::fill(to.lanes.begin(), to.lanes.end(), lane);
    std::fill(to.numbers.begin(), to.numbers.end(), float(lane.f));
  };
  switch (instruction.code) {
  case Code::TileConstant:
    fill(instruction.constant.getScalar());
    break;
  case Code::Broadcast:
    get(0).tile ? broadcast(*get(0).tile, to) : fill(get(0).lane);
    break;
  case Code::Coord:
    for (int64_t row = 0; row < to.rows; ++row)
      for (int64_t column = 0; column < to.columns; ++column)
        to.lanes[row * to.columns + column].i =
            get(0).lane.i + (instruction.value == 0
                                 ? instruction.tile->getRow(fiber.getRoleWarpgroup(), row)
                                 : column);
    break;
  case Code::Reduce:
    reduce(instruction, *get(0).tile, instruction.in.size() > 1 ? get(1).tile.get() : nullptr, to);
    break;
  case Code::SumDiagonals:
    sumDiagonals(*get(0).tile, to);
    break;
  case Code::ConvertLayout: {
    Value &value = fiber.registers[instruction.out[0]];
    value = Value(get(0));
    return Error::success();
  }
  case Code::Load: {
    Value value;
    value.tile = tile;
    if (Error error = access(fiber, instruction, value, /*isStore=*/false))
      return error;
    break;
  }
  case Code::Gather:
    gather(fiber, instruction, to);
    break;
  case Code::MmaRegisters:
    std::fill(to.numbers.begin(), to.numbers.end(), 0.0f);
    if (instruction.in.size() > 2)
      to.numbers = get(2).tile->numbers;
    multiplyRegisters(instruction, *get(0).tile, *get(1).tile, to);
    break;
  default:
    if (Error error = elementwise(fiber, instruction, to))
      return error;
  }
  setTile(fiber, instruction, std::move(tile));
  return Error::success();
}

} // namespace attn::sim
