//===- Findings.h - what broke, once each, with a file that shows it --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_FINDINGS_H
#define ATTN_TEST_FUZZ_FINDINGS_H

#include "mlir/IR/MLIRContext.h"
#include "test/Fuzz/Actions.h"
#include "test/Fuzz/Isolation.h"
#include "test/Fuzz/Jobs.h"
#include "test/Fuzz/Stack.h"
#include <map>

namespace attn::fuzz {

class Findings {
public:
  /// Reproducers go to `directory`, each under the name of its title: what is there is known to all
  /// who share the directory. `excuses` lists, one a line, texts of what is known and no
  /// fault of this project: a finding with one of them in its title or stack is only counted.
  Findings(mlir::MLIRContext &context, Isolation &isolation, std::string directory,
           llvm::StringRef excuses);

  using Replay = llvm::function_ref<void(Progress &progress, llvm::StringRef dump)>;

  /// Looks whether this is new, and if it is, replays the mutant into a file, makes the file
  /// smaller, and tells.
  void add(const Ending &ending, uint64_t index, Replay replay);

  size_t getNumCrashes() const { return report.crashes; }
  /// All but how much was done.
  const Report &getReport() const { return report; }

private:
  struct Title {
    /// "crash in attn::X < mlir::Y [attn-pass]".
    std::string text;
    std::vector<Frame> frames;
  };

  Title getTitle(const Ending &ending);
  bool isExcused(const Title &title) const;
  /// How doing the same to a text ends.
  Ending perform(const Progress &what, llvm::StringRef text);
  bool isSame(const Ending &ending, llvm::StringRef title);
  std::string reduce(const Progress &what, std::string text, llvm::StringRef title);
  std::string dump(Replay replay, llvm::StringRef path);
  void count(const Ending &ending, llvm::StringRef title, llvm::StringRef path);
  std::string eraseOp(llvm::StringRef text, unsigned number);

  mlir::MLIRContext &context;
  Isolation &isolation;
  std::string directory;
  std::vector<std::string> excused;
  Report report;
  /// Raw addresses to titles: symbols take long to find.
  std::map<std::string, Title> byAddress;
};

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_FINDINGS_H
