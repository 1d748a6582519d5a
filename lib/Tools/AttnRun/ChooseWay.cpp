//===- ChooseWay.cpp - the kernels that a call takes ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Tools/AttnRun/ChooseWay.h"
#include "lib/Runtime/Way.h"

using namespace llvm;

namespace attn {

std::string chooseWay(ArrayRef<WayPlan> ways, const Binding &binding, const DeviceInfo &device) {
  std::vector<LaunchArgument> arguments;
  auto add = [&](ArrayRef<int64_t> shape) {
    TensorView view;
    view.rank = int32_t(shape.size());
    view.shape = shape.data();
    arguments.push_back(view);
  };
  for_each(binding.arguments, add);
  for_each(binding.results, add);
  for (const WayPlan &plan : ways) {
    Way way(plan.name, plan.when);
    way.bind(device);
    if (way.isFor(arguments).value_or(false))
      return plan.name;
  }
  return "";
}

} // namespace attn
