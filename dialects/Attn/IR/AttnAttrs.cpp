//===- AttnAttrs.cpp - checks of variants and schedules ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnDialect.h"

using namespace mlir;

namespace attn {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

LogicalResult WindowAttr::verify(EmitError emitError, int64_t left, int64_t right, Alignment) {
  if (left < -1 || right < -1)
    return emitError() << "expected window sides of at least -1 (-1: unbounded), got " << left << " and " << right;
  return success();
}

LogicalResult PrefixAttr::verify(EmitError emitError, int64_t length, Alignment) {
  if (length < -1)
    return emitError() << "expected a prefix length of at least -1 (-1: captured lengths), got " << length;
  return success();
}

LogicalResult ChunkedAttr::verify(EmitError emitError, int64_t size, Alignment) {
  if (size < 1)
    return emitError() << "expected a chunk size of at least 1, got " << size;
  return success();
}

LogicalResult SoftcapAttr::verify(EmitError emitError, FloatAttr cap) {
  if (!cap.getValue().isFiniteNonZero() || cap.getValue().isNegative())
    return emitError() << "expected a finite soft cap above 0, got " << cap.getValueAsDouble();
  return success();
}

LogicalResult ScheduleAttr::verify(EmitError emitError, int64_t blockM, int64_t blockN, int64_t splits) {
  if (blockM < 1 || blockN < 1 || splits < 1)
    return emitError() << "expected positive block_m, block_n and splits, got " << blockM << ", " << blockN << " and "
                       << splits;
  return success();
}

} // namespace attn
