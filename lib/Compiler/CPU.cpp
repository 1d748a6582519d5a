//===- CPU.cpp - compile for the processor ----------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// What the disk keeps is the object file and the rules of calls, so that a process that finds them
// runs neither passes nor code generation: it links.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/DiskCache.h"
#include "lib/Compiler/Explain.h"
#include "lib/Compiler/Function.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Registration/Registration.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/Invoke.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <atomic>

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

/// The most threads that loops started by this thread may use; 0 for all of the pool.
static thread_local unsigned threadLimit = 0;

/// Stands in for attn_cpu_parallel_for in code that is linked with a limit: as many loops over
/// one counter as there may be threads.
static void parallelForLimited(void (*body)(void *, int64_t), void *context, int64_t count) {
  unsigned limit = threadLimit;
  std::atomic<int64_t> next = 0;
  parallelFor(std::min<int64_t>(limit, count), [&](int64_t) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      body(context, i);
  });
}

Status runOnHost(const CompiledFunction::State &state, LaunchArguments arguments) {
  CallWords words;
  Status status = flattenArguments(state.rules, arguments, words);
  if (!status.ok())
    return status;
  threadLimit = state.threads;
  callPacked(state.function, words);
  return {};
}

//===----------------------------------------------------------------------------------------===//
// To an object file
//===----------------------------------------------------------------------------------------===//

Result<HostInfo> resolveHost(const CompileOptions &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  HostOverride overrides;
  if (!options.cpu.empty())
    overrides.cpu = options.cpu;
  if (options.threads)
    overrides.numThreads = options.threads;
  Expected<HostInfo> host = getHostInfo(overrides);
  if (!host)
    return Status{StatusCode::InvalidArgument, "cpu: " + toString(host.takeError()), ""};
  return *host;
}

/// `info` is told what it took.
static Result<KernelImage> emitForHost(std::string_view source, const CompileOptions &options,
                                       const HostInfo &host, DoorObserver observe,
                                       FunctionInfo &info) {
  mlir::DialectRegistry registry;
  registerDialects(registry);
  // The caller's thread is the one that pays; threads of a context would be started for one kernel.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Result<ParsedSource> parsed = parseSource(context, source, options);
  if (!parsed)
    return parsed.takeStatus();

  CPUOptions cpu;
  cpu.jit.host = host;
  cpu.entry = parsed->entry.getName().str();
  cpu.schedule = getOverrides(options);
  DiagnosticCollector diagnostics(context);
  cpu.visit = observeDoors(context, observe);
  Expected<CPUCode> code = emitForCPU(*parsed->module, cpu);
  if (!code)
    return diagnostics.fail(code.takeError());
  info.passesMs = code->passesMs;
  info.llvmMs = code->timings.total();
  CallRules rules = makeRules(code->signature, parsed->argumentNames, parsed->extents);
  for (auto [value, hasAnyStrides] : zip(rules.values, code->hasAnyStrides))
    value.hasAnyStrides = hasAnyStrides;
  return KernelImage{"", writePlan({{}, std::move(rules)}), code->object->getBuffer().str()};
}

/// From disk, or compiled.
static Result<KernelCache::Image> getImage(std::string_view source, const CompileOptions &options,
                                           const HostInfo &host, FunctionInfo &info) {
  // Threads are counted by each call, and their limit is the linker's.
  std::string text =
      formatv("{0} fused={1} entry={2}", getOverrides(options).str(), options.fused, options.entry);
  std::string target = host.triple + " " + host.cpu + " " + host.features;
  return findImage(getDiskKey(source, text, target), options, info,
                   [&] { return emitForHost(source, options, host, {}, info); });
}

//===----------------------------------------------------------------------------------------===//
// Into this process
//===----------------------------------------------------------------------------------------===//

static Result<CompiledFunction> linkForHost(const KernelImage &image, const CompileOptions &options,
                                            const HostInfo &host, FunctionInfo made) {
  auto fail = [](Error error) {
    return Status{StatusCode::InvalidKernel, toString(std::move(error)), ""};
  };
  Stopwatch stopwatch;
  Expected<FunctionPlan> plan = readPlan(image.plan);
  if (!plan)
    return fail(plan.takeError());
  if (!plan->rules)
    return Status{StatusCode::InvalidKernel, "expected a plan with the rules of calls, got none",
                  ""};
  JitOptions jit;
  jit.host = host;
  if (options.threads)
    jit.symbols.emplace_back("attn_cpu_parallel_for",
                             reinterpret_cast<void *>(&parallelForLimited));
  // A copy, whose address is as aligned as the linker expects.
  Expected<std::unique_ptr<Jit>> linked =
      Jit::link(MemoryBuffer::getMemBufferCopy(image.machineCode, "attn"), jit);
  if (!linked)
    return fail(linked.takeError());
  Expected<Jit::PackedFn> function = lookupFunction(**linked, plan->rules->name);
  if (!function)
    return fail(function.takeError());

  // Makes the pool, which a fork during the first call could find half made.
  getThreadCount();
  auto state = std::make_shared<CompiledFunction::State>();
  state->threads = options.threads;
  state->rules = std::move(*plan->rules);
  state->info = describe(state->rules);
  state->info.passesMs = made.passesMs;
  state->info.llvmMs = made.llvmMs;
  state->info.loadMs = stopwatch.elapsedMs();
  state->info.isFromDisk = made.isFromDisk;
  state->info.remarks = std::move(made.remarks);
  state->jit = std::move(*linked);
  state->function = *function;
  return CompiledFunction(std::move(state));
}

Result<CompiledFunction> compileForHost(std::string_view source, const CompileOptions &options,
                                        DoorObserver observe) {
  Result<HostInfo> host = resolveHost(options);
  if (!host)
    return host.takeStatus();
  FunctionInfo made;
  // Who observes wants to see a compilation.
  if (observe) {
    Result<KernelImage> image = emitForHost(source, options, *host, observe, made);
    if (!image)
      return image.takeStatus();
    return linkForHost(*image, options, *host, std::move(made));
  }
  Result<KernelCache::Image> image = getImage(source, options, *host, made);
  if (!image)
    return image.takeStatus();
  return linkForHost(**image, options, *host, std::move(made));
}

} // namespace attn
