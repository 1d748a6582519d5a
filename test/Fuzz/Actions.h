//===- Actions.h - everything that can be done to a program -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_FUZZ_ACTIONS_H
#define ATTN_TEST_FUZZ_ACTIONS_H

#include "test/Fuzz/Corpus.h"
#include "test/Fuzz/Rng.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace attn::fuzz {

/// A pass, a pipeline or a door.
struct Action {
  enum Kind {
    /// Printed and parsed again.
    RoundTrip,
    /// `text` is a textual pipeline.
    Pipeline,
    /// `text` is what attn-translate --until takes.
    Door,
    /// Rooms 1 to 8 through the C++ API, for the GPU and for the CPU.
    EmitPTX,
    CompileCPU
  };
  Kind kind = RoundTrip;
  std::string text;

  /// What a person types to do the same to a file.
  std::string getCommand() const;
};

/// What is wrong although nothing crashed.
struct Fault {
  enum Kind {
    /// Failed without a diagnostic.
    Silent,
    /// Succeeded, and left invalid IR, or text that does not parse.
    Invalid
  };
  Kind kind;
  /// The pass that it is about, and what it said.
  std::string detail;
};

class Actions {
public:
  /// Reads the flags and options of all passes from the Passes.td files below `sourceDirectory`: a
  /// new pass is tested without being listed here.
  explicit Actions(llvm::StringRef sourceDirectory);

  /// One of the passes that the program's test names, as often as any other action.
  Action choose(Rng &rng, const CorpusProgram &program) const;

  size_t getNumPasses() const { return passes.size(); }

private:
  struct Option {
    std::string flag, type;
  };
  struct Pass {
    std::string flag;
    std::vector<Option> options;
  };
  std::vector<Pass> passes;

  std::string getPipeline(const Pass &pass, Rng &rng) const;
};

/// Who looks on.
struct ActionWatch {
  /// Called with the name of each pass before it runs.
  llvm::function_ref<void(llvm::StringRef)> atPass;
  /// Called when something is wrong, before anything else happens. Does not return.
  llvm::function_ref<void(const Fault &)> atFault;
};

/// Changes the module; whether it was not refused.
bool perform(const Action &action, mlir::ModuleOp module, const ActionWatch &watch);

} // namespace attn::fuzz

#endif // ATTN_TEST_FUZZ_ACTIONS_H
