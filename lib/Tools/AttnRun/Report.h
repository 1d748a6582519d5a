//===- Report.h - what attn-run prints --------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TOOLS_ATTNRUN_REPORT_H
#define ATTN_LIB_TOOLS_ATTNRUN_REPORT_H

#include "lib/Interpreter/Interpreter.h"
#include "lib/Simulator/Finding.h"
#include "lib/Support/Compare.h"
#include "lib/Tools/AttnRun/Binding.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace attn {

struct ResultReport {
  std::string name;
  ElementKind kind = ElementKind::F32;
  llvm::SmallVector<int64_t, 4> shape;
  std::optional<Comparison> error;
  double tolerance = 0;
};

/// The facts of one run; the text and the JSON say the same.
struct Report {
  std::string file, entry, device, schedule;
  unsigned numThreads = 1, f32Lanes = 4;
  std::map<std::string, int64_t> letters;
  bool isRowsFirst = false;
  uint64_t seed = 0;
  double passesMs = 0, llvmMs = 0, referenceMs = 0;
  /// Of the first run, or of the median run when there are several.
  double timeMs = 0;
  double fastestMs = 0;
  int64_t numRuns = 1;
  std::optional<double> flops;
  /// All pairs of rows and keys count, since nobody knows which of them the mask keeps.
  bool isWorkGuessed = false;
  llvm::SmallVector<ResultReport> results;
  /// Of the interpreter.
  std::optional<InterpreterCounts> counts;
  /// Of one device only: further lines, by key; and what the simulator says is wrong with the
  /// kernel.
  std::vector<std::pair<std::string, std::string>> lines;
  std::vector<std::string> findings;

  void addFinding(const sim::Finding &finding);

  /// Compared with a reference, or proved against the original masks.
  bool isChecked() const;
  bool isRight() const;
  void printText(llvm::raw_ostream &os) const;
  void printJson(llvm::raw_ostream &os) const;
};

} // namespace attn

#endif // ATTN_LIB_TOOLS_ATTNRUN_REPORT_H
