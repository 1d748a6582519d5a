//===- GradientRulesTest.cpp - what gradients of attention must obey --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Fixed values at kinks, where differences say nothing; equalities between problems; score regions
// drawn at random, with a seed that is new in each run.
//
//===----------------------------------------------------------------------------------------===//

#include "mlir/Parser/Parser.h"
#include "test/Unit/GradientCheck.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
class GradientRulesTest : public testing::Test {
protected:
  GradientRulesTest() : context(MLIRContext::Threading::DISABLED) { loadGradientDialects(context); }
  MLIRContext context;
};
} // namespace

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

static std::string makeScore(const std::string &body) {
  return "    score(%s, %b, %h, %m, %n) {\n" + body + "      attn.yield %t : f32\n    }\n";
}

static const std::string kReadX = "      %x0 = tensor.extract %x[] : tensor<f32>\n";

//===----------------------------------------------------------------------------------------===//
// Kinks
//===----------------------------------------------------------------------------------------===//

namespace {
/// The score `text` of `%s` and a captured `%x0`, with the adjoints of both where that of the
/// result is `dt`.
struct Kink {
  const char *text;
  double s, x, ds, dx;
  double dt = 1;
};
} // namespace

static const Kink kKinks[] = {
    // Equals share; a number wins over what is none.
    {"%t = arith.maximumf %s, %x0 : f32", 1, 1, 0.5, 0.5},
    {"%t = arith.minimumf %s, %x0 : f32", 1, 1, 0.5, 0.5},
    {"%t = arith.maxnumf %s, %x0 : f32", 1, 1, 0.5, 0.5},
    {"%t = arith.minnumf %s, %x0 : f32", 1, 1, 0.5, 0.5},
    {"%t = arith.maxnumf %s, %x0 : f32", 1, kNaN, 1, 0},
    {"%t = arith.minnumf %x0, %s : f32", 1, kNaN, 1, 0},
    // The ends of a clamp belong to its operand.
    {"%c = arith.constant 2.0 : f32\n %t = math.clampf %s to [%x0, %c] : f32", 1, 1, 1, 0},
    {"%c = arith.constant -2.0 : f32\n %t = math.clampf %s to [%c, %x0] : f32", 1, 1, 1, 0},
    {"%c = arith.constant 2.0 : f32\n %t = math.clampf %s to [%x0, %c] : f32", 0, 1, 0, 1},
    {"%c = arith.constant -2.0 : f32\n %t = math.clampf %s to [%x0, %c] : f32", 0, 1, 0, 0},
    {"%t = math.absf %s : f32", 0, 1, 0, 0},
    {"%t = math.absf %s : f32", -2, 1, -1, 0},
    {"%t = math.copysign %s, %x0 : f32", 0, -1, 0, 0},
    {"%t = math.copysign %s, %x0 : f32", 2, -1, -1, 0},
    {"%t = math.floor %s : f32", 1.5, 1, 0, 0},
    {"%t = math.ceil %s : f32", 1.5, 1, 0, 0},
    {"%t = math.round %s : f32", 1.5, 1, 0, 0},
    {"%t = math.trunc %s : f32", 1.5, 1, 0, 0},
    // Powers of 0 and to the power of 0.
    {"%t = math.powf %s, %x0 : f32", 2, 0, 0, 0.69314718055994530942},
    {"%t = math.powf %s, %x0 : f32", 0, 2, 0, 0},
    {"%t = math.powf %s, %x0 : f32", 0, 1, 1, 0},
    {"%i = arith.constant 0 : i32\n %t = math.fpowi %s, %i : f32, i32", 0, 1, 0, 0},
    {"%i = arith.constant 1 : i32\n %t = math.fpowi %s, %i : f32, i32", 0, 1, 1, 0},
    // An infinite factor leaves an adjoint of 0 as it is.
    {"%t = math.sqrt %s : f32", 0, 1, 0, 0, 0},
    {"%t = math.cbrt %s : f32", 0, 1, 0, 0, 0},
    {"%t = math.powf %s, %x0 : f32", 0, 0.5, 0, 0, 0},
    {"%t = math.asin %s : f32", 1, 1, 0, 0, 0},
    {"%t = math.acos %s : f32", 1, 1, 0, 0, 0},
    {"%t = math.acosh %s : f32", 1, 1, 0, 0, 0},
    {"%t = math.atan2 %s, %x0 : f32", 0, 0, 0, 0, 0},
    {"%t = math.sqrt %s : f32", 0, 1, kInfinity, 0},
};

/// One row and one key, whose weight is 1: the gradient of the logarithm is that of the score.
TEST_F(GradientRulesTest, Kinks) {
  for (const Kink &kink : kKinks) {
    SCOPED_TRACE(std::string(kink.text) + " at " + std::to_string(kink.s));
    GradientProblem problem{"kink",
                            "",
                            makeScore(kReadX + "      " + kink.text + "\n"),
                            {{GradientArgument::Unit, "x", "tensor<f32>", ""}}};
    problem.batch = problem.heads = problem.keyHeads = 1;
    problem.m = problem.n = problem.d = problem.dv = 1;
    GradientCheck check(context, problem, 1);
    auto set = [](const TensorRef &tensor, double value) { tensor->data()[0].f = value; };
    set(check.inputs[0].getTensor(), kink.s);
    set(check.inputs[1].getTensor(), 1);
    set(check.inputs[3].getTensor(), kink.x);
    set(check.outputGradient, 0);
    set(check.lseGradient, kink.dt);
    for (GradientCheck::Road road : {GradientCheck::Linalg, GradientCheck::Interpreted}) {
      Tensors results = check.run(road);
      ASSERT_EQ(results.size(), 4u);
      EXPECT_DOUBLE_EQ(getElements(results[0])[0], kink.ds);
      EXPECT_DOUBLE_EQ(getElements(results[3])[0], kink.dx);
    }
  }
}

//===----------------------------------------------------------------------------------------===//
// Algebra
//===----------------------------------------------------------------------------------------===//

static const GradientArgument kBias = {GradientArgument::Unit, "x", "tensor<?x?xf32>", "HN"};
static const std::string kBiased =
    makeScore("      %r = tensor.extract %x[%h, %n] : tensor<?x?xf32>\n"
              "      %p = arith.mulf %s, %r : f32\n"
              "      %t = arith.addf %p, %r : f32\n");

static constexpr GradientCheck::Road kRoads[] = {GradientCheck::Linalg, GradientCheck::Interpreted,
                                                 GradientCheck::TwoPass,
                                                 GradientCheck::TwoPassLinalg};

TEST_F(GradientRulesTest, NothingComesOfNothing) {
  GradientProblem problem{"zeros", "variants [#attn.softcap<2.0>]", kBiased, {kBias}};
  problem.hasSink = true;
  GradientCheck check(context, problem, 1);
  for (const TensorRef &gradient : {check.outputGradient, check.lseGradient})
    std::fill_n(gradient->data(), gradient->size(), Lane{.f = 0});
  for (GradientCheck::Road road : kRoads)
    for (const RuntimeValue &result : check.run(road))
      for (double element : getElements(result))
        ASSERT_EQ(element, 0);
}

/// Gradients are written where there is nothing to sum.
TEST_F(GradientRulesTest, EmptyExtents) {
  for (auto [m, n, batch] : {std::tuple(0, 3, 1), {3, 0, 1}, {0, 0, 1}, {3, 3, 0}}) {
    GradientProblem problem{"empty", "", kBiased, {kBias}};
    problem.m = m, problem.n = n, problem.batch = batch, problem.hasSink = true;
    GradientCheck check(context, problem, 1);
    for (GradientCheck::Road road : kRoads) {
      Tensors results = check.run(road);
      ASSERT_EQ(results.size(), 5u);
      for (auto [i, result] : llvm::enumerate(results))
        for (double element : getElements(result))
          // Without keys the whole weight is the sink's, whose logarithm is lse.
          if (i != 3 || n != 0)
            ASSERT_EQ(element, 0) << "result " << i;
    }
  }
}

TEST_F(GradientRulesTest, GroupedHeadsAreRepeatedHeads) {
  GradientProblem grouped{"grouped", "", kBiased, {kBias}};
  grouped.heads = 6, grouped.keyHeads = 2, grouped.batch = 2;
  GradientProblem repeated = grouped;
  repeated.keyHeads = 6;
  GradientCheck few(context, grouped, 3), many(context, repeated, 3);
  for (size_t input : {0, 3})
    many.inputs[input] = few.inputs[input];
  many.outputGradient = few.outputGradient, many.lseGradient = few.lseGradient;
  for (size_t input : {1, 2}) {
    const DenseTensor &from = *few.inputs[input].getTensor();
    DenseTensor &to = *many.inputs[input].getTensor();
    int64_t head = from.size() / 4;
    for (int64_t i = 0; i < to.size(); ++i)
      to.data()[i] = from.data()[i / head / 3 * head + i % head];
  }
  Tensors sums = few.run(GradientCheck::Linalg), parts = many.run(GradientCheck::Linalg);
  ASSERT_EQ(sums.size(), 4u);
  ASSERT_EQ(parts.size(), 4u);
  expectSame({parts[0], parts[3]}, {sums[0], sums[3]});
  for (size_t result : {1, 2}) {
    std::vector<double> wanted = getElements(sums[result]), all = getElements(parts[result]);
    size_t head = wanted.size() / 4;
    for (size_t i = 0; i < wanted.size(); ++i) {
      double sum = 0;
      for (size_t h = 0; h < 3; ++h)
        sum += all[(i / head * 3 + h) * head + i % head];
      EXPECT_NEAR(sum, wanted[i], 1e-12);
    }
  }
}

/// A mask by its name, by a region, and by scores of -inf.
TEST_F(GradientRulesTest, MasksAreMasks) {
  const std::string compare = "      %is = arith.cmpi sle, %n, %m : index\n";
  GradientProblem problems[] = {
      {"name", "variants [#attn.causal<top_left>]"},
      {"region", "",
       "    mask(%b, %h, %m, %n) {\n" + compare + "      attn.yield %is : i1\n    }\n"},
      {"scores", "",
       makeScore(compare + "      %none = arith.constant 0xFF800000 : f32\n"
                           "      %t = arith.select %is, %s, %none : f32\n")}};
  GradientCheck named(context, problems[0], 5);
  Tensors wanted = named.run(GradientCheck::Linalg);
  for (const GradientProblem &problem : problems)
    for (GradientCheck::Road road : kRoads) {
      SCOPED_TRACE(problem.name);
      GradientCheck check(context, problem, 5);
      expectSame(check.run(road), wanted);
    }
}

/// Keys and values that no row keeps may hold anything.
TEST_F(GradientRulesTest, DroppedKeysMayHoldAnything) {
  GradientProblem problem{"dropped", "variants [#attn.causal<top_left>, #attn.softcap<2.0>]"};
  problem.m = 3, problem.n = 5;
  Tensors wanted;
  for (GradientCheck::Road road : kRoads)
    for (double garbage : {0.0, kNaN, kInfinity}) {
      GradientCheck check(context, problem, 6);
      for (size_t input : {1, 2}) {
        DenseTensor &tensor = *check.inputs[input].getTensor();
        int64_t columns = tensor.getShape().back();
        for (int64_t i = 0; i < tensor.size(); ++i)
          if (i / columns % problem.n >= problem.m)
            tensor.data()[i].f = garbage;
      }
      Tensors results = check.run(road);
      if (wanted.empty())
        wanted = results;
      expectSame(results, wanted);
    }
}

/// A sink of -inf is none; one of +inf is the whole of every row.
TEST_F(GradientRulesTest, InfiniteSinks) {
  GradientProblem problem{"sink"};
  problem.hasSink = true;
  GradientProblem without{"no sink"};
  for (GradientCheck::Road road : kRoads) {
    GradientCheck check(context, problem, 7), plain(context, without, 7);
    for (size_t input : {0, 1, 2})
      plain.inputs[input] = check.inputs[input];
    plain.outputGradient = check.outputGradient, plain.lseGradient = check.lseGradient;
    DenseTensor &sink = *check.inputs[3].getTensor();
    std::fill_n(sink.data(), sink.size(), Lane{.f = -kInfinity});
    Tensors results = check.run(road), wanted = plain.run(road);
    ASSERT_EQ(results.size(), 4u);
    for (double element : getElements(results[3]))
      EXPECT_EQ(element, 0);
    results.pop_back();
    expectSame(results, wanted);

    std::fill_n(sink.data(), sink.size(), Lane{.f = kInfinity});
    ASSERT_TRUE(check.forward());
    results = check.run(road);
    for (size_t i : {0, 1, 2})
      for (double element : getElements(results[i]))
        EXPECT_EQ(element, 0);
    // lse is the sink: its gradient is that of every row's lse.
    std::vector<double> gradient = getElements(results[3]);
    for (size_t h = 0; h < gradient.size(); ++h) {
      double sum = 0;
      for (int64_t m = 0; m < problem.m; ++m)
        sum += check.lseGradient->data()[h * problem.m + m].f;
      EXPECT_NEAR(gradient[h], sum, 1e-12);
    }
  }
}

/// Gradients of captured tensors are those of scores, whatever the output was rounded to.
TEST_F(GradientRulesTest, RoundedOutputs) {
  GradientProblem problem{"rounded", "", kBiased, {kBias}};
  problem.hasSink = true;
  GradientCheck check(context, problem, 8);
  Tensors wanted = check.run(GradientCheck::Linalg);
  ASSERT_EQ(wanted.size(), 5u);
  for (int64_t i = 0; i < check.output->size(); ++i)
    check.output->data()[i].f *= i % 2 ? 1.01 : 0.99;
  for (GradientCheck::Road road : kRoads) {
    Tensors results = check.run(road);
    ASSERT_EQ(results.size(), 5u);
    expectSame({results[4]}, {wanted[4]});
  }
}

//===----------------------------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------------------------===//

/// Attention, its gradients, and those of a part of its rows and keys.
static const char kParts[] = R"mlir(
!q = tensor<1x2x4x3xf32>
!k = tensor<1x1x5x3xf32>
!row = tensor<1x2x4xf32>
!x = tensor<2x5xf32>
func.func @forward(%q: !q, %k: !k, %x: !x) -> (!q, !row) {
  %o, %l = attn.attention %q, %k, %k SCORE MASK : !q, !k, !k -> !q, !row
  return %o, %l : !q, !row
}
func.func @whole(%q: !q, %k: !k, %x: !x, %o: !q, %l: !row, %do: !q) -> (!q, !k, !k, !x) {
  %r:4 = attn.attention_grad %q, %k, %k, %o, %l, %do wrt(%x : !x) SCORE MASK GRAD
      : !q, !k, !k, !q, !row, !q -> d_query(!q) d_key(!k) d_value(!k) d_wrt(!x)
  return %r#0, %r#1, %r#2, %r#3 : !q, !k, !k, !x
}
func.func @part(%q: !q, %k: !k, %x: !x, %o: !q, %l: !row, %do: !q, %m0: index, %ms: index, %n0: index, %ns: index)
    -> (tensor<1x2x?x3xf32>, tensor<1x1x?x3xf32>, tensor<1x1x?x3xf32>, !x) {
  %zero = arith.constant 0 : index
  %qp = tensor.extract_slice %q[0, 0, %m0, 0] [1, 2, %ms, 3] [1, 1, 1, 1] : !q to tensor<1x2x?x3xf32>
  %op = tensor.extract_slice %o[0, 0, %m0, 0] [1, 2, %ms, 3] [1, 1, 1, 1] : !q to tensor<1x2x?x3xf32>
  %dp = tensor.extract_slice %do[0, 0, %m0, 0] [1, 2, %ms, 3] [1, 1, 1, 1] : !q to tensor<1x2x?x3xf32>
  %lp = tensor.extract_slice %l[0, 0, %m0] [1, 2, %ms] [1, 1, 1] : !row to tensor<1x2x?xf32>
  %kp = tensor.extract_slice %k[0, 0, %n0, 0] [1, 1, %ns, 3] [1, 1, 1, 1] : !k to tensor<1x1x?x3xf32>
  %r:4 = attn.attention_grad %qp, %kp, %kp, %op, %lp, %dp at(%zero, %zero, %m0, %n0) wrt(%x : !x) SCORE MASK GRAD
      : tensor<1x2x?x3xf32>, tensor<1x1x?x3xf32>, tensor<1x1x?x3xf32>, tensor<1x2x?x3xf32>, tensor<1x2x?xf32>, tensor<1x2x?x3xf32>
      -> d_query(tensor<1x2x?x3xf32>) d_key(tensor<1x1x?x3xf32>) d_value(tensor<1x1x?x3xf32>) d_wrt(!x)
  return %r#0, %r#1, %r#2, %r#3 : tensor<1x2x?x3xf32>, tensor<1x1x?x3xf32>, tensor<1x1x?x3xf32>, !x
}
)mlir";

static std::string getPartsSource() {
  std::string source = kParts;
  auto replaceAll = [&](llvm::StringRef word, llvm::StringRef by) {
    for (size_t at; (at = source.find(word.str())) != std::string::npos;)
      source.replace(at, word.size(), by.str());
  };
  replaceAll("SCORE", "score(%s, %b, %h, %m, %n) { %r = tensor.extract %x[%h, %n] : !x\n"
                      "%t = arith.mulf %s, %r : f32\n attn.yield %t : f32 }");
  replaceAll("MASK", "mask(%b, %h, %m, %n) { %one = arith.constant 1 : index\n"
                     "%e = arith.addi %m, %one : index\n"
                     "%c = arith.cmpi sle, %n, %e : index\n attn.yield %c : i1 }");
  replaceAll("GRAD", "grad(%s, %dt, %b, %h, %m, %n) { %r = tensor.extract %x[%h, %n] : !x\n"
                     "%dx = arith.mulf %dt, %s : f32\n attn.contribute %dx to %x[%h, %n] : !x\n"
                     "%ds = arith.mulf %dt, %r : f32\n attn.yield %ds : f32 }");
  return source;
}

/// Gradients of four parts, each of some rows and some keys, which start from the output and lse of
/// the whole and know where they are: those of a row add up over keys, and those of a key over
/// rows.
TEST_F(GradientRulesTest, PartsAddUp) {
  std::string source = getPartsSource();
  auto module = parseSourceString<ModuleOp>(source, &context, "parts.mlir");
  ASSERT_TRUE(module) << source;
  auto call = [&](llvm::StringRef name, const Tensors &arguments) {
    llvm::Expected<InterpreterResult> result =
        interpret(module->lookupSymbol<func::FuncOp>(name), arguments);
    if (result)
      return std::move(result->values);
    ADD_FAILURE() << llvm::toString(result.takeError());
    return Tensors();
  };
  std::mt19937_64 random(8);
  std::uniform_real_distribution<double> uniform(-1, 1);
  auto draw = [&](llvm::ArrayRef<int64_t> shape) -> RuntimeValue {
    TensorRef tensor = llvm::cantFail(DenseTensor::create(shape, true));
    for (int64_t i = 0; i < tensor->size(); ++i)
      tensor->data()[i].f = uniform(random);
    return tensor;
  };
  Tensors arguments = {draw({1, 2, 4, 3}), draw({1, 1, 5, 3}), draw({2, 5})};
  for (RuntimeValue &result : call("forward", arguments))
    arguments.push_back(result);
  arguments.push_back(draw({1, 2, 4, 3}));
  Tensors whole = call("whole", arguments);
  ASSERT_EQ(whole.size(), 4u);
  std::vector<double> query(24), key(15), value(15), table(10);
  for (auto [m0, ms] : {std::pair(0, 1), {1, 3}})
    for (auto [n0, ns] : {std::pair(0, 2), {2, 3}}) {
      Tensors own = arguments;
      for (int64_t position : {m0, ms, n0, ns})
        own.push_back(RuntimeValue::integer(position));
      Tensors part = call("part", own);
      ASSERT_EQ(part.size(), 4u);
      for (auto [i, x] : llvm::enumerate(getElements(part[0])))
        query[(i / (ms * 3) * 4 + m0) * 3 + i % (ms * 3)] += x;
      for (auto [i, x] : llvm::enumerate(getElements(part[1])))
        key[n0 * 3 + i] += x;
      for (auto [i, x] : llvm::enumerate(getElements(part[2])))
        value[n0 * 3 + i] += x;
      for (auto [i, x] : llvm::enumerate(getElements(part[3])))
        table[i] += x;
    }
  for (auto [sums, result] : {std::pair(&query, 0), {&key, 1}, {&value, 2}, {&table, 3}})
    for (auto [sum, wanted] : llvm::zip_equal(*sums, getElements(whole[result])))
      EXPECT_NEAR(sum, wanted, 1e-12) << "result " << result;
}

//===----------------------------------------------------------------------------------------===//
// Random regions
//===----------------------------------------------------------------------------------------===//

/// A straight line of ops on the score and two captured numbers, all of them bounded.
static std::string drawScore(std::mt19937_64 &random) {
  const char *unary[] = {"math.tanh", "math.sin",   "math.cos",   "math.atan", "math.erf",
                         "math.absf", "arith.negf", "math.asinh", "math.floor"};
  const char *binary[] = {"arith.addf",     "arith.subf",    "arith.mulf",   "arith.maximumf",
                          "arith.minimumf", "arith.maxnumf", "math.copysign"};
  std::string text = "      %v0 = math.tanh %s : f32\n"
                     "      %v1 = tensor.extract %x[%h, %m] : tensor<?x?xf32>\n"
                     "      %v2 = tensor.extract %y[%h, %n] : tensor<?x?xf32>\n"
                     "      %one = arith.constant 1.0 : f32\n";
  unsigned count = 3, numOps = 4 + random() % 8;
  for (; numOps; --numOps, ++count) {
    std::string to = "%v" + std::to_string(count);
    auto pick = [&] { return "%v" + std::to_string(random() % count); };
    auto line = [&](const std::string &result, const std::string &what) {
      text += "      " + result + " = " + what + " : f32\n";
    };
    switch (random() % 4) {
    case 0:
      line(to, std::string(unary[random() % std::size(unary)]) + " " + pick());
      break;
    case 1:
      line(to, std::string(binary[random() % std::size(binary)]) + " " + pick() + ", " + pick());
      break;
    case 2: {
      // a / (1 + b * b), and its root.
      std::string b = pick();
      line(to + "_s", "arith.mulf " + b + ", " + b);
      line(to + "_d", "arith.addf " + to + "_s, %one");
      line(to + "_r", "math.sqrt " + to + "_d");
      line(to, "arith.divf " + pick() + ", " + to + (random() % 2 ? "_r" : "_d"));
      break;
    }
    default:
      text += "      " + to + "_c = arith.cmpf olt, " + pick() + ", " + pick() + " : f32\n";
      line(to, "arith.select " + to + "_c, " + pick() + ", " + pick());
    }
  }
  return makeScore(text + "      %last = math.tanh %v" + std::to_string(count - 1) +
                   " : f32\n      %t = arith.addf %last, %v0 : f32\n");
}

TEST_F(GradientRulesTest, RandomScores) {
  uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int number = 0; number < 40; ++number) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", region " + std::to_string(number));
    GradientProblem problem{"random",
                            random() % 2 ? "variants [#attn.causal<bottom_right>]" : "",
                            drawScore(random),
                            {{GradientArgument::Unit, "x", "tensor<?x?xf32>", "HM"},
                             {GradientArgument::Unit, "y", "tensor<?x?xf32>", "HN"}}};
    problem.m = 3, problem.n = 3, problem.hasSink = random() % 2;
    GradientCheck check(context, problem, random());
    Tensors defined = check.run(GradientCheck::Linalg);
    check.expectRight(defined);
    for (GradientCheck::Road road : kRoads)
      expectSame(check.run(road), defined);
    if (HasFailure())
      return;
  }
}
