//===- VectorKernelTest.cpp - products of tiles in all sizes ----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// The two products of room 5, each kernel alone, for every number of registers, rows and columns up
// to three groups, with static and dynamic extents, in registers of all widths, beside loops in
// f64. What lies around an operand is no number, and around a result must stay.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Conversion/AttnToVector/Step.h"
#include "lib/Pipelines/BuffersToLLVM.h"
#include "lib/Registration/Registration.h"
#include "lib/Target/CPU/Invoke.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace attn;
using mlir::Type;
using mlir::Value;
using mlir::ValueRange;

static constexpr float kPoison = std::numeric_limits<float>::quiet_NaN();
/// What is written nowhere.
static constexpr float kUnwritten = 12345;

namespace {

/// A matrix in memory that is wider and longer than it says.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t stride, float around)
      : columns(columns), stride(stride), rows(rows),
        data((rows + 2 * kRows) * stride + kEnd, around) {}

  float &at(int64_t row, int64_t column) { return data[(row + kRows) * stride + column]; }
  void draw(std::mt19937 &random, int64_t numRows, int64_t numColumns) {
    for (int64_t i = 0; i < numRows; ++i)
      for (int64_t j = 0; j < numColumns; ++j)
        at(i, j) = std::uniform_int_distribution<int>(-8, 8)(random) / 4.0f;
  }
  void pass(KernelArguments &arguments) {
    arguments.addMemRef(&at(0, 0), {rows, columns}, {stride, 1});
  }

  int64_t columns, stride;

private:
  static constexpr int64_t kRows = 3, kEnd = 64;
  int64_t rows;
  std::vector<float> data;
};

/// Kernels for registers of one width: functions of a module.
class Kernels {
public:
  Kernels(HostInfo host) : host(std::move(host)) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(context.get()));
  }

  VectorTarget getTarget() const { return {host.f32Lanes, /*bf16Dot=*/false}; }

  Type f32Matrix(int64_t rows, int64_t columns) {
    return mlir::MemRefType::get({rows, columns}, mlir::Float32Type::get(context.get()));
  }
  /// Of rows that lie anywhere.
  Type f32Rows(int64_t columns) {
    constexpr int64_t any = mlir::ShapedType::kDynamic;
    return mlir::MemRefType::get({any, columns}, mlir::Float32Type::get(context.get()),
                                 mlir::StridedLayoutAttr::get(context.get(), 0, {any, 1}));
  }
  Type f32Vector(int64_t size) {
    return mlir::MemRefType::get({size}, mlir::Float32Type::get(context.get()));
  }
  Type index() { return mlir::IndexType::get(context.get()); }

  void add(const std::string &name, llvm::ArrayRef<Type> arguments,
           llvm::function_ref<void(Emitter &, ValueRange)> body) {
    if (module->lookupSymbol(name))
      return;
    mlir::OpBuilder builder = mlir::OpBuilder::atBlockEnd(module->getBody());
    mlir::Location loc = module->getLoc();
    auto function =
        mlir::func::FuncOp::create(builder, loc, name, builder.getFunctionType(arguments, {}));
    builder.setInsertionPointToStart(function.addEntryBlock());
    Emitter b(loc, builder, getTarget());
    body(b, function.getArguments());
    mlir::func::ReturnOp::create(b);
  }

  void compile() {
    mlir::PassManager pm(context.get());
    addBuffersToLLVM(pm);
    ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
    JitOptions options;
    options.host = host;
    llvm::Expected<std::unique_ptr<Jit>> compiled = Jit::compile(*module, options);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    jit = std::move(*compiled);
  }

  void call(const std::string &name, KernelArguments &arguments) {
    arguments.call(llvm::cantFail(jit->lookupPacked(name)));
  }

private:
  HostInfo host;
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Jit> jit;
};

/// An extent that is static or an argument.
Extent makeExtent(Emitter &b, Value argument, int64_t bound, bool isStatic) {
  return {isStatic ? b.index(bound) : argument, bound, isStatic};
}

/// 1, the bound and some between, or the bound alone.
std::vector<int64_t> getCounts(int64_t bound, bool isStatic) {
  std::vector<int64_t> counts = {bound};
  if (!isStatic)
    for (int64_t count : {int64_t(1), bound / 2, bound - 1})
      if (count > 0 && count < bound)
        counts.push_back(count);
  return counts;
}

struct VectorKernelTest : testing::TestWithParam<std::string> {
  void SetUp() override {
    HostOverride other;
    other.cpu = GetParam();
    llvm::Expected<HostInfo> host = getHostInfo(other);
    if (!host) {
      llvm::consumeError(host.takeError());
      GTEST_SKIP() << "this processor has no such registers";
    }
    kernels.emplace(*host);
    lanes = host->f32Lanes;
  }
  std::optional<Kernels> kernels;
  int64_t lanes = 0;
  std::mt19937 random{7};
};

//===----------------------------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------------------------===//

struct ScoreCase {
  int64_t registers, count;
  bool isStatic, hasMaxima, hasWholeTiles;

  static constexpr int64_t kDepth = 3;
  std::string name() const {
    return llvm::formatv("scores_{0}_{1}_{2}_{3}_{4}", registers, count, isStatic, hasMaxima,
                         hasWholeTiles);
  }
};

std::vector<ScoreCase> getScoreCases() {
  std::vector<ScoreCase> cases;
  for (int64_t registers = 1; registers <= 13; ++registers)
    for (bool hasWholeTiles : {false, true})
      for (bool isStatic : {false, true}) {
        int64_t count = 1 + (registers * 5 + hasWholeTiles * 3) % 13;
        cases.push_back({registers, count, isStatic, !hasWholeTiles, hasWholeTiles});
      }
  for (int64_t registers : {1, 3, 4})
    for (int64_t count = 1; count <= 25; ++count)
      cases.push_back({registers, count, count % 2 == 0, count % 3 == 0, /*hasWholeTiles=*/false});
  return cases;
}

void addScores(Kernels &kernels, const ScoreCase &c) {
  VectorTarget target = kernels.getTarget();
  int64_t stride = c.registers * target.lanes;
  kernels.add(c.name(),
              {kernels.f32Matrix(c.kDepth, stride), kernels.f32Rows(c.kDepth),
               kernels.f32Matrix(c.count, stride), kernels.f32Vector(stride), kernels.index(),
               kernels.index()},
              [&](Emitter &b, ValueRange arguments) {
                Extent lanes = makeExtent(b, arguments[4], stride, c.isStatic);
                int64_t unit = c.hasWholeTiles ? getLaneUnit(target, stride) : target.lanes;
                ScoreProduct product;
                product.packed = {arguments[0], WordKind::F32, c.kDepth};
                product.paddedLanes = b.alignUp(lanes.value, unit);
                product.laneStride = stride;
                product.rows = arguments[1];
                product.count = makeExtent(b, arguments[5], c.count, c.isStatic);
                product.scale = b.f32(0.5);
                product.out = arguments[2];
                product.maxima = c.hasMaxima ? arguments[3] : Value();
                product.hasWholeTiles = c.hasWholeTiles;
                emitScores(b, product);
              });
}

void checkScores(Kernels &kernels, const ScoreCase &c, int64_t lanes, int64_t count,
                 std::mt19937 &random) {
  VectorTarget target = kernels.getTarget();
  int64_t stride = c.registers * target.lanes, padded = llvm::alignTo(lanes, target.lanes);
  Matrix words(c.kDepth, stride, stride, kPoison), rows(count, c.kDepth, 5, kPoison),
      out(c.count, stride, stride, kUnwritten), maxima(1, stride, stride, kUnwritten);
  words.draw(random, c.kDepth, stride);
  rows.draw(random, count, c.kDepth);
  KernelArguments arguments;
  words.pass(arguments);
  rows.pass(arguments);
  out.pass(arguments);
  arguments.addMemRef(&maxima.at(0, 0), {stride}, {1});
  arguments.addScalar(lanes);
  arguments.addScalar(count);
  kernels.call(c.name(), arguments);
  for (int64_t lane = 0; lane < stride; ++lane) {
    float maximum = -std::numeric_limits<float>::infinity();
    for (int64_t row = 0; row < count; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < c.kDepth; ++k)
        sum += double(words.at(k, lane)) * double(rows.at(row, k));
      maximum = std::max(maximum, float(sum / 2));
      if (lane < padded)
        ASSERT_EQ(out.at(row, lane), float(sum / 2)) << "row " << row << " lane " << lane;
    }
    if (c.hasMaxima && lane < padded)
      ASSERT_EQ(maxima.at(0, lane), maximum) << "lane " << lane;
    for (int64_t row : {int64_t(-1), count})
      ASSERT_EQ(out.at(row, lane), kUnwritten) << "row " << row << " lane " << lane;
    for (int64_t row : {-1, 1})
      ASSERT_EQ(maxima.at(row, lane), kUnwritten) << "lane " << lane;
  }
}

TEST_P(VectorKernelTest, Scores) {
  for (const ScoreCase &c : getScoreCases())
    addScores(*kernels, c);
  ASSERT_NO_FATAL_FAILURE(kernels->compile());
  for (const ScoreCase &c : getScoreCases())
    for (int64_t registers : getCounts(c.registers, c.isStatic))
      for (int64_t count : getCounts(c.count, c.isStatic)) {
        int64_t odd = c.isStatic ? 0 : random() % lanes;
        SCOPED_TRACE(
            llvm::formatv("{0} of {1} registers, {2} rows", c.name(), registers, count).str());
        ASSERT_NO_FATAL_FAILURE(checkScores(*kernels, c, registers * lanes - odd, count, random));
      }
}

//===----------------------------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------------------------===//

struct SumCase {
  int64_t rows, columns;
  bool isStatic, termsAreColumns, hasKept, isScratch, hasFactor;

  static constexpr int64_t kTerms = 5;
  /// Columns of a matrix: scratch is as wide as whole registers.
  int64_t getWidth(int64_t lanes) const {
    return isScratch ? llvm::alignTo(columns, lanes) : columns;
  }
  int64_t getWeightRows() const { return termsAreColumns ? rows : kTerms; }
  int64_t getWeightColumns() const { return termsAreColumns ? kTerms : rows; }
  std::string name() const {
    return llvm::formatv("sums_{0}_{1}_{2}_{3}_{4}_{5}_{6}", rows, columns, isStatic,
                         termsAreColumns, hasKept, isScratch, hasFactor);
  }
};

std::vector<SumCase> getSumCases(int64_t lanes) {
  std::vector<SumCase> cases;
  unsigned flags = 0;
  auto add = [&](int64_t rows, int64_t columns) {
    // Each case has other flags, all five of them in turns that no other period divides.
    flags = flags * 5 + 7;
    auto flag = [&](unsigned bit) { return (flags >> (bit + 8)) % 2 == 1; };
    cases.push_back({rows, columns, flag(0), flag(1), flag(2), flag(3), flag(4)});
  };
  for (int64_t rows = 1; rows <= 25; ++rows)
    for (int64_t columns : {int64_t(1), lanes, 2 * lanes + 3})
      add(rows, columns);
  for (int64_t registers = 0; registers <= 9; ++registers)
    for (int64_t rest : {int64_t(0), int64_t(1), lanes - 1})
      if (registers + rest > 0)
        add(1 + registers * 3 % 8, registers * lanes + rest);
  return cases;
}

void addSums(Kernels &kernels, const SumCase &c) {
  int64_t width = c.getWidth(kernels.getTarget().lanes);
  kernels.add(c.name(),
              {kernels.f32Matrix(c.getWeightRows(), c.getWeightColumns()), kernels.f32Rows(width),
               kernels.f32Rows(c.columns), kernels.f32Vector(c.kTerms), kernels.f32Vector(c.rows),
               kernels.index(), kernels.index()},
              [&](Emitter &b, ValueRange arguments) {
                SumProduct product;
                product.weights = arguments[0];
                product.termsAreColumns = c.termsAreColumns;
                product.terms = makeExtent(b, arguments[5], c.kTerms, c.isStatic);
                product.acc = arguments[2];
                product.isFar = c.termsAreColumns;
                product.rows = makeExtent(b, arguments[6], c.rows, c.isStatic);
                product.columns = c.columns;
                product.matrix = arguments[1];
                product.isScratch = c.isScratch;
                product.kept = c.hasKept ? arguments[3] : Value();
                product.factor = c.hasFactor ? arguments[4] : Value();
                emitSums(b, product);
              });
}

void checkSums(Kernels &kernels, const SumCase &c, int64_t terms, int64_t rows,
               std::mt19937 &random) {
  int64_t width = c.getWidth(kernels.getTarget().lanes), weightColumns = c.getWeightColumns();
  Matrix weights(c.getWeightRows(), weightColumns, weightColumns, kPoison),
      matrix(terms, width, width + 3, kPoison), acc(rows, c.columns, c.columns + 2, kUnwritten),
      kept(1, c.kTerms, c.kTerms, kPoison), factor(1, c.rows, c.rows, kPoison);
  matrix.draw(random, terms, width);
  acc.draw(random, rows, c.columns);
  factor.draw(random, 1, rows);
  auto weight = [&](int64_t row, int64_t term) -> float & {
    return c.termsAreColumns ? weights.at(row, term) : weights.at(term, row);
  };
  for (int64_t term = 0; term < terms; ++term) {
    bool isKept = !c.hasKept || random() % 3 != 0;
    kept.at(0, term) = isKept;
    for (int64_t row = 0; row < rows; ++row)
      weight(row, term) = isKept ? float(random() % 9) / 4 : 0;
    for (int64_t column = 0; column < width && !isKept; ++column)
      matrix.at(term, column) = kPoison;
  }
  Matrix before = acc;
  KernelArguments arguments;
  weights.pass(arguments);
  matrix.pass(arguments);
  acc.pass(arguments);
  arguments.addMemRef(&kept.at(0, 0), {c.kTerms}, {1});
  arguments.addMemRef(&factor.at(0, 0), {c.rows}, {1});
  arguments.addScalar(terms);
  arguments.addScalar(rows);
  kernels.call(c.name(), arguments);
  for (int64_t row = -1; row <= rows; ++row)
    for (int64_t column = 0; column < acc.stride; ++column) {
      double sum = before.at(row, column);
      if (row >= 0 && row < rows && column < c.columns) {
        sum *= c.hasFactor ? factor.at(0, row) : 1;
        for (int64_t term = 0; term < terms; ++term)
          if (kept.at(0, term) != 0)
            sum += double(weight(row, term)) * double(matrix.at(term, column));
      }
      ASSERT_EQ(acc.at(row, column), float(sum)) << "row " << row << " column " << column;
    }
}

TEST_P(VectorKernelTest, Sums) {
  for (const SumCase &c : getSumCases(lanes))
    addSums(*kernels, c);
  ASSERT_NO_FATAL_FAILURE(kernels->compile());
  for (const SumCase &c : getSumCases(lanes))
    for (int64_t terms : getCounts(c.kTerms, c.isStatic))
      for (int64_t rows : getCounts(c.rows, c.isStatic)) {
        SCOPED_TRACE(llvm::formatv("{0} with {1} terms, {2} rows", c.name(), terms, rows).str());
        ASSERT_NO_FATAL_FAILURE(checkSums(*kernels, c, terms, rows, random));
      }
}

INSTANTIATE_TEST_SUITE_P(All, VectorKernelTest, testing::Values("x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const testing::TestParamInfo<std::string> &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

} // namespace
