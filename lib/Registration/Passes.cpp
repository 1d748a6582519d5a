//===- Passes.cpp - the passes that pipelines by hand may name --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Conversion/AttnToTile/Passes.h"
#include "lib/Conversion/AttnToVector/Passes.h"
#include "lib/Conversion/TileToNVVM/Passes.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Registration/Registration.h"
#include "lib/Rooms/Passes.h"
#include "lib/Simulator/Passes.h"
#include "lib/Target/PTX/Passes.h"
#include "lib/Transforms/Attn/Passes.h"
#include "lib/Transforms/CPU/Passes.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Transform/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace attn;

void attn::registerPasses() {
  registerAttnPasses();
  registerPipelines();
  registerReferencePipeline();
  registerRoomPasses();
  registerAttnToLinalgPasses();
  registerAttnToTilePasses();
  registerTileToNVVMPasses();
  registerAttnPTXPasses();
  registerAttnToVectorPasses();
  registerAttnCPUPasses();
  sim::registerSimulatorPasses();
  tile::registerTilePasses();
  mlir::registerTransformsPasses();
  mlir::registerLinalgPasses();
  memref::registerMemRefPasses();
  transform::registerTransformPasses();
  bufferization::registerBufferizationPasses();
  mlir::registerConversionPasses();
}
