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

LogicalResult ScheduleAttr::verify(EmitError emitError, int64_t blockM, int64_t blockN,
                                   int64_t splits, int64_t stages, int64_t consumers, bool stay,
                                   bool lists, int64_t slack, bool fill, int64_t tail, bool, bool,
                                   bool, int64_t keep, int64_t resident) {
  // schedule_c1: every number of a schedule is positive, and products of two do not wrap
  for (int64_t size : {blockM, blockN, splits, stages, consumers})
    if (size < 1 || size > kMaxConstant)
      return emitError() << "expected block_m, block_n, splits, stages and consumers from 1 to "
                            "2^30, got "
                         << blockM << ", " << blockN << ", " << splits << ", " << stages << " and "
                         << consumers;
  // schedule_c3: where tiles are listed, keys are not split and blocks do not stay
  if (lists && (splits > 1 || stay))
    return emitError() << "expected one part of the keys and blocks that go where tiles are "
                          "listed, got "
                       << splits << (stay ? " and blocks that stay" : "");
  // schedule_c4: a slack is at most 16, so that sums of weights of 2^slack are finite
  if (slack < -1 || slack > 16)
    return emitError() << "expected a slack from 0 to 16, or -1 for none, got " << slack;
  // schedule_c5: where parts fill the device, blocks do not stay
  if (fill && stay)
    return emitError() << "expected blocks that go where parts fill the device, got ones that stay";
  // schedule_c9: parts that fill the device are up to 1024
  if (fill && splits > 1024)
    return emitError() << "expected up to 1024 parts where they fill the device, got " << splits;
  // schedule_c6: a tail is up to 31 blocks behind blocks that stay
  if (tail < 0 || tail > 31 || (tail > 0 && !stay))
    return emitError() << "expected a tail of at most 31 blocks behind blocks that stay, got "
                       << tail << (stay ? "" : " behind none");
  // schedule_c7: registers have up to 256 columns of the query, in steps of 16
  if (keep < 0 || keep > 256 || keep % 16 != 0)
    return emitError()
           << "expected at most 256 columns of the query to keep, in multiples of 16, got " << keep;
  // schedule_c8: a multiprocessor has 1 to 8 blocks at a time, and 1 where they stay
  if (resident < 1 || resident > (stay ? 1 : 8))
    return emitError() << "expected 1 to 8 blocks on a multiprocessor, or 1 that stays, got "
                       << resident << (stay ? " that stay" : "");
  return success();
}

} // namespace attn
