//===- GPUMath.h - which functions a GPU has instructions for ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_GPUMATH_GPUMATH_H
#define ATTN_LIB_ANALYSIS_GPUMATH_GPUMATH_H

#include "mlir/IR/Operation.h"

namespace attn {

/// Whether an op of the math dialect becomes a few instructions of the GPU. Others must be written
/// out first.
bool hasInstructions(mlir::Operation *op);

/// Whether an op of any dialect becomes dozens of instructions, and constants or values between
/// them that want registers.
bool isLongMath(mlir::Operation *op);

} // namespace attn

#endif // ATTN_LIB_ANALYSIS_GPUMATH_GPUMATH_H
