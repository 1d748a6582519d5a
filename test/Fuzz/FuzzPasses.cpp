//===- FuzzPasses.cpp - mutants of all IR through every pass, pipeline and door ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Programs of the tests are changed in their structure. Those that still verify go through a pass,
// a pipeline or a door, which must not crash, hang, fail without a word or leave invalid IR. The
// process that a mutant ends is a child; its parent writes the mutant down.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Registration/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "test/Fuzz/Fuzzer.h"
#include "test/Fuzz/PlantedFault.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MathExtras.h"
#include <chrono>
#include <random>

namespace cl = llvm::cl;
using namespace attn;

#if __has_feature(address_sanitizer)
extern "C" const char *__asan_default_options() {
  return "abort_on_error=1:handle_segv=0:handle_abort=0:handle_sigfpe=0:handle_sigbus=0:"
         "handle_sigill=0:use_sigaltstack=0:detect_leaks=0:alloc_dealloc_mismatch=0:"
         "detect_container_overflow=0:allow_user_poisoning=0:max_allocation_size_mb=8192";
}
extern "C" const char *__ubsan_default_options() { return "halt_on_error=1:abort_on_error=1"; }
#endif

static cl::OptionCategory category("FuzzPasses options");
static cl::opt<uint64_t> seed("seed", cl::desc("of all choices (default: a fresh one)"),
                              cl::cat(category));
static cl::opt<uint64_t> mutants("mutants", cl::desc("how many (default: any number)"),
                                 cl::cat(category));
static cl::opt<unsigned> jobs("jobs",
                              cl::desc("processes, each with a seed of its own (default: 1)"),
                              cl::init(1), cl::cat(category));
static cl::opt<double> minutes("minutes", cl::desc("how long (default: 1)"), cl::cat(category));
static cl::opt<double> limit("limit", cl::desc("processor seconds of one mutant (default: 10)"),
                             cl::init(10), cl::cat(category));
static cl::opt<std::string> out("out", cl::desc("where files of findings go"),
                                cl::init("fuzz-findings"), cl::cat(category));
static cl::opt<std::string> source("source", cl::desc("the sources: passes and known faults"),
                                   cl::init(ATTN_SOURCE_DIR), cl::cat(category));
static cl::opt<std::string> corpusDirectory("corpus",
                                            cl::desc("where programs come from (default: tests)"),
                                            cl::cat(category));
static cl::opt<std::string> only("only", cl::desc("the one pipeline to run, or roundtrip"),
                                 cl::cat(category));
static cl::opt<bool> expectCrash("expect-crash",
                                 cl::desc("stop at the first crash; fail without one"),
                                 cl::cat(category));

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "FuzzPasses: mutants through every pass\n");
  fuzz::FuzzOptions options{seed, mutants, minutes, expectCrash, only};
  if (!seed.getNumOccurrences())
    options.seed = std::random_device()();
  if (!options.mutants && !options.minutes)
    options.minutes = 1;
  llvm::outs() << "seed: " << options.seed << "\n";
  llvm::outs().flush();

  mlir::DialectRegistry registry;
  registerDialects(registry);
  registerPasses();
  planted::registerPlantedFault();
  // Children of a process with threads lack them.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::ScopedDiagnosticHandler silence(&context, [](mlir::Diagnostic &) {});
  if (corpusDirectory.empty())
    corpusDirectory = source + "/test";
  fuzz::Corpus corpus = fuzz::loadCorpus(corpusDirectory, context);
  fuzz::Actions actions(source);
  if (corpus.programs.empty()) {
    llvm::errs() << "expected programs in " << corpusDirectory << ", got none\n";
    return 1;
  }
  llvm::outs() << "corpus: " << corpus.programs.size() << " programs, " << actions.getNumPasses()
               << " passes\n";
  llvm::outs().flush();
  auto start = std::chrono::steady_clock::now();
  fuzz::Report report = fuzz::runJobs(jobs, [&](unsigned job) {
    fuzz::FuzzOptions own = options;
    own.seed += job;
    own.mutants = llvm::divideCeil(options.mutants, std::max(1u, unsigned(jobs)));
    fuzz::Isolation isolation(limit);
    fuzz::Findings findings(context, isolation, out, source + "/test/Fuzz/known.txt");
    return fuzz::Fuzzer(corpus, actions, isolation, findings, own).run();
  });
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  llvm::outs() << "seed: " << options.seed << ", jobs: " << jobs << "\n";
  report.print(llvm::outs(), elapsed.count());
  if (report.counts.valid * 3 < report.counts.candidates) {
    llvm::errs() << "expected a third of the mutations to verify\n";
    return 1;
  }
  if (expectCrash)
    return report.crashes > 0 ? 0 : 1;
  return report.findings.empty() && !report.lost ? 0 : 1;
}
