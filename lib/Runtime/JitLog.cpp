//===- JitLog.cpp - what the driver's assembler says ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/JitLog.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using llvm::StringRef;

namespace attn {

const JitLog::Entry *JitLog::find(std::string_view name) const {
  for (const Entry &entry : entries)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

/// The number that ends `text`, as in "12 bytes stack frame, 8 " -> 8.
static int64_t takeTrailingNumber(StringRef text) {
  int64_t value = -1;
  StringRef number = text.rtrim();
  number = number.drop_front(number.find_last_not_of("0123456789") + 1);
  return number.getAsInteger(10, value) ? -1 : value;
}

/// The number before `unit`; -1 when the line has none.
static int64_t findNumber(StringRef line, StringRef unit) {
  size_t position = line.find(unit);
  return position == StringRef::npos ? -1 : takeTrailingNumber(line.take_front(position));
}

/// A line with a code of the C7xxx family, from the code on; otherwise nothing.
static StringRef findCode(StringRef line) {
  StringRef rest = line.drop_front(std::min(line.find("(C7"), line.size()));
  return rest.size() > 6 && rest[6] == ')' ? rest : StringRef();
}

JitLog parseJitLog(std::string_view text) {
  JitLog log;
  JitLog::Entry *entry = nullptr;
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n');
  for (StringRef line : lines) {
    line = line.trim(" \t\r");
    if (StringRef code = findCode(line); !code.empty()) {
      log.warnings.push_back(code.str());
    } else if (line.contains("Compiling entry function '")) {
      StringRef name = line.split("Compiling entry function '").second.split('\'').first;
      entry = &log.entries.emplace_back();
      entry->name = name.str();
    } else if (line.contains("Function properties for ")) {
      // Device functions that were not inlined have properties too; they are not entries.
      StringRef name = line.split("Function properties for ").second.trim(" '");
      entry = nullptr;
      for (JitLog::Entry &candidate : log.entries)
        if (name == candidate.name)
          entry = &candidate;
    } else if (entry && line.contains("bytes spill stores")) {
      entry->stackBytes = findNumber(line, " bytes stack frame");
      entry->spillStoreBytes = findNumber(line, " bytes spill stores");
      entry->spillLoadBytes = findNumber(line, " bytes spill loads");
    } else if (line.contains(": Used ") && !log.entries.empty()) {
      log.entries.back().registers = static_cast<int>(findNumber(line, " registers"));
    }
  }
  return log;
}

std::string excerptErrors(std::string_view text, unsigned maxLines) {
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string excerpt;
  unsigned count = 0;
  auto append = [&](StringRef line) {
    if (count++ >= maxLines)
      return;
    if (!excerpt.empty())
      excerpt += "; ";
    excerpt += line.trim(" \t\r").str();
  };
  // "ptxas fatal : Ptx assembly aborted due to errors" only says that there are errors.
  for (StringRef line : lines)
    if (line.contains("error") ? !line.contains("aborted due to errors") : line.contains("fatal"))
      append(line);
  if (count == 0)
    for (StringRef line : lines)
      append(line);
  if (count > maxLines)
    excerpt += "; and " + std::to_string(count - maxLines) + " more";
  return excerpt;
}

} // namespace attn
