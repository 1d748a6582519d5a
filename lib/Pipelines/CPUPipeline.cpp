//===- CPUPipeline.cpp - from room 3 to the LLVM dialect of the CPU -----------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Pipelines/CPUPipeline.h"
#include "lib/Conversion/AttnToVector/Passes.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::buildOnlineToVectorPipeline(OpPassManager &pm, const CPUPipelineOptions &options) {
  pm.addPass(createCPUAppendDestinationsPass());
  pm.addPass(createCPUBufferizePass());
  // Removes copies of a buffer to itself and loop-carried buffers that the loop only passes on.
  pm.addPass(createCSEPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCPUBoundBuffersPass());
  ConvertAttnToVectorPassOptions vector;
  vector.lanes = options.lanes;
  vector.bf16Dot = options.bf16Dot;
  pm.addPass(createConvertAttnToVectorPass(vector));
  pm.addPass(createCPUOutlineForallPass());
  pm.addPass(createCPUExpandMathPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
}

static void addBuffersToLLVM(OpPassManager &pm) {
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCSEPass());
}

void attn::buildOnlineToLLVMPipeline(OpPassManager &pm, const CPUPipelineOptions &options) {
  buildOnlineToVectorPipeline(pm, options);
  addBuffersToLLVM(pm);
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
