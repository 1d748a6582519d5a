//===- Passes.td - the simulator as a pass ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_PASSES_TD
#define ATTN_SIMULATOR_PASSES_TD

include "mlir/Pass/PassBase.td"

def SimulatePass : Pass<"tile-simulate", "::mlir::ModuleOp"> {
  let summary = "runs kernels on random times and reports races, deadlocks and broken budgets";
  let description = [{
    Every kernel of the module runs once for each seed, with all blocks of the grid in an order that
    the seed chooses. Arguments are made up: `shapes` gives the extents of memory arguments in
    order, and `scalars` the other arguments. Floats are random, integers 0. Each finding is an
    error at one party, with notes at the others. With `predict`, a remark tells the time that the
    cost model gives for the grid.

    Requires: a part of room 6 `async`. Produces: a part of room 6 `async`, the same. Fails when:
    there is a finding, or an op that the simulator does not know.
  }];
  let options = [
    ListOption<"shapes", "shapes", "std::string", "extents of memory arguments: 1x2x256x64,...">,
    ListOption<"scalars", "scalars", "double", "values of scalar arguments">,
    Option<"seeds", "seeds", "unsigned", "8", "seeds of random times">,
    Option<"firstSeed", "first-seed", "uint64_t", "0", "the first of them">,
    Option<"numbers", "numbers", "bool", "true", "compute values with the first seed">,
    Option<"predict", "predict", "bool", "false", "predict the time of the grid">,
    Option<"maxWork", "max-work", "int64_t", "0",
      "what all blocks of a run may do, 64 an instruction and 1 an element of a tile (0: any)">,
    Option<"timeline", "timeline", "std::string", "\"\"",
      "write the longest block's schedule: .json or .svg">];
}

#endif // ATTN_SIMULATOR_PASSES_TD
