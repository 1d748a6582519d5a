//===- BuffersToLLVM.cpp - upstream's passes from loops over buffers to the LLVM dialect ------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Pipelines/BuffersToLLVM.h"
#include "lib/Rooms/Passes.h"
#include "lib/Rooms/Rooms.h"
#include "lib/Transforms/CPU/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void attn::addBuffersToLLVM(OpPassManager &pm) {
  pm.addPass(createCPUExpandFloat8Pass());
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
  // None of these passes is ours, so nobody else looks at what is left.
  pm.addPass(attn::createVerifyRoomPass({attn::getInfo(attn::Room::LLVM).name.str()}));
}
