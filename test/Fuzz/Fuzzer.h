//===- Fuzzer.h - mutants, one after the other ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_FUZZER_H
#define ATTN_TEST_FUZZ_FUZZER_H

#include "test/Fuzz/Actions.h"
#include "test/Fuzz/Corpus.h"
#include "test/Fuzz/Findings.h"
#include "test/Fuzz/Isolation.h"
#include "test/Fuzz/Jobs.h"

namespace attn::fuzz {

struct FuzzOptions {
  uint64_t seed = 0, mutants = 0;
  double minutes = 0;
  /// Stops at the first crash.
  bool untilCrash = false;
  /// A pipeline to run in place of everything else, or roundtrip.
  std::string only;
};

/// In a child: does it, keeps `progress`, and ends the child if something is wrong. Whether it was
/// not refused.
bool act(const Action &action, mlir::ModuleOp module, Progress &progress);

class Fuzzer {
public:
  Fuzzer(const Corpus &corpus, const Actions &actions, Isolation &isolation, Findings &findings,
         FuzzOptions options)
      : corpus(corpus), actions(actions), isolation(isolation), findings(findings),
        options(std::move(options)) {}

  /// Until the mutants or the minutes are used up.
  Report run();

private:
  /// In the child: makes mutant `index` and acts on it. With a path, writes the program there
  /// before anything is done to it, so that the file holds the last one.
  void fuzzOne(uint64_t index, Progress &progress, llvm::StringRef dump);
  mlir::OwningOpRef<mlir::ModuleOp> makeMutant(const CorpusProgram &program, Rng &rng,
                                               Progress &progress, llvm::StringRef dump);
  void record(const Ending &ending);

  const Corpus &corpus;
  const Actions &actions;
  Isolation &isolation;
  Findings &findings;
  FuzzOptions options;
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_FUZZER_H
