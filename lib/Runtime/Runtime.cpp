//===- Runtime.cpp - load and launch compiled kernels -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Runtime.h"
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

/// The module refers to the context, so neither moves, and they end in reverse order.
struct Kernel::State {
  explicit State(DeviceContext &&context) : context(std::move(context)) {}

  struct Step {
    cuda::Function function;
    LaunchRecipe recipe;
  };

  /// Starts the kernels in their context. `arguments` include scratch.
  Status launch(LaunchArguments arguments, cuda::Stream stream) const;

  DeviceContext context;
  std::optional<Module> module;
  /// The plan's kernels, in launch order.
  std::vector<Step> steps;
  ScratchRecipe scratch;
  std::vector<KernelInfo> infos;
  /// Those of a call, without scratch.
  size_t numArguments = 0;
};

Status Kernel::State::launch(LaunchArguments arguments, cuda::Stream stream) const {
  for (const Step &step : steps)
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

Result<Kernel> KernelLoader::load(const KernelImage &image, const FunctionPlan &whole,
                                  const LoadOptions &options) {
  const std::vector<KernelPlan> &plans = whole.kernels;
  if (plans.empty())
    return Status{StatusCode::InvalidKernel, "expected a plan with a kernel, got none", ""};

  // What needs no device comes first: a bad image is reported as such on every machine.
  std::vector<LaunchRecipe> recipes;
  for (const KernelPlan &plan : plans) {
    Result<LaunchRecipe> recipe = LaunchRecipe::create(plan);
    if (!recipe)
      return recipe.takeStatus();
    recipes.push_back(std::move(*recipe));
  }
  Result<ScratchRecipe> scratch = ScratchRecipe::create(plans);
  if (!scratch)
    return scratch.takeStatus();

  Result<DeviceContext> context = DeviceContext::open(options.device);
  if (!context)
    return context.takeStatus();
  for (const KernelPlan &plan : plans)
    if (Status status = checkTarget(plan.target, context->getInfo()); !status.ok())
      return status;
  if (Status status = scratch->checkDriver(context->getDriver()); !status.ok())
    return status;

  auto state = std::make_unique<Kernel::State>(std::move(*context));
  Result<Module> module = Module::load(state->context, image);
  if (!module)
    return module.takeStatus();
  state->module.emplace(std::move(*module));
  for (auto [plan, recipe] : llvm::zip_equal(plans, recipes)) {
    Result<Module::Entry> entry = state->module->prepare(plan);
    if (!entry)
      return entry.takeStatus();
    state->numArguments = std::max(state->numArguments, recipe.getNumArguments());
    state->steps.push_back({entry->function, std::move(recipe)});
    state->infos.push_back(std::move(entry->info));
  }
  if (!scratch->empty()) {
    if (state->numArguments > scratch->getFirstArgument() + scratch->size())
      return Status{StatusCode::InvalidKernel, "expected scratch behind all arguments of the plan",
                    ""};
    state->numArguments = scratch->getFirstArgument();
  }
  state->scratch = std::move(*scratch);
  return Kernel(std::move(state));
}

Status Kernel::launch(LaunchArguments arguments, void *stream) const {
  if (arguments.size() != state->numArguments)
    return {StatusCode::InvalidArgument,
            "expected " + std::to_string(state->numArguments) + " arguments, got " +
                std::to_string(arguments.size()),
            "pass the function's operands and then its results"};
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].getKind() == LaunchArgument::Kind::Tensor)
      if (Status status = checkShape(arguments[i].getTensor(), i); !status.ok())
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
  auto cudaStream = static_cast<cuda::Stream>(stream);
  if (state->scratch.empty())
    return state->launch(arguments, cudaStream);

  llvm::SmallVector<LaunchArgument, 16> all;
  for (size_t i = 0; i < arguments.size(); ++i)
    all.push_back(arguments[i]);
  Scratch scratch(driver, cudaStream);
  Status status = scratch.allocate(state->scratch, all);
  if (status.ok())
    status = state->launch(std::span<const LaunchArgument>(all.data(), all.size()), cudaStream);
  // Also after a failure: an earlier kernel may still run, and the memory is behind it.
  Status released = scratch.release();
  return status.ok() ? released : status;
}

const DeviceInfo &Kernel::getDevice() const { return state->context.getInfo(); }
const std::vector<KernelInfo> &Kernel::getKernels() const { return state->infos; }
const std::vector<std::string> &Kernel::getWarnings() const {
  return state->module->getLog().warnings;
}

} // namespace attn
