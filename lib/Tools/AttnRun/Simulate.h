//===- Simulate.h - runs the GPU's kernel without a GPU ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_SIMULATE_H
#define ATTN_LIB_TOOLS_ATTNRUN_SIMULATE_H

#include "lib/Simulator/Timeline.h"
#include "lib/Tools/AttnRun/Report.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// `--device=sim`: lowers the module, in place, to room 6 for the GPU. Then it runs every block of
/// the kernels with as many seeds of random times as the options say, the first of them with
/// numbers, and predicts the time by the cost model. With `options.predict` it only predicts;
/// arrays may then be without data. Findings and the prediction go into the report, and the spans
/// of the block that takes longest into `timeline`, if it is given. `source` names arguments.
llvm::Error simulate(mlir::ModuleOp module, const Source &source, const Binding &binding,
                     llvm::ArrayRef<ArgumentValue> inputs, llvm::MutableArrayRef<Array> outputs,
                     const RunOptions &options, Report &report, sim::Timeline *timeline = nullptr);

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_SIMULATE_H
