//===- Passes.h - the simulator as a pass -----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PASSES_H
#define ATTN_LIB_SIMULATOR_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn::sim {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Simulator/Passes.h.inc"
} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_PASSES_H
