//===- Compiler.cpp - compile and run ---------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Explain.h"
#include "lib/Compiler/Function.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Registration/Registration.h"
#include "lib/Target/CPU/Invoke.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <atomic>
#include <limits>

using namespace llvm;

namespace attn {

const char *getVersion() { return ATTN_VERSION; }

//===----------------------------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------------------------===//

/// The most threads that loops started by this thread may use; 0 for all of the pool.
static thread_local unsigned threadLimit = 0;

/// Stands in for attn_cpu_parallel_for in code that was compiled with a limit: as many loops over
/// one counter as there may be threads.
static void parallelForLimited(void (*body)(void *, int64_t), void *context, int64_t count) {
  unsigned limit = threadLimit;
  std::atomic<int64_t> next = 0;
  parallelFor(std::min<int64_t>(limit, count), [&](int64_t) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
      body(context, i);
  });
}

Status setNumThreads(unsigned count) {
  if (count > 4096)
    return {StatusCode::InvalidArgument,
            formatv("threads: expected a number from 0 to 4096, got {0}", count), ""};
  setThreadCount(count);
  return {};
}

unsigned getNumThreads() { return getThreadCount(); }

const FunctionInfo &CompiledFunction::getInfo() const { return state->info; }

/// The arguments with every scalar as a number.
static Status launch(const CompiledFunction::State &state, LaunchArguments arguments,
                     ArrayRef<uint64_t> scalars, void *stream) {
  SmallVector<LaunchArgument, 16> flat;
  for (auto [index, value] : enumerate(state.rules.values)) {
    if (!value.isScalar) {
      flat.push_back(arguments[index]);
    } else {
      uint64_t word = scalars.consume_front();
      flat.push_back(value.type == DataType::F32   ? LaunchArgument(bit_cast<float>(uint32_t(word)))
                     : value.type == DataType::I32 ? LaunchArgument(static_cast<int>(word))
                                                   : LaunchArgument(static_cast<int64_t>(word)));
    }
  }
  return state.gpu->launch(std::span<const LaunchArgument>(flat.data(), flat.size()), stream);
}

static Status runOnGPU(const CompiledFunction::State &state, LaunchArguments arguments,
                       void *stream) {
  SmallVector<uint64_t, 16> scalars;
  Status status = checkArguments(state.rules, arguments, scalars);
  if (!status.ok())
    return status;
  status = runInSlices(state.rules, arguments, [&](LaunchArguments some) {
    return scalars.empty() ? state.gpu->launch(some, stream) : launch(state, some, scalars, stream);
  });
  // The runtime knows arguments by number; scratch, which it adds, has no name.
  if (status.argument && status.argument->index < state.rules.values.size())
    status.nameArgument(state.rules.values[status.argument->index].name);
  return status;
}

Status CompiledFunction::run(LaunchArguments arguments, void *stream) const {
  if (state->gpu)
    return runOnGPU(*state, arguments, stream);
  CallWords words;
  Status status = flattenArguments(state->rules, arguments, words);
  if (!status.ok())
    return status;
  threadLimit = state->threads;
  callPacked(state->kernel->function, words);
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

Status checkOptions(const CompileOptions &options) {
  for (auto [name, value, least] : {std::tuple("block-m", options.blockM, int64_t(0)),
                                    std::tuple("block-n", options.blockN, int64_t(0)),
                                    std::tuple("splits", options.splits, int64_t(1))})
    if (value < least || value > (int64_t(1) << 20))
      return {StatusCode::InvalidArgument,
              formatv("{0}: expected a number from {1} to 2^20, got {2}", name, least, value), ""};
  if (options.pack != 0 && (options.pack < 2 || options.pack > 64 || !isPowerOf2_64(options.pack)))
    return {StatusCode::InvalidArgument,
            formatv("pack: expected 0, 2, 4, 8, 16, 32 or 64, got {0}", options.pack), ""};
  if (options.search < 0 || options.search > std::numeric_limits<int32_t>::max())
    return {
        StatusCode::InvalidArgument,
        formatv("search: expected a number of rows from 0 to 2147483647, got {0}", options.search),
        ""};
  if (!is_contained({"auto", "short", "long"}, options.way))
    return {StatusCode::InvalidArgument,
            formatv("way: expected auto, short or long, got '{0}'", options.way), ""};
  return {};
}

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

Result<CompiledFunction> compileForHost(std::string_view source, const CompileOptions &options,
                                        DoorObserver observe) {
  Result<HostInfo> host = resolveHost(options);
  if (!host)
    return host.takeStatus();
  mlir::DialectRegistry registry;
  registerDialects(registry);
  // The caller's thread is the one that pays; threads of a context would be started for one kernel.
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  Result<ParsedSource> parsed = parseSource(context, source, options);
  if (!parsed)
    return parsed.takeStatus();

  CPUOptions cpu;
  cpu.jit.host = *host;
  cpu.entry = parsed->entry.getName().str();
  copyScheduleOptions(options, cpu);
  if (options.threads)
    cpu.jit.symbols.emplace_back("attn_cpu_parallel_for",
                                 reinterpret_cast<void *>(&parallelForLimited));
  DiagnosticCollector diagnostics(context);
  cpu.visit = observeDoors(context, observe);
  Expected<std::unique_ptr<CompiledKernel>> kernel = compileForCPU(*parsed->module, cpu);
  if (!kernel) {
    std::string message = toString(kernel.takeError());
    return diagnostics.fail(message.c_str());
  }

  // Makes the pool, which a fork during the first call could find half made.
  getThreadCount();
  auto state = std::make_shared<CompiledFunction::State>();
  state->threads = options.threads;
  state->rules = makeRules((*kernel)->signature, parsed->argumentNames, parsed->extents);
  for (auto [value, hasAnyStrides] : zip(state->rules.values, (*kernel)->hasAnyStrides))
    value.hasAnyStrides = hasAnyStrides;
  state->info = describe(state->rules);
  state->info.passesMs = (*kernel)->passesMs;
  state->info.llvmMs = (*kernel)->jit->getTimings().total();
  state->kernel = std::move(*kernel);
  return CompiledFunction(std::move(state));
}

} // namespace attn
