//===- Launch.h - all kernels of a function, one after the other ------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_LAUNCH_H
#define ATTN_LIB_SIMULATOR_LAUNCH_H

#include "lib/Simulator/Simulator.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn::sim {

/// The kernels that a function became, in their order, with the scratch that they hand on. The
/// functions below take the arguments of the function; scratch is added to them.
class Launch {
public:
  /// Of all kernels of a module, on a device of so many multiprocessors, or as many as its kind of
  /// machine.
  static llvm::Expected<Launch> create(mlir::ModuleOp module,
                                       std::optional<int64_t> multiprocessors = std::nullopt);

  llvm::ArrayRef<Simulator> getSimulators() const { return simulators; }
  mlir::func::FuncOp getKernel(size_t index) const { return kernels[index]; }
  /// Faults of the kernels that can be found without a run.
  std::vector<Finding> getFindings() const;
  /// The first of the kernels that are for the call.
  size_t getFirst(llvm::ArrayRef<Argument> arguments) const { return choose(arguments).first; }
  /// "producer 1 x 24…": a part for each kernel of the call, after its name if there are several.
  std::string describe(llvm::ArrayRef<Argument> arguments) const;

  /// Runs all blocks of the kernels that are for the call, up to the first block with findings.
  llvm::Expected<std::vector<Finding>> run(llvm::ArrayRef<Argument> arguments,
                                           const Options &options) const;
  /// By kernel that runs.
  llvm::Expected<std::vector<Prediction>> predict(llvm::ArrayRef<Argument> arguments) const;
  /// The arguments of the function and scratch of the right shapes, without data.
  llvm::Expected<std::vector<Argument>> addScratch(llvm::ArrayRef<Argument> arguments) const;
  /// Gives data to scratch of numbers that kernels search for, and runs these kernels: a
  /// prediction, which has no other data, then knows how long loops are. `all` is what `addScratch`
  /// returns.
  llvm::Expected<std::vector<Array>> search(llvm::ArrayRef<Argument> arguments,
                                            llvm::MutableArrayRef<Argument> all) const;

private:
  /// Kernels in a row, from `first` up to `end`.
  struct Way {
    size_t first, end;
  };
  /// The first way whose ranges hold (plan.when); the last is for all calls.
  Way choose(llvm::ArrayRef<Argument> arguments) const;

  std::vector<mlir::func::FuncOp> kernels;
  std::vector<Simulator> simulators;
};

} // namespace attn::sim

#endif // ATTN_LIB_SIMULATOR_LAUNCH_H
