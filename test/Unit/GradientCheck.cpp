//===- GradientCheck.cpp - gradients against differences --------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Unit/GradientCheck.h"
#include "dialects/Attn/IR/AttnDialect.h"
#include "lib/Conversion/AttnToLinalg/Passes.h"
#include "lib/Transforms/Attn/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>
#include <regex>

using namespace mlir;

namespace attn::test {

void loadGradientDialects(MLIRContext &context) {
  context.loadDialect<AttnDialect, affine::AffineDialect, arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
}

//===----------------------------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------------------------===//

GradientCheck::GradientCheck(MLIRContext &context, GradientProblem theProblem, uint64_t seed)
    : context(context), problem(std::move(theProblem)), random(seed) {
  if (problem.hasScale)
    problem.arguments.push_back({GradientArgument::Positive, "scale", "f32", "", false});
  if (problem.hasSink)
    problem.arguments.insert(problem.arguments.begin(),
                             {GradientArgument::Unit, "sink", "tensor<?xf32>", "H"});
  const std::string matrix = "tensor<?x?x?x?xf32>";
  for (const char *dims : {"BHMD", "BGND", "BGNV"})
    draw({GradientArgument::Unit, "", matrix, dims});
  for (const GradientArgument &argument : problem.arguments)
    draw(argument);
  // What is drawn for the gradients is not an input.
  Tensors all = std::move(inputs);
  inputs.clear();
  draw({GradientArgument::Unit, "", matrix, "BHMV"});
  draw({GradientArgument::Unit, "", matrix, "BHM"});
  outputGradient = inputs[0].getTensor(), lseGradient = inputs[1].getTensor();
  inputs = std::move(all);
  differentiated = {0, 1, 2};
  for (auto [i, argument] : llvm::enumerate(problem.arguments))
    if (argument.isWanted)
      differentiated.push_back(3 + i);
}

void GradientCheck::draw(const GradientArgument &argument) {
  auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  if (argument.type == "f32") {
    inputs.push_back(RuntimeValue::real(uniform(0.2, 0.6)));
    return;
  }
  SmallVector<int64_t> shape;
  for (char letter : argument.dims)
    shape.push_back(letter == 'B'   ? problem.batch
                    : letter == 'H' ? problem.heads
                    : letter == 'G' ? problem.keyHeads
                    : letter == 'M' ? problem.m
                    : letter == 'N' ? problem.n
                    : letter == 'D' ? problem.d
                    : letter == 'V' ? problem.dv
                                    : 7);
  bool isFloat =
      argument.kind == GradientArgument::Unit || argument.kind == GradientArgument::Positive;
  TensorRef tensor = llvm::cantFail(DenseTensor::create(shape, isFloat));
  for (int64_t i = 0; i < tensor->size(); ++i) {
    Lane &lane = tensor->data()[i];
    if (argument.kind == GradientArgument::Unit)
      lane.f = uniform(-1, 1);
    else if (argument.kind == GradientArgument::Positive)
      lane.f = uniform(0.2, 1.8);
    else if (argument.kind == GradientArgument::Length)
      lane.i = int64_t(random() % (problem.n + 1));
    else
      lane.i = i % shape.back() ? tensor->data()[i - 1].i + int64_t(random() % 3 == 0) : 0;
  }
  inputs.push_back(tensor);
}

static std::string matrixType(int64_t columns) {
  return "tensor<?x?x?x" + std::to_string(columns) + "xf32>";
}

std::string GradientCheck::text() const {
  std::string q = matrixType(problem.d), v = matrixType(problem.dv), rows = "tensor<?x?x?xf32>";
  std::string extra, wrt, wrtTypes, sink, scale = problem.hasScale ? " scale(%scale)" : "";
  for (const GradientArgument &argument : problem.arguments) {
    extra += ", %" + argument.name + ": " + argument.type;
    if (argument.name == "sink") {
      sink = " sink(%sink : tensor<?xf32>)";
    } else if (argument.isWanted) {
      wrt += (wrt.empty() ? "%" : ", %") + argument.name;
      wrtTypes += (wrtTypes.empty() ? "" : ", ") + argument.type;
    }
  }
  std::string results = q + ", " + q + ", " + v, values = "%dq, %dk, %dv",
              named = "d_query(" + q + ") d_key(" + q + ") d_value(" + v + ")";
  if (problem.hasSink)
    results += ", tensor<?xf32>", values += ", %ds", named += " d_sink(tensor<?xf32>)";
  unsigned numWrt = llvm::count(wrt, '%');
  for (unsigned i = 0; i < numWrt; ++i)
    values += ", %dw" + std::to_string(i);
  // Gradients are f32 whatever the tensors are.
  std::string wide = std::regex_replace(wrtTypes, std::regex("bf16"), "f32");
  if (numWrt)
    results += ", " + wide, named += " d_wrt(" + wide + ")";
  std::string lse = problem.hasLseGradient ? " d_lse(%dl : " + rows + ")" : "";
  std::string at = numWrt ? " wrt(" + wrt + " : " + wrtTypes + ")" : "";
  return "func.func @forward(%q: " + q + ", %k: " + q + ", %v: " + v + extra + ") -> (" + v + ", " +
         rows + ") {\n  %o, %l = attn.attention %q, %k, %v " + problem.variants + scale + sink +
         "\n" + problem.regions + "    : " + q + ", " + q + ", " + v + " -> " + v + ", " + rows +
         "\n  return %o, %l : " + v + ", " + rows + "\n}\n" + "func.func @gradient(%q: " + q +
         ", %k: " + q + ", %v: " + v + extra + ", %o: " + v + ", %l: " + rows + ", %do: " + v +
         ", %dl: " + rows + ") -> (" + results + ") {\n  " + values +
         " = attn.attention_grad %q, %k, %v, %o, %l, %do " + problem.variants + lse + scale + sink +
         at + "\n" + problem.regions + "    : " + q + ", " + q + ", " + v + ", " + v + ", " + rows +
         ", " + v + " -> " + named + "\n  return " + values + " : " + results + "\n}\n";
}

//===----------------------------------------------------------------------------------------===//
// Roads
//===----------------------------------------------------------------------------------------===//

OwningOpRef<ModuleOp> GradientCheck::make(Road road) {
  auto module = parseSourceString<ModuleOp>(text(), &context, "problem.mlir");
  if (!module) {
    ADD_FAILURE() << text();
    return nullptr;
  }
  PassManager pm(&context);
  pm.addPass(createExpandVariantsPass());
  pm.addPass(createDeriveScorePass());
  if (road == TwoPass || road == TwoPassLinalg)
    pm.addPass(createSplitGradPass());
  if (road == Linalg || road == TwoPassLinalg)
    pm.addPass(createConvertAttnToLinalgPass({/*f64=*/true}));
  if (failed(pm.run(*module))) {
    ADD_FAILURE() << text();
    return nullptr;
  }
  return module;
}

static Tensors call(ModuleOp module, StringRef name, ArrayRef<RuntimeValue> arguments) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  llvm::Expected<InterpreterResult> result = interpret(function, arguments);
  if (result)
    return std::move(result->values);
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

bool GradientCheck::forward() {
  if (!original)
    original = make(Interpreted);
  if (!original)
    return false;
  Tensors results = call(*original, "forward", inputs);
  if (results.size() != 2)
    return false;
  output = results[0].getTensor(), lse = results[1].getTensor();
  return true;
}

Tensors GradientCheck::run(Road road, llvm::function_ref<void(ModuleOp)> edit) {
  OwningOpRef<ModuleOp> module = make(road);
  if (!module || (!output && !forward()))
    return {};
  if (edit)
    edit(*module);
  Tensors arguments = inputs;
  for (const TensorRef &tensor : {output, lse, outputGradient, lseGradient})
    arguments.push_back(tensor);
  return call(*module, "gradient", arguments);
}

//===----------------------------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------------------------===//

double GradientCheck::evaluate() {
  Tensors results = call(*original, "forward", inputs);
  double sum = 0;
  if (results.size() != 2)
    return std::nan("");
  const DenseTensor &o = *results[0].getTensor(), &l = *results[1].getTensor();
  for (int64_t i = 0; i < o.size(); ++i)
    sum += outputGradient->data()[i].f * o.data()[i].f;
  // Rows that keep nothing have a logarithm of -inf wherever the inputs are.
  for (int64_t i = 0; i < l.size() && problem.hasLseGradient; ++i)
    if (std::isfinite(l.data()[i].f))
      sum += lseGradient->data()[i].f * l.data()[i].f;
  return sum;
}

/// Of fourth order, so that a step that is far above rounding is far below the tolerance.
double GradientCheck::getQuotient(DenseTensor &input, int64_t at, double step) {
  double &x = input.data()[at].f, old = x;
  double quotient = 0;
  for (auto [steps, weight] : {std::pair(1, 8.0), {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
    x = old + steps * step;
    quotient += weight * evaluate();
  }
  x = old;
  return quotient / (12 * step);
}

static bool agree(double got, double wanted) {
  return std::fabs(got - wanted) <= 1e-6 * (1 + std::fabs(wanted));
}

void GradientCheck::expectRight(const Tensors &gradients) {
  ASSERT_EQ(gradients.size(), differentiated.size()) << text();
  quotients.clear();
  for (auto [number, gradient] : llvm::enumerate(gradients)) {
    DenseTensor &input = *inputs[differentiated[number]].getTensor();
    std::vector<double> analytic = getElements(gradient);
    ASSERT_EQ(int64_t(analytic.size()), input.size());
    std::vector<double> &numeric = quotients.emplace_back(analytic.size());
    for (size_t i = 0; i < analytic.size(); ++i) {
      // A large step is exact unless a kink lies within it.
      for (double step : {1e-4, 1e-6, 1e-7}) {
        numeric[i] = getQuotient(input, int64_t(i), step);
        if (agree(analytic[i], numeric[i]))
          break;
      }
      ASSERT_TRUE(agree(analytic[i], numeric[i]))
          << "gradient " << number << ", element " << i << ": " << analytic[i] << " instead of "
          << numeric[i] << "\n"
          << text();
    }
  }
}

bool GradientCheck::areRight(const Tensors &gradients) const {
  for (auto [gradient, numeric] : llvm::zip_equal(gradients, quotients))
    for (auto [got, wanted] : llvm::zip_equal(getElements(gradient), numeric))
      if (!agree(got, wanted))
        return false;
  return true;
}

std::vector<double> getElements(const RuntimeValue &value) {
  const DenseTensor &tensor = *value.getTensor();
  std::vector<double> elements(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i)
    elements[i] = tensor.data()[i].f;
  return elements;
}

void expectSame(const Tensors &got, const Tensors &wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (auto [number, pair] : llvm::enumerate(llvm::zip_equal(got, wanted))) {
    std::vector<double> a = getElements(std::get<0>(pair)), b = getElements(std::get<1>(pair));
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(std::fabs(a[i] - b[i]), tolerance * (1 + std::fabs(b[i])))
          << "result " << number << ", element " << i << ": " << a[i] << " instead of " << b[i];
  }
}

} // namespace attn::test
