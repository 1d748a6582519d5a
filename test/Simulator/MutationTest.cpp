//===- MutationTest.cpp - the simulator finds what is made wrong ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// From right kernels of room 6, every barrier, fence, wait, arrival, phase, stage and count is
// removed or changed, one at a time (Mutations.h). The simulator must object to each mutant, or its
// values must differ. Those that it accepts are listed; at least 97 % must be found. All that are
// accepted today are programs as right as the original:
//
//   * causal: releases in the loop over masked tiles. The triangle of these blocks spans one tile
//     more than the ring has stages, and one of them comes first; those of the loop are the last
//     uses of their stages, and nobody waits for their release. In wider triangles somebody does
//     (D = 64 with 64 keys), so the compiler always writes it; where it is in vain it does no harm:
//     the threads of the block arrive before they end, at a barrier that nobody reads again;
//   * forward-d128: the release of the keys before their product is done, and the producer's wait
//     for the release of the values instead. The release of the values of the step before comes
//     later, and the producer waits for it too before it fills the keys' stage;
//   * gathered: a wait for the next stage of the keys or values instead. Threads arrive there when
//   all
//     is there that they have gathered so far, the stage before included;
//   * exchange: the release of the other stage of a ring of two. One use sees its release a step
//     late, and the next then has nothing left to wait for.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Random.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "test/Simulator/Lowered.h"
#include "test/Simulator/Mutations.h"
#include "gtest/gtest.h"

namespace attn::test {

/// Arguments of a kernel, and what the right one writes.
struct Arguments {
  std::vector<Array> arrays;
  std::vector<sim::Argument> values;
  /// The first output among the arrays.
  size_t firstOutput = 0;
  std::vector<std::vector<double>> wanted;

  void add(ElementKind kind, llvm::ArrayRef<int64_t> shape, bool isOutput) {
    Array array = llvm::cantFail(Array::allocate(kind, shape));
    if (!isOutput) {
      firstOutput = arrays.size() + 1;
      fillNormal(array, arrays.size() + 1);
    }
    arrays.push_back(std::move(array));
    values.push_back(sim::Argument::of(arrays.back()));
  }

  std::vector<std::vector<double>> readOutputs() {
    std::vector<std::vector<double>> read;
    for (size_t i = firstOutput; i < arrays.size(); ++i) {
      read.emplace_back(arrays[i].size());
      arrays[i].read(0, read.back());
    }
    return read;
  }

  void poisonOutputs() {
    for (size_t i = firstOutput; i < arrays.size(); ++i)
      arrays[i].poison();
  }
};

struct Specimen {
  std::string name;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Several, so that loops run an even and an odd number of times.
  std::vector<Arguments> arguments;
};

/// "" if the simulator accepts the kernel and it computes what it should.
static std::string judge(const sim::Simulator &simulator, Arguments &arguments) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    sim::Options options;
    options.seed = seed;
    // Values cost most: only for what has passed the rest.
    options.numbers = seed == 4;
    options.maxWork = int64_t(1) << (options.numbers ? 30 : 27);
    arguments.poisonOutputs();
    auto findings = simulator.run(arguments.values, options);
    if (!findings)
      return toString(findings.takeError());
    if (!findings->empty())
      return findings->front().text;
  }
  std::vector<std::vector<double>> values = arguments.readOutputs();
  if (arguments.wanted.empty())
    arguments.wanted = values;
  // Bit by bit: the order of additions does not depend on times. NaN differs from itself.
  return values == arguments.wanted ? "" : "wrong values";
}

static std::string judge(Specimen &specimen, mlir::func::FuncOp kernel) {
  // Blocks that stay are one, which takes all tiles of rows.
  auto simulator = sim::Simulator::create(kernel, /*multiprocessors=*/1);
  if (!simulator)
    return toString(simulator.takeError());
  if (!simulator->getFindings().empty())
    return simulator->getFindings().front().text;
  for (Arguments &arguments : specimen.arguments)
    if (std::string why = judge(*simulator, arguments); !why.empty())
      return why;
  return "";
}

/// With one (M, N) after the other.
static Specimen makeAttention(const std::string &name, const Variant &variant, int64_t d,
                              llvm::ArrayRef<std::pair<int64_t, int64_t>> extents,
                              int64_t blockN = 0, int64_t stages = 0,
                              const std::string &target = "cuda") {
  Job job{variant, {}, stages, target};
  job.problem.blockN = blockN;
  job.problem.type = "bf16";
  job.problem.d = job.problem.dv = d;
  Specimen specimen{name, llvm::cantFail(lower(job)), {}};
  for (auto [m, n] : extents) {
    Arguments &arguments = specimen.arguments.emplace_back();
    for (int64_t rows : {m, n, n})
      arguments.add(ElementKind::BF16, {1, 1, rows, d}, false);
    arguments.add(ElementKind::BF16, {1, 1, m, d}, true);
  }
  return specimen;
}

/// Full attention to keys in pages of three, which lie apart and in another order.
static Specimen makeGathered() {
  constexpr int64_t page = 3, d = 64;
  Job job{kFull, {}, /*stages=*/2};
  job.problem.type = "bf16";
  job.problem.d = job.problem.dv = d;
  job.problem.page = page;
  Specimen specimen{"gathered, D = 64", llvm::cantFail(lower(job)), {}};
  for (auto [m, entries] : {std::pair<int64_t, int64_t>(200, 300), {128, 257}}) {
    Arguments &arguments = specimen.arguments.emplace_back();
    int64_t pages = 2 * entries;
    arguments.add(ElementKind::BF16, {1, 1, m, d}, false);
    for (int pool = 0; pool < 2; ++pool)
      arguments.add(ElementKind::BF16, {pages, page, 1, d}, false);
    arguments.add(ElementKind::I32, {1, entries}, false);
    for (int64_t entry = 0; entry < entries; ++entry)
      arguments.arrays.back().set(entry, double((7 * entry + 3) % pages));
    arguments.add(ElementKind::BF16, {1, 1, m, d}, true);
  }
  return specimen;
}

static mlir::OwningOpRef<mlir::ModuleOp> parseFile(llvm::StringRef path) {
  return mlir::parseSourceFile<mlir::ModuleOp>((ATTN_SOURCE_DIR + path).str(), &getContext());
}

static Specimen makeForward() {
  Specimen specimen{
      "forward-d128.mlir", parseFile("/test/Conversion/TileToNVVM/forward-d128.mlir"), {}};
  for (int64_t keys : {640, 768}) {
    Arguments &arguments = specimen.arguments.emplace_back();
    for (int64_t rows : {int64_t(128), keys, keys})
      arguments.add(ElementKind::BF16, {1, 1, rows, 128}, false);
    arguments.add(ElementKind::BF16, {1, 1, 128, 128}, true);
    arguments.add(ElementKind::F32, {1, 1, 128}, true);
    sim::Argument &scale = arguments.values.emplace_back();
    scale.isScalar = true;
    scale.scalar.f = 0.1;
  }
  return specimen;
}

static Specimen makeExchange() {
  Specimen specimen{"exchange.mlir", parseFile("/test/Simulator/Inputs/exchange.mlir"), {}};
  for (int64_t keys : {640, 768}) {
    Arguments &arguments = specimen.arguments.emplace_back();
    arguments.add(ElementKind::BF16, {128, 64}, false);
    arguments.add(ElementKind::BF16, {keys, 64}, false);
    arguments.add(ElementKind::BF16, {128, 64}, true);
  }
  return specimen;
}

/// Found, accepted, and not programs at all.
struct Score {
  unsigned found = 0, accepted = 0, refused = 0;
};

static Score mutate(Specimen specimen) {
  const std::string &name = specimen.name;
  Score score;
  mlir::func::FuncOp kernel = getKernel(*specimen.module);
  EXPECT_EQ(judge(specimen, kernel), "") << name << ": the right kernel";
  for (const Mutation &mutation : getMutations(kernel)) {
    mlir::OwningOpRef<mlir::ModuleOp> copy = specimen.module->clone();
    mlir::func::FuncOp mutant = getKernel(*copy);
    apply(mutation, mutant);
    mlir::ScopedDiagnosticHandler silence(&getContext(),
                                          [](mlir::Diagnostic &) { return mlir::success(); });
    if (failed(mlir::verify(*copy))) {
      ++score.refused;
      continue;
    }
    std::string why = judge(specimen, mutant);
    (why.empty() ? score.accepted : score.found) += 1;
    if (why.empty())
      llvm::outs() << "accepted: " << name << ": " << mutation.text << '\n';
  }
  llvm::outs() << name << ": " << score.found << " found, " << score.accepted << " accepted, "
               << score.refused << " refused by the verifier\n";
  llvm::outs().flush();
  return score;
}

static void run() {
  Score total;
  auto add = [&](Score score) {
    total.found += score.found;
    total.accepted += score.accepted;
  };
  // Enough keys that every ring goes round more than twice, the query's too where blocks stay, and
  // a triangle across three tiles.
  add(mutate(makeAttention("causal, D = 64", kCausal, 64, {{800, 1000}, {590, 950}})));
  add(mutate(makeAttention("causal, D = 64, 64 keys", kCausal, 64, {{800, 1000}, {590, 950}},
                           /*blockN=*/64)));
  add(mutate(makeAttention("full, D = 128", kFull, 128, {{200, 900}, {128, 760}})));
  add(mutate(makeAttention("causal, D = 128, three stages", kCausal, 128, {{900, 900}, {520, 1000}},
                           /*blockN=*/64, /*stages=*/3)));
  add(mutate(makeGathered()));
  add(mutate(makeForward()));
  add(mutate(makeExchange()));
  EXPECT_GE(total.found, 0.97 * (total.found + total.accepted));
}

/// On a machine that is no Hopper.
static void runOn(const std::string &machine, std::initializer_list<int64_t> allStages) {
  Score total;
  for (int64_t stages : allStages) {
    std::string name = machine + ", stages " + std::to_string(stages);
    for (const Score &score :
         {mutate(makeAttention(name + ", causal", kCausal, 64, {{300, 500}, {290, 390}},
                               /*blockN=*/64, stages, machine)),
          mutate(makeAttention(name + ", full", kFull, 64, {{200, 500}, {128, 330}},
                               /*blockN=*/64, stages, machine))}) {
      total.found += score.found;
      total.accepted += score.accepted;
    }
  }
  EXPECT_GE(total.found, 0.97 * (total.found + total.accepted));
}

TEST(MutationTest, IsFound) { run(); }

/// Blocks without roles, whose threads copy and meet.
TEST(MutationTest, IsFoundInWarps) { runOn("sm_80", {1, 2}); }

/// Warps that give back what a producer fills: an arrival of each counts.
TEST(MutationTest, IsFoundInWarpsWithProducer) { runOn("sm_120a", {2, 3}); }

/// Sums in tensor memory, which threads and products share.
TEST(MutationTest, IsFoundInTensorMemory) { runOn("sm_100a", {2, 3}); }

} // namespace attn::test
