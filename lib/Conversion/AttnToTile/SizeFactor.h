//===- SizeFactor.h - sizes that follow from arguments ---------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOTILE_SIZEFACTOR_H
#define ATTN_LIB_CONVERSION_ATTNTOTILE_SIZEFACTOR_H

#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Operation.h"

namespace attn {

/// ceil(size / step) * unit as a factor that the runtime evaluates on the arguments. Fails, with a
/// diagnostic at `user`, where the size does not follow from theirs.
mlir::FailureOr<mlir::Attribute> getSizeFactor(mlir::Operation *user, mlir::OpFoldResult size,
                                               int64_t step = 1, int64_t unit = 1);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOTILE_SIZEFACTOR_H
