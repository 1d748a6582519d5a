//===- GPUPipeline.cpp - from room 3 to the threads of a GPU -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/GPUPipeline.h"
#include "lib/Conversion/AttnToTile/Passes.h"
#include "lib/Conversion/TileToNVVM/Passes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

static void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void attn::buildOnlineToTilePipeline(OpPassManager &pm) {
  pm.addPass(createConvertAttnToTilePass());
  addCleanup(pm);
}

void attn::buildTileToAsyncPipeline(OpPassManager &pm, const GPUPipelineOptions &options) {
  // Room 5: where.
  tile::PromoteOperandsPassOptions promote;
  promote.stages = options.stages;
  pm.addPass(tile::createPromoteOperandsPass(promote));
  pm.addPass(tile::createAssignLayoutsPass());
  addCleanup(pm);
  // Room 6: when.
  pm.addPass(tile::createSpecializeWarpsPass({options.stages}));
  addCleanup(pm);
}

void attn::buildAsyncToNVVMPipeline(OpPassManager &pm) {
  pm.addPass(createLowerAffinePass());
  addCleanup(pm);
  pm.addPass(createConvertTileToNVVMPass());
}

void attn::registerGPUPipelines() {
  PassPipelineRegistration<>("online-to-tile", "room 4: the program of one thread block",
                             [](OpPassManager &pm) { buildOnlineToTilePipeline(pm); });
  PassPipelineRegistration<GPUPipelineOptions>(
      "tile-to-async", "rooms 5 and 6: places, layouts, roles and barriers",
      [](OpPassManager &pm, const GPUPipelineOptions &options) { buildTileToAsyncPipeline(pm, options); });
  PassPipelineRegistration<>("async-to-nvvm", "room 7: the program of one thread",
                             [](OpPassManager &pm) { buildAsyncToNVVMPipeline(pm); });
}
