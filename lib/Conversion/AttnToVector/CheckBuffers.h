//===- CheckBuffers.h - conditions on the buffers of every op --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_CHECKBUFFERS_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_CHECKBUFFERS_H

#include "mlir/Interfaces/DestinationStyleOpInterface.h"

namespace attn {

/// The size of a dimension as the op that made the buffer says it; null where none does.
mlir::OpFoldResult getStatedSize(mlir::Value memref, int64_t dimension);

/// Checks that the op is on buffers and in a function, and lets buffers of one column be
/// contiguous.
mlir::LogicalResult checkBuffers(mlir::DestinationStyleOpInterface op);

/// Checks that vectors can run along the buffer's last dimension.
mlir::LogicalResult checkContiguous(mlir::Operation *op, llvm::StringRef name, mlir::Value memref);

/// Checks that, and that the number of columns is known.
mlir::LogicalResult checkColumns(mlir::Operation *op, llvm::StringRef name, mlir::Value memref);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_CHECKBUFFERS_H
