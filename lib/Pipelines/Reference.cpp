//===- Reference.cpp - the definition of attention, executable --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Pipelines/BuffersToLLVM.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

void attn::buildToReferencePipeline(OpPassManager &pm, int64_t blockRows) {
  pm.addPass(createExpandVariantsPass());
  pm.addPass(createDeriveScorePass());
  pm.addPass(createReturnF64Pass());
  if (blockRows > 0) {
    Overrides said;
    said.set(&Schedule::blockM, blockRows);
    pm.addPass(createSetSchedulePass(SetSchedulePassOptions(), said));
    pm.addPass(createTileToGridPass());
  }
  pm.addPass(createConvertAttnToLinalgPass({/*f64=*/true}));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void attn::buildReferenceToLLVMPipeline(OpPassManager &pm) {
  pm.addPass(createCPUAppendDestinationsPass());
  pm.addPass(createCPUBufferizePass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCPUBoundBuffersPass({/*heap=*/true}));
  pm.addPass(createConvertLinalgToLoopsPass());
  pm.addPass(createCPUOutlineForallPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  addBuffersToLLVM(pm);
}

namespace {
struct ToReferenceOptions : PassPipelineOptions<ToReferenceOptions> {
  Option<int64_t> blockRows{*this, "block-rows", llvm::cl::desc("query rows at a time; 0: all"),
                            llvm::cl::init(0)};
};
} // namespace

void attn::registerReferencePipeline() {
  PassPipelineRegistration<ToReferenceOptions>(
      "attn-to-reference", "the definition in f64, as linalg on tensors",
      [](OpPassManager &pm, const ToReferenceOptions &options) {
        buildToReferencePipeline(pm, options.blockRows);
      });
}
