//===- Main.cpp - the execution tests as a program ------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Execution/Main.h"
#include "lib/Machine/Machine.h"
#include "lib/Transforms/Attn/WayRules.h"
#include "test/Execution/Jobs.h"
#include "test/Execution/TestDevice.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace attn::test;

static constexpr const char *kUsage =
    "ExecutionTest: kernels against the f64 reference\n"
    "  --device=cpu|cuda|sim  where they run (cpu)\n"
    "  --random=N             random configurations, besides the acceptance list (60)\n"
    "  --gradients=N          random configurations of gradients, four a kernel (a third)\n"
    "  --large=N              random configurations of gradients with scores up to 1e9 (0)\n"
    "  --kernels=N            kernels that share these (a quarter)\n"
    "  --seed=S               what these are drawn with (1)\n"
    "  --paged=N              cells of the grid of pages (12)\n"
    "  --paged-seed=S         what these are drawn with (another one each time)\n"
    "  --small                of small tensors only, for compute-sanitizer\n"
    "  --stay=true|false|auto whether blocks of GPUs stay (auto: the target's rule)\n"
    "  --recompute            cuda: loops around loops compute scalars in each of their turns\n"
    "  --apart                consumers of GPUs begin with the first tile that their rows need\n"
    "  --way=lengths|short|long|few|narrow|groups|auto\n"
    "                         sizes of which sequences on GPUs (auto: by the extents of a call)\n"
    "  --target=NAME          sim, cuda: the machine (the default's); half only tests have\n"
    "  --fused                blocks of GPUs add to gradients of queries, where they can\n"
    "  --slack=k              by which factor 2^k maxima may lag on GPUs (auto: the target's "
    "rule)\n"
    "  --jobs=N               processes that share the tests (1)\n"
    "  --emit=FOLDER          cuda: writes sources, PTX and plans there, and runs nothing\n"
    "and GoogleTest's own, such as --gtest_filter=*Random*\n";

attn::Overrides attn::test::getOverrides(const Problem &problem) {
  Overrides said = getOptions().schedule;
  // Tests say multiples of 64 rows, and some machines multiply twice as many.
  const Machine *machine = findMachine(getOptions().target);
  constexpr int64_t kRows = 64;
  bool isWhole = machine && problem.blockM % kRows == 0;
  if (problem.blockM)
    said.set(&Schedule::blockM,
             isWhole ? int64_t(llvm::alignTo(problem.blockM, machine->getWarpgroupRows()))
                     : problem.blockM);
  if (problem.blockN)
    said.set(&Schedule::blockN, problem.blockN);
  if (problem.splits != 1)
    said.set(&Schedule::splits, problem.splits);
  if (problem.balances)
    said.set(&Schedule::balance, true);
  return said;
}

TestOptions &attn::test::getOptions() {
  static TestOptions options;
  return options;
}

int attn::test::runExecutionTests(int argc, char **argv) {
  registerHalfMachine();
  TestOptions &options = getOptions();
  llvm::StringRef device = "cpu", emitFolder;
  unsigned jobs = 1, kernels = 0;
  bool hasGradients = false;
  for (int i = 1; i < argc; ++i) {
    auto [name, value] = llvm::StringRef(argv[i]).split('=');
    bool isBad = false;
    if (name == "--device")
      device = value;
    else if (name == "--emit")
      emitFolder = value;
    else if (name == "--random")
      isBad = value.getAsInteger(10, options.numRandom);
    else if (name == "--gradients")
      isBad = value.getAsInteger(10, options.numGradients), hasGradients = true;
    else if (name == "--large")
      isBad = value.getAsInteger(10, options.numLarge);
    else if (name == "--kernels")
      isBad = value.getAsInteger(10, kernels) || kernels < 1;
    else if (name == "--small")
      options.isSmall = true;
    else if (name == "--stay" || name == "--slack")
      isBad = !options.schedule.set(name.drop_front(2), value).empty();
    else if (name == "--recompute" || name == "--apart")
      options.schedule.set(name.drop_front(2), "true");
    else if (name == "--way")
      options.way = value.str(), isBad = !llvm::is_contained(kWays, value);
    else if (name == "--target")
      options.target = value.str(), isBad = !findMachine(value);
    else if (name == "--fused")
      options.fused = true;
    else if (name == "--seed")
      isBad = value.getAsInteger(10, options.seed);
    else if (name == "--paged")
      isBad = value.getAsInteger(10, options.numPaged);
    else if (name == "--paged-seed")
      isBad = value.getAsInteger(10, options.pagedSeed.emplace());
    else if (name == "--jobs")
      isBad = value.getAsInteger(10, jobs) || jobs < 1 || jobs > 256;
    else
      isBad = !name.starts_with("--gtest_");
    if (isBad || !llvm::is_contained({"cpu", "cuda", "sim"}, device)) {
      llvm::errs() << kUsage << "unexpected: " << argv[i] << '\n';
      return 1;
    }
  }
  if (jobs > 1)
    return runJobs(jobs, argc, argv);
  options.device = device == "cuda"  ? makeCUDADevice(emitFolder.str())
                   : device == "sim" ? makeSimulatorDevice()
                                     : makeCPUDevice();
  options.command = "--device=" + device.str() + (options.isSmall ? " --small" : "") +
                    (options.way == "lengths" ? "" : " --way=" + options.way) +
                    (options.target.empty() ? "" : " --target=" + options.target) +
                    (options.fused ? " --fused" : "");
  for (const Word &word : getWords())
    if (options.schedule.has(word.field))
      options.command +=
          " --" + word.getOptionName() +
          (word.name == "recompute" || word.name == "apart" ? ""
                                                            : "=" + options.schedule.getText(word));
  if (!hasGradients)
    options.numGradients = unsigned(llvm::divideCeil(options.numRandom, 3));
  options.numKernels = kernels ? kernels : unsigned(llvm::divideCeil(options.numRandom, 4));
  llvm::outs() << "device " << device << ", " << options.numRandom << " random configurations, "
               << options.numGradients << " of gradients, seed " << options.seed << '\n';
  llvm::outs().flush();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
