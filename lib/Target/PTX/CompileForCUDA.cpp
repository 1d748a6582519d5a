//===- CompileForCUDA.cpp - kernels for an NVIDIA GPU -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/PTX/CompileForCUDA.h"
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

Expected<CUDACode> compileForCUDA(ModuleOp module, const CUDAOptions &options) {
  Expected<func::FuncOp> entry = isolateEntry(module, options.entry);
  if (!entry)
    return entry.takeError();
  std::string name = entry->getName().str();

  Stopwatch stopwatch;
  PipelineOptions pipeline;
  pipeline.target = "cuda";
  pipeline.schedule = options.schedule;
  pipeline.fused = options.fused;
  pipeline.pack = options.pack;
  pipeline.way = options.way;
  pipeline.search = options.search;
  PassManager pm(module.getContext());
  buildPipeline(pm, pipeline, Room::Thread, options.visit);
  if (failed(pm.run(module)))
    return llvm::createStringError("cannot compile '" + name + "' for the GPU");
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

} // namespace attn
