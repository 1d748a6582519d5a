//===- InterpreterTest.cpp - every stage of rooms 1 to 3 means the same -----------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Runs attention of many variants and shapes after each pass, without code generation, and compares
// the results to f64 rounding. Counts the tiles of masks whose number is known on paper, and proves
// them against the masks that the user wrote.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Interpreter/Interpreter.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "lib/Interpreter/MaskProof.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Transforms/Attn/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------------------------===//

namespace {
using Extents = std::map<char, int64_t>; // B H G (Hkv) M N R

struct Argument {
  enum Kind { Normal, Sorted, Length } kind;
  std::string name, type, dims;
};

/// A function with one attention; `D` and `Dv` are static, everything else is dynamic.
struct Problem {
  std::string name, clauses;
  std::vector<Argument> extra = {};
  std::string prologue = "";
  int64_t headDim = 8, valueDim = 8;
  /// The whole text, if it is not that of one attention.
  std::string source = "";

  std::string text() const {
    if (!source.empty())
      return source;
    std::string q = tensor("?x?x?x" + std::to_string(headDim));
    std::string v = tensor("?x?x?x" + std::to_string(valueDim));
    std::string text = "func.func @f(%q: " + q + ", %k: " + q + ", %v: " + v;
    for (const Argument &argument : extra)
      text += ", %" + argument.name + ": " + argument.type;
    return text + ") -> (" + v + ", tensor<?x?x?xf32>) {\n" + prologue +
           "  %o, %l = attn.attention %q, %k, %v " + clauses + "\n    : " + q + ", " + q + ", " +
           v + " -> " + v + ", tensor<?x?x?xf32>\n  return %o, %l : " + v +
           ", tensor<?x?x?xf32>\n}\n";
  }
  static std::string tensor(const std::string &shape) { return "tensor<" + shape + "xf32>"; }
};

/// What a pass pipeline makes of a problem.
struct Stage {
  std::string name;
  std::function<void(OpPassManager &)> build;
};

class Inputs {
public:
  Inputs(const Problem &problem, Extents extents, unsigned seed, bool hasData = true)
      : random(seed), hasData(hasData), extents(extents) {
    extents['D'] = problem.headDim, extents['V'] = problem.valueDim;
    this->extents = extents;
    add({Argument::Normal, "q", "", "BHMD"});
    add({Argument::Normal, "k", "", "BGND"});
    add({Argument::Normal, "v", "", "BGNV"});
    for (const Argument &argument : problem.extra)
      add(argument);
  }

  std::vector<RuntimeValue> values;

private:
  void add(const Argument &argument) {
    if (argument.dims.empty()) {
      values.push_back(RuntimeValue::real(0.3));
      return;
    }
    SmallVector<int64_t> shape;
    for (char letter : argument.dims)
      shape.push_back(extents[letter]);
    bool isFloat = argument.kind == Argument::Normal;
    TensorRef tensor = llvm::cantFail(DenseTensor::create(shape, isFloat, hasData || !isFloat));
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < tensor->size() && tensor->hasData(); ++i) {
      Lane &lane = tensor->data()[i];
      if (isFloat)
        lane.f = normal(random);
      else if (argument.kind == Argument::Length)
        lane.i = std::uniform_int_distribution<int64_t>(0, extents['N'])(random);
      else // Documents of 11 elements on average.
        lane.i = i % shape.back() ? tensor->data()[i - 1].i + (random() % 11 == 0) : 0;
    }
    values.push_back(tensor);
  }

  std::mt19937 random;
  bool hasData;
  Extents extents;
};

class InterpreterTest : public testing::Test {
protected:
  InterpreterTest() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<AttnDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                        gpu::GPUDialect, linalg::LinalgDialect, math::MathDialect,
                        memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect>();
  }

  OwningOpRef<ModuleOp> make(const Problem &problem, const Stage &stage) {
    auto module = parseSourceString<ModuleOp>(problem.text(), &context, "problem.mlir");
    if (!module) {
      ADD_FAILURE() << problem.text();
      return nullptr;
    }
    PassManager pm(&context);
    stage.build(pm);
    if (failed(pm.run(*module))) {
      ADD_FAILURE() << problem.name << " does not reach stage " << stage.name;
      return nullptr;
    }
    return module;
  }

  static func::FuncOp entry(OwningOpRef<ModuleOp> &module) {
    return *module->getOps<func::FuncOp>().begin();
  }

  std::optional<InterpreterResult> run(OwningOpRef<ModuleOp> &module, const Inputs &inputs,
                                       const InterpreterOptions &options = {}) {
    llvm::Expected<InterpreterResult> result = interpret(entry(module), inputs.values, options);
    if (result)
      return std::move(*result);
    ADD_FAILURE() << llvm::toString(result.takeError());
    return std::nullopt;
  }

  /// Counts without numbers, and the proof.
  std::optional<InterpreterCounts> count(const Problem &problem, Extents extents, int64_t blockM,
                                         int64_t blockN, int64_t splits = 1);

  MLIRContext context;
};
} // namespace

static Stage toOnline(Room room, int64_t blockM = 0, int64_t blockN = 0, int64_t splits = 1) {
  return {"online", [=](OpPassManager &pm) {
            PipelineOptions options;
            Overrides said;
            if (blockM)
              said.set(&Schedule::blockM, blockM);
            if (blockN)
              said.set(&Schedule::blockN, blockN);
            said.set(&Schedule::splits, splits);
            options.schedule = said;
            buildPipeline(pm, options, room);
          }};
}

static Stage named(std::string name, Stage stage) {
  stage.name = std::move(name);
  return stage;
}

/// Between the passes of room 3, where the pipeline has no door.
static Stage unfinished(std::string name, bool withLoop) {
  return {std::move(name), [=](OpPassManager &pm) {
            toOnline(Room::Grid, 16, 24).build(pm);
            pm.addPass(createOnlineSoftmaxPass());
            if (withLoop)
              pm.addPass(createTileKVLoopPass());
          }};
}

std::optional<InterpreterCounts> InterpreterTest::count(const Problem &problem, Extents extents,
                                                        int64_t blockM, int64_t blockN,
                                                        int64_t splits) {
  OwningOpRef<ModuleOp> original = make(problem, toOnline(Room::Problem));
  OwningOpRef<ModuleOp> online = make(problem, toOnline(Room::Online, blockM, blockN, splits));
  if (!original || !online)
    return std::nullopt;
  Inputs inputs(problem, extents, /*seed=*/1, /*hasData=*/false);
  llvm::Expected<OriginalMasks> masks = OriginalMasks::capture(entry(original), inputs.values);
  if (!masks) {
    ADD_FAILURE() << llvm::toString(masks.takeError());
    return std::nullopt;
  }
  InterpreterOptions options;
  options.countOnly = true;
  options.proveAgainst = &*masks;
  std::optional<InterpreterResult> result = run(online, inputs, options);
  return result ? std::optional(result->counts) : std::nullopt;
}

//===----------------------------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------------------------===//

static const Argument idsQ = {Argument::Sorted, "ids_q", "tensor<?x?xi32>", "BM"};
static const Argument idsK = {Argument::Sorted, "ids_k", "tensor<?x?xi32>", "BN"};
static const Argument lengths = {Argument::Length, "lengths", "tensor<?xi32>", "B"};
static const Argument slopes = {Argument::Normal, "slopes", "tensor<?xf32>", "H"};
static const Argument bias = {Argument::Normal, "bias", "tensor<?x?xf32>", "HR"};
static const Argument sink = {Argument::Normal, "sink", "tensor<?xf32>", "H"};
static const Argument scale = {Argument::Normal, "scale", "f32", ""};

static const std::string assumeIds =
    "  %sorted_q = attn.assume nondecreasing %ids_q : tensor<?x?xi32>\n"
    "  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>\n";
static const std::string documents =
    "#attn.document] captures(%sorted_q, %sorted_k : tensor<?x?xi32>, tensor<?x?xi32>)";

static const Problem problems[] = {
    {"plain", ""},
    {"causal top left", "variants [#attn.causal<top_left>]"},
    {"causal bottom right", "variants [#attn.causal<bottom_right>]"},
    {"window", "variants [#attn.window<20, 5, top_left>]"},
    {"window to the right", "variants [#attn.window<-1, 3, bottom_right>]"},
    {"window to the left", "variants [#attn.window<10, -1, bottom_right>]"},
    {"prefix", "variants [#attn.prefix<37, bottom_right>]"},
    {"prefix lengths",
     "variants [#attn.prefix<-1, top_left>] captures(%lengths : tensor<?xi32>)",
     {lengths}},
    {"chunked", "variants [#attn.chunked<40, top_left>]"},
    {"chunked causal", "variants [#attn.chunked<24, bottom_right>, #attn.causal<bottom_right>]"},
    {"documents", "variants [" + documents, {idsQ, idsK}, assumeIds},
    {"documents causal", "variants [#attn.causal<top_left>, " + documents, {idsQ, idsK}, assumeIds},
    {"documents of unknown order",
     "variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi32>)",
     {idsQ, idsK}},
    {"key lengths", "variants [#attn.key_length] captures(%lengths : tensor<?xi32>)", {lengths}},
    {"softcap", "variants [#attn.softcap<1.5>, #attn.causal<top_left>]"},
    {"alibi", "variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf32>)", {slopes}},
    {"relative bias",
     "variants [#attn.relative_bias<9, top_left>] captures(%bias : tensor<?x?xf32>)",
     {bias}},
    {"sink", "variants [#attn.causal<bottom_right>] sink(%sink : tensor<?xf32>)", {sink}},
    {"scale", "scale(%scale)", {scale}},
    {"D and Dv", "variants [#attn.causal<top_left>]", {}, "", 6, 10},
};

static void expectSame(const InterpreterResult &result, const InterpreterResult &reference,
                       double tolerance = 1e-9) {
  ASSERT_EQ(result.values.size(), reference.values.size());
  for (size_t i = 0; i < result.values.size(); ++i) {
    const DenseTensor &got = *result.values[i].getTensor();
    const DenseTensor &wanted = *reference.values[i].getTensor();
    ASSERT_EQ(got.getShape(), wanted.getShape());
    for (int64_t at = 0; at < got.size(); ++at) {
      double x = got.data()[at].f, r = wanted.data()[at].f;
      ASSERT_TRUE(x == r || std::fabs(x - r) <= tolerance * std::max(1.0, std::fabs(r)))
          << "result " << i << ", element " << at << ": " << x << " instead of " << r;
    }
  }
}

static const int64_t lengthsToTry[] = {0, 1, 7, 127, 129};

TEST_F(InterpreterTest, StagesAgree) {
  const Stage problemStage = toOnline(Room::Problem);
  const Stage stages[] = {named("grid", toOnline(Room::Grid, 16, 24)),
                          unfinished("online softmax", /*withLoop=*/false),
                          unfinished("key loop", /*withLoop=*/true),
                          named("online", toOnline(Room::Online, 16, 24)),
                          named("wide online", toOnline(Room::Online, 48, 16)),
                          named("split", toOnline(Room::Online, 16, 24, 3))};
  for (const Problem &problem : problems) {
    SCOPED_TRACE(problem.name);
    OwningOpRef<ModuleOp> original = make(problem, problemStage);
    ASSERT_TRUE(original);
    std::vector<OwningOpRef<ModuleOp>> modules;
    for (const Stage &stage : stages) {
      modules.push_back(make(problem, stage));
      ASSERT_TRUE(modules.back());
    }
    unsigned seed = 0;
    for (int64_t m : lengthsToTry)
      for (int64_t n : lengthsToTry) {
        SCOPED_TRACE("M=" + std::to_string(m) + " N=" + std::to_string(n));
        // Key heads shared by two query heads, in every other shape.
        Inputs inputs(problem,
                      {{'B', 2}, {'H', 2}, {'G', 2 - (m + n) % 2}, {'M', m}, {'N', n}, {'R', 17}},
                      ++seed);
        std::optional<InterpreterResult> wanted = run(original, inputs);
        ASSERT_TRUE(wanted);
        llvm::Expected<OriginalMasks> masks =
            OriginalMasks::capture(entry(original), inputs.values);
        ASSERT_TRUE(bool(masks)) << llvm::toString(masks.takeError());
        for (auto [stage, module] : llvm::zip_equal(stages, modules)) {
          SCOPED_TRACE(stage.name);
          InterpreterOptions options;
          if (stage.name != "grid")
            options.proveAgainst = &*masks;
          std::optional<InterpreterResult> result = run(module, inputs, options);
          ASSERT_TRUE(result);
          expectSame(*result, *wanted);
          if (result->counts.proof)
            EXPECT_TRUE(result->counts.proof->holds()) << result->counts.proof->first;
          if (HasFailure())
            return;
        }
      }
  }
}

/// Attention with `problem`'s clauses and its gradients, whose inputs are those of the problem and
/// the output's gradient.
static Problem withGradients(Problem problem) {
  std::string q = Problem::tensor("?x?x?x" + std::to_string(problem.headDim)),
              v = Problem::tensor("?x?x?x" + std::to_string(problem.valueDim)),
              row = Problem::tensor("?x?x?");
  problem.extra.push_back({Argument::Normal, "do", v, "BHMV"});
  std::string arguments = "%q: " + q + ", %k: " + q + ", %v: " + v;
  for (const Argument &argument : problem.extra)
    arguments += ", %" + argument.name + ": " + argument.type;
  problem.source = "func.func @f(" + arguments + ") -> (" + q + ", " + q + ", " + v + ") {\n" +
                   problem.prologue + "  %o, %l = attn.attention %q, %k, %v " + problem.clauses +
                   "\n    : " + q + ", " + q + ", " + v + " -> " + v + ", " + row +
                   "\n  %g:3 = attn.attention_grad %q, %k, %v, %o, %l, %do " + problem.clauses +
                   "\n    : " + q + ", " + q + ", " + v + ", " + v + ", " + row + ", " + v +
                   " -> d_query(" + q + ") d_key(" + q + ") d_value(" + v +
                   ")\n  return %g#0, %g#1, %g#2 : " + q + ", " + q + ", " + v + "\n}\n";
  return problem;
}

/// Tiles of rows and of keys, both passes, with the proof of what they visit.
TEST_F(InterpreterTest, GradientStagesAgree) {
  const Stage stages[] = {named("grid", toOnline(Room::Grid, 16, 24)),
                          named("online", toOnline(Room::Online, 16, 24)),
                          named("wide online", toOnline(Room::Online, 48, 16))};
  for (const Problem &forward : problems) {
    if (!forward.source.empty() || StringRef(forward.clauses).contains("score("))
      continue;
    SCOPED_TRACE(forward.name);
    Problem problem = withGradients(forward);
    OwningOpRef<ModuleOp> original = make(problem, toOnline(Room::Problem));
    ASSERT_TRUE(original);
    for (const Stage &stage : stages) {
      SCOPED_TRACE(stage.name);
      OwningOpRef<ModuleOp> module = make(problem, stage);
      ASSERT_TRUE(module);
      for (auto [m, n] : {std::pair(1, 1), {0, 5}, {5, 0}, {7, 50}, {50, 7}, {49, 49}}) {
        SCOPED_TRACE("M=" + std::to_string(m) + " N=" + std::to_string(n));
        Inputs inputs(problem, {{'B', 2}, {'H', 2}, {'G', 1}, {'M', m}, {'N', n}, {'R', 17}}, m);
        std::optional<InterpreterResult> wanted = run(original, inputs);
        llvm::Expected<OriginalMasks> masks =
            OriginalMasks::capture(entry(original), inputs.values);
        ASSERT_TRUE(wanted && bool(masks));
        InterpreterOptions options;
        if (stage.name != "grid")
          options.proveAgainst = &*masks;
        std::optional<InterpreterResult> result = run(module, inputs, options);
        ASSERT_TRUE(result);
        expectSame(*result, *wanted, 1e-7);
        if (result->counts.proof)
          EXPECT_TRUE(result->counts.proof->holds()) << result->counts.proof->first;
        if (HasFailure())
          return;
      }
    }
  }
}

TEST_F(InterpreterTest, AgreesWithTheLinalgReference) {
  Stage reference = {"linalg", [](OpPassManager &pm) { buildToReferencePipeline(pm, 0); }};
  for (const Problem &problem : problems) {
    SCOPED_TRACE(problem.name);
    OwningOpRef<ModuleOp> original = make(problem, toOnline(Room::Problem));
    OwningOpRef<ModuleOp> linalg = make(problem, reference);
    ASSERT_TRUE(original && linalg);
    for (auto [m, n] : {std::pair(13, 13), {5, 17}, {17, 5}, {0, 3}, {3, 0}}) {
      Inputs inputs(problem, {{'B', 1}, {'H', 2}, {'G', 1}, {'M', m}, {'N', n}, {'R', 17}}, m);
      std::optional<InterpreterResult> wanted = run(linalg, inputs), got = run(original, inputs);
      ASSERT_TRUE(wanted && got);
      expectSame(*got, *wanted);
    }
  }
}

//===----------------------------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------------------------===//

static Extents square(int64_t m, int64_t n) {
  return {{'B', 1}, {'H', 1}, {'G', 1}, {'M', m}, {'N', n}};
}

/// A key tile shorter than the others has its mask whether it needs it or not.
static void expectExact(const InterpreterCounts &counts, bool hasShortTiles = false) {
  EXPECT_EQ(counts.emptyTiles, 0);
  if (!hasShortTiles)
    EXPECT_EQ(counts.needlessMasks, 0);
  ASSERT_TRUE(counts.proof);
  EXPECT_EQ(counts.proof->droppedInUnmasked, 0);
  EXPECT_EQ(counts.proof->keptOutside, 0);
  EXPECT_EQ(counts.proof->disagreements, 0);
  EXPECT_EQ(counts.proof->revisited, 0);
  EXPECT_EQ(counts.proof->first, "");
}

TEST_F(InterpreterTest, CausalVisitsTheTriangle) {
  Problem problem = {"causal", "variants [#attn.causal<top_left>]", {}, "", 64, 64};
  std::optional<InterpreterCounts> counts = count(problem, square(4096, 4096), 64, 64);
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->tiles, 64 * 65 / 2);
  EXPECT_EQ(counts->maskedTiles, 64);
  EXPECT_EQ(counts->unmaskedTiles, 64 * 63 / 2);
  EXPECT_EQ(counts->maskedElements, 64 * 64 * 64);
  expectExact(*counts);
}

TEST_F(InterpreterTest, TilesAreExact) {
  for (const char *mask :
       {"#attn.causal<bottom_right>", "#attn.window<200, 30, top_left>",
        "#attn.window<100, 0, bottom_right>", "#attn.window<-1, 70, bottom_right>",
        "#attn.prefix<300, top_left>", "#attn.prefix<77, bottom_right>",
        "#attn.chunked<128, top_left>", "#attn.chunked<100, bottom_right>"}) {
    SCOPED_TRACE(mask);
    Problem problem = {mask, "variants [" + std::string(mask) + "]"};
    for (auto [m, n] : {std::pair(512, 512), {512, 768}, {768, 512}, {300, 417}, {1, 1000}})
      for (int64_t splits : {1, 3}) {
        SCOPED_TRACE("M=" + std::to_string(m) + " N=" + std::to_string(n) + " in " +
                     std::to_string(splits));
        std::optional<InterpreterCounts> counts = count(problem, square(m, n), 64, 32, splits);
        ASSERT_TRUE(counts);
        // Parts end where the mask does, which may be within a tile.
        expectExact(*counts, n % 32 != 0 || splits > 1);
      }
  }
}

/// With several attentions in a function, each is proved against its own mask.
TEST_F(InterpreterTest, SeveralAttentions) {
  const std::string types = "tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32> -> "
                            "tensor<?x?x?x8xf32>";
  Problem problem = {"several", ""};
  problem.source =
      "func.func @f(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>, "
      "%v: tensor<?x?x?x8xf32>) -> (tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>) {\n"
      "  %o = attn.attention %q, %k, %v variants [#attn.causal<top_left>] : " +
      types + "\n" +
      "  %p = attn.attention %q, %k, %v variants [#attn.window<9, 9, top_left>] : " + types +
      "\n  return %o, %p : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>\n}\n";
  Extents extents = {{'B', 2}, {'H', 4}, {'G', 2}, {'M', 96}, {'N', 96}};
  std::optional<InterpreterCounts> counts = count(problem, extents, 32, 32);
  ASSERT_TRUE(counts);
  // Three row blocks: the triangle of tiles, and the band of three.
  EXPECT_EQ(counts->tiles, 2 * 4 * (6 + 7));
  EXPECT_EQ(counts->maskedTiles, 2 * 4 * (3 + 7));
  expectExact(*counts);
}

/// Read to the letter, the f32 constants of room 3 cost seven digits: the option is not idle.
TEST_F(InterpreterTest, ConstantsAreF32ToTheLetter) {
  Problem problem = {"plain", "", {}, "", 6, 8};
  OwningOpRef<ModuleOp> original = make(problem, toOnline(Room::Problem));
  OwningOpRef<ModuleOp> online = make(problem, toOnline(Room::Online, 16, 16));
  ASSERT_TRUE(original && online);
  Inputs inputs(problem, square(40, 40), 3);
  InterpreterOptions options;
  options.exactConstants = false;
  std::optional<InterpreterResult> wanted = run(original, inputs, options);
  std::optional<InterpreterResult> got = run(online, inputs, options);
  ASSERT_TRUE(wanted && got);
  expectSame(*got, *wanted, 1e-6);
  double first = got->values[0].getTensor()->data()[0].f;
  EXPECT_GT(std::fabs(first - wanted->values[0].getTensor()->data()[0].f), 1e-11);
}

/// The proof must be able to fail.
TEST_F(InterpreterTest, ProofFindsMistakes) {
  auto prove = [&](const char *original, const char *other) -> MaskProof {
    OwningOpRef<ModuleOp> problem =
        make({"original", "variants [" + std::string(original) + "]"}, toOnline(Room::Problem));
    OwningOpRef<ModuleOp> online =
        make({"other", "variants [" + std::string(other) + "]"}, toOnline(Room::Online, 16, 16));
    Inputs inputs({"", ""}, square(64, 64), 1, /*hasData=*/false);
    llvm::Expected<OriginalMasks> masks = OriginalMasks::capture(entry(problem), inputs.values);
    if (!masks) {
      ADD_FAILURE() << llvm::toString(masks.takeError());
      return {};
    }
    InterpreterOptions options;
    options.countOnly = true;
    options.proveAgainst = &*masks;
    std::optional<InterpreterResult> result = run(online, inputs, options);
    return result ? *result->counts.proof : MaskProof();
  };
  // The diagonal above the causal one is dropped; 4 tiles on the diagonal hold 15 of its elements,
  // the 3 others lie in tiles that causal does not visit.
  MaskProof narrow = prove("#attn.window<-1, 1, top_left>", "#attn.causal<top_left>");
  EXPECT_EQ(narrow.keptOutside, 3);
  EXPECT_EQ(narrow.disagreements, 4 * 15);
  EXPECT_EQ(narrow.droppedInUnmasked, 0);
  EXPECT_NE(narrow.first, "");
  MaskProof wide = prove("#attn.window<20, 0, top_left>", "#attn.causal<top_left>");
  EXPECT_EQ(wide.keptOutside, 0);
  // Pairs with m - n > 20: 43 * 44 / 2, and no tile on the diagonal has one.
  EXPECT_EQ(wide.droppedInUnmasked, 43 * 44 / 2);
  EXPECT_FALSE(wide.holds());
}

//===----------------------------------------------------------------------------------------===//
// Mistakes
//===----------------------------------------------------------------------------------------===//

TEST_F(InterpreterTest, MistakesAreErrors) {
  auto errorOf = [&](const std::string &text, ArrayRef<RuntimeValue> arguments) -> std::string {
    auto module = parseSourceString<ModuleOp>(text, &context, "bad.mlir");
    if (!module)
      return "does not parse";
    InterpreterOptions options;
    options.maxOperations = 1000;
    llvm::Expected<InterpreterResult> result = interpret(entry(module), arguments, options);
    return result ? "" : llvm::toString(result.takeError());
  };
  RuntimeValue four = llvm::cantFail(DenseTensor::create({4}, true)),
               zero = RuntimeValue::integer(0), ten = RuntimeValue::integer(10);
  EXPECT_EQ(errorOf("func.func @f(%a: i32) {\n  %b = arith.divsi %a, %a : i32\n  return\n}", zero),
            "bad.mlir:2:8: 'arith.divsi': undefined: division by zero");
  EXPECT_EQ(errorOf("func.func @f(%i: index, %t: tensor<?xf32>) {\n"
                    "  %x = tensor.extract %t[%i] : tensor<?xf32>\n  return\n}",
                    {ten, four}),
            "bad.mlir:2:8: 'tensor.extract': expected an index below 4 in dimension 0, got 10");
  EXPECT_EQ(errorOf("func.func @f(%i: index, %t: tensor<?xf32>) {\n"
                    "  %x = tensor.extract_slice %t[1] [%i] [1] : tensor<?xf32> to tensor<?xf32>\n"
                    "  return\n}",
                    {ten, four}),
            "bad.mlir:2:8: 'tensor.extract_slice': expected a slice within dimension 0 of extent "
            "4, got offset 1, size 10, stride 1");
  EXPECT_EQ(errorOf("func.func @f(%t: tensor<3xf32>) {\n  return\n}", four),
            "bad.mlir:1:1: 'func.func': expected tensor<3xf32>, got a tensor of floats of "
            "shape 4");
  EXPECT_EQ(errorOf("func.func @f(%t: tensor<4xf32>) {\n  return\n}", zero),
            "bad.mlir:1:1: 'func.func': expected a tensor, got a number");
  EXPECT_EQ(errorOf("func.func @f() {\n  return\n}", zero),
            "bad.mlir:1:1: 'func.func': expected 0 arguments, got 1");
  EXPECT_EQ(errorOf("func.func @f(%a: vector<4xf32>) {\n  return\n}", zero),
            "bad.mlir:1:1: 'func.func': expected values of ranked tensors and numbers");
  EXPECT_EQ(errorOf("func.func @f() {\n  %m = memref.alloc() : memref<4xf32>\n  return\n}", {}),
            "bad.mlir:2:8: 'memref.alloc': expected an op that the interpreter knows");
  EXPECT_EQ(errorOf("func.func @f() {\n  call @f() : () -> ()\n  return\n}", {}),
            "bad.mlir:1:1: 'func.func': expected calls at most 64 deep");
  EXPECT_EQ(errorOf("func.func @f() {\n  %t = arith.constant true\n  scf.while : () -> () {\n"
                    "    scf.condition(%t)\n  } do {\n    scf.yield\n  }\n  return\n}",
                    {}),
            "bad.mlir:3:3: 'scf.while': expected an end after 1000 operations");
  auto zeros = [](ArrayRef<int64_t> shape) -> RuntimeValue {
    return llvm::cantFail(DenseTensor::create(shape, true));
  };
  EXPECT_EQ(errorOf("func.func @f(%o: tensor<?x?x?x4xf32>, %l: tensor<?x?x?xf32>) {\n"
                    "  %n, %d = attn.row_delta %o, %o, %l : tensor<?x?x?x4xf32>, "
                    "tensor<?x?x?x4xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>, "
                    "tensor<?x?x?xf32>\n  return\n}",
                    {zeros({1, 2, 3, 4}), zeros({1, 2, 5})}),
            "bad.mlir:2:12: 'attn.row_delta': expected output, lse and their gradients of the "
            "same rows");
}
