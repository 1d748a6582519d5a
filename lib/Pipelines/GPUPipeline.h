//===- GPUPipeline.h - from room 3 to the threads of a GPU -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_GPUPIPELINE_H
#define ATTN_LIB_PIPELINES_GPUPIPELINE_H

#include "lib/Pipelines/Pipelines.h"

namespace attn {

struct GPUPipelineOptions : mlir::PassPipelineOptions<GPUPipelineOptions> {
  Option<int64_t> stages{*this, "stages",
                         llvm::cl::desc("tiles of keys, and of values, that may be in flight"),
                         llvm::cl::init(2)};
};

/// Room 3 -> room 4: the program of one thread block, synchronous.
void buildOnlineToTilePipeline(mlir::OpPassManager &pm);
/// Room 5: places in shared memory, and layouts.
void buildTileToPlacedPipeline(mlir::OpPassManager &pm);
/// Rooms 5 and 6: places in shared memory, layouts, roles and barriers.
void buildTileToAsyncPipeline(mlir::OpPassManager &pm, const GPUPipelineOptions &options);
/// Room 7: the program of one thread.
void buildAsyncToNVVMPipeline(mlir::OpPassManager &pm);

/// The last room to enter on the way to a GPU.
enum class GPUDoor { Tile, Placed, Async, NVVM };

/// Rooms 1 to 7 for a GPU, whatever target `online` names; shows `visit` each door, stops at
/// `until`.
void buildToNVVMPipeline(mlir::OpPassManager &pm, const ToOnlineOptions &online,
                         const GPUPipelineOptions &gpu, GPUDoor until = GPUDoor::NVVM,
                         const DoorVisitor &visit = nullptr);

/// online-to-tile, tile-to-async, async-to-nvvm, and attn-to-nvvm for all of them, by name.
void registerGPUPipelines();

} // namespace attn

#endif // ATTN_LIB_PIPELINES_GPUPIPELINE_H
