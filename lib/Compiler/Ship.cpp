//===- Ship.cpp - kernels that come with the library -----------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Ship.h"
#include "lib/Compiler/DiskCache.h"
#include "lib/Compiler/Ptxas.h"
#include "lib/Compiler/Target.h"
#include "lib/Support/ForkGate.h"

using namespace llvm;

namespace attn {

/// Emits what `request` says, as compileForGPU does, and adds its machine code.
static Result<EmittedImage> makeEntry(std::string_view source, const CompileOptions &options,
                                      const Machine &machine, const EmitRequest &request,
                                      CacheDirectory &directory) {
  CompileOptions named = options;
  named.target = machine.name.str();
  Result<EmittedImage> emitted = emitImage(source, named, request);
  if (!emitted)
    return emitted.takeStatus();
  // A plan of several ways has no kernels.
  if (!emitted->image.ptx.empty()) {
    Result<PtxasOutput> made = runPtxas(emitted->image.ptx);
    if (!made)
      return made.takeStatus();
    emitted->image.machineCode = std::move(made->machineCode);
  }
  directory.store(getImageKey(source, options, machine, request), emitted->image);
  return emitted;
}

Result<unsigned> shipKernels(std::string_view source, const CompileOptions &options,
                             const std::string &folder, function_ref<bool(StringRef)> wants) {
  ForkGate gate;
  const Machine &machine = resolveMachine(options);
  std::string problem;
  CacheOptions cache;
  cache.directory = folder;
  cache.remark = [&](std::string_view text) { problem = text; };
  CacheDirectory directory(cache);
  Result<EmittedImage> plan =
      makeEntry(source, options, machine, {EmitRequest::What::Plan}, directory);
  if (!plan)
    return plan.takeStatus();
  unsigned count = 1;
  const std::vector<WayPlan> &ways = plan->plan.ways;
  for (const WayPlan &way : ways) {
    if (&way != &ways.back() && !wants(way.name))
      continue;
    Result<EmittedImage> made =
        makeEntry(source, options, machine, {EmitRequest::What::Way, way.name}, directory);
    if (!made)
      return made.takeStatus();
    ++count;
  }
  // The cache goes on where it cannot write; who ships wants every entry.
  if (!problem.empty())
    return Status{StatusCode::InvalidArgument, "ship: " + problem, ""};
  return count;
}

} // namespace attn
