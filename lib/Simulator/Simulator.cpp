//===- Simulator.cpp - runs kernels of rooms 4 to 6 without a GPU -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Simulator.h"
#include "lib/Plan/KernelPlan.h"
#include "lib/Simulator/BlockRun.h"
#include "lib/Simulator/Budgets.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <queue>
#include <random>

using namespace llvm;

namespace attn::sim {

Simulator::Simulator(std::unique_ptr<Program> program) : program(std::move(program)) {}
Simulator::Simulator(Simulator &&) = default;
Simulator::~Simulator() = default;

const Chip &Simulator::getChip() const { return program->machine->chips.front(); }

Expected<Simulator> Simulator::create(mlir::func::FuncOp kernel,
                                      std::optional<int64_t> multiprocessors) {
  Expected<Program> program = Program::compile(kernel);
  if (!program)
    return program.takeError();
  Simulator simulator(std::make_unique<Program>(std::move(*program)));
  simulator.sharedBytes = tile::getSharedBytes(kernel);
  simulator.multiprocessors = multiprocessors.value_or(simulator.getChip().multiprocessors);
  checkShared(kernel, simulator.findings);
  checkRegisters(*simulator.program, simulator.findings);
  return std::move(simulator);
}

/// The most blocks of a launch in its first dimension; other dimensions take fewer.
static constexpr int64_t kMaxGrid = std::numeric_limits<int32_t>::max();

int64_t evaluateFactor(mlir::Attribute factor, ArrayRef<Argument> arguments,
                       int64_t multiprocessors) {
  if (auto extent = mlir::dyn_cast<plan::ExtentAttr>(factor))
    return divideCeil(
               (arguments[extent.getArgument()].memory.shape[extent.getDim()] - extent.getLess()) *
                   extent.getMultiplier(),
               extent.getDivisor()) *
           extent.getUnit();
  if (auto parts = mlir::dyn_cast<plan::PartsAttr>(factor)) {
    int64_t blocks = 1, most = evaluateFactor(parts.getKeys(), arguments, multiprocessors);
    for (mlir::Attribute block : parts.getBlocks())
      blocks *= evaluateFactor(block, arguments, multiprocessors);
    most = std::min(most, parts.getMost());
    return parts.getSlots()
               ? countSlots(evaluateFactor(parts.getBlocks()[0], arguments, multiprocessors),
                            blocks, multiprocessors, most)
               : countParts(blocks, multiprocessors, most);
  }
  if (auto blocks = mlir::dyn_cast<plan::MultiprocessorsAttr>(factor))
    return blocks.getBlocks() * multiprocessors;
  return mlir::cast<mlir::IntegerAttr>(factor).getInt();
}

Expected<std::array<int64_t, 3>> Simulator::getGrid(ArrayRef<Argument> arguments) const {
  mlir::func::FuncOp kernel = program->kernel;
  auto attribute = kernel->getAttrOfType<tile::KernelAttr>(tile::TileDialect::kKernelAttrName);
  mlir::TypeRange types = program->kernel.getArgumentTypes();
  if (arguments.size() != types.size())
    return makeOpError(program->kernel, "expected " + Twine(types.size()) + " arguments, got " +
                                            Twine(arguments.size()));
  for (auto [index, type] : enumerate(types)) {
    auto memref = mlir::dyn_cast<mlir::MemRefType>(type);
    const Argument &argument = arguments[index];
    if (argument.isScalar == bool(memref) ||
        (memref && memref.getRank() != int64_t(argument.memory.shape.size())))
      return makeOpError(program->kernel,
                         "expected a value of the kernel's type for argument " + Twine(index));
    for (int64_t dim = 0; memref && dim < memref.getRank(); ++dim)
      if (!memref.isDynamicDim(dim) && memref.getDimSize(dim) != argument.memory.shape[dim])
        return makeOpError(program->kernel, "expected extent " + Twine(memref.getDimSize(dim)) +
                                                " in dimension " + Twine(dim) + " of argument " +
                                                Twine(index) + ", got " +
                                                Twine(argument.memory.shape[dim]));
  }
  std::array<int64_t, 3> grid = {1, 1, 1};
  for (auto [index, dimension] : enumerate(attribute.getGrid()))
    for (mlir::Attribute factor : mlir::cast<mlir::ArrayAttr>(dimension)) {
      int64_t size = evaluateFactor(factor, arguments, multiprocessors);
      if (MulOverflow(grid[index], size, grid[index]) || grid[index] > kMaxGrid)
        return makeOpError(program->kernel, "expected a grid of at most " + Twine(kMaxGrid) +
                                                " blocks in dimension " + Twine(index));
    }
  return grid;
}

/// A pool of pages as the sequences of a table.
static void viewPages(Memory &memory, const Memory &table, int64_t page) {
  ArrayRef<int64_t> pool = memory.shape;
  memory.paged = Memory::Paged{&table, page, pool[0], memory.strides[0]};
  memory.strides = {0, memory.strides[2], memory.strides[1], memory.strides[3]};
  memory.shape = {table.shape[0], pool[2], table.shape[1] * page, pool[3]};
}

/// The rows of all sequences as a batch of up to `most` rows each.
static void viewSequences(Memory &memory, const Memory &offsets, int64_t most) {
  memory.ragged = Memory::Ragged{&offsets, memory.shape[0], most};
  memory.shape[0] = most;
  std::swap(memory.shape[0], memory.shape[1]);
  std::swap(memory.strides[0], memory.strides[1]);
  memory.shape.insert(memory.shape.begin(), offsets.shape[0] - 1);
  memory.strides.insert(memory.strides.begin(), 0);
}

/// The arguments as the kernel's accesses see them: packed, paged and ragged ones as their views.
static SmallVector<Argument> viewArguments(mlir::func::FuncOp kernel,
                                           ArrayRef<Argument> arguments) {
  SmallVector<Argument> views(arguments);
  for (auto [index, view] : enumerate(views)) {
    Memory &memory = view.memory;
    auto getPaged = [&](unsigned number) {
      return kernel.getArgAttrOfType<plan::PagedAttr>(number, plan::PlanDialect::kPagedAttrName);
    };
    if (auto paged = getPaged(index))
      viewPages(memory, arguments[paged.getTable()].memory, paged.getPage());
    if (auto ragged =
            kernel.getArgAttrOfType<plan::RaggedAttr>(index, plan::PlanDialect::kRaggedAttrName))
      viewSequences(memory, arguments[ragged.getOffsets()].memory,
                    arguments[ragged.getMost()].memory.shape[ragged.getDim()]);
    auto packed =
        kernel.getArgAttrOfType<plan::PackedAttr>(index, plan::PlanDialect::kPackedAttrName);
    if (!packed)
      continue;
    unsigned keys = packed.getKeys();
    int64_t heads = memory.shape[1],
            keyHeads = arguments[keys].memory.shape[getPaged(keys) ? 2 : 1],
            group = keyHeads > 0 ? heads / keyHeads : 0;
    memory.packed = Memory::Packed{packed.getSlots(), group, memory.strides[1], heads};
    memory.shape[1] = keyHeads;
    memory.strides[1] *= group;
    memory.shape[2] *= packed.getSlots();
  }
  return views;
}

Expected<BlockResult> Simulator::runBlock(ArrayRef<Argument> arguments, const Options &options,
                                          std::array<int64_t, 3> block) const {
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  const int64_t extents[3] = {(*grid)[0], (*grid)[1], (*grid)[2]},
                position[3] = {block[0], block[1], block[2]};
  SmallVector<Argument> views = viewArguments(program->kernel, arguments);
  return BlockRun(*program, views, options, extents, position).run();
}

//===----------------------------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------------------------===//

namespace {
/// The blocks of a grid: in the order of their numbers or, with a seed, in any.
class GridRun {
public:
  GridRun(const Program &program, ArrayRef<Argument> arguments, const Options &options,
          const std::array<int64_t, 3> &grid)
      : program(program), arguments(arguments), options(options), grid(grid),
        accesses(program, arguments), count(grid[0] * grid[1] * grid[2]),
        random(options.seed.value_or(0)) {
    // Blocks that cannot see each other might as well run one after the other.
    if (options.seed && accesses.isShared())
      places = kPlaces;
    if (options.seed) {
      offset = random() % uint64_t(std::max<int64_t>(count, 1));
      do
        stride = 1 + random() % uint64_t(std::max<int64_t>(count, 1));
      while (std::gcd(stride, uint64_t(count)) != 1 && count > 1);
    }
  }

  Expected<std::vector<Finding>> run();

private:
  /// Blocks at a time, of those that see each other.
  static constexpr size_t kPlaces = 4;

  struct Resident {
    /// The run refers to them.
    Options options;
    std::unique_ptr<BlockRun> run;
    /// When it began: blocks drift apart.
    double begin = 0;

    double getTime() const { return begin + run->getTime(); }
  };

  std::unique_ptr<Resident> start(int64_t number, double begin);

  const Program &program;
  ArrayRef<Argument> arguments;
  const Options &options;
  std::array<int64_t, 3> grid;
  GlobalAccesses accesses;
  int64_t count, work = 0;
  size_t places = 1;
  std::mt19937_64 random;
  /// The i-th block to start is number offset + i * stride, modulo their count.
  uint64_t offset = 0, stride = 1;
};
} // namespace

std::unique_ptr<GridRun::Resident> GridRun::start(int64_t number, double begin) {
  auto resident = std::make_unique<Resident>();
  resident->options = options;
  resident->options.maxWork = std::min(options.maxWork, options.maxGridWork - work);
  resident->begin = begin;
  uint64_t index = (offset + uint64_t(number) % count * (stride % count)) % count;
  const int64_t extents[3] = {grid[0], grid[1], grid[2]};
  const int64_t block[3] = {int64_t(index) % grid[0], int64_t(index) / grid[0] % grid[1],
                            int64_t(index) / grid[0] / grid[1]};
  resident->run =
      std::make_unique<BlockRun>(program, arguments, resident->options, extents, block, &accesses);
  return resident;
}

Expected<std::vector<Finding>> GridRun::run() {
  SmallVector<std::unique_ptr<Resident>> residents;
  double now = 0;
  for (int64_t started = 0; started < count || !residents.empty();) {
    while (started < count && residents.size() < places)
      residents.push_back(start(started++, now));
    auto next =
        min_element(residents, [](auto &a, auto &b) { return a->getTime() < b->getTime(); });
    now = (*next)->getTime();
    Expected<bool> goesOn = (*next)->run->advance();
    // Alone, a block need not look at the others.
    while (goesOn && *goesOn && places == 1)
      goesOn = (*next)->run->advance();
    if (!goesOn)
      return goesOn.takeError();
    if (*goesOn)
      continue;
    BlockResult result = (*next)->run->finish();
    work += result.work;
    if (!result.findings.empty())
      return std::move(result.findings);
    residents.erase(next);
  }
  return std::vector<Finding>();
}

Expected<std::vector<Finding>> Simulator::run(ArrayRef<Argument> arguments,
                                              const Options &options) const {
  if (!findings.empty())
    return findings;
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  SmallVector<Argument> views = viewArguments(program->kernel, arguments);
  return GridRun(*program, views, options, *grid).run();
}

//===----------------------------------------------------------------------------------------===//
// Prediction
//===----------------------------------------------------------------------------------------===//

/// A prediction places one block after the other.
static constexpr int64_t kMaxPredicted = int64_t(1) << 24;

/// When the last of the blocks ends, started in order wherever there is room.
static double schedule(ArrayRef<double> cyclesOfX, int64_t repetitions, int64_t places) {
  std::priority_queue<double, std::vector<double>, std::greater<double>> ends;
  double last = 0;
  for (int64_t i = 0; i < repetitions; ++i)
    for (double cycles : cyclesOfX) {
      double begin = 0;
      if (int64_t(ends.size()) == places) {
        begin = ends.top();
        ends.pop();
      }
      ends.push(begin + cycles);
      last = std::max(last, begin + cycles);
    }
  return last;
}

namespace {
/// Some blocks of a grid. They differ along x, by their rows; what lies between two is
/// interpolated.
struct Samples {
  std::vector<int64_t> positions;
  std::vector<BlockResult> results;

  /// The last sample at or before x, the sample after it, and the share of the latter in x.
  struct Place {
    size_t left, right;
    double weight;
  };
  Place find(int64_t x) const {
    size_t right = llvm::upper_bound(positions, x) - positions.begin(), left = right - 1;
    right = std::min(right, positions.size() - 1);
    double span = double(positions[right] - positions[left]);
    return {left, right, span > 0 ? double(x - positions[left]) / span : 0};
  }
};
} // namespace

/// Evenly spread, and on both sides of the borders that divide `count` into groups of `group`:
/// blocks after blocks that stay have other work than these.
static std::vector<int64_t> choosePositions(int64_t count, int64_t group) {
  constexpr int64_t maxSamples = 17;
  int64_t number = std::min(count, maxSamples);
  std::vector<int64_t> positions;
  positions.reserve(number);
  for (int64_t i = 0; i < number; ++i)
    positions.push_back(number == 1 ? 0 : i * (count - 1) / (number - 1));
  for (int64_t begin = group; begin < count; begin += group)
    positions.insert(positions.end(), {begin - 1, begin});
  llvm::sort(positions);
  positions.erase(llvm::unique(positions), positions.end());
  return positions;
}

static Expected<Samples> sampleBlocks(const Simulator &simulator, ArrayRef<Argument> arguments,
                                      const Options &options, std::vector<int64_t> positions) {
  Samples samples;
  samples.positions = std::move(positions);
  for (int64_t position : samples.positions) {
    Expected<BlockResult> result = simulator.runBlock(arguments, options, {position, 0, 0});
    if (!result)
      return result.takeError();
    if (!result->findings.empty())
      return makeOpError(result->findings.front().op, result->findings.front().text);
    samples.results.push_back(std::move(*result));
  }
  return std::move(samples);
}

/// Bytes that a grid moves to and from HBM. Blocks find in L2 what others have read before them, so
/// that no element counts twice: all batches and heads have the rows that some sample has.
static double countFirstTouches(const Samples &samples, int64_t count, double others,
                                ArrayRef<Argument> arguments) {
  std::vector<double> weights(samples.results.size());
  for (int64_t x = 0; x < count; ++x) {
    auto [left, right, weight] = samples.find(x);
    weights[left] += 1 - weight;
    weights[right] += weight;
  }
  double bytes = 0;
  for (auto [index, argument] : enumerate(arguments)) {
    if (argument.isScalar)
      continue;
    Traffic all;
    double moved = 0;
    for (auto [result, weight] : zip_equal(samples.results, weights)) {
      all.join(result.traffic[index]);
      moved += result.traffic[index].bytes * weight * others;
    }
    const Memory &memory = argument.memory;
    size_t rank = memory.shape.size(), rowDim = rank > 1 ? rank - 2 : 0;
    double distinct = double(getByteSize(memory.kind));
    for (size_t dim = 0; dim < rank; ++dim)
      if (memory.strides[dim] != 0)
        distinct *= double(dim == rowDim && rank > 3 ? all.end - all.begin : memory.shape[dim]);
    bytes += std::min(moved, std::max(distinct, 0.0));
  }
  return bytes;
}

Expected<Prediction> Simulator::predict(ArrayRef<Argument> arguments, int64_t maxWork) const {
  const Costs &costs = program->machine->costs;
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  auto [count, height, depth] = *grid;
  Prediction prediction;
  if (MulOverflow(count, height, prediction.numBlocks) ||
      MulOverflow(prediction.numBlocks, depth, prediction.numBlocks) ||
      prediction.numBlocks > kMaxPredicted)
    return makeOpError(program->kernel, "expected at most " + Twine(kMaxPredicted) +
                                            " blocks to predict, got " + Twine(count) + "x" +
                                            Twine(height) + "x" + Twine(depth));
  if (prediction.numBlocks == 0)
    return prediction;
  SmallVector<Argument> views = viewArguments(program->kernel, arguments);
  Options options;
  options.numbers = false;
  options.maxWork = maxWork;
  auto attribute =
      program->kernel->getAttrOfType<tile::KernelAttr>(tile::TileDialect::kKernelAttrName);
  Expected<Samples> samples =
      sampleBlocks(*this, arguments, options,
                   choosePositions(count, attribute.isStaying() ? multiprocessors : count));
  if (!samples)
    return samples.takeError();
  ArrayRef<BlockResult> results = samples->results;
  prediction.numSimulated = results.size();
  auto longest = llvm::max_element(
      results, [](const BlockResult &a, const BlockResult &b) { return a.cycles < b.cycles; });
  prediction.longest = {samples->positions[longest - results.begin()], 0, 0};

  // Blocks that a multiprocessor has at a time take turns at its resources, and fill each other's
  // waits.
  int64_t resident = std::min(attribute.getSchedule().resident,
                              int64_t(divideCeil(prediction.numBlocks, multiprocessors)));
  std::vector<double> cyclesOfX(count);
  double busy[kNumResources] = {}, others = double(height * depth);
  unsigned bits = 16;
  for (int64_t x = 0; x < count; ++x) {
    auto [left, right, weight] = samples->find(x);
    const BlockResult &before = results[left], &after = results[right];
    auto mix = [weight = weight](double a, double b) { return a * (1 - weight) + b * weight; };
    double alone = mix(before.cycles, after.cycles), shared = 0;
    prediction.flops += mix(before.flops, after.flops) * others;
    for (unsigned i = 0; i < kNumResources; ++i) {
      double part = mix(before.busy[i], after.busy[i]);
      busy[i] += part * others;
      shared = std::max(shared, part * double(resident));
    }
    cyclesOfX[x] = std::max(alone, shared) + costs.blockCycles;
    if (before.elementBits)
      bits = before.elementBits;
  }
  double cycles = schedule(cyclesOfX, int64_t(others), multiprocessors * resident);
  busy[unsigned(Resource::HBM)] =
      countFirstTouches(*samples, count, others, views) / getHBMBytes(getChip());
  // The clock is the nominal one where products wait for HBM, which takes its time however blocks
  // are placed.
  double clock = getChip().loadedClockGHz,
         memory = busy[unsigned(Resource::HBM)] / double(multiprocessors) + costs.blockCycles +
                  costs.copyLatency,
         nanoseconds = std::max((cycles + costs.launchCycles) / clock,
                                (memory + costs.launchCycles) / getChip().clockGHz);
  prediction.milliseconds = nanoseconds * 1e-6;
  prediction.peakTflops = getChip().getPeakTflops(costs, bits);
  prediction.fractionOfPeak =
      prediction.flops / (prediction.milliseconds * 1e-3) / (prediction.peakTflops * 1e12);
  for (unsigned i = 0; i < kNumResources; ++i) {
    double rate = Resource(i) == Resource::HBM ? getChip().clockGHz : clock;
    prediction.used[i] = busy[i] / (nanoseconds * rate * double(multiprocessors));
    if (prediction.used[i] > prediction.used[unsigned(prediction.critical)])
      prediction.critical = Resource(i);
  }
  return prediction;
}

std::string Simulator::describe() const {
  std::string text;
  for (const RoleInfo &role : program->roles) {
    text += (text.empty() ? "" : ", ") + role.name;
    if (role.isElected)
      text += " (one thread)";
    int64_t warpgroups = role.warpgroups * program->threads / program->machine->warpgroupThreads;
    text += " " + std::to_string(std::max<int64_t>(1, warpgroups)) + " x " +
            std::to_string(role.registers) + " registers";
  }
  return text + "; " + std::to_string(sharedBytes) + " bytes of shared memory";
}

} // namespace attn::sim
