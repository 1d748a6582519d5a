//===- ExpandMath.cpp - scalar math that has no instruction ---------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A GPU program links no math library. Functions without an instruction, and sine and cosine, whose
// instructions are exact only near zero, are written out by upstream's expansions. LLVM ends the
// process over a function that it cannot select, so what nobody can write out is refused here.
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/GPUMath/GPUMath.h"
#include "lib/Conversion/TileToNVVM/Registers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace attn::tile;

/// Polynomials, on f32.
static const llvm::StringSet<> kApproximated = {
    "math.acos", "math.asin", "math.atan",  "math.atan2", "math.cbrt", "math.cos",
    "math.erf",  "math.erfc", "math.expm1", "math.log1p", "math.sin"};
/// Other functions, by their formulas.
static const StringRef kExpanded[] = {"acosh", "asinh", "atanh", "clampf", "cosh",
                                      "fpowi", "powf",  "sinh",  "tan"};

/// The first op of `function` without instructions, or null.
static Operation *findUnsupported(Operation *function) {
  Operation *found = nullptr;
  function->walk([&](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect>(op->getDialect()) || attn::hasInstructions(op))
      return WalkResult::advance();
    found = op;
    return WalkResult::interrupt();
  });
  return found;
}

LogicalResult attn::tile::expandMath(Operation *function) {
  if (!findUnsupported(function))
    return success();
  // Functions of dozens of ops; the order of short ones is best left to the assembler.
  sinkScalars(function);
  RewritePatternSet patterns(function->getContext());
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef name) { return kApproximated.contains(name); });
  math::populateExpansionPatterns(patterns, kExpanded);
  // A pattern that never settles leaves ops to be found below.
  (void)applyPatternsGreedily(function, std::move(patterns));
  Operation *op = findUnsupported(function);
  if (!op)
    return success();
  return op->emitOpError("expected a function of f32 that can be computed on the device cuda, got ")
         << op->getResultTypes().front() << "; convert to f32 first, or write it with exp, log and "
         << "arithmetic";
}
