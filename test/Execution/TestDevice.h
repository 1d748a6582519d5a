//===- TestDevice.h - where the kernels of the execution tests run --------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_TEST_EXECUTION_TESTDEVICE_H
#define ATTN_TEST_EXECUTION_TESTDEVICE_H

#include "lib/Schedule/GPUBlock.h"
#include "lib/Target/CPU/Compile.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/Execution/Problem.h"
#include <functional>

namespace attn::test {

class TestKernel {
public:
  virtual ~TestKernel() = default;

  /// Runs once, on GPUs perhaps twice at once. `outputs` are allocated and poisoned. With
  /// Memory::Random, `seed` decides how tensors lie in the device's memory.
  virtual llvm::Error run(llvm::MutableArrayRef<Input> inputs, llvm::MutableArrayRef<Array> outputs,
                          Memory memory, uint64_t seed) = 0;

  /// Ways of the kernel that give the same bits, of which the next runs take one: on a CPU those
  /// for few threads and for many.
  virtual unsigned getNumWays() const { return 1; }
  virtual void takeWay(unsigned way) {}

  /// Whether blocks that add to one result do so in another order each time.
  virtual bool addsInAnyOrder() const { return false; }

  /// Whether blocks add to an output: where they do in any order, its last bits differ each time.
  std::function<bool(size_t output)> isAddedTo = [](size_t) { return false; };
};

class TestDevice {
public:
  virtual ~TestDevice() = default;

  /// Element types of query, key and value that it has kernels for.
  virtual std::vector<std::string> getTypes() const = 0;
  /// Sizes of a block that it must take: (query rows, keys).
  virtual std::vector<std::pair<int64_t, int64_t>> getBlockSizes() const = 0;
  /// D and Dv must be multiples of this.
  virtual int64_t getColumnMultiple() const = 0;

  /// Blocks that it takes with any D, Dv and variant of the problem: up to so many query rows and
  /// keys, in steps.
  struct ScheduleLimits {
    int64_t rowStep, mostRows, keyStep, mostKeys;
  };
  virtual ScheduleLimits getScheduleLimits(const Problem &problem) const = 0;

  /// A block of gradients smaller than the rule's; zeros where there is none.
  virtual std::pair<int64_t, int64_t> getSmallGradBlock(const Problem &problem) const = 0;
  /// Processors with vector registers of each width that run here, by name ("": this one), and how
  /// many f32 a register of each has.
  virtual std::vector<std::pair<std::string, int64_t>> getProcessors() const { return {}; }
  /// Whether weights and gradients of scores are rounded to the elements of the matrices that they
  /// multiply.
  virtual bool roundsGradFactors() const { return false; }
  /// Whether gradients round the product of a score and log2(e) towards zero.
  virtual bool truncatesBase2() const { return false; }
  /// Whether elements may have 8 bits, and whether weights that multiply them are rounded to as
  /// many.
  virtual bool takesNarrow() const { return true; }
  virtual bool roundsNarrowWeights() const { return false; }

  /// PyTorch's errors on such a device, each the least over D: without a mask, with one, and with
  /// one in more than 2048 rows or keys.
  struct Errors {
    double full, masked, maskedLong;
  };
  /// `type`: f16 or bf16.
  virtual Errors getErrors(llvm::StringRef type) const = 0;

  /// Lowers `module` in place. No kernel and no error: the device compiles and does not run.
  virtual llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                              const Problem &problem) = 0;
};

/// What runs the kernels for Hopper.
class HopperDevice : public TestDevice {
public:
  std::vector<std::string> getTypes() const override { return {"bf16", "f16"}; }
  std::vector<std::pair<int64_t, int64_t>> getBlockSizes() const override {
    return {{64, 64}, {64, 128}, {128, 64}, {128, 80}, {128, 96}, {128, 112}, {128, 176}};
  }
  /// Rows are copied in steps of 16 bytes.
  int64_t getColumnMultiple() const override { return 8; }
  std::pair<int64_t, int64_t> getSmallGradBlock(const Problem &problem) const override {
    return problem.d + problem.dv <= 160 ? std::pair<int64_t, int64_t>(64, 64)
                                         : std::pair<int64_t, int64_t>(0, 0);
  }
  bool roundsGradFactors() const override { return true; }
  bool takesNarrow() const override;
  bool roundsNarrowWeights() const override { return true; }
  /// Narrower than what the rules choose, which look at the work of regions.
  ScheduleLimits getScheduleLimits(const Problem &problem) const override {
    int64_t step = getKeyStep(getDefaultMachine(), problem.d, problem.dv),
            widest = std::max(problem.d, problem.dv);
    return {64, widest <= 64 ? 192 : 128, step, widest <= 128 ? 80 : widest <= 192 ? 48 : 32};
  }
  /// bench/results/gpu-error-bounds.json
  Errors getErrors(llvm::StringRef type) const override {
    return type == "f16" ? Errors{1.0e-3, 1.67e-3, 2.18e-3} : Errors{8.1e-3, 1.51e-2, 2.05e-2};
  }
};

/// The words of the schedule that the command says, and those that a problem asks for.
Overrides getOverrides(const Problem &problem);

std::unique_ptr<TestDevice> makeCPUDevice();

/// Calls a kernel compiled for this machine, the reference too.
void call(CompiledKernel &kernel, llvm::MutableArrayRef<Input> inputs,
          llvm::MutableArrayRef<Array> outputs);

/// The kernels for Hopper in the simulator, with random times.
std::unique_ptr<TestDevice> makeSimulatorDevice();

/// With a folder: writes PTX and plans there, one pair for each kernel, and runs nothing.
std::unique_ptr<TestDevice> makeCUDADevice(const std::string &emitFolder);
/// The number of GPUs, and the bytes that are free on the first; 0 when there is none.
int countGPUs();
int64_t getFreeGPUMemory();

/// A machine that no product has, for --target=half.
void registerHalfMachine();

/// What the command line asks for.
struct TestOptions {
  std::unique_ptr<TestDevice> device;
  /// Random configurations, the kernels that share them, and the seed that they are drawn with.
  unsigned numRandom = 60, numKernels = 15;
  /// Cells of the grid of pages, and what they are drawn with.
  unsigned numPaged = 12;
  std::optional<uint64_t> pagedSeed = std::nullopt;
  /// Random configurations of gradients, of which four share kernels; and those of large scores.
  unsigned numGradients = 20, numLarge = 0;
  uint64_t seed = 1;
  /// Random configurations of small tensors only.
  bool isSmall = false;
  /// The words of the schedule that the command says, for GPUs.
  Overrides schedule;
  /// Sizes of which sequences, on GPUs: short, long, few, or auto by the extents of a call.
  std::string way = "lengths";
  /// The kind of GPU that the simulator is; empty for the default. `half` is a test's own.
  std::string target;
  /// Whether blocks of GPUs add to gradients of queries, where they can.
  bool fused = false;
  /// How this run was asked for, without what chooses random configurations.
  std::string command;
};

/// Set before GoogleTest is initialised, for it makes the list of tests from them.
TestOptions &getOptions();

} // namespace attn::test

#endif // ATTN_TEST_EXECUTION_TESTDEVICE_H
