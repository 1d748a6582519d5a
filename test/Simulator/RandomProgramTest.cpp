//===- RandomProgramTest.cpp - room 6 orders any program --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Random programs of room 4 go through rooms 5 and 6. The simulator must find nothing in what comes
// out, in many interleavings, and its values must be those of the program it came from, bit by bit:
// the order of additions is the same. So must those of a program some of whose ops run late. The
// seed is new in each run and printed; these variables of
// the environment repeat a run, or make a longer one:
//
//   ATTN_PROGRAMS_SEED=7 ATTN_PROGRAMS=1000 RandomProgramTest
//
//===----------------------------------------------------------------------------------------===//

#include "test/Simulator/RandomProgram.h"
#include "lib/Support/Random.h"
#include "lib/Transforms/Tile/Delays.h"
#include "lib/Transforms/Tile/Passes.h"
#include "mlir/Parser/Parser.h"
#include "test/Simulator/Lowered.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

namespace attn::test {

/// The inputs of a program, and its output.
struct Arguments {
  explicit Arguments(const RandomProgram &program) {
    arrays.reserve(RandomProgram::numInputs + 1);
    for (unsigned i = 0; i <= RandomProgram::numInputs; ++i) {
      bool isOutput = i == RandomProgram::numInputs;
      Array &array = arrays.emplace_back(
          llvm::cantFail(Array::allocate(isOutput ? ElementKind::F32 : ElementKind::BF16,
                                         {isOutput ? program.outputRows : program.rows, 64})));
      if (!isOutput)
        fillNormal(array, i + 1);
      values.push_back(sim::Argument::of(array));
    }
  }

  std::vector<double> readOutput() {
    std::vector<double> output(arrays.back().size());
    arrays.back().read(0, output);
    return output;
  }

  std::vector<Array> arrays;
  std::vector<sim::Argument> values;
};

/// What the kernel writes; an error where the simulator objects.
static llvm::Expected<std::vector<double>> run(mlir::ModuleOp module, Arguments &arguments,
                                               unsigned seeds) {
  auto simulator = sim::Simulator::create(getKernel(module));
  if (!simulator)
    return simulator.takeError();
  if (!simulator->getFindings().empty())
    return llvm::createStringError(simulator->getFindings().front().text);
  for (unsigned seed = 0; seed < seeds; ++seed) {
    sim::Options options;
    options.seed = seed;
    options.numbers = seed == 0;
    if (options.numbers)
      arguments.arrays.back().poison();
    auto findings = simulator->run(arguments.values, options);
    if (!findings)
      return findings.takeError();
    if (!findings->empty()) {
      std::string text;
      llvm::raw_string_ostream os(text);
      findings->front().print(os);
      return llvm::createStringError(text);
    }
  }
  return arguments.readOutput();
}

/// The first element in which two outputs differ, as text.
static std::string compare(llvm::ArrayRef<double> got, llvm::ArrayRef<double> wanted) {
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != wanted[i] || std::isnan(got[i]))
      return llvm::formatv("element {0} is {1}, not {2}\n", i, got[i], wanted[i]);
  return {};
}

enum class Outcome { Right, TooLarge, Wrong };

static Outcome judge(uint64_t seed) {
  RandomProgram program(seed);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program.text, &getContext());
  if (!module)
    return ADD_FAILURE() << "seed " << seed << ": no program\n" << program.text, Outcome::Wrong;
  Arguments arguments(program);
  auto wanted = run(*module, arguments, 1);
  if (!wanted) {
    ADD_FAILURE() << "seed " << seed << ": " << toString(wanted.takeError()) << program.text;
    return Outcome::Wrong;
  }
  std::string said;
  PipelineOptions options;
  options.target = "cuda";
  mlir::PassManager pm(&getContext());
  buildPipeline(pm, options, Room::Placed, Room::Async);
  mlir::LogicalResult lowered = mlir::success();
  {
    mlir::ScopedDiagnosticHandler listen(&getContext(), [&](mlir::Diagnostic &diagnostic) {
      said += diagnostic.str() + "\n";
      return mlir::success();
    });
    lowered = pm.run(*module);
  }
  if (failed(lowered)) {
    // A block has only so much of it.
    if (said.find("bytes of shared memory") != std::string::npos)
      return Outcome::TooLarge;
    ADD_FAILURE() << "seed " << seed << ": " << said << program.text;
    return Outcome::Wrong;
  }
  auto got = run(*module, arguments, 6);
  if (!got) {
    std::string why = toString(got.takeError());
    if (why.find("registers per thread") != std::string::npos)
      return Outcome::TooLarge;
    ADD_FAILURE() << "seed " << seed << ": " << why << program.text;
    return Outcome::Wrong;
  }
  if (std::string why = compare(*got, *wanted); !why.empty()) {
    ADD_FAILURE() << "seed " << seed << ": " << why << program.text;
    return Outcome::Wrong;
  }
  return Outcome::Right;
}

/// Lets some ops of the loop be one to three turns late, and all that must be then. Whether that
/// is possible.
static bool delaySome(mlir::scf::ForOp loop, std::mt19937_64 &random) {
  auto draw = [&](uint64_t count) { return random() % count; };
  llvm::SmallVector<mlir::Block *> blocks{loop.getBody()};
  loop.getBody()->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
    if (auto branch = mlir::dyn_cast<mlir::scf::IfOp>(op))
      blocks.append({branch.thenBlock(), branch.elseBlock()});
    return mlir::isa<mlir::LoopLikeOpInterface>(op) ? mlir::WalkResult::skip()
                                                    : mlir::WalkResult::advance();
  });
  mlir::Block *block = blocks[draw(blocks.size())];
  for (mlir::Operation &op : block->without_terminator())
    if (draw(3) == 0)
      tile::setDelay(&op, 1 + draw(3));
  for (mlir::Operation &op : block->without_terminator())
    for (mlir::Operation *user : op.getUsers())
      if (mlir::Operation *reader = block->findAncestorOpInBlock(*user);
          reader != block->getTerminator())
        tile::setDelay(reader, std::max(tile::getDelay(reader), tile::getDelay(&op)));
  tile::Misfit misfit;
  mlir::FailureOr<tile::LateOps> late = tile::findLateOps(loop, misfit);
  if (succeeded(late))
    return !late->ops.empty();
  for (mlir::Operation &op : *block)
    tile::setDelay(&op, 0);
  return false;
}

/// The number of loops with late ops.
static unsigned judgeDelays(uint64_t seed) {
  RandomProgram program(seed);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(program.text, &getContext());
  Arguments arguments(program);
  auto wanted = run(*module, arguments, 1);
  if (!wanted)
    return ADD_FAILURE() << "seed " << seed << ": " << toString(wanted.takeError()), 0;
  std::mt19937_64 random(seed);
  unsigned count = 0;
  module->walk([&](mlir::scf::ForOp loop) {
    for (unsigned attempt = 0; attempt < 8; ++attempt)
      if (delaySome(loop, random)) {
        ++count;
        break;
      }
  });
  std::string marked;
  llvm::raw_string_ostream(marked) << *module;
  mlir::PassManager pm(&getContext());
  pm.addPass(tile::createPipelineStepsPass());
  if (failed(pm.run(*module)))
    return ADD_FAILURE() << "seed " << seed << ": no pipeline\n" << marked, 0;
  auto got = run(*module, arguments, 1);
  std::string why = got ? compare(*got, *wanted) : toString(got.takeError());
  if (!why.empty()) {
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    ADD_FAILURE() << "seed " << seed << ": " << why << marked << text;
  }
  return count;
}

static uint64_t readVariable(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Told before anything else, for a program may end the test.
static uint64_t readSeed() {
  uint64_t seed = readVariable("ATTN_PROGRAMS_SEED", std::random_device()() % 1000000000);
  llvm::outs() << "ATTN_PROGRAMS_SEED=" << seed << "\n";
  llvm::outs().flush();
  return seed;
}

TEST(RandomProgramTest, IsOrdered) {
  uint64_t seed = readSeed();
  uint64_t count = readVariable("ATTN_PROGRAMS", 50), right = 0, tooLarge = 0;
  for (uint64_t i = 0; i < count && !HasFailure(); ++i) {
    Outcome outcome = judge(seed + i);
    right += outcome == Outcome::Right;
    tooLarge += outcome == Outcome::TooLarge;
  }
  llvm::outs() << right << " of " << count << " programs right, " << tooLarge
               << " too large for a block\n";
  EXPECT_LE(tooLarge, count / 4);
}

/// Programs that ended in a fault once: loops whose branches read a place.
TEST(RandomProgramTest, FaultsOfThePast) {
  for (uint64_t seed : {153016751, 191585513})
    EXPECT_NE(judge(seed), Outcome::Wrong);
}

TEST(RandomProgramTest, DelaysChangeNothing) {
  uint64_t seed = readSeed();
  uint64_t count = readVariable("ATTN_PROGRAMS", 50), loops = 0;
  for (uint64_t i = 0; i < count && !HasFailure(); ++i)
    loops += judgeDelays(seed + i);
  llvm::outs() << loops << " loops with delays in " << count << " programs\n";
  EXPECT_GE(loops, count / 4);
}

} // namespace attn::test
