//===- Exp2.h - powers of two -------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CONVERSION_ATTNTOVECTOR_EXP2_H
#define ATTN_LIB_CONVERSION_ATTNTOVECTOR_EXP2_H

#include "lib/Conversion/AttnToVector/Emitter.h"

namespace attn {

enum class Exp2Precision {
  /// Relative error below 2e-7.
  Full,
  /// Relative error below 5e-6: enough where the result becomes bf16.
  Half
};

/// 2^x for x <= 1, f32 or a vector of f32. Exactly 0 for x <= -127 and exactly 1 for 0; NaN stays
/// NaN.
mlir::Value emitExp2(Emitter &b, mlir::Value x, Exp2Precision precision = Exp2Precision::Full);

} // namespace attn

#endif // ATTN_LIB_CONVERSION_ATTNTOVECTOR_EXP2_H
