//===- Passes.h - passes of rooms 1 to 3 ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_PASSES_H
#define ATTN_LIB_TRANSFORMS_ATTN_PASSES_H

#include "lib/Schedule/Schedule.h"
#include "mlir/Pass/Pass.h"

namespace attn {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Transforms/Attn/Passes.h.inc"

/// attn-make-ways and attn-set-schedule with the words that somebody has said.
std::unique_ptr<mlir::Pass> createMakeWaysPass(const MakeWaysPassOptions &options,
                                               const Overrides &said);
std::unique_ptr<mlir::Pass> createSetSchedulePass(const SetSchedulePassOptions &options,
                                                  const Overrides &said);
} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_PASSES_H
