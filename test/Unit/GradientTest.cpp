//===- GradientTest.cpp - gradients of attention against differences --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// In f64, without code generation: the definition of the gradients (convert-attn-to-linalg) and the
// interpreter of the ops, which share no code, against quotients of differences of attention. Each
// op that has an adjoint is a score of its own here, and a sign turned in any of them is found.
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "test/Unit/GradientCheck.h"
#include "gtest/gtest.h"
#include <chrono>
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
class GradientTest : public testing::Test {
protected:
  GradientTest() : context(MLIRContext::Threading::DISABLED) { loadGradientDialects(context); }

  /// Checks both roads against the quotients.
  void check(const GradientProblem &problem, uint64_t seed = 1) {
    SCOPED_TRACE(problem.name);
    GradientCheck check(context, problem, seed);
    Tensors defined = check.run(GradientCheck::Linalg);
    if (HasFailure())
      return;
    check.expectRight(defined);
    for (GradientCheck::Road road :
         {GradientCheck::Interpreted, GradientCheck::TwoPass, GradientCheck::TwoPassLinalg})
      expectSame(check.run(road), defined);
  }

  MLIRContext context;
};
} // namespace

static const GradientArgument kTable = {GradientArgument::Unit, "x", "tensor<?x?x?xf32>", "HMN"};
static const GradientArgument kPositive = {GradientArgument::Positive, "x", "tensor<?x?x?xf32>",
                                           "HMN"};

//===----------------------------------------------------------------------------------------===//
// The table of adjoints
//===----------------------------------------------------------------------------------------===//

namespace {
/// A score of one op: `%a` is made from the score, `%b` and `%c` are read from tensors whose
/// gradients are wanted.
struct OpCase {
  const char *name;
  /// How `%a` comes of the score, which is within [-0.9, 0.9]: a factor and an addend.
  double factor, addend;
  const char *text;
  /// What is read.
  bool readsB = false, readsC = false, isPositive = false;
};
} // namespace

static const OpCase kOpCases[] = {
    {"addf", 1, 0, "%t = arith.addf %a, %b : f32", true},
    {"subf", 1, 0, "%t = arith.subf %a, %b : f32", true},
    {"negf", 1, 0, "%t = arith.negf %a : f32"},
    {"mulf", 1, 0, "%t = arith.mulf %a, %b : f32", true},
    {"mulf of equals", 1, 2, "%t = arith.mulf %a, %a : f32"},
    {"fma", 1, 0, "%t = math.fma %a, %b, %c : f32", true, true},
    {"divf", 1, 0, "%t = arith.divf %a, %b : f32", true, false, true},
    {"remf", 3, 0, "%t = arith.remf %a, %b : f32", true, false, true},
    {"maximumf", 1, 0, "%t = arith.maximumf %a, %b : f32", true},
    {"minimumf", 1, 0, "%t = arith.minimumf %a, %b : f32", true},
    {"maxnumf", 1, 0, "%t = arith.maxnumf %a, %b : f32", true},
    {"minnumf", 1, 0, "%t = arith.minnumf %a, %b : f32", true},
    {"clampf", 8, 0, "%low = arith.negf %b : f32\n %t = math.clampf %a to [%low, %c] : f32", true,
     true, true},
    {"select", 1, 0,
     "%zero = arith.constant 0.0 : f32\n %is = arith.cmpf olt, %a, %zero : f32\n"
     "%twice = arith.addf %a, %a : f32\n %t = arith.select %is, %twice, %b : f32",
     true},
    {"absf", 1, 0, "%t = math.absf %a : f32"},
    {"copysign", 1, 0, "%t = math.copysign %a, %b : f32", true},
    {"floor", 4, 0, "%f = math.floor %a : f32\n %t = arith.subf %a, %f : f32"},
    {"roundeven", 4, 0, "%f = math.roundeven %a : f32\n %t = arith.subf %a, %f : f32"},
    {"fptosi", 4, 0,
     "%i = arith.fptosi %a : f32 to i32\n %f = arith.sitofp %i : i32 to f32\n"
     "%t = arith.subf %a, %f : f32"},
    {"exp", 1, 0, "%t = math.exp %a : f32"},
    {"exp2", 1, 0, "%t = math.exp2 %a : f32"},
    {"expm1", 1, 0, "%t = math.expm1 %a : f32"},
    {"log", 1, 1, "%t = math.log %a : f32"},
    {"log2", 1, 1, "%t = math.log2 %a : f32"},
    {"log10", 1, 1, "%t = math.log10 %a : f32"},
    {"log1p", 1, 0, "%t = math.log1p %a : f32"},
    {"sqrt", 1, 1, "%t = math.sqrt %a : f32"},
    {"rsqrt", 1, 1, "%t = math.rsqrt %a : f32"},
    {"cbrt", 1, 1, "%t = math.cbrt %a : f32"},
    {"powf", 1, 1, "%t = math.powf %a, %b : f32", true},
    {"fpowi", 1, 1, "%i = arith.constant -3 : i32\n %t = math.fpowi %a, %i : f32, i32"},
    {"sin", 1, 0, "%t = math.sin %a : f32"},
    {"cos", 1, 0, "%t = math.cos %a : f32"},
    {"tan", 1, 0, "%t = math.tan %a : f32"},
    {"sincos", 1, 0,
     "%x0, %x1 = math.sincos %a : f32\n %y0 = arith.mulf %x0, %b : f32\n"
     "%t = arith.addf %y0, %x1 : f32",
     true},
    {"asin", 1, 0, "%t = math.asin %a : f32"},
    {"acos", 1, 0, "%t = math.acos %a : f32"},
    {"atan", 1, 0, "%t = math.atan %a : f32"},
    {"atan2", 1, 0, "%t = math.atan2 %a, %b : f32", true, false, true},
    {"sinh", 1, 0, "%t = math.sinh %a : f32"},
    {"cosh", 1, 0, "%t = math.cosh %a : f32"},
    {"tanh", 1, 0, "%t = math.tanh %a : f32"},
    {"asinh", 1, 0, "%t = math.asinh %a : f32"},
    {"acosh", 1, 2, "%t = math.acosh %a : f32"},
    {"atanh", 1, 0, "%t = math.atanh %a : f32"},
    {"erf", 1, 0, "%t = math.erf %a : f32"},
    {"erfc", 1, 0, "%t = math.erfc %a : f32"},
    {"extf and truncf", 1, 0,
     "%w = arith.extf %a : f32 to f64\n %y = math.exp %w : f64\n %t = arith.truncf %y : f64 to "
     "f32"},
    {"bf16", 1, 0,
     "%w = arith.truncf %a : f32 to bf16\n %y = math.sin %w : bf16\n"
     "%t = arith.extf %y : bf16 to f32"},
};

static std::string number(double value) {
  std::string text = std::to_string(value);
  return text;
}

static GradientProblem makeProblem(const OpCase &op) {
  GradientProblem problem{op.name};
  problem.hasScale = true;
  std::string score = "    score(%s, %batch, %h, %m, %n) {\n      %factor = arith.constant " +
                      number(op.factor) + " : f32\n      %addend = arith.constant " +
                      number(op.addend) +
                      " : f32\n      %p = arith.mulf %s, %factor : f32\n"
                      "      %a = arith.addf %p, %addend : f32\n";
  for (auto [name, isRead] : {std::pair("b", op.readsB), {"c", op.readsC}})
    if (isRead) {
      problem.arguments.push_back(op.isPositive ? kPositive : kTable);
      problem.arguments.back().name = std::string("x") + name;
      score += std::string("      %") + name + " = tensor.extract %x" + name +
               "[%h, %m, %n] : tensor<?x?x?xf32>\n";
    }
  problem.regions = score + "      " + op.text + "\n      attn.yield %t : f32\n    }\n";
  return problem;
}

/// Negates what number `which` of the grad region's results says: the adjoint of the score first,
/// then each contribution.
static bool flipSign(ModuleOp module, unsigned which) {
  bool isDone = false;
  module.walk([&](AttentionGradOp op) {
    SmallVector<OpOperand *> results = {&op.getGrad().front().getTerminator()->getOpOperand(0)};
    for (auto contribution : op.getGrad().front().getOps<ContributeOp>())
      results.push_back(&contribution.getAddendMutable());
    if (which >= results.size())
      return;
    OpBuilder builder(results[which]->getOwner());
    results[which]->set(arith::NegFOp::create(builder, op.getLoc(), results[which]->get()));
    isDone = true;
  });
  return isDone;
}

TEST_F(GradientTest, EveryAdjointIsTheDerivative) {
  for (const OpCase &op : kOpCases) {
    SCOPED_TRACE(op.name);
    check(makeProblem(op));
    if (HasFailure())
      return;
  }
}

/// What would a wrong sign look like? Every operand's adjoint ends in one result of the region.
TEST_F(GradientTest, EveryTurnedSignIsFound) {
  for (const OpCase &op : kOpCases) {
    SCOPED_TRACE(op.name);
    GradientCheck check(context, makeProblem(op), 1);
    check.expectRight(check.run(GradientCheck::Interpreted));
    unsigned numResults = 1 + op.readsB + op.readsC;
    // The sign's source, and what copysign takes it from, has no derivative.
    if (StringRef(op.name) == "copysign")
      --numResults;
    for (unsigned which = 0; which < numResults; ++which) {
      bool isFlipped = false;
      Tensors wrong = check.run(GradientCheck::Interpreted,
                                [&](ModuleOp module) { isFlipped = flipSign(module, which); });
      EXPECT_TRUE(isFlipped) << which;
      EXPECT_FALSE(check.areRight(wrong)) << "result " << which << " has no influence";
    }
    if (HasFailure())
      return;
  }
}

//===----------------------------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------------------------===//

static const GradientArgument kIdsQ = {GradientArgument::Sorted, "ids_q", "tensor<?x?xi32>", "BM",
                                       false};
static const GradientArgument kIdsK = {GradientArgument::Sorted, "ids_k", "tensor<?x?xi32>", "BN",
                                       false};
static const GradientArgument kLengths = {GradientArgument::Length, "lengths", "tensor<?xi32>", "B",
                                          false};
static const GradientArgument kSlopes = {GradientArgument::Positive, "slopes", "tensor<?xf32>",
                                         "H"};
static const GradientArgument kBias = {GradientArgument::Unit, "bias", "tensor<?x?xf32>", "HR"};

static const GradientProblem kProblems[] = {
    {"plain"},
    {"causal", "variants [#attn.causal<bottom_right>]"},
    {"causal top left", "variants [#attn.causal<top_left>]"},
    {"window", "variants [#attn.window<1, 1, top_left>]"},
    {"prefix", "variants [#attn.prefix<2, top_left>]"},
    {"prefix lengths",
     "variants [#attn.prefix<-1, top_left>] captures(%lengths : tensor<?xi32>)",
     "",
     {kLengths}},
    {"chunked", "variants [#attn.chunked<2, bottom_right>]"},
    {"document",
     "variants [#attn.document] captures(%ids_q, %ids_k : tensor<?x?xi32>, tensor<?x?xi32>)",
     "",
     {kIdsQ, kIdsK}},
    {"key length",
     "variants [#attn.key_length] captures(%lengths : tensor<?xi32>)",
     "",
     {kLengths}},
    {"softcap", "variants [#attn.softcap<0.5>, #attn.causal<top_left>]"},
    {"alibi",
     "variants [#attn.alibi<bottom_right>] captures(%slopes : tensor<?xf32>)",
     "",
     {kSlopes}},
    {"relative bias",
     "variants [#attn.relative_bias<2, top_left>] captures(%bias : tensor<?x?xf32>)",
     "",
     {kBias}},
    {"softcap, alibi, causal",
     "variants [#attn.softcap<0.7>, #attn.alibi<top_left>, #attn.causal<bottom_right>] "
     "captures(%slopes : tensor<?xf32>)",
     "",
     {kSlopes}},
};

TEST_F(GradientTest, EveryVariant) {
  for (GradientProblem problem : kProblems)
    for (bool hasSink : {false, true}) {
      problem.hasSink = problem.hasScale = hasSink;
      problem.hasLseGradient = !hasSink;
      check(problem, 2 + hasSink);
      if (HasFailure())
        return;
    }
}

TEST_F(GradientTest, GroupsOfHeads) {
  for (int64_t keyHeads : {6, 3, 1})
    for (size_t number : {0, 10, 11}) {
      GradientProblem problem = kProblems[number];
      SCOPED_TRACE(keyHeads);
      problem.heads = 6, problem.keyHeads = keyHeads, problem.batch = 2, problem.m = 3,
      problem.n = 2, problem.hasSink = true;
      check(problem, uint64_t(keyHeads));
      if (HasFailure())
        return;
    }
}

/// More rows than keys: the first rows of a causal mask that meets the last key keep nothing.
TEST_F(GradientTest, RowsThatKeepNothing) {
  for (bool hasSink : {false, true}) {
    GradientProblem problem = kProblems[1];
    problem.m = 5, problem.n = 3, problem.hasSink = hasSink;
    check(problem);
    GradientCheck gradients(context, problem, 1);
    Tensors results = gradients.run(GradientCheck::Linalg);
    ASSERT_FALSE(HasFailure());
    // Rows 0 and 1 of each head.
    std::vector<double> query = getElements(results[0]);
    for (int64_t row = 0; row < 10; ++row)
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(query[row * 3 + i] == 0, row % 5 < 2) << row;
  }
}

/// A table may be read by rows, by keys, by all positions, or by none.
TEST_F(GradientTest, TablesOfEveryShape) {
  struct Table {
    const char *type, *dims, *read;
  };
  for (const Table &table :
       {Table{"tensor<f32>", "", "%x[] : tensor<f32>"},
        {"tensor<?x?xf32>", "BH", "%x[%b, %h] : tensor<?x?xf32>"},
        {"tensor<?x?xf32>", "HM", "%x[%h, %m] : tensor<?x?xf32>"},
        {"tensor<?x?xf32>", "BN", "%x[%b, %n] : tensor<?x?xf32>"},
        {"tensor<?x?xbf16>", "MN", "%x[%m, %n] : tensor<?x?xbf16>"},
        {"tensor<?x?x?x?xf32>", "BHMN", "%x[%b, %h, %m, %n] : tensor<?x?x?x?xf32>"}}) {
    SCOPED_TRACE(table.type + std::string(" by ") + table.dims);
    bool isNarrow = StringRef(table.type).contains("bf16");
    GradientProblem problem{"table"};
    problem.batch = 2;
    problem.arguments = {{GradientArgument::Unit, "x", table.type, table.dims}};
    problem.regions = "    score(%s, %b, %h, %m, %n) {\n      %r = tensor.extract " +
                      std::string(table.read) + "\n" +
                      (isNarrow ? "      %w = arith.extf %r : bf16 to f32\n"
                                : "      %zero = arith.constant 0.0 : f32\n"
                                  "      %w = arith.addf %r, %zero : f32\n") +
                      "      %p = arith.mulf %s, %w : f32\n      %t = arith.addf %p, %w : f32\n"
                      "      attn.yield %t : f32\n    }\n";
    check(problem);
    if (HasFailure())
      return;
  }
}
