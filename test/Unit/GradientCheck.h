//===- GradientCheck.h - gradients against differences ----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_GRADIENTCHECK_H
#define ATTN_TEST_UNIT_GRADIENTCHECK_H

#include "lib/Interpreter/Interpreter.h"
#include "mlir/IR/MLIRContext.h"
#include <random>
#include <string>
#include <vector>

namespace attn::test {

/// An argument beside query, key and value.
struct GradientArgument {
  /// Uniform in [-1, 1], or in [0.2, 1.8]; ids that do not decrease; lengths up to N.
  enum Kind { Unit, Positive, Sorted, Length } kind = Unit;
  std::string name, type;
  /// A letter for each dimension: B, H, M, N, or R for 7.
  std::string dims;
  bool isWanted = true;
};

/// Attention of a function of its inputs, and what it is differentiated by.
struct GradientProblem {
  std::string name;
  /// `variants [..] captures(..)`, and regions.
  std::string variants = "", regions = "";
  std::vector<GradientArgument> arguments = {};
  bool hasScale = false, hasSink = false, hasLseGradient = true;
  int64_t batch = 1, heads = 2, keyHeads = 2, m = 4, n = 5, d = 3, dv = 2;
};

using Tensors = std::vector<RuntimeValue>;

/// A problem with inputs: its gradients by several roads.
class GradientCheck {
public:
  enum Road {
    /// The op itself, interpreted.
    Interpreted,
    /// convert-attn-to-linalg.
    Linalg,
    /// attn-split-grad, interpreted.
    TwoPass,
    /// The same by linalg.
    TwoPassLinalg
  };

  GradientCheck(mlir::MLIRContext &context, GradientProblem problem, uint64_t seed);

  /// The text of the functions @forward and @gradient.
  std::string text() const;
  /// The gradients in order: query, key, value, sink, captured tensors. Empty after a failure.
  Tensors run(Road road, llvm::function_ref<void(mlir::ModuleOp)> edit = nullptr);
  /// Fails the test where gradients are not the quotients of differences.
  void expectRight(const Tensors &gradients);
  /// Whether they are those quotients, as `expectRight` found them.
  bool areRight(const Tensors &gradients) const;

  /// Query, key, value, the arguments, scale and sink; then output, lse and their gradients, the
  /// former filled by `forward`.
  Tensors inputs;
  TensorRef output, lse, outputGradient, lseGradient;

  /// Evaluates attention, with the output and lse that gradients start from.
  bool forward();

private:
  mlir::OwningOpRef<mlir::ModuleOp> make(Road road);
  void draw(const GradientArgument &argument);
  /// The sum of output and lse weighted by their gradients.
  double evaluate();
  double getQuotient(DenseTensor &input, int64_t at, double step);

  mlir::MLIRContext &context;
  GradientProblem problem;
  std::mt19937_64 random;
  mlir::OwningOpRef<mlir::ModuleOp> original;
  /// Of each gradient, the input that it is a gradient of.
  std::vector<size_t> differentiated;
  std::vector<std::vector<double>> quotients;
};

/// The elements of a tensor.
std::vector<double> getElements(const RuntimeValue &tensor);

/// Fails the test where tensors differ by more than rounding.
void expectSame(const Tensors &got, const Tensors &wanted, double tolerance = 1e-10);

/// Dialects that the functions and their linalg are written in.
void loadGradientDialects(mlir::MLIRContext &context);

} // namespace attn::test

#endif // ATTN_TEST_UNIT_GRADIENTCHECK_H
