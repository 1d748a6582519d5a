//===- Way.h - one way to run a function -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Kernels that hand results to each other, and the calls that they are for. A way is loaded when
// the function is, or when a call first takes it: then one thread loads, and others that need the
// way wait. A way that is ready does not change.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_WAY_H
#define ATTN_LIB_RUNTIME_WAY_H

#include "lib/Runtime/Launch.h"
#include "lib/Runtime/Module.h"
#include "lib/Runtime/Scratch.h"
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace attn {

class Way {
public:
  Way(std::string name, WayConditions when) : name(std::move(name)), when(std::move(when)) {}

  const std::string &getName() const { return name; }
  /// Decides what the device decides. Once, before the first call.
  void bind(const DeviceInfo &device);
  /// One more than the highest argument of the conditions.
  size_t countConditionArguments() const;
  /// Whether it is for a call; none for a call without the tensors that the conditions name, which
  /// `explain` tells.
  std::optional<bool> isFor(LaunchArguments arguments) const;
  Status explain(LaunchArguments arguments) const;

  /// Reads the plans of its kernels: what needs no device, so that a bad image is reported as such
  /// on every machine. `numArguments` are those of a call, without scratch.
  Status read(llvm::ArrayRef<KernelPlan> plans);
  size_t countKernelArguments() const;
  Status checkArguments(size_t numArguments) const;
  /// Finds the functions in the module, which others may share, and makes the way ready.
  Status load(const DeviceContext &context, std::shared_ptr<const Module> module,
              llvm::ArrayRef<KernelPlan> plans);

  bool isReady() const { return ready.load(std::memory_order_acquire); }
  /// Held by who makes the way ready.
  std::mutex &getMutex() const { return mutex; }

  /// Of a way that is ready. `arguments` include scratch. Of a launch that is planned scratch has
  /// what planning kernels make.
  Status launch(const DeviceContext &context, LaunchArguments arguments, cuda::Stream stream,
                bool isPlanned = false) const;
  const ScratchRecipe &getScratch() const { return scratch; }
  llvm::ArrayRef<KernelInfo> getKernels() const { return infos; }
  llvm::ArrayRef<std::string> getWarnings() const { return module->getLog().warnings; }
  const Module *getModule() const { return module.get(); }

private:
  struct Step {
    cuda::Function function;
    LaunchRecipe recipe;
    bool isPlanning = false;
  };
  /// The most that a kernel takes, with scratch.
  size_t countStepArguments() const;

  std::string name;
  WayConditions when;
  /// In launch order.
  std::vector<Step> steps;
  ScratchRecipe scratch;
  std::shared_ptr<const Module> module;
  std::vector<KernelInfo> infos;
  std::atomic<bool> ready{false};
  mutable std::mutex mutex;
};

} // namespace attn

#endif // ATTN_LIB_RUNTIME_WAY_H
