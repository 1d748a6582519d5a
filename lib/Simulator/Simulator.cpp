//===- Simulator.cpp - runs kernels of rooms 4 to 6 without a GPU -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Simulator/Simulator.h"
#include "lib/Simulator/BlockRun.h"
#include "lib/Simulator/Budgets.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

using namespace llvm;

namespace attn::sim {

Simulator::Simulator(std::unique_ptr<Program> program) : program(std::move(program)) {}
Simulator::Simulator(Simulator &&) = default;
Simulator::~Simulator() = default;

Expected<Simulator> Simulator::create(mlir::func::FuncOp kernel,
                                      std::optional<int64_t> multiprocessors) {
  Expected<Program> program = Program::compile(kernel);
  if (!program)
    return program.takeError();
  Simulator simulator(std::make_unique<Program>(std::move(*program)));
  simulator.sharedBytes = tile::getSharedBytes(kernel);
  simulator.multiprocessors =
      multiprocessors.value_or(simulator.program->machine->costs.multiprocessors);
  checkShared(kernel, simulator.findings);
  checkRegisters(*simulator.program, simulator.findings);
  return std::move(simulator);
}

/// What a launch takes in its first dimension; in the others it takes less.
static constexpr int64_t kMaxGrid = std::numeric_limits<int32_t>::max();

int64_t evaluateFactor(mlir::Attribute factor, ArrayRef<Argument> arguments,
                       int64_t multiprocessors) {
  if (auto extent = mlir::dyn_cast<tile::ExtentAttr>(factor))
    return divideCeil(arguments[extent.getArgument()].memory.shape[extent.getDim()],
                      extent.getDivisor());
  if (auto blocks = mlir::dyn_cast<tile::MultiprocessorsAttr>(factor))
    return blocks.getBlocks() * multiprocessors;
  return mlir::cast<mlir::IntegerAttr>(factor).getInt();
}

Expected<std::array<int64_t, 3>> Simulator::getGrid(ArrayRef<Argument> arguments) const {
  auto attribute =
      program->kernel->getAttrOfType<tile::KernelAttr>(tile::TileDialect::kKernelAttrName);
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

Expected<BlockResult> Simulator::runBlock(ArrayRef<Argument> arguments, const Options &options,
                                          std::array<int64_t, 3> block) const {
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  const int64_t extents[3] = {(*grid)[0], (*grid)[1], (*grid)[2]},
                position[3] = {block[0], block[1], block[2]};
  return BlockRun(*program, arguments, options, extents, position).run();
}

Expected<std::vector<Finding>> Simulator::run(ArrayRef<Argument> arguments,
                                              const Options &options) const {
  if (!findings.empty())
    return findings;
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  Options left = options;
  int64_t work = 0;
  for (int64_t z = 0; z < (*grid)[2]; ++z)
    for (int64_t y = 0; y < (*grid)[1]; ++y)
      for (int64_t x = 0; x < (*grid)[0]; ++x) {
        left.maxWork = std::min(options.maxWork, options.maxGridWork - work);
        Expected<BlockResult> result = runBlock(arguments, left, {x, y, z});
        if (!result)
          return result.takeError();
        work += result->work;
        if (!result->findings.empty())
          return std::move(result->findings);
      }
  return std::vector<Finding>();
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

Expected<Prediction> Simulator::predict(ArrayRef<Argument> arguments, int64_t maxWork) const {
  const Costs &costs = program->machine->costs;
  Expected<std::array<int64_t, 3>> grid = getGrid(arguments);
  if (!grid)
    return grid.takeError();
  Options options;
  options.numbers = false;
  options.maxWork = maxWork;
  // Blocks differ along x, by their rows; what lies between two samples is interpolated.
  constexpr int64_t maxSamples = 17;
  int64_t count = (*grid)[0], samples = std::min(count, maxSamples);
  Prediction prediction;
  if (MulOverflow(count, (*grid)[1], prediction.numBlocks) ||
      MulOverflow(prediction.numBlocks, (*grid)[2], prediction.numBlocks) ||
      prediction.numBlocks > kMaxPredicted)
    return makeOpError(program->kernel, "expected at most " + Twine(kMaxPredicted) +
                                            " blocks to predict, got " + Twine(count) + "x" +
                                            Twine((*grid)[1]) + "x" + Twine((*grid)[2]));
  prediction.numSimulated = samples;
  if (prediction.numBlocks == 0)
    return prediction;
  std::vector<BlockResult> results;
  std::vector<int64_t> positions;
  double longest = 0;
  for (int64_t i = 0; i < samples; ++i) {
    positions.push_back(samples == 1 ? 0 : i * (count - 1) / (samples - 1));
    Expected<BlockResult> result = runBlock(arguments, options, {positions.back(), 0, 0});
    if (!result)
      return result.takeError();
    if (!result->findings.empty())
      return makeOpError(result->findings.front().op, result->findings.front().text);
    if (results.empty() || result->cycles > longest) {
      longest = result->cycles;
      prediction.longest = {positions.back(), 0, 0};
    }
    results.push_back(std::move(*result));
  }
  std::vector<double> cycles(count);
  double busy[kNumResources] = {}, others = double((*grid)[1] * (*grid)[2]);
  unsigned bits = 16;
  for (int64_t x = 0, left = 0; x < count; ++x) {
    while (left + 1 < samples && positions[left + 1] <= x)
      ++left;
    int64_t right = std::min(left + 1, samples - 1);
    double span = double(positions[right] - positions[left]);
    double weight = span > 0 ? double(x - positions[left]) / span : 0;
    auto mix = [&](double BlockResult::*field) {
      return results[left].*field * (1 - weight) + results[right].*field * weight;
    };
    cycles[x] = mix(&BlockResult::cycles) + costs.blockCycles;
    prediction.flops += mix(&BlockResult::flops) * others;
    for (unsigned i = 0; i < kNumResources; ++i)
      busy[i] += (results[left].busy[i] * (1 - weight) + results[right].busy[i] * weight) * others;
    if (results[left].elementBits)
      bits = results[left].elementBits;
  }
  double total = schedule(cycles, int64_t(others), multiprocessors) + costs.launchCycles;
  prediction.milliseconds = total / costs.loadedClockGHz * 1e-6;
  prediction.peakTflops = costs.getPeakTflops(bits);
  prediction.fractionOfPeak =
      prediction.flops / (prediction.milliseconds * 1e-3) / (prediction.peakTflops * 1e12);
  for (unsigned i = 0; i < kNumResources; ++i) {
    prediction.used[i] = busy[i] / (total * double(multiprocessors));
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
    text += " " + std::to_string(role.warpgroups) + " x " + std::to_string(role.registers) +
            " registers";
  }
  return text + "; " + std::to_string(sharedBytes) + " bytes of shared memory";
}

} // namespace attn::sim
