//===- Fuzzer.cpp - mutants, one after the other ----------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Fuzzer.h"
#include "mlir/IR/Verifier.h"
#include "test/Fuzz/Mutator.h"
#include <chrono>

using namespace mlir;

namespace attn::fuzz {

/// Mutants of one child. Each leaves attributes and types behind in its context.
static constexpr uint64_t kBatch = 1000;

static void write(StringRef path, ModuleOp module) {
  if (path.empty())
    return;
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  module->print(os, OpPrintingFlags().printGenericOpForm());
}

OwningOpRef<ModuleOp> Fuzzer::makeMutant(const CorpusProgram &program, Rng &rng, Progress &progress,
                                         StringRef dump) {
  OwningOpRef<ModuleOp> module;
  uint64_t steps = 1 + rng.below(2) + (rng.oneIn(4) ? rng.below(6) : 0);
  for (uint64_t step = 0; step < steps; ++step) {
    progress.stage = Progress::Mutate;
    OwningOpRef<ModuleOp> candidate =
        cast<ModuleOp>((module ? module.get() : program.module.get())->clone());
    auto watch = [&](StringRef text, bool isType) {
      store(progress.parsing, text);
      progress.isParsingType = isType;
    };
    if (!mutate(*candidate, corpus, rng, watch))
      continue;
    progress.parsing[0] = 0;
    ++progress.candidates;
    progress.stage = Progress::Verify;
    write(dump, *candidate);
    if (failed(verify(*candidate)) || breaksUpstream(*candidate))
      continue;
    ++progress.valid;
    module = std::move(candidate);
  }
  return module;
}

bool act(const Action &action, ModuleOp module, Progress &progress) {
  auto atPass = [&](StringRef pass) { store(progress.pass, pass); };
  auto atFault = [&](const Fault &fault) {
    progress.faultKind = fault.kind;
    store(progress.detail, fault.detail);
    Isolation::report();
  };
  return perform(action, module, {atPass, atFault});
}

void Fuzzer::fuzzOne(uint64_t index, Progress &progress, StringRef dump) {
  Rng rng(options.seed, index);
  progress.index = index;
  const CorpusProgram &program = rng.pick(corpus.programs);
  store(progress.origin, program.origin);
  OwningOpRef<ModuleOp> module = makeMutant(program, rng, progress, dump);
  if (!module)
    return;
  ++progress.mutants;
  // What a pass makes of a mutant is a program for the next one.
  for (int round = 0; round < 3; ++round) {
    Action action = options.only.empty() ? actions.choose(rng, program)
                    : options.only == "roundtrip"
                        ? Action{Action::RoundTrip, ""}
                        : Action{Action::Pipeline, "builtin.module(" + options.only + ")"};
    progress.stage = Progress::Act;
    progress.actionKind = action.kind;
    store(progress.action, action.text);
    write(dump, *module);
    ++progress.actions;
    if (!act(action, *module, progress)) {
      ++progress.refused;
      return;
    }
    if (rng.oneIn(2))
      return;
  }
}

void Fuzzer::record(const Ending &ending) {
  uint64_t index = ending.progress.index;
  findings.add(ending, index,
               [&](Progress &progress, StringRef dump) { fuzzOne(index, progress, dump); });
}

Report Fuzzer::run() {
  auto start = std::chrono::steady_clock::now();
  auto isLate = [&] {
    std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return options.minutes > 0 && elapsed.count() >= options.minutes * 60;
  };
  Counts counts;
  uint64_t next = 0;
  while ((options.mutants == 0 || counts.mutants < options.mutants) && !isLate()) {
    Progress &progress = isolation.getProgress();
    progress = Progress();
    uint64_t wanted = options.mutants ? options.mutants - counts.mutants : kBatch;
    uint64_t last = next + std::min(kBatch, wanted);
    Ending ending = isolation.run([&](Progress &progress) {
      for (; next < last && !isLate(); ++next) {
        isolation.startClock();
        fuzzOne(next, progress, "");
      }
    });
    counts.candidates += ending.progress.candidates;
    counts.valid += ending.progress.valid;
    counts.mutants += ending.progress.mutants;
    counts.actions += ending.progress.actions;
    counts.refused += ending.progress.refused;
    next = ending.kind == Ending::Finished ? last : ending.progress.index + 1;
    if (ending.kind == Ending::Finished)
      continue;
    record(ending);
    if (options.untilCrash && findings.getNumCrashes() > 0)
      break;
  }
  Report report = findings.getReport();
  report.counts = counts;
  return report;
}

} // namespace attn::fuzz
