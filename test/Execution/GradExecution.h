//===- GradExecution.h - gradients against the f64 reference --------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_GRADEXECUTION_H
#define ATTN_TEST_EXECUTION_GRADEXECUTION_H

#include "test/Execution/Sequences.h"
#include "test/Execution/Sources.h"
#include "test/Execution/TestDevice.h"

namespace attn::test {

/// Compiles gradients for the device and as the reference, and attention as the reference. Output
/// and lse of attention, rounded as a forward kernel rounds them, go into both gradients.
class GradExecution {
public:
  /// Inputs are drawn with seeds from `seed` on.
  explicit GradExecution(uint64_t seed = 0) : seed(seed) {}

  /// Compiles the problem once and checks it with all extents. `problem.withLse` says whether the
  /// gradient of lse is one of the inputs.
  void check(const Variant &variant, const Problem &problem, const std::vector<Extents> &extents);

  /// Checks the gradients of sequences against those of each by itself. Rows of no sequence keep
  /// what they hold. Gradients of sinks and captured tensors are not asked for.
  void checkRagged(const Variant &variant, const Problem &problem,
                   const std::vector<Sequences> &sequences);

  int numCompiles = 0, numRuns = 0;

private:
  struct Kernels {
    std::unique_ptr<TestKernel> device;
    /// Of any extents, each sequence by itself.
    std::unique_ptr<CompiledKernel> attention, gradients;
  };
  /// Without a kernel of the device where there is nothing to run: a failure, or a device that only
  /// writes kernels down.
  Kernels compile(const Variant &variant, const Problem &problem);
  void run(const Variant &variant, const Problem &problem, const Extents &extents,
           const Kernels &kernels);

  uint64_t seed;
  Sources sources;
  /// The module that the device lowered. Its kernel may refer to it.
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_GRADEXECUTION_H
