//===- CPUPipeline.h - from room 3 to the LLVM dialect of the CPU -------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PIPELINES_CPUPIPELINE_H
#define ATTN_LIB_PIPELINES_CPUPIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace attn {

/// The vector unit of the processor; HostInfo knows it.
struct CPUPipelineOptions : mlir::PassPipelineOptions<CPUPipelineOptions> {
  Option<unsigned> lanes{*this, "lanes",
                         llvm::cl::desc("f32 elements of a vector register: 16, 8 or 4"),
                         llvm::cl::init(16)};
  Option<bool> bf16Dot{*this, "bf16-dot",
                       llvm::cl::desc("the processor multiplies pairs of bf16 (AVX512-BF16)"),
                       llvm::cl::init(false)};
};

/// Level `online` on tensors -> loops over vectors on buffers, parallel loops outlined.
void buildOnlineToVectorPipeline(mlir::OpPassManager &pm, const CPUPipelineOptions &options);
/// ... -> the LLVM dialect. Functions take their tensors as memref descriptors, results last.
void buildOnlineToLLVMPipeline(mlir::OpPassManager &pm, const CPUPipelineOptions &options);

/// linalg on tensors (attn-to-reference) -> the LLVM dialect, by loops over scalars.
void buildReferenceToLLVMPipeline(mlir::OpPassManager &pm);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_CPUPIPELINE_H
