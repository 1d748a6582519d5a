//===- Pipelines.cpp - the table of contents of the compiler -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/Pipelines.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

static void addDoor(OpPassManager &pm, StringRef level) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyLevelPass({level.str()}));
}

void attn::buildToOnlinePipeline(OpPassManager &pm, const ToOnlineOptions &options, Door until,
                                 const DoorVisitor &visit) {
  // Room 1: what attention is.
  pm.addPass(createVerifyLevelPass({"problem"}));
  if (options.target == "cuda")
    pm.addPass(createGeneralizeExtentsPass());
  pm.addPass(createExpandVariantsPass());
  pm.addPass(createSetSchedulePass({options.target, options.lanes, options.bf16Dot, options.blockM,
                                    options.blockN, options.splits}));
  addDoor(pm, "problem");
  addVisit(pm, "problem", visit);
  if (until == Door::Problem)
    return;

  // Room 2: one grid of blocks.
  pm.addPass(createTileToGridPass());
  addDoor(pm, "grid");
  addVisit(pm, "grid", visit);
  if (until == Door::Grid)
    return;

  // Room 3: the online softmax, over the key tiles that matter.
  pm.addPass(createOnlineSoftmaxPass());
  addDoor(pm, "online");
  pm.addPass(createSplitKVPass());
  addDoor(pm, "online");
  pm.addPass(createTileKVLoopPass());
  addDoor(pm, "online");
  pm.addPass(createPruneMaskedTilesPass({/*certainFirst=*/options.target == "cuda"}));
  addDoor(pm, "online");
  addVisit(pm, "online", visit);
}

void attn::buildToReferencePipeline(OpPassManager &pm, int64_t blockRows) {
  pm.addPass(createVerifyLevelPass({"problem"}));
  pm.addPass(createExpandVariantsPass());
  pm.addPass(createReturnF64Pass());
  if (blockRows > 0) {
    SetSchedulePassOptions schedule;
    schedule.blockM = blockRows;
    pm.addPass(createSetSchedulePass(schedule));
    pm.addPass(createTileToGridPass());
  }
  pm.addPass(createConvertAttnToLinalgPass({/*f64=*/true}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

namespace {
struct ToReferenceOptions : PassPipelineOptions<ToReferenceOptions> {
  Option<int64_t> blockRows{*this, "block-rows", llvm::cl::desc("query rows at a time; 0: all"),
                            llvm::cl::init(0)};
};
} // namespace

void attn::registerAttnPipelines() {
  PassPipelineRegistration<ToOnlineOptions>("attn-to-online",
                                            "rooms 1 to 3: problem to the online softmax",
                                            [](OpPassManager &pm, const ToOnlineOptions &options) {
                                              buildToOnlinePipeline(pm, options);
                                            });
  PassPipelineRegistration<ToReferenceOptions>(
      "attn-to-reference", "the definition in f64, as linalg on tensors",
      [](OpPassManager &pm, const ToReferenceOptions &options) {
        buildToReferencePipeline(pm, options.blockRows);
      });
}
