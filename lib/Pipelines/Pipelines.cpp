//===- Pipelines.cpp - the table of contents of the compiler -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/Pipelines.h"
#include "lib/Conversion/AttnToTile/Passes.h"
#include "lib/Conversion/AttnToVector/Passes.h"
#include "lib/Conversion/TileToNVVM/Passes.h"
#include "lib/Pipelines/BuffersToLLVM.h"
#include "lib/Rooms/Passes.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/CPU/Passes.h"
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

static bool isOnGPU(const PipelineOptions &options) { return options.target != "cpu"; }

/// Whether the target is one kind of GPU, and not whichever the program names.
static bool namesMachine(const PipelineOptions &options) {
  return isOnGPU(options) && options.target != "cuda";
}

/// The whole road, top to bottom, in one piece: a table of contents. Passes check their doors
/// themselves.
static void addRoom(OpPassManager &pm, Room room, const PipelineOptions &options) {
  bool isForGPU = isOnGPU(options);
  switch (room) {
  case Room::Problem: // What attention is.
    if (namesMachine(options))
      pm.addPass(createSetTargetPass({options.target}));
    pm.addPass(createFoldScalesPass());
    if (isForGPU)
      pm.addPass(createGeneralizeExtentsPass());
    pm.addPass(createExpandVariantsPass());
    if (isForGPU)
      pm.addPass(createWidenIndicesPass());
    pm.addPass(createDeriveScorePass());
    // A CPU takes either form by what it finds at run time (attn-cpu-fuse-gradients).
    pm.addPass(createSplitGradPass({!isForGPU || options.fused ? "fused" : "two-pass"}));
    if (isForGPU)
      pm.addPass(createMakeWaysPass({options.way, options.pack}, options.schedule.get()));
    pm.addPass(createSetSchedulePass(
        {isForGPU ? "cuda" : "cpu", options.lanes, options.bf16Dot, options.search},
        options.schedule.get()));
    if (isForGPU && (options.way == "auto" || options.way == "groups"))
      pm.addPass(createMakeGroupWaysPass({/*allCalls=*/options.way == "groups"}));
    return addCleanup(pm);
  case Room::Grid: // One grid of blocks.
    pm.addPass(createTileToGridPass());
    return addCleanup(pm);
  case Room::Online: // The online softmax, over the key tiles that matter.
    pm.addPass(createOnlineSoftmaxPass());
    addCleanup(pm);
    if (isForGPU)
      pm.addPass(createSplitGroupsPass());
    pm.addPass(createSplitKVPass());
    addCleanup(pm);
    pm.addPass(createTileKVLoopPass());
    addCleanup(pm);
    if (isForGPU)
      pm.addPass(createListTilesPass());
    pm.addPass(createPruneMaskedTilesPass({/*certainFirst=*/isForGPU}));
    addCleanup(pm);
    if (!isForGPU)
      return;
    pm.addPass(createHoistSearchesPass());
    return addCleanup(pm);
  case Room::Tile: // What one thread block does.
    pm.addPass(createConvertAttnToTilePass());
    addCleanup(pm);
    pm.addPass(tile::createSplitProductsPass());
    // Sums of gradients that nobody asked for.
    pm.addPass(createRemoveDeadValuesPass());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(tile::createFoldFactorsPass());
    pm.addPass(tile::createAssignDelaysPass());
    pm.addPass(tile::createPipelineStepsPass());
    return pm.addPass(tile::createPersistBlocksPass());
  case Room::Placed: // Where.
    pm.addPass(tile::createPromoteOperandsPass());
    pm.addPass(tile::createAssignLayoutsPass());
    pm.addPass(tile::createKeepOperandsPass());
    return addCleanup(pm);
  case Room::Async: // When, and by whom.
    pm.addPass(tile::createDivideSumsPass());
    pm.addPass(tile::createAssignRolesPass());
    pm.addPass(tile::createMakeRingsPass());
    pm.addPass(tile::createOverlapMmaPass());
    pm.addPass(tile::createStageAdditionsPass());
    pm.addPass(tile::createSkipFactorsPass());
    pm.addPass(tile::createRunAheadPass());
    pm.addPass(tile::createOutlineRolesPass());
    pm.addPass(tile::createPlaceSumsPass());
    addCleanup(pm);
    pm.addPass(tile::createAllocateSharedPass());
    pm.addPass(tile::createOverlapLaunchesPass());
    // Each pass does a part of the room's work; what follows takes programs by hand too.
    return pm.addPass(createVerifyRoomPass({getInfo(Room::Async).name.str()}));
  case Room::Thread: // What one thread does.
    pm.addPass(createLowerAffinePass());
    addCleanup(pm);
    return pm.addPass(createConvertTileToNVVMPass());
  case Room::Buffers: // Where, on a CPU.
    pm.addPass(createCPUPlaceResultsPass());
    pm.addPass(createCPUReadViewsPass());
    pm.addPass(createCPUAppendDestinationsPass());
    pm.addPass(createCPUBufferizePass());
    // Removes copies of a buffer to itself and loop-carried buffers that the loop only passes on.
    pm.addPass(createCSEPass());
    pm.addPass(createCanonicalizerPass());
    pm.addPass(createCPUFuseGradientsPass());
    return pm.addPass(createCPUBoundBuffersPass());
  case Room::Vectors: // What one core does.
    pm.addPass(createConvertAttnToVectorPass({unsigned(options.lanes), options.bf16Dot}));
    pm.addPass(createCPUOutlineForallPass());
    pm.addPass(createCPUExpandMathPass());
    return pm.addPass(createLoopInvariantCodeMotionPass());
  case Room::LLVM:
    return addBuffersToLLVM(pm);
  case Room::PTX:
  case Room::LLVMIR:
  case Room::Assembly:
    return; // lib/Target writes text.
  }
}

void attn::buildPipeline(OpPassManager &pm, const PipelineOptions &options, Room first, Room last,
                         const DoorVisitor &visit) {
  RoomDevice device = isOnGPU(options) ? RoomDevice::CUDA : RoomDevice::CPU;
  for (const RoomInfo &info : getRooms())
    if (info.isOnTheWayTo(device) && first <= info.room && info.room <= last) {
      addRoom(pm, info.room, options);
      addVisit(pm, info.name, visit);
    }
}

void attn::buildPipeline(OpPassManager &pm, const PipelineOptions &options, Room last,
                         const DoorVisitor &visit) {
  buildPipeline(pm, options, Room::Problem, last, visit);
}

/// One that begins with the problem, and so with what options say.
static void registerStretch(StringRef name, StringRef description, Room last) {
  PassPipelineRegistration<PipelineOptions>(
      name, description, [=](OpPassManager &pm, const PipelineOptions &given) {
        PipelineOptions options;
        options.copyOptionValuesFrom(given);
        if (getInfo(last).device == RoomDevice::CUDA && !isOnGPU(options))
          options.target = "cuda";
        buildPipeline(pm, options, last);
      });
}

/// A later one on the way to a GPU: what it has to know stands in the IR.
static void registerGPUStretch(StringRef name, StringRef description, Room first, Room last) {
  PassPipelineRegistration<>(name, description, [=](OpPassManager &pm) {
    PipelineOptions options;
    options.target = "cuda";
    buildPipeline(pm, options, first, last);
  });
}

void attn::registerPipelines() {
  registerStretch("attn-to-online", "rooms 1 to 3: problem to the online softmax", Room::Online);
  registerStretch("attn-to-thread", "rooms 1 to 7: problem to the program of one thread",
                  Room::Thread);
  registerGPUStretch("online-to-tile", "room 4: the program of one thread block", Room::Tile,
                     Room::Tile);
  registerGPUStretch("tile-to-async", "rooms 5 and 6: places, layouts, roles and barriers",
                     Room::Placed, Room::Async);
  registerGPUStretch("async-to-thread", "room 7: the program of one thread", Room::Thread,
                     Room::Thread);
}
