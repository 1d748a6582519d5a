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
#include <deque>

namespace attn {

/// A word that an option says is one that `Overrides` takes.
struct WordParser : llvm::cl::parser<std::string> {
  using llvm::cl::parser<std::string>::parser;
  /// LLVM's options call it of the type that they name.
  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method)
  bool parse(llvm::cl::Option &option, llvm::StringRef name, llvm::StringRef text,
             std::string &value) {
    value = text.str();
    std::string why = Overrides().set(name, text);
    return !why.empty() && option.error(why);
  }
};

/// Options of a pass or of a pipeline, one for each word: `block-m` for block_m.
template <typename Parent> class ScheduleOptions {
public:
  explicit ScheduleOptions(Parent &parent) {
    for (const Word &word : getWords())
      options.emplace_back(parent, word);
  }
  ScheduleOptions(const ScheduleOptions &) = delete;

  ScheduleOptions &operator=(const Overrides &said) {
    for (Option &each : options)
      each.option = said.getText(each.word);
    return *this;
  }

  Overrides get() const {
    Overrides said;
    for (const Option &each : options)
      said.set(each.word.name, each.option.getValue());
    return said;
  }

private:
  struct Option {
    Option(Parent &parent, const Word &word)
        : word(word), name(word.getOptionName()), help((word.help + "; auto: the rule's").str()),
          option(parent, name, llvm::cl::desc(help), llvm::cl::init("auto")) {}

    const Word &word;
    std::string name, help;
    Parent::template Option<std::string, WordParser> option;
  };
  /// LLVM holds pointers to options.
  std::deque<Option> options;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_SCHEDULEOPTIONS_H
