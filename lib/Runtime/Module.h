//===- Module.h - PTX on a device -------------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_RUNTIME_MODULE_H
#define ATTN_LIB_RUNTIME_MODULE_H

#include "lib/Plan/KernelPlan.h"
#include "lib/Runtime/Device.h"
#include "lib/Runtime/JitLog.h"

namespace attn {

/// The code of one image, loaded into one context.
class Module {
public:
  /// Assembles and loads. The context must outlive the module.
  ///
  /// cuModuleLoadDataEx assembles whole programs. The linker API (cuLinkAddData) is never used: it
  /// assembles relocatable code, which ignores setmaxnreg and spills the accumulators.
  static Result<Module> load(const DeviceContext &context, const KernelImage &image);

  Module(Module &&other);
  Module &operator=(Module &&) = delete;
  ~Module();

  struct Entry {
    cuda::Function function = nullptr;
    KernelInfo info;
  };
  /// Finds the entry of a plan, checks that the device has room for it, raises its limit of dynamic
  /// shared memory, and brings its code onto the device, so that launches need not.
  Result<Entry> prepare(const KernelPlan &plan) const;

  /// Empty when the driver had the code in its own cache.
  const JitLog &getLog() const { return log; }

private:
  Module(const DeviceContext &context, cuda::Module module) : context(&context), module(module) {}
  const DeviceContext *context;
  cuda::Module module;
  JitLog log;
};

/// Ok when the device runs code for the architecture `target`, e.g. "sm_90a".
Status checkTarget(std::string_view target, const DeviceInfo &device);

} // namespace attn

#endif // ATTN_LIB_RUNTIME_MODULE_H
