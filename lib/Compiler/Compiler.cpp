//===- Compiler.cpp - compile and run
//----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "attn/Compiler.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/Function.h"
#include "lib/Runtime/DataTypes.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "lib/Tools/AttnOpt/Registration.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <atomic>

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

const FunctionInfo &CompiledFunction::getInfo() const { return state->info; }

Status CompiledFunction::run(LaunchArguments arguments, void *stream) const {
  CallWords words;
  Status status = flattenArguments(state->rules, arguments, words);
  if (!status.ok())
    return status;
  SmallVector<void *, 64> pointers;
  for (uint64_t &word : words)
    pointers.push_back(&word);
  std::lock_guard<std::mutex> lock(state->mutex);
  threadLimit = state->threads;
  state->kernel->function(pointers.data());
  return {};
}

//===----------------------------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------------------------===//

/// Names results by their letters; that of attention is "output".
static std::string getResultName(size_t index, ArrayRef<DimRule> dims) {
  if (dims.size() == 4 && dims.back().letter == Letter::Dv)
    return "output";
  if (dims.size() == 3 && dims.back().letter == Letter::M)
    return "lse";
  return ("result " + Twine(index)).str();
}

static void describe(CompiledFunction::State &state, const KernelSignature &signature,
                     ArrayRef<std::string> names, ArrayRef<DimRules> dims) {
  state.info.name = signature.name;
  state.rules.numArguments = signature.arguments.size();
  for (auto [index, rule] : enumerate(dims)) {
    bool isResult = index >= state.rules.numArguments;
    size_t position = isResult ? index - state.rules.numArguments : index;
    const ValueType &type = isResult ? signature.results[position] : signature.arguments[position];
    std::string name = isResult ? getResultName(position, rule) : names[position];
    DataType dataType = getDataType(type.kind);
    state.rules.values.push_back({name, dataType, type.isScalar, isResult, type.shape, rule});
    ValueInfo info{name, dataType, type.isScalar, {type.shape.begin(), type.shape.end()}, {}};
    for (const DimRule &dim : rule)
      info.letters.push_back(getName(dim.letter).str());
    (isResult ? state.info.results : state.info.arguments).push_back(std::move(info));
  }
}

Result<HostInfo> resolveHost(const CompileOptions &options) {
  if (options.device == DeviceKind::CUDA)
    return Status{StatusCode::NoDevice, "cuda: not in this build", "compile for the device cpu"};
  for (auto [name, value, least] : {std::tuple("block-m", options.blockM, int64_t(0)),
                                    std::tuple("block-n", options.blockN, int64_t(0)),
                                    std::tuple("splits", options.splits, int64_t(1))})
    if (value < least || value > (int64_t(1) << 20))
      return Status{StatusCode::InvalidArgument,
                    formatv("{0}: expected a number from {1} to 2^20, got {2}", name, least, value),
                    ""};
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

Result<CompiledFunction> compileUncached(std::string_view source, const CompileOptions &options) {
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
  SmallVector<DimRules> letters = findLetters(parsed->entry);

  CPUOptions cpu;
  cpu.jit.host = *host;
  cpu.entry = parsed->entry.getName().str();
  cpu.blockM = options.blockM;
  cpu.blockN = options.blockN;
  cpu.splits = options.splits;
  if (options.threads)
    cpu.jit.symbols.emplace_back("attn_cpu_parallel_for",
                                 reinterpret_cast<void *>(&parallelForLimited));
  DiagnosticCollector diagnostics(context);
  Expected<std::unique_ptr<CompiledKernel>> kernel = compileForCPU(*parsed->module, cpu);
  if (!kernel) {
    std::string message = toString(kernel.takeError());
    return diagnostics.fail(message.c_str());
  }

  auto state = std::make_shared<CompiledFunction::State>();
  state->threads = options.threads;
  state->info.passesMs = (*kernel)->passesMs;
  state->info.llvmMs = (*kernel)->jit->getTimings().total();
  describe(*state, (*kernel)->signature, parsed->argumentNames, letters);
  state->kernel = std::move(*kernel);
  return CompiledFunction(std::move(state));
}

} // namespace attn
