//===- Lowered.h - attentions as kernels of room 6 --------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_SIMULATOR_LOWERED_H
#define ATTN_TEST_SIMULATOR_LOWERED_H

#include "lib/Pipelines/Pipelines.h"
#include "lib/Simulator/Launch.h"
#include "mlir/IR/MLIRContext.h"
#include "test/Execution/Problem.h"

namespace attn::test {

/// A problem and the schedule it is lowered with; 0 leaves a choice to the compiler.
struct Job {
  Variant variant;
  Problem problem;
  int64_t stages = 0;
  /// The machine.
  std::string target = "cuda";

  std::string name() const;
};

/// One context for all tests, with every dialect.
mlir::MLIRContext &getContext();

/// The module in room 6, or behind another door.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> lower(const Job &job, Room until = Room::Async);
mlir::func::FuncOp getKernel(mlir::ModuleOp module);

/// Arguments of a call, and what the definition says of it.
class Call {
public:
  Call(const Job &job, const Extents &extents, uint64_t seed);

  /// Inputs, then outputs, which are poisoned.
  std::vector<sim::Argument> getArguments();
  /// The largest relative error of the outputs; infinite when an element was not written.
  double getError();
  /// What it may be.
  double getTolerance() const;

private:
  void evaluateReference(const Job &job);

  std::vector<Input> inputs;
  std::vector<Array> outputs, wanted;
  std::string type;
};

/// Runs all blocks for `seeds` seeds from `firstSeed` on; the findings of the first that has any,
/// as text. The first `numbered` seeds compute values, which must be right.
std::string simulate(const sim::Simulator &simulator, Call &call, uint64_t firstSeed,
                     unsigned seeds, unsigned numbered);
/// The same of several kernels, one after the other.
std::string simulate(const sim::Launch &launch, Call &call, uint64_t firstSeed, unsigned seeds,
                     unsigned numbered);

} // namespace attn::test

#endif // ATTN_TEST_SIMULATOR_LOWERED_H
