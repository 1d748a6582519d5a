//===- ScheduleText.cpp - schedules in the IR -------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Schedule/ScheduleText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace attn;

/// One word with its value.
static ParseResult parseWord(AsmParser &parser, Schedule &schedule,
                             SmallPtrSetImpl<const Word *> &seen) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (parser.parseKeyword(&name) || parser.parseEqual())
    return failure();
  const Word *word = findWord(name);
  if (!word)
    return parser.emitError(loc, "expected a word of a schedule, got '") << name << "'";
  if (!seen.insert(word).second)
    return parser.emitError(loc, "expected '") << name << "' once, got it twice";
  int64_t value = 0;
  if (word->isFlag()) {
    FailureOr<bool> flag = FieldParser<bool>::parse(parser);
    if (failed(flag))
      return failure();
    value = *flag;
  } else if (parser.parseInteger(value)) {
    return failure();
  }
  word->set(schedule, value);
  return success();
}

FailureOr<Schedule> attn::parseSchedule(AsmParser &parser) {
  Schedule schedule;
  SmallPtrSet<const Word *, 16> seen;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return parseWord(parser, schedule, seen); }))
    return failure();
  return schedule;
}

AsmPrinter &attn::operator<<(AsmPrinter &printer, const Schedule &schedule) {
  auto differs = [&](const Word &word) { return word.get(schedule) != word.get(Schedule()); };
  printer << '<';
  llvm::interleaveComma(llvm::make_filter_range(getWords(), differs), printer.getStream(),
                        [&](const Word &word) {
                          printer << word.name << " = ";
                          if (word.isFlag())
                            printer << (word.get(schedule) ? "true" : "false");
                          else
                            printer << word.get(schedule);
                        });
  return printer << '>';
}
