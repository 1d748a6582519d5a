//===- BuffersToLLVM.h - upstream's passes from loops over buffers to the LLVM dialect --------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_BUFFERSTOLLVM_H
#define ATTN_LIB_PIPELINES_BUFFERSTOLLVM_H

#include "mlir/Pass/PassManager.h"

namespace attn {

/// Functions take their tensors as memref descriptors, results last.
void addBuffersToLLVM(mlir::OpPassManager &pm);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_BUFFERSTOLLVM_H
