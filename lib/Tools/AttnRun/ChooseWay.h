//===- ChooseWay.h - the kernels that a call takes --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_CHOOSEWAY_H
#define ATTN_LIB_TOOLS_ATTNRUN_CHOOSEWAY_H

#include "attn/Runtime.h"
#include "lib/Plan/KernelPlan.h"
#include "lib/Tools/AttnRun/Binding.h"

namespace attn {

/// The name of the way that a call with such extents takes on a device, as the runtime chooses it.
std::string chooseWay(llvm::ArrayRef<WayPlan> ways, const Binding &binding,
                      const DeviceInfo &device);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_CHOOSEWAY_H
