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
using namespace attn;

static void addCleanup(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void attn::buildOnlineToTilePipeline(OpPassManager &pm) {
  pm.addPass(createConvertAttnToTilePass());
  addCleanup(pm);
  pm.addPass(tile::createPipelineStepsPass());
}

void attn::buildTileToPlacedPipeline(OpPassManager &pm) {
  pm.addPass(tile::createPromoteOperandsPass());
  pm.addPass(tile::createAssignLayoutsPass());
  addCleanup(pm);
}

/// Room 6: when.
static void buildPlacedToAsyncPipeline(OpPassManager &pm, const GPUPipelineOptions &options) {
  pm.addPass(tile::createAssignRolesPass());
  pm.addPass(tile::createMakeRingsPass({options.stages}));
  pm.addPass(tile::createOverlapMmaPass());
  pm.addPass(tile::createOutlineRolesPass());
  addCleanup(pm);
  pm.addPass(tile::createAllocateSharedPass());
}

void attn::buildTileToAsyncPipeline(OpPassManager &pm, const GPUPipelineOptions &options) {
  buildTileToPlacedPipeline(pm);
  buildPlacedToAsyncPipeline(pm, options);
}

void attn::buildAsyncToNVVMPipeline(OpPassManager &pm) {
  pm.addPass(createLowerAffinePass());
  addCleanup(pm);
  pm.addPass(createConvertTileToNVVMPass());
}

void attn::buildToNVVMPipeline(OpPassManager &pm, const ToOnlineOptions &online,
                               const GPUPipelineOptions &gpu, GPUDoor until,
                               const DoorVisitor &visit) {
  ToOnlineOptions problem;
  problem.copyOptionValuesFrom(online);
  problem.target = "cuda";
  buildToOnlinePipeline(pm, problem, Door::Online, visit);
  buildOnlineToTilePipeline(pm);
  addVisit(pm, "tile", visit);
  if (until == GPUDoor::Tile)
    return;
  buildTileToPlacedPipeline(pm);
  addVisit(pm, "placed", visit);
  if (until == GPUDoor::Placed)
    return;
  buildPlacedToAsyncPipeline(pm, gpu);
  addVisit(pm, "async", visit);
  if (until == GPUDoor::Async)
    return;
  buildAsyncToNVVMPipeline(pm);
  addVisit(pm, "nvvm", visit);
}

namespace {
/// The options of attn-to-nvvm: those of rooms 1 to 3 that mean something for a GPU, and those of
/// rooms 5 and 6.
struct ToNVVMOptions : PassPipelineOptions<ToNVVMOptions> {
  Option<int64_t> blockM{*this, "block-m",
                         llvm::cl::desc("query rows of a block; 0: the target's rule"),
                         llvm::cl::init(0)};
  Option<int64_t> blockN{*this, "block-n", llvm::cl::desc("keys of a step; 0: the target's rule"),
                         llvm::cl::init(0)};
  Option<int64_t> splits{*this, "splits",
                         llvm::cl::desc("parts the keys of a block are split into"),
                         llvm::cl::init(1)};
  Option<int64_t> stages{*this, "stages",
                         llvm::cl::desc("tiles of keys, and of values, that may be in flight"),
                         llvm::cl::init(2)};
};
} // namespace

void attn::registerGPUPipelines() {
  PassPipelineRegistration<ToNVVMOptions>("attn-to-nvvm",
                                          "rooms 1 to 7: problem to the program of one thread",
                                          [](OpPassManager &pm, const ToNVVMOptions &options) {
                                            ToOnlineOptions online;
                                            copyScheduleOptions(options, online);
                                            GPUPipelineOptions gpu;
                                            gpu.stages = options.stages;
                                            buildToNVVMPipeline(pm, online, gpu);
                                          });
  PassPipelineRegistration<>("online-to-tile", "room 4: the program of one thread block",
                             [](OpPassManager &pm) { buildOnlineToTilePipeline(pm); });
  PassPipelineRegistration<GPUPipelineOptions>(
      "tile-to-async", "rooms 5 and 6: places, layouts, roles and barriers",
      [](OpPassManager &pm, const GPUPipelineOptions &options) {
        buildTileToAsyncPipeline(pm, options);
      });
  PassPipelineRegistration<>("async-to-nvvm", "room 7: the program of one thread",
                             [](OpPassManager &pm) { buildAsyncToNVVMPipeline(pm); });
}
