//===- Runtime.cpp - load and launch compiled kernels -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Runtime.h"
#include "lib/Runtime/Arguments.h"
#include "lib/Runtime/KernelLoader.h"
#include "lib/Runtime/Scratch.h"
#include "lib/Runtime/Way.h"
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

/// Ways refer to the context, so neither moves, and they end in reverse order.
struct Kernel::State {
  explicit State(DeviceContext &&context) : context(std::move(context)) {}

  /// That the arguments are as many as the function's, and have shapes.
  Status check(LaunchArguments arguments) const;
  /// The way for a call.
  Result<Way *> choose(LaunchArguments arguments) const;
  /// Makes a way ready, in its context.
  Status makeReady(Way &way) const;
  /// The way for a call, ready.
  Result<Way *> prepare(LaunchArguments arguments) const;

  DeviceContext context;
  /// In the order of the plan; the last is for all calls.
  std::vector<std::unique_ptr<Way>> ways;
  /// Where ways come from that are not loaded yet.
  WaySource source;
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

Result<Way *> Kernel::State::choose(LaunchArguments arguments) const {
  for (const std::unique_ptr<Way> &way : ways) {
    std::optional<bool> isFor = way->isFor(arguments);
    if (!isFor)
      return way->explain(arguments);
    if (*isFor)
      return way.get();
  }
  return ways.back().get();
}

Status Kernel::State::makeReady(Way &way) const {
  std::lock_guard lock(way.getMutex());
  if (way.isReady())
    return {};
  ContextScope scope(context.getDriver(), context.get());
  if (scope.getCode() != cuda::Success)
    return context.getDriver().check(scope.getCode(), "enter the kernel's context");
  Result<WayCode> code = source(way.getName());
  if (!code)
    return code.takeStatus();
  if (Status status = way.read(code->kernels); !status.ok())
    return status;
  if (Status status = way.checkArguments(numArguments); !status.ok())
    return status;
  Result<Module> module = Module::load(context, *code->image);
  if (!module)
    return module.takeStatus();
  return way.load(context, std::make_shared<const Module>(std::move(*module)), code->kernels);
}

Result<Way *> Kernel::State::prepare(LaunchArguments arguments) const {
  Result<Way *> way = choose(arguments);
  if (!way || (*way)->isReady())
    return way;
  if (Status status = makeReady(**way); !status.ok())
    return status;
  return way;
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

/// A function on a device, without ways.
static Result<DeviceContext> openFor(const FunctionPlan &plan, const LoadOptions &options) {
  Result<DeviceContext> context = DeviceContext::open(options.device);
  if (!context)
    return context.takeStatus();
  for (const KernelPlan &kernel : plan.kernels)
    if (Status status = checkTarget(kernel.target, context->getInfo()); !status.ok())
      return status;
  return context;
}

Result<Kernel> KernelLoader::load(const KernelImage &image, const FunctionPlan &plan,
                                  const LoadOptions &options) {
  if (plan.kernels.empty())
    return refusePlan("expected a plan with a kernel, got none");
  if (!plan.kernels.back().when.empty())
    return refusePlan("expected the last kernel of the plan to be for all calls, got '" +
                      plan.kernels.back().name + "' for some");

  // What needs no device comes first: a bad image is reported as such on every machine.
  std::vector<std::pair<std::unique_ptr<Way>, llvm::ArrayRef<KernelPlan>>> ways;
  size_t numArguments = 0;
  for (llvm::ArrayRef<KernelPlan> rest = plan.kernels; !rest.empty();) {
    llvm::ArrayRef<KernelPlan> plans = takeWay(rest);
    rest = rest.drop_front(plans.size());
    auto way = std::make_unique<Way>(plans.front().way, plans.front().when);
    if (Status status = way->read(plans); !status.ok())
      return status;
    numArguments =
        std::max({numArguments, way->countKernelArguments(), way->countConditionArguments()});
    ways.emplace_back(std::move(way), plans);
  }
  for (const auto &[way, plans] : ways)
    if (Status status = way->checkArguments(numArguments); !status.ok())
      return status;

  Result<DeviceContext> context = openFor(plan, options);
  if (!context)
    return context.takeStatus();
  auto state = std::make_unique<Kernel::State>(std::move(*context));
  state->numArguments = numArguments;
  Result<Module> loaded = Module::load(state->context, image);
  if (!loaded)
    return loaded.takeStatus();
  auto module = std::make_shared<const Module>(std::move(*loaded));
  for (auto &[way, plans] : ways) {
    way->bind(state->context.getInfo());
    if (Status status = way->load(state->context, module, plans); !status.ok())
      return status;
    state->ways.push_back(std::move(way));
  }
  return Kernel(std::move(state));
}

Result<Kernel> KernelLoader::open(const FunctionPlan &plan, const LoadOptions &options,
                                  WaySource source) {
  if (!plan.rules)
    return refusePlan("expected a plan with the rules of calls, got none");
  if (plan.ways.empty() || !plan.ways.back().when.empty())
    return refusePlan("expected the last way of the plan to be for all calls");
  Result<DeviceContext> context = openFor(plan, options);
  if (!context)
    return context.takeStatus();
  auto state = std::make_unique<Kernel::State>(std::move(*context));
  state->numArguments = plan.rules->values.size();
  state->source = std::move(source);
  for (const WayPlan &each : plan.ways) {
    auto way = std::make_unique<Way>(each.name, each.when);
    if (way->countConditionArguments() > state->numArguments)
      return refusePlan("expected conditions on the arguments of the function");
    way->bind(state->context.getInfo());
    state->ways.push_back(std::move(way));
  }
  return Kernel(std::move(state));
}

Status KernelLoader::prepareLast(const Kernel &kernel) {
  return kernel.state->makeReady(*kernel.state->ways.back());
}

/// That a call may wait for a compiler: one that is captured would leave that out of its graph.
static Status checkNotCaptured(const Driver &driver, const Way &way, cuda::Stream stream) {
  cuda::CaptureStatus status = cuda::CaptureNone;
  if (driver.StreamIsCapturing(stream, &status) == cuda::Success && status == cuda::CaptureNone)
    return {};
  std::string name = way.getName().empty() ? "of most calls" : "'" + way.getName() + "'";
  return {StatusCode::CaptureInProgress,
          "expected the way " + name +
              " of this call to be ready before the stream is captured, got a capture",
          "call prepare() with tensors of these shapes, or run the call once, before the capture"};
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
  Result<Way *> found = state->choose(arguments);
  if (!found)
    return found.takeStatus();
  Way &way = **found;
  auto cudaStream = static_cast<cuda::Stream>(stream);
  if (!way.isReady()) {
    if (Status status = checkNotCaptured(driver, way, cudaStream); !status.ok())
      return status;
    if (Status status = state->makeReady(way); !status.ok())
      return status;
  }
  if (way.getScratch().empty())
    return way.launch(state->context, arguments, cudaStream);

  if (workspace.isPlanned && !workspace.data)
    return {StatusCode::InvalidArgument, "expected a workspace that a call has planned, got none",
            "run once with this workspace, without saying that it is planned"};
  llvm::SmallVector<LaunchArgument, 16> all;
  for (size_t i = 0; i < arguments.size(); ++i)
    all.push_back(arguments[i]);
  Scratch scratch(driver, cudaStream);
  Status status = scratch.allocate(way.getScratch(), all, workspace);
  if (status.ok())
    status = way.launch(state->context, std::span<const LaunchArgument>(all.data(), all.size()),
                        cudaStream, workspace.isPlanned);
  // Also after a failure: an earlier kernel may still run, and the memory is behind it.
  Status released = scratch.release();
  return status.ok() ? released : status;
}

Result<size_t> Kernel::getWorkspaceBytes(LaunchArguments arguments) const {
  if (Status status = state->check(arguments); !status.ok())
    return status;
  Result<Way *> way = state->prepare(arguments);
  if (!way)
    return way.takeStatus();
  ScratchLayout layout;
  if (Status status = layout.compute((*way)->getScratch(), arguments); !status.ok())
    return status;
  return static_cast<size_t>(layout.bytes);
}

Status Kernel::prepare(LaunchArguments arguments) const {
  if (Status status = state->check(arguments); !status.ok())
    return status;
  Result<Way *> way = state->prepare(arguments);
  return way ? Status() : way.takeStatus();
}

Status Kernel::prepare() const {
  for (const std::unique_ptr<Way> &way : state->ways)
    if (Status status = state->makeReady(*way); !status.ok())
      return status;
  return {};
}

Result<std::string> Kernel::chooseWay(LaunchArguments arguments) const {
  if (Status status = state->check(arguments); !status.ok())
    return status;
  Result<Way *> way = state->choose(arguments);
  if (!way)
    return way.takeStatus();
  return (*way)->getName();
}

std::vector<WayInfo> Kernel::getWays() const {
  std::vector<WayInfo> infos;
  for (const std::unique_ptr<Way> &way : state->ways)
    infos.push_back({way->getName(), way->isReady()});
  return infos;
}

const DeviceInfo &Kernel::getDevice() const { return state->context.getInfo(); }

std::vector<KernelInfo> Kernel::getKernels() const {
  std::vector<KernelInfo> infos;
  for (const std::unique_ptr<Way> &way : state->ways)
    if (way->isReady())
      llvm::append_range(infos, way->getKernels());
  return infos;
}

std::vector<std::string> Kernel::getWarnings() const {
  std::vector<std::string> warnings;
  const Module *before = nullptr;
  for (const std::unique_ptr<Way> &way : state->ways)
    if (way->isReady() && way->getModule() != std::exchange(before, way->getModule()))
      llvm::append_range(warnings, way->getWarnings());
  return warnings;
}

} // namespace attn
