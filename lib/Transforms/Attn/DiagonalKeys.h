//===- DiagonalKeys.h - masks that let each row keep its own key -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TRANSFORMS_ATTN_DIAGONALKEYS_H
#define ATTN_LIB_TRANSFORMS_ATTN_DIAGONALKEYS_H

#include "lib/Transforms/Attn/StepLoop.h"

namespace attn {

/// Whether, in a call with as many rows as keys, the mask lets every row keep the key at its own
/// position, whatever tensors hold: then some row keeps each key, though nobody knows the holes.
/// Documents do, whose rows and keys have the same ids.
bool keepsDiagonal(StepLoop over);

} // namespace attn

#endif // ATTN_LIB_TRANSFORMS_ATTN_DIAGONALKEYS_H
