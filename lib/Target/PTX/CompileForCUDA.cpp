//===- CompileForCUDA.cpp - kernels for an NVIDIA GPU -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/PTX/CompileForCUDA.h"
#include "dialects/Plan/IR/PlanFactors.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Source/Signature.h"
#include "lib/Support/Stopwatch.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using llvm::Expected;

namespace attn {

Expected<func::FuncOp> isolateEntry(ModuleOp module, StringRef entry) {
  Expected<func::FuncOp> found = findEntry(module, entry);
  if (found)
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function != *found && SymbolTable::symbolKnownUseEmpty(function, module))
        function.erase();
  return found;
}

/// Runs rooms from `first` to `last`.
static llvm::Error runRooms(ModuleOp module, const CUDAOptions &options, Room first, Room last) {
  PipelineOptions pipeline;
  pipeline.target = options.target.empty() ? "cuda" : options.target;
  pipeline.schedule = options.schedule;
  pipeline.fused = options.fused;
  pipeline.pack = options.pack;
  pipeline.way = options.way;
  pipeline.search = options.search;
  PassManager pm(module.getContext());
  buildPipeline(pm, pipeline, first, last, options.visit);
  if (failed(pm.run(module)))
    return llvm::createStringError("cannot compile '" + options.entry + "' for the GPU");
  return llvm::Error::success();
}

Expected<std::vector<WayPlan>> makeWays(ModuleOp module, const CUDAOptions &options) {
  Expected<func::FuncOp> entry = isolateEntry(module, options.entry);
  if (!entry)
    return entry.takeError();
  CUDAOptions named = options;
  named.entry = entry->getName().str();
  if (llvm::Error error = runRooms(module, named, Room::Problem, Room::Problem))
    return std::move(error);
  std::vector<WayPlan> ways;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal())
      ways.push_back(plan::getWay(function));
  return ways;
}

llvm::Error lowerWays(ModuleOp module, const CUDAOptions &options, Room last,
                      std::optional<std::string> only) {
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (only && plan::getWay(function).name != *only &&
        SymbolTable::symbolKnownUseEmpty(function, module))
      function.erase();
  return runRooms(module, options, Room::Grid, last);
}

Expected<CUDACode> compileWays(ModuleOp module, const CUDAOptions &options,
                               std::optional<std::string> only) {
  Stopwatch stopwatch;
  if (llvm::Error error = lowerWays(module, options, Room::Thread, std::move(only)))
    return std::move(error);
  CUDACode code;
  code.passesMs = stopwatch.lapMs();

  Expected<std::vector<KernelPlan>> plans = getKernelPlans(module);
  if (!plans)
    return plans.takeError();
  Expected<std::string> ptx = emitPTX(module);
  if (!ptx)
    return ptx.takeError();
  code.plans = std::move(*plans);
  code.ptx = std::move(*ptx);
  code.ptxMs = stopwatch.lapMs();
  return code;
}

Expected<CUDACode> compileForCUDA(ModuleOp module, const CUDAOptions &options) {
  Stopwatch stopwatch;
  Expected<std::vector<WayPlan>> ways = makeWays(module, options);
  if (!ways)
    return ways.takeError();
  double waysMs = stopwatch.lapMs();
  Expected<CUDACode> code = compileWays(module, options);
  if (code)
    code->passesMs += waysMs;
  return code;
}

} // namespace attn
