//===- SimulatorDevice.cpp - kernels for Hopper without one -----------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Pipelines/Pipelines.h"
#include "lib/Simulator/Launch.h"
#include "test/Execution/GuardedTensor.h"
#include "test/Execution/TestDevice.h"
#include "llvm/Support/raw_ostream.h"

namespace attn::test {
namespace {

/// So few that blocks that stay have several tiles of small tensors, and not all as many.
constexpr int64_t kMultiprocessors = 3;

class SimulatedKernel : public TestKernel {
public:
  explicit SimulatedKernel(sim::Launch launch) : launch(std::move(launch)) {}

  llvm::Error run(llvm::MutableArrayRef<Input> inputs, llvm::MutableArrayRef<Array> outputs,
                  Memory memory, uint64_t seed) override {
    sim::Options options;
    options.seed = seed;
    std::vector<std::unique_ptr<GuardedTensor>> tensors;
    std::vector<sim::Argument> arguments;
    auto add = [&](Array &array, bool isOutput) {
      GuardedTensor &tensor =
          *tensors.emplace_back(std::make_unique<GuardedTensor>(array, isOutput, memory, ++seed));
      sim::Memory &place = arguments.emplace_back().memory;
      place.kind = array.getKind();
      place.data = reinterpret_cast<char *>(tensor.bytes.data()) + GuardedTensor::kGuardBytes;
      place.shape.assign(tensor.shape.begin(), tensor.shape.end());
      place.strides.assign(tensor.strides.begin(), tensor.strides.end());
    };
    for (Input &input : inputs) {
      if (!input.isScalar) {
        add(input.array, /*isOutput=*/false);
        continue;
      }
      sim::Argument &argument = arguments.emplace_back();
      argument.isScalar = true;
      argument.scalar.f = input.scalar;
    }
    for (Array &output : outputs)
      add(output, /*isOutput=*/true);
    llvm::Expected<std::vector<sim::Finding>> findings = launch.run(arguments, options);
    if (!findings)
      return findings.takeError();
    if (!findings->empty()) {
      std::string text;
      llvm::raw_string_ostream os(text);
      for (const sim::Finding &finding : *findings)
        finding.print(os);
      return llvm::createStringError(text);
    }
    for (auto &tensor : llvm::ArrayRef(tensors).take_back(outputs.size()))
      if (llvm::Error error = tensor->copyBack())
        return error;
    return llvm::Error::success();
  }

  bool addsInAnyOrder() const override { return true; }

private:
  sim::Launch launch;
};

class SimulatorDevice : public HopperDevice {
public:
  llvm::Expected<std::unique_ptr<TestKernel>> compile(mlir::ModuleOp module,
                                                      const Problem &problem) override {
    PipelineOptions options;
    options.target = getOptions().target.empty() ? "cuda" : getOptions().target;
    options.schedule = getOverrides(problem);
    options.way = problem.way == "auto" ? getOptions().way : problem.way;
    options.fused = getOptions().fused;
    mlir::PassManager pm(module.getContext());
    buildPipeline(pm, options, Room::Async);
    if (failed(pm.run(module)))
      return llvm::createStringError("expected passes that succeed, got the errors above");
    llvm::Expected<sim::Launch> launch = sim::Launch::create(module, kMultiprocessors);
    if (!launch)
      return launch.takeError();
    return std::make_unique<SimulatedKernel>(std::move(*launch));
  }
};

} // namespace

std::unique_ptr<TestDevice> makeSimulatorDevice() { return std::make_unique<SimulatorDevice>(); }

} // namespace attn::test
