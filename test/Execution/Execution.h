//===- Execution.h - one kernel against the f64 reference -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_EXECUTION_H
#define ATTN_TEST_EXECUTION_EXECUTION_H

#include "test/Execution/Sequences.h"
#include "test/Execution/Sources.h"
#include "test/Execution/TestDevice.h"
#include <functional>

namespace attn::test {

/// Of f32, and of the logarithms of any type.
inline constexpr double kF32Bound = 2e-5;
/// The same of elements of 8 bits, of outputs and of the log-sum-exp.
inline constexpr double kNarrowBound = 4e-1, kNarrowSumBound = 1e-3;

/// Relative to the root mean square of all elements. Causal rows with few keys have the largest
/// errors.
double getBound(const Problem &problem, bool isMasked, const Extents &e);
/// Errors are relative to the root mean square of all elements. Rows that keep nothing are zeros
/// and would make it, and so the bound, smaller than that of the other rows.
double getShareOfZeros(Array &reference);
std::vector<Array> callReference(CompiledKernel &reference, std::vector<Input> &inputs,
                                 const Problem &problem, const Extents &extents);

/// Compiles problems for the device and as the reference, and compares; differences are
/// GoogleTest's failures.
class Execution {
public:
  /// Inputs are drawn with seeds from `seed` on.
  explicit Execution(uint64_t seed = 0) : seed(seed) {}

  /// Compiles the problem once and checks it with all extents.
  void check(const Variant &variant, const Problem &problem, const std::vector<Extents> &extents);
  /// Checks that keys and values which no row of their batch and key head keeps may hold anything:
  /// results are the same bits as with zeros there.
  void checkDroppedKeys(const Variant &variant, const Problem &problem,
                        const std::vector<Extents> &extents);

  /// Checks a problem of pages: results are right, and have the bits of the same keys without
  /// pages, or, under masks on GPUs, in pages that lie in order. Entries of tables that no kept key
  /// needs are no pages, and pages that no entry names are NaN.
  void checkPaged(const Variant &variant, const Problem &problem,
                  const std::vector<Extents> &extents);

  /// Checks a problem of sequences against each sequence by itself. Rows of no sequence keep what
  /// they hold.
  void checkRagged(const Variant &variant, const Problem &problem,
                   const std::vector<Sequences> &sequences);

  /// Changes the inputs of a run, if set.
  std::function<void(std::vector<Input> &)> edit;
  int numCompiles = 0, numRuns = 0;
  /// Runs whose results are wrong.
  int numMismatches = 0;
  /// Keys that checkDroppedKeys found dropped.
  int64_t numDropped = 0;
  /// Entries of tables that checkPaged made no pages.
  int64_t numHoles = 0;

private:
  struct Kernels {
    /// What the device lowered, and may refer to.
    mlir::OwningOpRef<mlir::ModuleOp> module;
    std::unique_ptr<TestKernel> device;
    std::unique_ptr<CompiledKernel> reference;
  };
  /// Null where there is nothing to run.
  Kernels compile(const Variant &variant, const Problem &problem);
  /// Whether the results are right.
  bool run(const Variant &variant, const Problem &problem, const Extents &extents,
           TestKernel &kernel, CompiledKernel &reference);

  uint64_t seed;
  Sources sources;
};

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_EXECUTION_H
