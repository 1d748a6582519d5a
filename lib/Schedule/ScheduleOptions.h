//===- ScheduleOptions.h - an option for each word of a schedule ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_SCHEDULEOPTIONS_H
#define ATTN_LIB_SCHEDULE_SCHEDULEOPTIONS_H

#include "lib/Schedule/Schedule.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Support/LLVM.h"
#include <deque>

namespace attn {

/// Options of a pass or of a pipeline: `block-m` for the word block_m, and so on.
template <typename Parent> class ScheduleOptions {
public:
  explicit ScheduleOptions(Parent &parent) {
    for (const Word &word : getWords())
      options.emplace_back(parent, word);
  }
  ScheduleOptions(const ScheduleOptions &) = delete;

  /// Gives the options the values of `said`.
  void set(const Overrides &said) {
    for (Option &each : options)
      if (std::optional<int64_t> value = said.get(each.word.field))
        each.option = !each.word.isFlag() ? std::to_string(*value) : *value ? "true" : "false";
  }

  /// Reads what the options say. Returns what is wrong, or nothing.
  std::string get(Overrides &said) const {
    for (const Option &each : options)
      if (std::string why = said.set(each.word.name, each.option.getValue()); !why.empty())
        return why;
    return {};
  }

private:
  struct Option {
    Option(Parent &parent, const Word &word)
        : word(word), name(word.getOptionName()), help((word.help + "; auto: the rule's").str()),
          option(parent, name, llvm::cl::desc(help), llvm::cl::init("auto")) {}

    const Word &word;
    std::string name, help;
    typename Parent::template Option<std::string> option;
  };
  /// Options never move.
  std::deque<Option> options;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_SCHEDULEOPTIONS_H
