//===- Target.cpp - the machine that options mean ---------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Target.h"
#include "lib/Runtime/Device.h"
#include "lib/Runtime/Driver.h"
#include "lib/Runtime/Module.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {

Status checkTargetName(const CompileOptions &options) {
  if (options.target.empty() || findMachine(options.target))
    return {};
  return {StatusCode::InvalidArgument,
          llvm::formatv("target: expected {0}, got '{1}'", listMachines(), options.target), ""};
}

const Machine &resolveMachine(const CompileOptions &options) {
  if (const Machine *machine = findMachine(options.target))
    return *machine;
  Result<const Driver *> driver = getDriver();
  if (!driver)
    return getDefaultMachine();
  Result<DeviceInfo> device = queryDevice(**driver, options.ordinal);
  if (device)
    for (const Machine *machine : getMachines())
      if (!machine->isUntried && checkTarget(machine->name.str(), *device).ok())
        return *machine;
  return getDefaultMachine();
}

} // namespace attn
