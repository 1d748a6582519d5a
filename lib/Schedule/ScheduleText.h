//===- ScheduleText.h - schedules in the IR ---------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Attributes hold a schedule as `<block_m = 128, block_n = 96, stages = 2>`: the words that are not
// what they are by default, each once, in any order.
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_SCHEDULETEXT_H
#define ATTN_LIB_SCHEDULE_SCHEDULETEXT_H

#include "lib/Schedule/Schedule.h"
#include "mlir/IR/DialectImplementation.h"

namespace attn {

mlir::FailureOr<Schedule> parseSchedule(mlir::AsmParser &parser);

mlir::AsmPrinter &operator<<(mlir::AsmPrinter &printer, const Schedule &schedule);

} // namespace attn

template <> struct mlir::FieldParser<attn::Schedule> {
  static FailureOr<attn::Schedule> parse(AsmParser &parser) { return attn::parseSchedule(parser); }
};

#endif // ATTN_LIB_SCHEDULE_SCHEDULETEXT_H
