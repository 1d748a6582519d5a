//===- Simulate.cpp - runs the GPU's kernel without a GPU -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/Simulate.h"
#include "dialects/Plan/IR/PlanDialect.h"
#include "lib/Simulator/Launch.h"
#include "lib/Support/ElementType.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "lib/Tools/AttnRun/ChooseWay.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace attn {

/// Lowers what the call takes to the room that is simulated.
static Expected<sim::Launch> lower(mlir::ModuleOp module, const Binding &binding,
                                   const RunOptions &options) {
  CUDAOptions cuda;
  cuda.entry = options.entry;
  cuda.target = options.target;
  cuda.schedule = options.schedule;
  cuda.fused = options.fused;
  cuda.way = options.way;
  Expected<std::vector<WayPlan>> ways = makeWays(module, cuda);
  if (!ways)
    return ways.takeError();
  const Chip &chip = plan::getMachine(module).chips.front();
  DeviceInfo device;
  device.multiprocessors = int(chip.multiprocessors);
  device.memoryRate = int(chip.memoryTBs * 1000);
  if (Error error = lowerWays(module, cuda, Room::Async, chooseWay(*ways, binding, device)))
    return std::move(error);
  for (auto kernel : module.getOps<mlir::func::FuncOp>())
    kernel->removeAttr(plan::PlanDialect::kWhenAttrName);
  return sim::Launch::create(module);
}

/// The function's arguments: inputs, then outputs. Those without data have a shape only.
static std::vector<sim::Argument> bindArguments(const Binding &binding,
                                                ArrayRef<ArgumentValue> inputs,
                                                MutableArrayRef<Array> outputs,
                                                mlir::func::FuncOp kernel,
                                                const RunOptions &options) {
  std::vector<sim::Argument> arguments;
  auto addMemory = [&](const Array &array, ArrayRef<int64_t> shape) {
    sim::Argument &argument = arguments.emplace_back();
    if (array.data()) {
      argument = sim::Argument::of(const_cast<Array &>(array));
      return;
    }
    argument.memory.kind = array.getKind();
    argument.memory.shape.assign(shape.begin(), shape.end());
    argument.memory.strides.assign(shape.size(), 1);
    SmallVector<unsigned> order = getMemoryOrder(options, shape.size());
    if (order.empty())
      order = to_vector(seq<unsigned>(shape.size()));
    int64_t stride = 1;
    for (unsigned dim : reverse(order)) {
      argument.memory.strides[dim] = stride;
      stride *= shape[dim];
    }
  };
  for (auto [index, input] : enumerate(inputs)) {
    if (!input.isScalar) {
      addMemory(input.array, binding.arguments[index]);
      continue;
    }
    sim::Argument &argument = arguments.emplace_back();
    argument.isScalar = true;
    if (mlir::isa<mlir::FloatType>(kernel.getArgumentTypes()[index]))
      argument.scalar.f = input.scalar;
    else
      argument.scalar.i = int64_t(input.scalar);
  }
  for (auto [array, shape] : zip_equal(outputs, binding.results))
    addMemory(array, shape);
  // Arrays without data know no type.
  for (auto [argument, type] : zip(arguments, kernel.getArgumentTypes()))
    if (auto memref = mlir::dyn_cast<mlir::MemRefType>(type))
      argument.memory.kind = getElementKind(memref.getElementType()).value_or(argument.memory.kind);
  return arguments;
}

/// All kernels together: they run one after the other.
static sim::Prediction add(ArrayRef<sim::Prediction> kernels) {
  sim::Prediction sum;
  for (const sim::Prediction &kernel : kernels) {
    sum.milliseconds += kernel.milliseconds;
    sum.flops += kernel.flops;
    sum.peakTflops = std::max(sum.peakTflops, kernel.peakTflops);
    sum.numBlocks += kernel.numBlocks;
    sum.numSimulated += kernel.numSimulated;
  }
  if (sum.milliseconds == 0)
    return sum;
  sum.fractionOfPeak = sum.flops / (sum.milliseconds * 1e-3) / (sum.peakTflops * 1e12);
  for (unsigned i = 0; i < sim::kNumResources; ++i) {
    for (const sim::Prediction &kernel : kernels)
      sum.used[i] += kernel.used[i] * kernel.milliseconds / sum.milliseconds;
    if (sum.used[i] > sum.used[unsigned(sum.critical)])
      sum.critical = sim::Resource(i);
  }
  return sum;
}

static void describe(const sim::Prediction &prediction, std::optional<double> flops,
                     Report &report) {
  report.timeMs = report.fastestMs = prediction.milliseconds;
  auto add = [&](StringRef key, std::string text) {
    report.lines.emplace_back(key.str(), std::move(text));
  };
  auto getRate = [&](double flops) { return flops / prediction.milliseconds * 1e-9; };
  // More work than is executed is of pairs that the mask drops.
  StringRef of = flops && *flops > prediction.flops ? " of work with masked pairs" : " of work";
  std::string work = flops ? formatv("{0:F1} TFLOP/s{1}, ", getRate(*flops), of).str() : "";
  add("predicted",
      formatv("{0}{1:F1} {2}executed: {3:F1}% of {4:F0}", work, getRate(prediction.flops),
              flops ? "" : "TFLOP/s ", 100 * prediction.fractionOfPeak, prediction.peakTflops));
  std::string used;
  for (unsigned i = 0; i < sim::kNumResources; ++i)
    used += formatv("{0}{1} {2:F0}%", i ? ", " : "", sim::getName(sim::Resource(i)),
                    100 * prediction.used[i]);
  add("in use", used + "; critical: " + sim::getName(prediction.critical));
  add("blocks", formatv("{0}, {1} of them simulated for the prediction", prediction.numBlocks,
                        prediction.numSimulated));
}

/// Of the block that takes longest, of the call's kernel that does.
static Expected<sim::Timeline> runTimeline(const sim::Launch &launch,
                                           ArrayRef<sim::Argument> arguments,
                                           ArrayRef<sim::Prediction> kernels,
                                           const Source &source) {
  const auto *longest = max_element(
      kernels, [](const auto &a, const auto &b) { return a.milliseconds < b.milliseconds; });
  std::array<int64_t, 3> block = longest->longest;
  size_t index = launch.getFirst(arguments) + (longest - kernels.begin());
  sim::Timeline timeline;
  timeline.clockGHz = launch.getSimulators()[index].getChip().clockGHz;
  timeline.title = ("@" + launch.getKernel(index).getName() + ", block " + Twine(block[0])).str();
  for (const ValueFacts &facts : concat<const ValueFacts>(source.arguments, source.results))
    timeline.arguments.push_back(facts.name);
  sim::Options how;
  how.numbers = false;
  how.timeline = &timeline;
  Expected<std::vector<sim::Argument>> all = launch.addScratch(arguments);
  if (!all)
    return all.takeError();
  Expected<std::vector<Array>> found = launch.search(arguments, *all);
  if (!found)
    return found.takeError();
  Expected<sim::BlockResult> result = launch.getSimulators()[index].runBlock(*all, how, block);
  if (!result)
    return result.takeError();
  return timeline;
}

Error simulate(mlir::ModuleOp module, const Source &source, const Binding &binding,
               ArrayRef<ArgumentValue> inputs, MutableArrayRef<Array> outputs,
               const RunOptions &options, Report &report, sim::Timeline *timeline) {
  Stopwatch watch;
  Expected<sim::Launch> launch = lower(module, binding, options);
  if (!launch)
    return launch.takeError();
  report.passesMs = watch.lapMs();
  report.device = ("sim, one " + launch->getSimulators().front().getChip().name).str();
  std::vector<sim::Argument> arguments =
      bindArguments(binding, inputs, outputs, launch->getKernel(0), options);
  report.schedule = launch->describe(arguments);
  for (const sim::Finding &finding : launch->getFindings())
    report.addFinding(finding);
  if (!options.predict)
    for (unsigned seed = 0; seed < options.simSeeds && report.findings.empty(); ++seed) {
      sim::Options how;
      how.seed = options.seed + seed;
      how.numbers = seed == 0;
      Expected<std::vector<sim::Finding>> findings = launch->run(arguments, how);
      if (!findings)
        return findings.takeError();
      for (const sim::Finding &finding : *findings)
        report.addFinding(finding);
    }
  if (!report.findings.empty())
    return Error::success();
  if (!options.predict)
    report.lines.emplace_back(
        "simulated", formatv("{0} seeds of random times: no race, no deadlock", options.simSeeds));

  Expected<std::vector<sim::Prediction>> predictions = launch->predict(arguments);
  if (!predictions)
    return predictions.takeError();
  describe(add(*predictions), report.flops, report);
  if ((options.timelines.empty() && !timeline) || predictions->front().numBlocks == 0)
    return Error::success();
  Expected<sim::Timeline> run = runTimeline(*launch, arguments, *predictions, source);
  if (!run)
    return run.takeError();
  for (const std::string &path : options.timelines)
    if (Error error = run->write(path))
      return error;
  if (timeline)
    *timeline = std::move(*run);
  return Error::success();
}

} // namespace attn
