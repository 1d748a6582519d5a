//===- Runtime.cpp - load and launch compiled kernels -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Runtime.h"
#include "lib/Runtime/Arguments.h"
#include "lib/Runtime/KernelLoader.h"
#include "lib/Runtime/Launch.h"
#include "lib/Runtime/Module.h"
#include "lib/Runtime/Scratch.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <optional>

namespace attn {

/// What every use of a tensor relies on.
static Status checkShape(const TensorView &tensor, size_t argument) {
  if (tensor.rank < 0 || tensor.rank > 8)
    return Status::aboutArgument(argument, "expected ",
                                 " of 0 to 8 dimensions, got " + std::to_string(tensor.rank));
  if (tensor.rank > 0 && !tensor.shape)
    return Status::aboutArgument(argument, "expected ", " to have a shape, got null");
  for (int dim = 0; dim < tensor.rank; ++dim)
    if (tensor.shape[dim] < 0)
      return Status::aboutArgument(argument,
                                   "expected the size of dimension " + std::to_string(dim) + " of ",
                                   " to be at least 0, got " + std::to_string(tensor.shape[dim]));
  return {};
}

namespace {
struct Step {
  cuda::Function function;
  LaunchRecipe recipe;
};

/// One way to run a function: kernels in launch order, and what they hand to each other.
struct Way {
  std::vector<ExtentRange> when;
  std::vector<Step> steps;
  ScratchRecipe scratch;
  /// One more than the highest argument of its kernels, scratch included.
  size_t numArguments = 0;
};
} // namespace

/// The module refers to the context, so neither moves, and they end in reverse order.
struct Kernel::State {
  explicit State(DeviceContext &&context) : context(std::move(context)) {}

  /// That the arguments are as many as the function's, and have shapes.
  Status check(LaunchArguments arguments) const;
  /// The way for a call.
  Result<const Way *> choose(LaunchArguments arguments) const;
  /// Starts the kernels of a way in their context. `arguments` include scratch.
  Status launch(const Way &way, LaunchArguments arguments, cuda::Stream stream) const;

  DeviceContext context;
  std::optional<Module> module;
  /// In the order of the plan; the last is for all calls.
  std::vector<Way> ways;
  std::vector<KernelInfo> infos;
  /// Those of a call, without scratch.
  size_t numArguments = 0;
};

Status Kernel::State::check(LaunchArguments arguments) const {
  if (arguments.size() != numArguments)
    return {StatusCode::InvalidArgument,
            "expected " + std::to_string(numArguments) + " arguments, got " +
                std::to_string(arguments.size()),
            "pass the function's operands and then its results"};
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].getKind() == LaunchArgument::Kind::Tensor)
      if (Status status = checkShape(arguments[i].getTensor(), i); !status.ok())
        return status;
  return {};
}

Result<const Way *> Kernel::State::choose(LaunchArguments arguments) const {
  for (const Way &way : ways) {
    bool holds = true;
    for (const ExtentRange &range : way.when) {
      std::optional<int64_t> size = evaluate(range.size, arguments);
      if (!size)
        return explainNoTensor(range.size, arguments);
      std::optional<int64_t> per = evaluate(range.per, arguments);
      if (!per)
        return explainNoTensor(range.per, arguments);
      // Nothing is divided by no heads: such a call has no elements, whichever way it takes.
      int64_t quotient = *per > 0 ? (*size + *per - 1) / *per : 0;
      holds &= range.least <= quotient && quotient <= range.most;
    }
    if (holds)
      return &way;
  }
  return &ways.back();
}

Status Kernel::State::launch(const Way &way, LaunchArguments arguments, cuda::Stream stream) const {
  for (const Step &step : way.steps)
    if (Status status = step.recipe.launch(context.getDriver(), step.function, arguments, stream);
        !status.ok())
      return status;
  return {};
}

Kernel::Kernel(std::unique_ptr<State> state) : state(std::move(state)) {}
Kernel::Kernel(Kernel &&) noexcept = default;
Kernel &Kernel::operator=(Kernel &&) noexcept = default;
Kernel::~Kernel() = default;

Result<Kernel> Kernel::load(const KernelImage &image, const LoadOptions &options) {
  llvm::Expected<FunctionPlan> plan = readPlan(image.plan);
  if (!plan)
    return Status{StatusCode::InvalidKernel, toString(plan.takeError()), ""};
  return KernelLoader::load(image, *plan, options);
}

static Status refusePlan(std::string message) {
  return {StatusCode::InvalidKernel, std::move(message), ""};
}

/// The kernels of each way, which stand in a row.
static std::vector<llvm::ArrayRef<KernelPlan>> findWays(llvm::ArrayRef<KernelPlan> plans) {
  std::vector<llvm::ArrayRef<KernelPlan>> ways;
  while (!plans.empty()) {
    llvm::ArrayRef<KernelPlan> way =
        plans.take_while([&](const KernelPlan &plan) { return plan.when == plans.front().when; });
    ways.push_back(way);
    plans = plans.drop_front(way.size());
  }
  return ways;
}

/// A way whose functions are still to be found.
static Result<Way> makeWay(llvm::ArrayRef<KernelPlan> plans) {
  Way way;
  way.when = plans.front().when;
  for (const KernelPlan &plan : plans) {
    Result<LaunchRecipe> recipe = LaunchRecipe::create(plan);
    if (!recipe)
      return recipe.takeStatus();
    way.numArguments = std::max(way.numArguments, recipe->getNumArguments());
    way.steps.push_back({nullptr, std::move(*recipe)});
  }
  Result<ScratchRecipe> scratch = ScratchRecipe::create(plans);
  if (!scratch)
    return scratch.takeStatus();
  way.scratch = std::move(*scratch);
  return way;
}

/// The arguments of a call: what ways mention, without their scratch, which comes behind them.
static Result<size_t> countArguments(llvm::ArrayRef<Way> ways) {
  size_t count = 0;
  for (const Way &way : ways) {
    count =
        std::max(count, way.scratch.empty() ? way.numArguments : way.scratch.getFirstArgument());
    for (const ExtentRange &range : way.when)
      count = std::max<size_t>({count, countArguments(range.size), countArguments(range.per)});
  }
  for (const Way &way : ways)
    if (!way.scratch.empty() &&
        (way.scratch.getFirstArgument() != count || way.numArguments > count + way.scratch.size()))
      return refusePlan("expected scratch behind all arguments of the plan");
  return count;
}

Result<Kernel> KernelLoader::load(const KernelImage &image, const FunctionPlan &plan,
                                  const LoadOptions &options) {
  if (plan.kernels.empty())
    return refusePlan("expected a plan with a kernel, got none");
  if (!plan.kernels.back().when.empty())
    return refusePlan("expected the last kernel of the plan to be for all calls, got '" +
                      plan.kernels.back().name + "' for some");

  // What needs no device comes first: a bad image is reported as such on every machine.
  std::vector<Way> ways;
  for (llvm::ArrayRef<KernelPlan> plans : findWays(plan.kernels)) {
    Result<Way> way = makeWay(plans);
    if (!way)
      return way.takeStatus();
    ways.push_back(std::move(*way));
  }
  Result<size_t> numArguments = countArguments(ways);
  if (!numArguments)
    return numArguments.takeStatus();

  Result<DeviceContext> context = DeviceContext::open(options.device);
  if (!context)
    return context.takeStatus();
  for (const KernelPlan &kernel : plan.kernels)
    if (Status status = checkTarget(kernel.target, context->getInfo()); !status.ok())
      return status;
  for (Way &way : ways) {
    if (Status status = way.scratch.checkDriver(context->getDriver()); !status.ok())
      return status;
    for (ExtentRange &range : way.when)
      bindDevice(range.size, context->getInfo());
    way.scratch.bind(context->getInfo());
    for (Step &step : way.steps)
      step.recipe.bind(context->getInfo());
  }

  auto state = std::make_unique<Kernel::State>(std::move(*context));
  state->ways = std::move(ways);
  state->numArguments = *numArguments;
  Result<Module> module = Module::load(state->context, image);
  if (!module)
    return module.takeStatus();
  state->module.emplace(std::move(*module));
  if (Status status = prepare(*state, plan.kernels); !status.ok())
    return status;
  return Kernel(std::move(state));
}

Status KernelLoader::prepare(Kernel::State &state, llvm::ArrayRef<KernelPlan> plans) {
  for (Way &way : state.ways)
    for (Step &step : way.steps) {
      Result<Module::Entry> entry = state.module->prepare(plans.front());
      if (!entry)
        return entry.takeStatus();
      step.function = entry->function;
      state.infos.push_back(std::move(entry->info));
      plans = plans.drop_front();
    }
  return {};
}

Status Kernel::launch(LaunchArguments arguments, void *stream, Workspace workspace) const {
  if (Status status = state->check(arguments); !status.ok())
    return status;
  const Driver &driver = state->context.getDriver();
  ContextScope scope(driver, state->context.get());
  if (scope.getCode() != cuda::Success)
    return driver.check(scope.getCode(), "enter the kernel's context");
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].getKind() == LaunchArgument::Kind::Tensor)
      if (Status status =
              checkMemory(driver, state->context.getInfo(), arguments[i].getTensor(), i);
          !status.ok())
        return status;
  Result<const Way *> way = state->choose(arguments);
  if (!way)
    return way.takeStatus();
  auto cudaStream = static_cast<cuda::Stream>(stream);
  if ((*way)->scratch.empty())
    return state->launch(**way, arguments, cudaStream);

  llvm::SmallVector<LaunchArgument, 16> all;
  for (size_t i = 0; i < arguments.size(); ++i)
    all.push_back(arguments[i]);
  Scratch scratch(driver, cudaStream);
  Status status = scratch.allocate((*way)->scratch, all, workspace);
  if (status.ok())
    status =
        state->launch(**way, std::span<const LaunchArgument>(all.data(), all.size()), cudaStream);
  // Also after a failure: an earlier kernel may still run, and the memory is behind it.
  Status released = scratch.release();
  return status.ok() ? released : status;
}

Result<size_t> Kernel::getWorkspaceBytes(LaunchArguments arguments) const {
  if (Status status = state->check(arguments); !status.ok())
    return status;
  Result<const Way *> way = state->choose(arguments);
  if (!way)
    return way.takeStatus();
  ScratchLayout layout;
  if (Status status = layout.compute((*way)->scratch, arguments); !status.ok())
    return status;
  return static_cast<size_t>(layout.bytes);
}

const DeviceInfo &Kernel::getDevice() const { return state->context.getInfo(); }
const std::vector<KernelInfo> &Kernel::getKernels() const { return state->infos; }
const std::vector<std::string> &Kernel::getWarnings() const {
  return state->module->getLog().warnings;
}

} // namespace attn
