//===- Way.cpp - one way to run a function ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/Way.h"
#include "lib/Runtime/Arguments.h"
#include <algorithm>

namespace attn {

void Way::bind(const DeviceInfo &device) {
  for (std::vector<ExtentRange> &ranges : when)
    for (ExtentRange &range : ranges)
      bindDevice(range.size, device);
}

size_t Way::countConditionArguments() const {
  size_t count = 0;
  for (const std::vector<ExtentRange> &ranges : when)
    for (const ExtentRange &range : ranges)
      count = std::max<size_t>({count, countArguments(range.size), countArguments(range.per)});
  return count;
}

static std::optional<bool> holds(const ExtentRange &range, LaunchArguments arguments) {
  std::optional<int64_t> size = evaluate(range.size, arguments),
                         per = evaluate(range.per, arguments);
  if (!size || !per)
    return std::nullopt;
  // Nothing is divided by no heads: such a call has no elements, whichever way it takes.
  int64_t quotient = *per > 0 ? (*size + *per - 1) / *per : 0;
  return range.least <= quotient && quotient <= range.most;
}

std::optional<bool> Way::isFor(LaunchArguments arguments) const {
  bool isForAny = when.empty();
  for (const std::vector<ExtentRange> &ranges : when) {
    bool isForAll = true;
    for (size_t i = 0; i < ranges.size() && isForAll; ++i) {
      std::optional<bool> does = holds(ranges[i], arguments);
      if (!does)
        return std::nullopt;
      isForAll = *does;
    }
    isForAny |= isForAll;
  }
  return isForAny;
}

Status Way::explain(LaunchArguments arguments) const {
  for (const std::vector<ExtentRange> &ranges : when)
    for (const ExtentRange &range : ranges)
      for (const SizeFactor *factor : {&range.size, &range.per})
        if (!evaluate(*factor, arguments))
          return explainNoTensor(*factor, arguments);
  return {};
}

Status Way::read(llvm::ArrayRef<KernelPlan> plans) {
  steps.clear();
  for (const KernelPlan &plan : plans) {
    Result<LaunchRecipe> recipe = LaunchRecipe::create(plan);
    if (!recipe)
      return recipe.takeStatus();
    steps.push_back({nullptr, std::move(*recipe), plan.isPlanning()});
  }
  Result<ScratchRecipe> made = ScratchRecipe::create(plans);
  if (!made)
    return made.takeStatus();
  scratch = std::move(*made);
  return {};
}

size_t Way::countStepArguments() const {
  size_t count = 0;
  for (const Step &step : steps)
    count = std::max(count, step.recipe.getNumArguments());
  return count;
}

size_t Way::countKernelArguments() const {
  return scratch.empty() ? countStepArguments() : scratch.getFirstArgument();
}

Status Way::checkArguments(size_t numArguments) const {
  bool isRight = countStepArguments() <= numArguments + scratch.size() &&
                 (scratch.empty() || scratch.getFirstArgument() == numArguments);
  return isRight ? Status()
                 : Status{StatusCode::InvalidKernel,
                          "expected scratch behind all arguments of the plan", ""};
}

Status Way::load(const DeviceContext &context, std::shared_ptr<const Module> loaded,
                 llvm::ArrayRef<KernelPlan> plans) {
  if (Status status = scratch.checkDriver(context.getDriver()); !status.ok())
    return status;
  scratch.bind(context.getInfo());
  infos.clear();
  for (Step &step : steps) {
    step.recipe.bind(context.getInfo());
    Result<Module::Entry> entry = loaded->prepare(plans.consume_front());
    if (!entry)
      return entry.takeStatus();
    step.function = entry->function;
    infos.push_back(std::move(entry->info));
  }
  module = std::move(loaded);
  ready.store(true, std::memory_order_release);
  return {};
}

Status Way::launch(const DeviceContext &context, LaunchArguments arguments, cuda::Stream stream,
                   bool isPlanned) const {
  for (const Step &step : steps) {
    if (isPlanned && step.isPlanning)
      continue;
    if (Status status = step.recipe.launch(context.getDriver(), step.function, arguments, stream);
        !status.ok())
      return status;
  }
  return {};
}

} // namespace attn
