//===- CompilerTest.cpp - include/attn/Compiler.h -------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "gtest/gtest.h"
#include <cmath>
#include <functional>
#include <numeric>
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

/// Rows 0 to 255 of two batches against 300 keys, of which a batch keeps as many as a tensor says.
TEST(CompilerTest, FindsTheRangesOfAMask) {
  const char *source = R"(
    func.func @attention(%q: tensor<?x?x?x8xf32>, %k: tensor<?x?x?x8xf32>,
                         %v: tensor<?x?x?x8xf32>, %lengths: tensor<?xi32>)
        -> tensor<?x?x?x8xf32> {
      %o = attn.attention %q, %k, %v mask(%b, %h, %m, %n) {
        %length = tensor.extract %lengths[%b] : tensor<?xi32>
        %j = arith.index_cast %n : index to i32
        %keep = arith.cmpi slt, %j, %length : i32
        attn.yield %keep : i1
      } : tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32> -> tensor<?x?x?x8xf32>
      return %o : tensor<?x?x?x8xf32>
    })";
  // Every second word is a length.
  int32_t lengths[] = {70, -1, 300, -1};
  int64_t rows[] = {2, 1, 256, 8}, keys[] = {2, 1, 300, 8}, two[] = {2}, skip[] = {2};
  TensorView q{nullptr, DataType::F32, 4, rows}, k{nullptr, DataType::F32, 4, keys};
  TensorView live{lengths, DataType::I32, 1, two, skip};
  Result<std::vector<MaskRange>> ranges = findMaskRanges(source, {q, k, k, live}, 128, 64);
  ASSERT_TRUE(ranges) << ranges.getStatus().str();
  ASSERT_EQ(ranges->size(), 4u);
  for (size_t i = 0; i < ranges->size(); ++i) {
    EXPECT_EQ((*ranges)[i].begin, 0);
    EXPECT_EQ((*ranges)[i].end, i < 2 ? 128 : 320);
    EXPECT_EQ((*ranges)[i].fullEnd, i < 2 ? 64 : 256);
  }

  auto refuse = [&](LaunchArguments arguments, int64_t tile) {
    return findMaskRanges(source, arguments, 128, tile).getStatus().message;
  };
  EXPECT_EQ(refuse({q, k, k, live}, 0), "tile keys: expected 1 to 2^20, got 0");
  EXPECT_EQ(refuse({q, k, k}, 64), "arguments: expected 4, got 3");
  EXPECT_EQ(refuse({q, k, k, 3}, 64), "lengths: expected a tensor, got a number");
  TensorView wide{lengths, DataType::I32, 4, keys};
  EXPECT_EQ(refuse({q, k, k, wide}, 64), "lengths: expected 1 dimensions, got 4");
  EXPECT_EQ(refuse({q, k, k, k}, 64), "lengths: expected elements of i32, got f32");
  EXPECT_EQ(refuse({q, k, live, live}, 64), "v: expected elements of f32, got i32");
  live.shape = nullptr;
  EXPECT_EQ(refuse({q, k, k, live}, 64), "lengths: expected a shape, got a null address");
  int64_t negative[] = {2, 1, -3, 8};
  q.shape = negative;
  EXPECT_EQ(refuse({q, k, k, live}, 64),
            "q: expected extents from 0 to 2^29 - 1, got (2, 1, -3, 8)");
  q.shape = rows, live.shape = two;
  live.type = DataType::I64;
  EXPECT_EQ(refuse({q, k, k, live}, 64), "lengths: expected elements of i32, got i64");
  live = {nullptr, DataType::I32, 1, two, skip};
  EXPECT_EQ(refuse({q, k, k, live}, 64), "lengths: expected a tensor in host memory, got none");
  const char *other =
      "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }";
  EXPECT_EQ(findMaskRanges(other, {live}, 64, 64).getStatus().message,
            "source: expected a function of q, k and v with one attention");
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

//===----------------------------------------------------------------------------------------===//
// Extents that a function relates
//===----------------------------------------------------------------------------------------===//

/// The message of a call of `source` with zeros of these shapes; "!t" is tensor<?x?x?x8xf32>.
static std::string call(const std::string &source, const std::vector<std::vector<int64_t>> &shapes,
                        std::optional<int64_t> number = std::nullopt) {
  Result<CompiledFunction> function = compile("!t = tensor<?x?x?x8xf32>\n" + source);
  if (!function)
    return function.getStatus().message;
  static std::vector<float> zeros(1 << 16);
  // One after another.
  static std::vector<float> results(1 << 16);
  float *next = results.data();
  std::vector<LaunchArgument> arguments;
  size_t numResults = function->getInfo().results.size();
  for (const std::vector<int64_t> &shape : shapes) {
    // The number is the last argument.
    if (number && arguments.size() == shapes.size() - numResults)
      arguments.push_back(*number);
    bool isResult = arguments.size() >= function->getInfo().arguments.size();
    arguments.push_back(TensorView{isResult ? next : zeros.data(), DataType::F32,
                                   static_cast<int>(shape.size()), shape.data(), nullptr});
    if (isResult)
      next += std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
  }
  return function->run(std::span<const LaunchArgument>(arguments)).message;
}

TEST(CompilerTest, ArgumentsInTwoRolesAreRelated) {
  const char *queryAndKey = "func.func @f(%a: !t, %v: !t) -> !t {\n"
                            "  %o = attn.attention %a, %a, %v : !t, !t, !t -> !t\n"
                            "  return %o : !t\n}\n";
  EXPECT_EQ(call(queryAndKey, {{1, 1, 40, 8}, {1, 1, 40, 8}, {1, 1, 40, 8}}), "");
  EXPECT_EQ(call(queryAndKey, {{1, 1, 40, 8}, {1, 1, 5, 8}, {1, 1, 40, 8}}),
            "v: expected N=40 as in a in dimension 2, got shape (1, 1, 5, 8)");
  EXPECT_EQ(call(queryAndKey, {{1, 4, 40, 8}, {1, 1, 40, 8}, {1, 4, 40, 8}}),
            "v: expected Hkv=4 as in a in dimension 1, got shape (1, 1, 40, 8)");
  const char *queryAndValue = "func.func @f(%q: !t, %k: !t) -> !t {\n"
                              "  %o = attn.attention %q, %k, %q : !t, !t, !t -> !t\n"
                              "  return %o : !t\n}\n";
  EXPECT_EQ(call(queryAndValue, {{1, 1, 5, 8}, {1, 1, 40, 8}, {1, 1, 5, 8}}),
            "k: expected N=5 as in q in dimension 2, got shape (1, 1, 40, 8)");
  // Read as a table too.
  const char *captured = "func.func @f(%q: !t, %k: !t, %t: tensor<?x?xf32>) -> !t {\n"
                         "  %o = attn.attention %q, %k, %k score(%s, %b, %h, %m, %n) {\n"
                         "    %x = tensor.extract %t[%m, %n] : tensor<?x?xf32>\n"
                         "    %y = tensor.extract %t[%n, %m] : tensor<?x?xf32>\n"
                         "    %z = arith.addf %x, %y : f32\n"
                         "    attn.yield %z : f32\n  } : !t, !t, !t -> !t\n"
                         "  return %o : !t\n}\n";
  EXPECT_EQ(call(captured, {{1, 1, 3, 8}, {1, 1, 9, 8}, {9, 9}, {1, 1, 3, 8}}), "");
  EXPECT_EQ(call(captured, {{1, 1, 3, 8}, {1, 1, 9, 8}, {3, 9}, {1, 1, 3, 8}}),
            "t: expected at least N=9 elements in dimension 0, which is read at those positions, "
            "got shape (3, 9)");
}

TEST(CompilerTest, AttentionsAreRelatedOnlyByWhatTheyShare) {
  const char *two = "func.func @f(%q: !t, %k: !t, %p: !t) -> (!t, !t) {\n"
                    "  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t\n"
                    "  %r = attn.attention %p, %k, %k : !t, !t, !t -> !t\n"
                    "  return %o, %r : !t, !t\n}\n";
  EXPECT_EQ(call(two, {{1, 2, 3, 8}, {1, 1, 9, 8}, {1, 1, 7, 8}, {1, 2, 3, 8}, {1, 1, 7, 8}}), "");
  EXPECT_NE(call(two, {{1, 2, 3, 8}, {1, 1, 9, 8}, {1, 1, 7, 8}, {1, 1, 7, 8}, {1, 2, 3, 8}}), "");
}

TEST(CompilerTest, SlicesLieWithinTheirTensors) {
  const char *keys =
      "func.func @f(%q: !t, %k: !t, %v: !t) -> !t {\n"
      "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
      "  %c2 = arith.constant 2 : index\n  %B = tensor.dim %k, %c0 : !t\n"
      "  %H = tensor.dim %k, %c1 : !t\n  %N = tensor.dim %k, %c2 : !t\n"
      "  %w = tensor.extract_slice %v[0, 0, 0, 0] [%B, %H, %N, 8] [1, 1, 1, 1] : !t to !t\n"
      "  %o = attn.attention %q, %k, %w : !t, !t, !t -> !t\n"
      "  return %o : !t\n}\n";
  EXPECT_EQ(call(keys, {{1, 1, 5, 8}, {1, 1, 40, 8}, {1, 1, 41, 8}, {1, 1, 5, 8}}), "");
  EXPECT_EQ(call(keys, {{1, 1, 5, 8}, {1, 1, 40, 8}, {1, 1, 5, 8}, {1, 1, 5, 8}}),
            "v: expected at least 40 elements in dimension 2, which is read up to there, got shape "
            "(1, 1, 5, 8)");
  const char *half =
      "func.func @f(%q: !t, %k: !t, %first: index) -> !t {\n"
      "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
      "  %c2 = arith.constant 2 : index\n  %B = tensor.dim %k, %c0 : !t\n"
      "  %H = tensor.dim %k, %c1 : !t\n  %N = tensor.dim %k, %c2 : !t\n"
      "  %n = arith.floordivsi %N, %c2 : index\n"
      "  %w = tensor.extract_slice %k[0, 0, %first, 0] [%B, %H, %n, 8] [1, 1, 1, 1] : !t to !t\n"
      "  %o = attn.attention %q, %w, %w : !t, !t, !t -> !t\n"
      "  return %o : !t\n}\n";
  EXPECT_EQ(call(half, {{1, 1, 5, 8}, {1, 1, 9, 8}, {1, 1, 5, 8}}, 5), "");
  EXPECT_EQ(call(half, {{1, 1, 5, 8}, {1, 1, 9, 8}, {1, 1, 5, 8}}, 6),
            "k: expected at least 10 elements in dimension 2, which is read up to there, got shape "
            "(1, 1, 9, 8)");
  EXPECT_EQ(call(half, {{1, 1, 5, 8}, {1, 1, 9, 8}, {1, 1, 5, 8}}, -1),
            "call: expected a slice within its tensor, got one from or to -1 where it is 0");
  EXPECT_NE(call(half, {{1, 1, 5, 8}, {1, 1, 9, 8}, {1, 1, 5, 8}}, INT64_MAX), "");
}

TEST(CompilerTest, ResultsOfNoAttentionHaveTheirExtents) {
  const char *merge =
      "func.func @f(%p: tensor<2x?x8xf32>, %l: tensor<2x?xf32>, %e: tensor<?x8xf32>)\n"
      "    -> tensor<?x8xf32> {\n"
      "  %o = attn.merge %p, %l outs(%e)\n"
      "    : tensor<2x?x8xf32>, tensor<2x?xf32>, tensor<?x8xf32> -> tensor<?x8xf32>\n"
      "  return %o : tensor<?x8xf32>\n}\n";
  EXPECT_EQ(call(merge, {{2, 40, 8}, {2, 40}, {40, 8}, {40, 8}}), "");
  EXPECT_EQ(call(merge, {{2, 40, 8}, {2, 40}, {40, 8}, {5, 8}}),
            "result 0: expected 40 as in p in dimension 0, got shape (5, 8)");
  EXPECT_EQ(call(merge, {{2, 40, 8}, {2, 5}, {40, 8}, {40, 8}}),
            "l: expected 40 as in p in dimension 1, got shape (2, 5)");
  const char *returned = "func.func @f(%q: !t, %k: !t) -> (!t, !t) {\n"
                         "  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t\n"
                         "  return %o, %q : !t, !t\n}\n";
  EXPECT_EQ(call(returned, {{1, 1, 4, 8}, {1, 1, 9, 8}, {1, 1, 4, 8}, {1, 1, 3, 8}}),
            "result 1: expected 4 as in q in dimension 2, got shape (1, 1, 3, 8)");
  const char *cast = "func.func @f(%q: !t) -> !t {\n"
                     "  %c = tensor.cast %q : !t to tensor<2x3x?x8xf32>\n"
                     "  %d = tensor.cast %c : tensor<2x3x?x8xf32> to !t\n"
                     "  %o = attn.attention %d, %d, %d : !t, !t, !t -> !t\n"
                     "  return %o : !t\n}\n";
  EXPECT_EQ(call(cast, {{2, 3, 4, 8}, {2, 3, 4, 8}}), "");
  EXPECT_EQ(call(cast, {{1, 3, 4, 8}, {1, 3, 4, 8}}),
            "q: expected 2 in dimension 0, which the function says, got shape (1, 3, 4, 8)");
}

/// New keys go where slots say, of a pool of any strides, and the last of equal slots is there.
TEST(CompilerTest, AppendsRows) {
  Result<CompiledFunction> function =
      compile("!n = tensor<?x?x3xf32>\n!p = tensor<?x?x?x3xf32>\n"
              "func.func @f(%new: !n, %slots: tensor<?xi32>, %sizes: tensor<?x?xi8>) -> !p {\n"
              "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
              "  %np = tensor.dim %sizes, %c0 : tensor<?x?xi8>\n"
              "  %page = tensor.dim %sizes, %c1 : tensor<?x?xi8>\n"
              "  %h = tensor.dim %new, %c1 : !n\n  %e = tensor.empty(%np, %page, %h) : !p\n"
              "  %r = attn.append %new[%slots] into %e : !n, tensor<?xi32>, !p -> !p\n"
              "  return %r : !p\n}\n");
  ASSERT_TRUE(function) << function.getStatus().str();
  constexpr int64_t rows = 5, heads = 2, d = 3, pages = 2, page = 2, content = 2 * d;
  std::vector<float> source(rows * heads * d), pool(pages * page * heads * content, -1.0f);
  std::iota(source.begin(), source.end(), 0.0f);
  std::vector<int32_t> slots = {3, -1, 0, INT32_MIN, 3};
  int64_t sourceShape[] = {rows, heads, d}, count = rows, poolShape[] = {pages, page, heads, d};
  int64_t strides[] = {page * heads * content, heads * content, content, 1};
  TensorView view{pool.data(), DataType::F32, 4, poolShape, strides};
  TensorView sizes{source.data(), DataType::I8, 2, poolShape, nullptr};
  Status status =
      function->run({TensorView{source.data(), DataType::F32, 3, sourceShape, nullptr},
                     TensorView{slots.data(), DataType::I32, 1, &count, nullptr}, sizes, view});
  ASSERT_EQ(status.message, "");
  std::vector<float> wanted(pool.size(), -1.0f);
  for (auto [slot, row] : {std::pair(3, 4), {0, 2}})
    for (int64_t i = 0; i < heads * d; ++i)
      wanted[slot * heads * content + i / d * content + i % d] = float(row * heads * d + i);
  EXPECT_EQ(pool, wanted);
  poolShape[2] = 1;
  status =
      function->run({TensorView{source.data(), DataType::F32, 3, sourceShape, nullptr},
                     TensorView{slots.data(), DataType::I32, 1, &count, nullptr}, sizes, view});
  EXPECT_EQ(status.message,
            "result 0: expected 2 as in new in dimension 2, got shape (2, 2, 1, 3)");
}

TEST(CompilerTest, ResultsOfRankOneAreContiguous) {
  Result<CompiledFunction> function =
      compile("!p = tensor<2x?x8xf32>\n!l = tensor<2x?xf32>\n"
              "func.func @f(%p: !p, %l: !l) -> tensor<?xf32> {\n"
              "  %c1 = arith.constant 1 : index\n  %M = tensor.dim %p, %c1 : !p\n"
              "  %e = tensor.empty(%M) : tensor<?x8xf32>\n  %f = tensor.empty(%M) : tensor<?xf32>\n"
              "  %o:2 = attn.merge %p, %l outs(%e, %f)\n"
              "    : !p, !l, tensor<?x8xf32>, tensor<?xf32> -> tensor<?x8xf32>, tensor<?xf32>\n"
              "  return %o#1 : tensor<?xf32>\n}\n");
  ASSERT_TRUE(function) << function.getStatus().str();
  std::vector<float> parts(2 * 3 * 8), logarithms(2 * 3), result(6, 7.0f);
  int64_t partShape[] = {2, 3, 8}, logShape[] = {2, 3}, shape = 3;
  for (int64_t stride : {1, 2, -1}) {
    Status status =
        function->run({TensorView{parts.data(), DataType::F32, 3, partShape, nullptr},
                       TensorView{logarithms.data(), DataType::F32, 2, logShape, nullptr},
                       TensorView{result.data(), DataType::F32, 1, &shape, &stride}});
    EXPECT_EQ(status.message, stride == 1 ? ""
                                          : "result 0: expected a contiguous last dimension, got a "
                                            "stride of " +
                                                std::to_string(stride));
  }
  EXPECT_NEAR(result[2], std::log(2.0), 1e-6);
  EXPECT_EQ(result[3], 7.0f);
}

TEST(CompilerTest, CapturesHaveAnyStrides) {
  // A mask by bias, and nothing else, weighs the values: keys are zeros.
  Result<CompiledFunction> function =
      compile("!t = tensor<?x?x?x8xf32>\n"
              "func.func @f(%q: !t, %v: !t, %bias: tensor<?x?xf32>) -> !t {\n"
              "  %o = attn.attention %q, %q, %v score(%s, %b, %h, %m, %n) {\n"
              "    %x = tensor.extract %bias[%m, %n] : tensor<?x?xf32>\n"
              "    %y = arith.addf %s, %x : f32\n    attn.yield %y : f32\n  } : !t, !t, !t -> !t\n"
              "  return %o : !t\n}\n");
  ASSERT_TRUE(function) << function.getStatus().str();
  constexpr int64_t n = 37;
  std::vector<float> query(n * 8, 0.0f), value(n * 8), bias(4 * n * n), output(n * 8);
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (auto *values : {&value, &bias})
    for (float &x : *values)
      x = normal(engine);
  int64_t shape[] = {1, 1, n, 8}, square[] = {n, n};
  auto view = [&](std::vector<float> &values) {
    return TensorView{values.data(), DataType::F32, 4, shape, nullptr};
  };
  for (auto [rows, columns, first] : {std::array<int64_t, 3>{n, 1, 0},
                                      {1, n, 0},
                                      {2 * n, 2, 0},
                                      {-n, 1, n * (n - 1)},
                                      {n, -1, n - 1},
                                      {0, 1, 0},
                                      {1, 0, 0},
                                      {0, 0, 5}}) {
    int64_t strides[] = {rows, columns};
    Status status = function->run(
        {view(query), view(value),
         TensorView{bias.data() + first, DataType::F32, 2, square, strides}, view(output)});
    ASSERT_TRUE(status.ok()) << status.str();
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      double sum = 0, wanted = 0;
      for (int64_t j = 0; j < n; ++j) {
        double p = std::exp(double(bias[first + i * rows + j * columns]));
        sum += p;
        wanted += p * value[j * 8 + 3];
      }
      worst = std::max(worst, std::fabs(wanted / sum - output[i * 8 + 3]));
    }
    EXPECT_LT(worst, 1e-5) << rows << " " << columns;
  }
}

TEST(CompilerTest, FunctionsThatCannotBeCheckedAreRefused) {
  EXPECT_EQ(call("func.func @f(%q: !t, %n: i32) -> !t {\n"
                 "  %c0 = arith.constant 0 : index\n"
                 "  %m = arith.index_cast %n : i32 to index\n"
                 "  %w = tensor.extract_slice %q[0, 0, 0, 0] [1, 1, %m, 8] [1, 1, 1, 1]\n"
                 "    : !t to tensor<1x1x?x8xf32>\n"
                 "  %k = tensor.cast %w : tensor<1x1x?x8xf32> to !t\n"
                 "  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t\n"
                 "  return %o : !t\n}\n",
                 {}),
            "source:5:8: 'tensor.extract_slice' op expected extents and offsets that are sums, "
            "products and quotients of arguments and their extents");
  EXPECT_EQ(call("func.func @f(%q: !t) -> !t {\n"
                 "  %c1 = arith.constant 1 : index\n  %zero = arith.constant 0.0 : f32\n"
                 "  %k = tensor.pad %q low[0, 0, 1, 0] high[0, 0, 0, 0] {\n"
                 "  ^bb0(%i: index, %j: index, %k: index, %l: index):\n"
                 "    tensor.yield %zero : f32\n  } : !t to !t\n"
                 "  %o = attn.attention %q, %k, %k : !t, !t, !t -> !t\n"
                 "  return %o : !t\n}\n",
                 {}),
            "source:5:8: 'tensor.pad' op expected ops whose extents are known: attention, merge, "
            "casts, slices, linalg and elementwise ops");
}

TEST(CompilerTest, ExplainsWhatItDid) {
  Result<std::string> text = explain(getSource(getCausal()));
  ASSERT_TRUE(text) << text.getStatus().str();
  EXPECT_NE(text->find("// schedule    rule "), std::string::npos);
  EXPECT_NE(text->find("// mask-tiles  keeps n < m1; drops n >= m0 + 1"), std::string::npos);
  EXPECT_NE(text->find("attn.normalize"), std::string::npos);
  EXPECT_EQ(explain("", {}, "cellar").getStatus().message,
            "until: expected problem, grid or online, got 'cellar'");
  EXPECT_EQ(explain(getSource(getCausal()), {}, "grid", "packed4").getStatus().message,
            "way: expected none on the CPU, got 'packed4'");
}
