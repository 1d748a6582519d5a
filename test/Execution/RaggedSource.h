//===- RaggedSource.h - functions of rows of sequences -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_RAGGEDSOURCE_H
#define ATTN_TEST_EXECUTION_RAGGEDSOURCE_H

#include "test/Execution/Problem.h"
#include <map>

namespace attn::test {

/// Writes a function of rows of sequences: views before its body, places after it. The most rows of
/// a sequence are sizes of tensors that nothing reads.
class RaggedSource {
public:
  explicit RaggedSource(const Problem &problem)
      : offsets(problem.wideTable ? "tensor<?xi64>" : "tensor<?xi32>") {}

  /// An argument `%rows_<name>`. Its rows are those of the sequences of `of`, 'q' or 'k', and
  /// `%<name>` of type `view` shows them.
  void addOperand(const std::string &name, const std::string &view, char of);
  /// Offsets, the most rows, and what else the variant captures, as arguments.
  void addCaptured(const Variant &variant);
  /// A result: the rows of `value`, of type `view`, which has the heads of the operand `like`.
  void addResult(const std::string &value, const std::string &view, char like, bool clears = false);
  std::string write(const std::string &name, const std::string &body) const;

private:
  /// The types of rows by the names of operands.
  std::map<std::string, std::string> operands;
  std::string offsets, arguments, views, places, types, values;
  int numResults = 0;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_RAGGEDSOURCE_H
