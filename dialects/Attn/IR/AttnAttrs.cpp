//===- AttnAttrs.cpp - checks of variants and schedules ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnDialect.h"
#include <cmath>

using namespace mlir;

namespace attn {

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

/// Positions are below 2^29. With constants of at most 2^30, sums of positions and constants wrap
/// in no index type.
static constexpr int64_t kMaxConstant = int64_t(1) << 30;

LogicalResult WindowAttr::verify(EmitError emitError, int64_t left, int64_t right, Alignment) {
  // window_c1: each side is -1 or a distance
  if (left < -1 || right < -1 || left > kMaxConstant || right > kMaxConstant)
    return emitError() << "expected window sides from -1 (unbounded) to 2^30, got " << left
                       << " and " << right;
  return success();
}

LogicalResult PrefixAttr::verify(EmitError emitError, int64_t length, Alignment) {
  // prefix_c1: the length is -1 or a number of keys
  if (length < -1 || length > kMaxConstant)
    return emitError() << "expected a prefix length from -1 (captured lengths) to 2^30, got "
                       << length;
  return success();
}

LogicalResult ChunkedAttr::verify(EmitError emitError, int64_t size, Alignment) {
  // chunked_c1: a chunk holds at least one key
  if (size < 1 || size > kMaxConstant)
    return emitError() << "expected a chunk size from 1 to 2^30, got " << size;
  return success();
}

LogicalResult SoftcapAttr::verify(EmitError emitError, FloatAttr cap) {
  // softcap_c1: the cap and its reciprocal are normal f32 numbers above 0
  float value = cap.getValueAsDouble();
  if (!(value > 0) || !std::isnormal(value) || !std::isnormal(1 / value))
    return emitError() << "expected a soft cap above 0 that f32 and its reciprocal can hold, got "
                       << cap.getValueAsDouble();
  return success();
}

LogicalResult DropoutAttr::verify(EmitError emitError, FloatAttr p) {
  // dropout_c1: p is a probability
  double value = p.getValueAsDouble();
  if (!(value >= 0 && value <= 1))
    return emitError() << "expected a probability from 0 to 1, got " << value;
  return success();
}

LogicalResult RelativeBiasAttr::verify(EmitError emitError, int64_t offset, Alignment) {
  // relative_bias_c1: the offset is a distance
  if (offset < -kMaxConstant || offset > kMaxConstant)
    return emitError() << "expected an offset from -2^30 to 2^30, got " << offset;
  return success();
}

LogicalResult ScheduleAttr::verify(EmitError emitError, Schedule words) {
  // schedule_c1: every number of a schedule is positive, and products of two do not wrap
  for (int64_t size : {words.blockM, words.blockN, words.splits, words.stages, words.consumers})
    if (size < 1 || size > kMaxConstant)
      return emitError() << "expected block_m, block_n, splits, stages and consumers from 1 to "
                            "2^30, got "
                         << words.blockM << ", " << words.blockN << ", " << words.splits << ", "
                         << words.stages << " and " << words.consumers;
  std::string why = refuseSchedule(words);
  return why.empty() ? success() : emitError() << why;
}

} // namespace attn
