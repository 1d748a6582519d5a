//===- ExecutionTest.cpp - kernels against the f64 reference -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each problem (a variant, a type, D, Dv, a ratio of heads) is compiled once for the CPU and once as the reference, and run
// at every length on fresh random inputs, into outputs poisoned with NaN. Bounds: f32 2e-5; f16 and bf16 twice the error of
// PyTorch 2.13 in that type on such inputs (bench/results/cpu-error-bounds.json).
//
//===----------------------------------------------------------------------===//

#include "lib/Support/Compare.h"
#include "lib/Support/Random.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/Invoke.h"
#include "lib/Tools/AttnOpt/Registration.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace attn;

namespace {

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

/// A captured tensor: its MLIR type, its shape from (B, H, M, N), its contents.
struct Capture {
  enum Kind { Sorted, Lengths, Slopes, Bias, Sink } kind;
  const char *name, *type;
};

const Capture kQueryIds = {Capture::Sorted, "%ids_q", "tensor<?x?xi32>"};
const Capture kKeyIds = {Capture::Sorted, "%ids_k", "tensor<?x?xi32>"};
const Capture kLengths = {Capture::Lengths, "%lengths", "tensor<?xi32>"};
const Capture kSlopes = {Capture::Slopes, "%slopes", "tensor<?xf32>"};
const Capture kBias = {Capture::Bias, "%bias", "tensor<?x?xbf16>"};
const Capture kSink = {Capture::Sink, "%sink", "tensor<?xf32>"};

/// What a test is about: the text between the operands and the types, and what it reads.
struct Variant {
  const char *name;
  std::string text;
  std::vector<Capture> captures;
  /// Ops before the attention.
  std::string prologue = "";
};

struct Problem {
  const char *type = "f32";
  int64_t d = 64, dv = 64;
  int64_t heads = 2, keyHeads = 2;
  bool withLse = false;
  int64_t blockM = 0, blockN = 0, splits = 1;
  /// (b, s, h, d) in memory instead of (b, h, s, d).
  bool rowsFirst = false;
};

struct Lengths {
  int64_t m, n;
};

/// M != N both ways, single rows and keys, one below and one above the tiles, nothing at all.
const std::vector<Lengths> kLengthsAll = {{0, 5},     {5, 0},     {0, 0},     {1, 1},     {1, 129},  {129, 1},
                                          {7, 127},   {127, 7},   {128, 128}, {129, 128}, {64, 192}, {128, 129},
                                          {1000, 129}, {129, 1000}, {300, 300}};
const std::vector<Lengths> kLengthsFew = {{1, 1}, {129, 127}, {127, 257}, {257, 257}};

std::vector<Variant> getVariants() {
  std::vector<Variant> variants = {
      {"Full", "", {}},
      {"CausalTopLeft", "variants [#attn.causal<top_left>]", {}},
      {"CausalBottomRight", "variants [#attn.causal<bottom_right>]", {}},
      {"Window", "variants [#attn.window<100, 30, bottom_right>]", {}},
      {"WindowLeftOnly", "variants [#attn.window<64, -1, top_left>]", {}},
      {"CausalWindow", "variants [#attn.causal<bottom_right>, #attn.window<70, -1, bottom_right>]", {}},
      {"Prefix", "variants [#attn.prefix<90, top_left>]", {}},
      {"PrefixCaptured", "variants [#attn.prefix<-1, bottom_right>] captures(%lengths : tensor<?xi32>)", {kLengths}},
      {"Chunked", "variants [#attn.chunked<48, bottom_right>]", {}},
      {"ChunkedCausal", "variants [#attn.chunked<100, top_left>, #attn.causal<top_left>]", {}},
      {"KeyLength", "variants [#attn.key_length] captures(%lengths : tensor<?xi32>)", {kLengths}},
      {"Document",
       "variants [#attn.document] captures(%sorted_q, %sorted_k : tensor<?x?xi32>, tensor<?x?xi32>)",
       {kQueryIds, kKeyIds},
       "  %sorted_q = attn.assume nondecreasing %ids_q : tensor<?x?xi32>\n"
       "  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>\n"},
      {"DocumentUnknown",
       "variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi32>)",
       {kQueryIds, kKeyIds}},
      {"DocumentCausal",
       "variants [#attn.document, #attn.causal<bottom_right>] captures(%sorted_q, %sorted_k : tensor<?x?xi32>, "
       "tensor<?x?xi32>)",
       {kQueryIds, kKeyIds},
       "  %sorted_q = attn.assume nondecreasing %ids_q : tensor<?x?xi32>\n"
       "  %sorted_k = attn.assume nondecreasing %ids_k : tensor<?x?xi32>\n"},
      {"Softcap", "variants [#attn.softcap<2.0 : f32>]", {}},
      {"SoftcapCausal", "variants [#attn.softcap<30.0 : f32>, #attn.causal<bottom_right>]", {}},
      {"Alibi", "variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf32>)", {kSlopes}},
      {"AlibiCausal",
       "variants [#attn.alibi<top_left>, #attn.causal<top_left>] captures(%slopes : tensor<?xf32>)",
       {kSlopes}},
      {"RelativeBias", "variants [#attn.relative_bias<40, bottom_right>] captures(%bias : tensor<?x?xbf16>)", {kBias}},
      {"AllScores",
       "variants [#attn.softcap<5.0 : f32>, #attn.alibi<bottom_right>, #attn.relative_bias<40, top_left>, "
       "#attn.causal<bottom_right>] captures(%slopes, %bias : tensor<?xf32>, tensor<?x?xbf16>)",
       {kSlopes, kBias}},
      {"Sink", "sink(%sink : tensor<?xf32>)", {kSink}},
      {"SinkCausal", "variants [#attn.causal<bottom_right>] sink(%sink : tensor<?xf32>)", {kSink}},
      {"KeepsNothing", "mask(%b, %h, %m, %n) {\n    %no = arith.constant false\n    attn.yield %no : i1\n  }", {}},
      {"SinkKeepsNothing",
       "sink(%sink : tensor<?xf32>) mask(%b, %h, %m, %n) {\n    %no = arith.constant false\n    attn.yield %no : i1\n  }",
       {kSink}},
      {"SinksAndWindow",
       "mask(%b, %h, %m, %n) {\n"
       "    %c4 = arith.constant 4 : index\n    %c60 = arith.constant 60 : index\n"
       "    %first = arith.cmpi slt, %n, %c4 : index\n    %low = arith.subi %m, %c60 : index\n"
       "    %near = arith.cmpi sge, %n, %low : index\n    %some = arith.ori %first, %near : i1\n"
       "    %past = arith.cmpi sle, %n, %m : index\n    %keep = arith.andi %some, %past : i1\n"
       "    attn.yield %keep : i1\n  }",
       {}},
      {"Undecidable",
       "mask(%b, %h, %m, %n) {\n"
       "    %c3 = arith.constant 3 : index\n    %c0 = arith.constant 0 : index\n"
       "    %mn = arith.muli %m, %n : index\n    %r = arith.remui %mn, %c3 : index\n"
       "    %keep = arith.cmpi ne, %r, %c0 : index\n    attn.yield %keep : i1\n  }",
       {}},
      {"ScoreDropsAll",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %ninf = arith.constant 0xFF800000 : f32\n    %c1 = arith.constant 1 : index\n"
       "    %drop = arith.cmpi eq, %m, %c1 : index\n    %t = arith.select %drop, %ninf, %s : f32\n"
       "    attn.yield %t : f32\n  }",
       {}},
      {"ScoreMath",
       "score(%s, %b, %h, %m, %n) {\n"
       "    %c = arith.constant 0.25 : f32\n    %e = math.exp %s : f32\n    %l = math.log1p %e : f32\n"
       "    %i = arith.index_cast %n : index to i32\n    %f = arith.sitofp %i : i32 to f32\n"
       "    %x = math.sin %f : f32\n    %y = arith.mulf %x, %c : f32\n    %t = arith.addf %l, %y : f32\n"
       "    attn.yield %t : f32\n  }",
       {}},
  };
  return variants;
}

std::string makeSource(const Variant &variant, const Problem &p) {
  std::string query = llvm::formatv("tensor<?x?x?x{0}x{1}>", p.d, p.type);
  std::string value = llvm::formatv("tensor<?x?x?x{0}x{1}>", p.dv, p.type);
  std::string lseType = "tensor<?x?x?xf32>", results = p.withLse ? value + ", " + lseType : value;
  std::string arguments = llvm::formatv("%q: {0}, %k: {0}, %v: {1}", query, value);
  for (const Capture &capture : variant.captures)
    arguments += std::string(", ") + capture.name + ": " + capture.type;
  // The variant's parts stand in the order of the syntax: variants, sink, then regions, which come last.
  return llvm::formatv("func.func @attention({0}) -> ({1}) {{\n{2}  %o{3} = attn.attention %q, %k, %v {4}\n"
                       "    : {5}, {5}, {6} -> {1}\n  return %o{7} : {1}\n}\n",
                       arguments, results, variant.prologue, p.withLse ? ":2" : "", variant.text, query, value,
                       p.withLse ? "#0, %o#1" : "");
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

class Execution {
public:
  Execution() {
    registerDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  }

  /// Compiles the problem once and checks it at every length.
  void check(const Variant &variant, const Problem &problem, const std::vector<Lengths> &lengths) {
    SCOPED_TRACE(llvm::formatv("{0} {1} D={2} Dv={3} H={4} Hkv={5}", variant.name, problem.type, problem.d, problem.dv,
                               problem.heads, problem.keyHeads)
                     .str());
    std::string source = makeSource(variant, problem);
    auto kernel = compile(source, problem, compileForCPU), reference = compile(source, problem, compileReference);
    if (!kernel || !reference)
      return;
    ++numCompiles;
    for (Lengths length : lengths)
      run(variant, problem, length, *kernel, *reference);
  }

  int numCompiles = 0, numRuns = 0;

private:
  using Compile = llvm::Expected<std::unique_ptr<CompiledKernel>> (*)(mlir::ModuleOp, const CPUOptions &);

  std::unique_ptr<CompiledKernel> compile(const std::string &source, const Problem &problem, Compile compile) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, context.get());
    EXPECT_TRUE(module) << source;
    if (!module)
      return nullptr;
    CPUOptions options;
    options.blockM = problem.blockM;
    options.blockN = problem.blockN;
    options.splits = problem.splits;
    options.jit.host = llvm::cantFail(getHostInfo());
    auto kernel = compile(*module, options);
    if (kernel)
      return std::move(*kernel);
    ADD_FAILURE() << llvm::toString(kernel.takeError()) << "\n" << source;
    return nullptr;
  }

  static Array allocate(ElementKind kind, llvm::ArrayRef<int64_t> shape, bool rowsFirst) {
    llvm::SmallVector<unsigned> order;
    if (rowsFirst && shape.size() == 4)
      order = {0, 2, 1, 3};
    return llvm::cantFail(Array::allocate(kind, shape, order));
  }

  Array makeCapture(const Capture &capture, int64_t b, int64_t h, Lengths l, uint64_t seed) {
    auto fill = [&](ElementKind kind, llvm::ArrayRef<int64_t> shape, auto function) {
      Array array = allocate(kind, shape, false);
      function(array);
      return array;
    };
    switch (capture.kind) {
    case Capture::Sorted: {
      int64_t length = capture.name == kQueryIds.name ? l.m : l.n;
      return fill(ElementKind::I32, {b, length}, [&](Array &a) { fillSorted(a, seed, 5); });
    }
    case Capture::Lengths:
      return fill(ElementKind::I32, {b}, [&](Array &a) { fillUniform(a, seed, 0, l.n + 3); });
    case Capture::Slopes:
      // ALiBi's slopes. With larger ones scores reach hundreds, whose rounding in f32 exceeds any useful bound.
      return fill(ElementKind::F32, {h}, [&](Array &a) {
        for (int64_t i = 0; i < h; ++i)
          a.dataAs<float>()[i] = std::exp2(-8.0f * float(i + 1) / float(h));
      });
    case Capture::Sink:
      return fill(ElementKind::F32, {h}, [&](Array &a) { fillNormal(a, seed); });
    case Capture::Bias:
      return fill(ElementKind::BF16, {h, 100}, [&](Array &a) { fillNormal(a, seed); });
    }
    llvm_unreachable("all kinds are handled");
  }

  void run(const Variant &variant, const Problem &p, Lengths l, CompiledKernel &kernel, CompiledKernel &reference) {
    SCOPED_TRACE(llvm::formatv("M={0} N={1}", l.m, l.n).str());
    constexpr int64_t B = 2;
    uint64_t seed = 1000 * uint64_t(++numRuns);
    std::vector<Array> inputs;
    std::vector<llvm::SmallVector<int64_t>> shapes = {
        {B, p.heads, l.m, p.d}, {B, p.keyHeads, l.n, p.d}, {B, p.keyHeads, l.n, p.dv}};
    for (const auto &shape : shapes) {
      inputs.push_back(allocate(kernel.signature.arguments[inputs.size()].kind, shape, p.rowsFirst));
      fillNormal(inputs.back(), ++seed);
    }
    for (const Capture &capture : variant.captures)
      inputs.push_back(makeCapture(capture, B, p.heads, l, ++seed));

    llvm::SmallVector<llvm::SmallVector<int64_t>> outputs = {{B, p.heads, l.m, p.dv}};
    if (p.withLse)
      outputs.push_back({B, p.heads, l.m});
    std::vector<Array> results = call(kernel, inputs, outputs, p.rowsFirst);
    std::vector<Array> expected = call(reference, inputs, outputs, false);
    for (auto [i, result] : llvm::enumerate(results)) {
      Comparison c = llvm::cantFail(compare(result, expected[i]));
      double bound = i == 1 ? kF32Bound : getBound(p.type, !variant.text.empty(), l);
      EXPECT_EQ(c.numUnwritten, 0) << "result " << i;
      EXPECT_EQ(c.numNaN, 0) << "result " << i;
      EXPECT_TRUE(c.isWithin(bound)) << "result " << i << ": max relative " << c.maxRelative << ", bound " << bound;
    }
  }

  static std::vector<Array> call(CompiledKernel &kernel, std::vector<Array> &inputs,
                                 llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes, bool rowsFirst) {
    KernelArguments arguments;
    std::vector<Array> results;
    for (Array &input : inputs)
      arguments.addMemRef(input);
    for (const auto &shape : shapes) {
      results.push_back(allocate(kernel.signature.results[results.size()].kind, shape, rowsFirst));
      results.back().poison();
    }
    for (Array &result : results)
      arguments.addMemRef(result);
    arguments.call(kernel.function);
    return results;
  }

  static constexpr double kF32Bound = 2e-5;
  /// Twice the smallest error of PyTorch over D at such lengths; causal rows with few keys have the largest.
  static double getBound(llvm::StringRef type, bool isMasked, Lengths l) {
    if (type == "f32")
      return kF32Bound;
    if (type == "f16")
      return 2 * 6.1e-4;
    if (!isMasked)
      return 2 * 6.5e-3;
    return std::max(l.m, l.n) > 2048 ? 2 * 1.9e-2 : 2 * 1.3e-2;
  }

  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
};

const Variant kFull = {"Full", "", {}};
const Variant kCausal = {"CausalBottomRight", "variants [#attn.causal<bottom_right>]", {}};

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

struct VariantTest : testing::TestWithParam<std::tuple<size_t, const char *>> {};

TEST_P(VariantTest, MatchesReference) {
  auto [index, type] = GetParam();
  Problem problem;
  problem.type = type;
  problem.withLse = true;
  Execution execution;
  execution.check(getVariants()[index], problem, kLengthsAll);
  EXPECT_EQ(execution.numCompiles, 1);
  EXPECT_EQ(execution.numRuns, int(kLengthsAll.size()));
}

INSTANTIATE_TEST_SUITE_P(All, VariantTest,
                         testing::Combine(testing::Range<size_t>(0, getVariants().size()),
                                          testing::Values("f32", "bf16", "f16")),
                         [](const auto &info) {
                           return std::string(getVariants()[std::get<0>(info.param)].name) + "_" +
                                  std::get<1>(info.param);
                         });

struct HeadDimTest : testing::TestWithParam<std::tuple<std::pair<int64_t, int64_t>, const char *>> {};

TEST_P(HeadDimTest, MatchesReference) {
  auto [dims, type] = GetParam();
  Problem problem;
  problem.type = type;
  std::tie(problem.d, problem.dv) = dims;
  Execution execution;
  execution.check(kCausal, problem, kLengthsFew);
  execution.check(kFull, problem, kLengthsFew);
}

INSTANTIATE_TEST_SUITE_P(All, HeadDimTest,
                         testing::Combine(testing::Values(std::pair(16, 16), std::pair(40, 40), std::pair(80, 80),
                                                          std::pair(96, 96), std::pair(128, 128), std::pair(192, 192),
                                                          std::pair(256, 256), std::pair(192, 128), std::pair(64, 256),
                                                          std::pair(128, 64), std::pair(33, 17), std::pair(1, 1)),
                                          testing::Values("f32", "bf16", "f16")),
                         [](const auto &info) {
                           auto dims = std::get<0>(info.param);
                           return llvm::formatv("D{0}_Dv{1}_{2}", dims.first, dims.second, std::get<1>(info.param))
                               .str();
                         });

TEST(ExecutionTest, GroupedHeads) {
  for (const char *type : {"f32", "bf16"})
    for (auto [heads, keyHeads] : {std::pair(8, 1), std::pair(8, 8), std::pair(16, 2), std::pair(6, 3)}) {
      Problem problem;
      problem.type = type;
      problem.heads = heads;
      problem.keyHeads = keyHeads;
      Execution().check(kCausal, problem, {{7, 33}, {129, 127}});
    }
}

TEST(ExecutionTest, StridedLayout) {
  for (const char *type : {"f32", "bf16", "f16"}) {
    Problem problem;
    problem.type = type;
    problem.rowsFirst = true;
    problem.withLse = true;
    Execution().check(kCausal, problem, kLengthsFew);
  }
}

TEST(ExecutionTest, BlockSizes) {
  for (auto [m, n] : {std::pair(1, 1), std::pair(3, 5), std::pair(16, 48), std::pair(80, 112), std::pair(128, 176)}) {
    Problem problem;
    problem.blockM = m;
    problem.blockN = n;
    Execution().check(kCausal, problem, kLengthsFew);
  }
}

TEST(ExecutionTest, SplitKeys) {
  for (const char *type : {"f32", "bf16"})
    for (const Variant &variant : getVariants()) {
      Problem problem;
      problem.type = type;
      problem.splits = 3;
      problem.withLse = true;
      Execution().check(variant, problem, {{1, 1000}, {129, 300}, {5, 2}});
    }
}

TEST(ExecutionTest, LongSequences) {
  for (const char *type : {"f32", "bf16"}) {
    Problem problem;
    problem.type = type;
    problem.heads = problem.keyHeads = 1;
    Execution().check(kCausal, problem, {{4096, 4096}, {1, 4096}, {4096, 127}, {1000, 4096}});
  }
}

} // namespace
