//===- CompilerTest.cpp - include/attn/Compiler.h -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace attn;

namespace {
/// Row-major f32 tensors of one attention with B = 2, H = 4, Hkv = 2, D = 8.
struct Problem {
  Problem(int64_t m, int64_t n, unsigned seed = 1) : m(m), n(n) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    for (auto *values : {&query, &key, &value})
      values->resize(2 * (values == &query ? 4 * m : 2 * n) * 8);
    for (auto *values : {&query, &key, &value})
      for (float &x : *values)
        x = normal(engine);
    output.assign(query.size(), NAN);
  }

  static TensorView view(std::vector<float> &values, const int64_t (&shape)[4]) {
    return {values.data(), DataType::F32, 4, shape, nullptr};
  }

  Status run(const CompiledFunction &function) {
    return function.run({view(query, queryShape), view(key, keyShape), view(value, keyShape),
                         view(output, queryShape)});
  }

  /// Of the causal problem, top-left.
  double getError() const {
    double worst = 0;
    for (int64_t head = 0; head < 8; ++head)
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0, row[8] = {};
        int64_t kv = (head / 4) * 2 + head % 4 / 2;
        for (int64_t j = 0; j < std::min(n, i + 1); ++j) {
          double s = 0;
          for (int d = 0; d < 8; ++d)
            s += double(query[(head * m + i) * 8 + d]) * key[(kv * n + j) * 8 + d];
          double p = std::exp(s / std::sqrt(8.0));
          sum += p;
          for (int d = 0; d < 8; ++d)
            row[d] += p * value[(kv * n + j) * 8 + d];
        }
        for (int d = 0; d < 8; ++d)
          worst = std::max(worst, std::fabs(row[d] / sum - output[(head * m + i) * 8 + d]));
      }
    return worst;
  }

  int64_t m, n;
  int64_t queryShape[4] = {2, 4, m, 8}, keyShape[4] = {2, 2, n, 8};
  std::vector<float> query, key, value, output;
};

AttentionSpec getCausal() {
  AttentionSpec spec;
  spec.headDim = 8;
  spec.causal = Causal::TopLeft;
  return spec;
}

Result<CompiledFunction> compileCausal() { return compile(getCausal()); }
} // namespace

TEST(CompilerTest, DescribesTheFunction) {
  AttentionSpec spec = getCausal();
  spec.hasScale = spec.hasSink = spec.returnsLse = true;
  spec.valueDim = 16;
  Result<CompiledFunction> function = compile(spec);
  ASSERT_TRUE(function) << function.getStatus().str();
  const FunctionInfo &info = function->getInfo();
  ASSERT_EQ(info.arguments.size(), 5u);
  EXPECT_EQ(info.arguments[1].name, "key");
  EXPECT_EQ(info.arguments[2].shape, (std::vector<int64_t>{-1, -1, -1, 16}));
  EXPECT_EQ(info.arguments[2].letters, (std::vector<std::string>{"B", "Hkv", "N", "Dv"}));
  EXPECT_TRUE(info.arguments[3].isScalar);
  EXPECT_EQ(info.arguments[4].letters, (std::vector<std::string>{"H"}));
  ASSERT_EQ(info.results.size(), 2u);
  EXPECT_EQ(info.results[0].name, "output");
  EXPECT_EQ(info.results[1].name, "lse");
}

TEST(CompilerTest, OneFunctionServesAllLengths) {
  Result<CompiledFunction> function = compileCausal();
  ASSERT_TRUE(function) << function.getStatus().str();
  for (int64_t m : {1, 7, 129})
    for (int64_t n : {1, 64, 127}) {
      Problem problem(m, n);
      Status status = problem.run(*function);
      ASSERT_TRUE(status.ok()) << status.str();
      EXPECT_LT(problem.getError(), 1e-5) << m << " x " << n;
    }
}

TEST(CompilerTest, SourcesThatWereCompiledAreKept) {
  Result<CompiledFunction> first = compileCausal(), second = compileCausal();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(&first->getInfo(), &second->getInfo());
  CompileOptions options;
  options.blockM = 16;
  Result<CompiledFunction> third = compile(getCausal(), options);
  ASSERT_TRUE(third);
  EXPECT_NE(&first->getInfo(), &third->getInfo());
}

TEST(CompilerTest, ThreadsCompileAndRunAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      CompileOptions options;
      // Pairs of threads want the same function.
      options.blockN = 32 + 16 * (i / 2);
      options.threads = i / 2 % 3;
      Result<CompiledFunction> function = compile(getCausal(), options);
      for (unsigned run = 0; run < 20; ++run) {
        Problem problem(40 + run, 50, i * 100 + run);
        if (!function || !problem.run(*function).ok() || !(problem.getError() < 1e-5))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(CompilerTest, ForksWhileOthersCompileAndRun) {
  std::atomic<bool> isOver = false;
  std::thread other([&] {
    for (int64_t i = 0; !isOver; ++i) {
      CompileOptions options;
      options.blockN = 16 + i % 500;
      Result<CompiledFunction> function = compile(getCausal(), options);
      Problem problem(40, 50);
      EXPECT_TRUE(function && problem.run(*function).ok());
    }
  });
  auto run = [] {
    Result<CompiledFunction> function = compileCausal();
    Problem problem(40, 50);
    return function && problem.run(*function).ok() && problem.getError() < 1e-5;
  };
  for (int i = 0; i < 10; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(!run());
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  isOver = true;
  other.join();
}

TEST(CompilerTest, NumbersAreScalars) {
  AttentionSpec spec = getCausal();
  spec.hasScale = true;
  Result<CompiledFunction> function = compile(spec);
  ASSERT_TRUE(function) << function.getStatus().str();
  Problem p(9, 9);
  auto run = [&](LaunchArgument scale) {
    return function->run({Problem::view(p.query, p.queryShape), Problem::view(p.key, p.keyShape),
                          Problem::view(p.value, p.keyShape), scale,
                          Problem::view(p.output, p.queryShape)});
  };
  ASSERT_TRUE(run(1 / std::sqrt(8.0)).ok());
  EXPECT_LT(p.getError(), 1e-5);
  EXPECT_TRUE(run(1).ok());
  EXPECT_EQ(
      run(Problem::view(p.key, p.keyShape)).message,
      "scale: expected a number or a tensor of rank 0 with an element of f32, got rank 4 of f32");
}

TEST(CompilerTest, ErrorsAreValues) {
  AttentionSpec none;
  EXPECT_EQ(compile(none).getStatus().code, StatusCode::InvalidKernel);
  AttentionSpec integers = getCausal();
  integers.type = DataType::I32;
  EXPECT_EQ(compile(integers).getStatus().code, StatusCode::InvalidKernel);

  Result<CompiledFunction> right = compileCausal();
  ASSERT_TRUE(right);
  Problem problem(3, 3);
  problem.keyShape[0] = 1;
  EXPECT_EQ(
      problem.run(*right).str(),
      "invalid argument: key: expected B=2 as in query in dimension 0, got shape (1, 2, 3, 8)");
  EXPECT_TRUE(std::isnan(problem.output[0]));
  EXPECT_EQ(right->run({1, 2, 3, 4}).message, "query: expected a tensor, got a number");
}

TEST(CompilerTest, CapturesOfVariantsAreAsLargeAsWhatIsRead) {
  Result<CompiledFunction> function =
      compile("!t = tensor<2x4x?x8xf32>\n"
              "func.func @f(%q: !t, %lengths: tensor<?xi32>) -> !t {\n"
              "  %o = attn.attention %q, %q, %q variants [#attn.key_length]\n"
              "    captures(%lengths : tensor<?xi32>) : !t, !t, !t -> !t\n"
              "  return %o : !t\n"
              "}\n");
  ASSERT_TRUE(function) << function.getStatus().str();
  Problem p(3, 3);
  int32_t lengths[] = {3, 2};
  auto run = [&](int64_t count) {
    return function->run({Problem::view(p.query, p.queryShape),
                          TensorView{lengths, DataType::I32, 1, &count, nullptr},
                          Problem::view(p.output, p.queryShape)});
  };
  EXPECT_TRUE(run(2).ok()) << run(2).str();
  EXPECT_EQ(run(1).message, "lengths: expected at least B=2 elements in dimension 0, which is read "
                            "at those positions, got shape (1)");
}

TEST(CompilerTest, ExplainsWhatItDid) {
  Result<std::string> text = explain(getSource(getCausal()));
  ASSERT_TRUE(text) << text.getStatus().str();
  EXPECT_NE(text->find("// schedule    rule "), std::string::npos);
  EXPECT_NE(text->find("// mask-tiles  keeps n < m1; drops n >= m0 + 1"), std::string::npos);
  EXPECT_NE(text->find("attn.normalize"), std::string::npos);
  EXPECT_EQ(explain("", {}, "cellar").getStatus().message,
            "until: expected problem, grid or online, got 'cellar'");
}
