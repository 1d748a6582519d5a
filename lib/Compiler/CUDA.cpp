//===- CUDA.cpp - compile for a GPU -----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//
//
// Up to PTX no GPU is needed, and PTX is what the disk keeps. The machine code is kept by the
// driver: it has a cache of its own, by the hash of the PTX, and cannot be asked for what it made
// except through the linker API, which spills (lib/Runtime/Module.h).
//
//===----------------------------------------------------------------------------------------===//

#include "dialects/Attn/IR/AttnArguments.h"
#include "lib/Compiler/Diagnostics.h"
#include "lib/Compiler/DiskCache.h"
#include "lib/Compiler/Explain.h"
#include "lib/Compiler/Function.h"
#include "lib/Compiler/Target.h"
#include "lib/Compiler/WayLog.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Registration/Registration.h"
#include "lib/Runtime/Device.h"
#include "lib/Runtime/KernelLoader.h"
#include "lib/Runtime/Module.h"
#include "lib/Support/ForkGate.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/PTX/CompileForCUDA.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"
#include <mutex>

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// To PTX
//===----------------------------------------------------------------------------------------===//

/// What a kernel takes, beyond what a function may have.
static Status checkSignature(const CallRules &rules) {
  for (const CallRules::Value &value : rules.values) {
    bool isNumber =
        value.type == DataType::F32 || value.type == DataType::I32 || value.type == DataType::I64;
    if (value.isScalar && !isNumber)
      return {StatusCode::InvalidKernel,
              "source: expected scalars of index, i32, i64 or f32 on the device cuda, got " +
                  std::string(getName(value.type)) + " in " + value.name,
              "convert it, or pass a tensor with one element"};
  }
  return {};
}

/// Matrices move in pieces of 16 bytes: tensor maps ask for it, and so do vector accesses.
static void setAlignments(CallRules &rules, ArrayRef<KernelPlan> plans) {
  for (CallRules::Value &value : rules.values)
    if (!value.dims.empty() && is_contained({Letter::D, Letter::Dv}, value.dims.back().letter))
      value.alignment = 16;
  for (const KernelPlan &plan : plans)
    for (const KernelParameter &parameter : plan.parameters)
      if (parameter.kind == KernelParameter::Kind::TensorMap &&
          parameter.argument < rules.values.size())
        rules.values[parameter.argument].alignment = 16;
}

/// Batches are along z, with the parts that keys are split into.
static int64_t getMaxBatches(ArrayRef<KernelPlan> plans) {
  constexpr int64_t kMaxBlocks = 65535;
  int64_t most = kMaxBlocks;
  for (const KernelPlan &plan : plans) {
    int64_t others = 1;
    for (const SizeFactor &factor : plan.grid[2])
      if (factor.argument == SizeFactor::kConstant)
        others *= std::max<int64_t>(factor.dim, 1);
    most = std::min(most, kMaxBlocks / others);
  }
  return most;
}

/// Leaves multiprocessors to other kernels, where blocks stay.
static void reserve(MutableArrayRef<KernelPlan> plans, int64_t count) {
  for (KernelPlan &plan : plans)
    for (std::vector<SizeFactor> &factors : plan.grid)
      for (SizeFactor &factor : factors)
        if (factor.argument == SizeFactor::kMultiprocessors)
          factor.less = static_cast<unsigned>(count);
}

static CUDAOptions getCUDAOptions(ParsedSource &parsed, const CompileOptions &options) {
  CUDAOptions cuda;
  cuda.entry = parsed.entry.getName().str();
  cuda.target = options.target;
  cuda.schedule = getOverrides(options);
  cuda.fused = options.fused;
  cuda.pack = options.pack;
  cuda.way = options.way;
  cuda.search = options.search;
  return cuda;
}

/// The rules of calls, but for what kernels make of them.
static Result<CallRules> getRules(ParsedSource &parsed) {
  Expected<KernelSignature> signature = getSignature(parsed.entry);
  if (!signature)
    return Status{StatusCode::InvalidKernel, "source: " + toString(signature.takeError()), ""};
  CallRules rules = makeRules(*signature, parsed.argumentNames, parsed.extents);
  if (Status status = checkSignature(rules); !status.ok())
    return status;
  for (unsigned index = 0; index < rules.numArguments; ++index)
    rules.values[index].hasAnyStrides = bool(parsed.entry.getArgAttr(index, kStridedAttrName));
  return rules;
}

Result<EmittedImage> emitImage(std::string_view source, const CompileOptions &options,
                               const EmitRequest &request) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Result<ParsedSource> parsed = parseSource(context, source, options);
  if (!parsed)
    return parsed.takeStatus();
  Result<CallRules> rules = getRules(*parsed);
  if (!rules)
    return rules.takeStatus();

  CUDAOptions cuda = getCUDAOptions(*parsed, options);
  DiagnosticCollector diagnostics(context);
  cuda.visit = observeDoors(context, request.observe);
  Stopwatch stopwatch;
  Expected<std::vector<WayPlan>> ways = makeWays(*parsed->module, cuda);
  if (!ways)
    return diagnostics.fail(ways.takeError());
  double waysMs = stopwatch.lapMs();
  FunctionPlan plan{{}, std::move(*rules)};
  if (request.what == EmitRequest::What::Plan && ways->size() > 1) {
    plan.ways = std::move(*ways);
    setAlignments(*plan.rules, {});
    plan.rules->maxBatches = getMaxBatches({});
    return EmittedImage{{"", writePlan(plan), ""}, std::move(plan), waysMs, 0};
  }
  bool isOne = request.what == EmitRequest::What::Way;
  if (isOne && none_of(*ways, [&](const WayPlan &way) { return way.name == request.way; }))
    return EmittedImage{{}, std::move(plan), waysMs, 0, std::move(*ways)};
  Expected<CUDACode> code =
      compileWays(*parsed->module, cuda, isOne ? std::optional(request.way) : std::nullopt);
  if (!code)
    return diagnostics.fail(code.takeError());
  setAlignments(*plan.rules, code->plans);
  plan.rules->maxBatches = getMaxBatches(code->plans);
  plan.kernels = std::move(code->plans);
  reserve(plan.kernels, options.reserve);
  // By itself a way is for all calls.
  for (KernelPlan &kernel : isOne ? MutableArrayRef(plan.kernels) : MutableArrayRef<KernelPlan>()) {
    kernel.way.clear();
    kernel.when.clear();
  }
  std::string text = writePlan(plan);
  return EmittedImage{{std::move(code->ptx), std::move(text), ""},
                      std::move(plan),
                      waysMs + code->passesMs,
                      code->ptxMs,
                      std::move(*ways)};
}

Result<KernelImage> emit(std::string_view source, const CompileOptions &options) {
  ForkGate gate;
  Result<EmittedImage> emitted = emitImage(source, options);
  if (!emitted)
    return emitted.takeStatus();
  return std::move(emitted->image);
}

//===----------------------------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------------------------===//

/// What there is to compile: a plan of ways, all kernels where there is one way, or one way.
static Result<KernelCache::Image> getImage(std::string_view source, const CompileOptions &options,
                                           const Machine &machine, const EmitRequest &request,
                                           FunctionInfo &info) {
  CacheKey key = getImageKey(source, options, machine, request);
  return findImage(key, options, info, [&]() -> Result<KernelImage> {
    CompileOptions named = options;
    named.target = machine.name.str();
    Result<EmittedImage> emitted = emitImage(source, named, request);
    if (!emitted)
      return emitted.takeStatus();
    info.passesMs = emitted->passesMs;
    info.llvmMs = emitted->llvmMs;
    return std::move(emitted->image);
  });
}

//===----------------------------------------------------------------------------------------===//
// Onto a GPU
//===----------------------------------------------------------------------------------------===//

Result<int> resolveOrdinal(const CompileOptions &options) {
  if (options.ordinal >= 0)
    return options.ordinal;
  Result<const Driver *> driver = getDriver();
  if (!driver)
    return driver.takeStatus();
  cuda::Context current = nullptr;
  cuda::Device device = 0;
  if ((*driver)->CtxGetCurrent(&current) != cuda::Success || !current ||
      (*driver)->CtxGetDevice(&device) != cuda::Success)
    return 0;
  // The driver's handle of a device is its ordinal.
  return device;
}

/// That there is no GPU to run on is known before anything is compiled.
static Status checkDevice(const CompileOptions &options, const Machine &machine) {
  Result<const Driver *> driver = getDriver();
  if (!driver)
    return driver.takeStatus();
  Result<DeviceInfo> device = queryDevice(**driver, options.ordinal);
  if (!device)
    return device.takeStatus();
  return checkTarget(machine.name.str(), *device);
}

namespace {
/// Milliseconds that ways took so far, and problems that were repaired on the way.
struct WayTimes {
  std::mutex mutex;
  double passesMs = 0, llvmMs = 0;
  bool areFromDisk = true;
  std::vector<std::string> remarks;

  void add(const FunctionInfo &made) {
    std::lock_guard lock(mutex);
    passesMs += made.passesMs;
    llvmMs += made.llvmMs;
    areFromDisk &= made.isFromDisk;
    append_range(remarks, made.remarks);
  }
};
} // namespace

/// Compiles the ways of a function, each when a call first takes it.
static WaySource compileEach(std::string source, const CompileOptions &options,
                             const Machine &machine, std::shared_ptr<WayTimes> times) {
  return [source = std::move(source), options, &machine,
          times = std::move(times)](const std::string &way) -> Result<WayCode> {
    ForkGate gate;
    FunctionInfo made;
    Stopwatch stopwatch;
    Result<KernelCache::Image> image =
        getImage(source, options, machine, {EmitRequest::What::Way, way, {}}, made);
    if (!image)
      return image.takeStatus();
    Expected<FunctionPlan> plan = readPlan((*image)->plan);
    if (!plan)
      return Status{StatusCode::InvalidKernel, toString(plan.takeError()), ""};
    times->add(made);
    std::string name = plan->rules ? plan->rules->name : "";
    logWay(name, way, made.isFromDisk, stopwatch.elapsedMs());
    for (const std::string &remark : made.remarks)
      logRemark(name, remark);
    return WayCode{std::move(*image), std::move(plan->kernels)};
  };
}

Result<CompiledFunction> compileForGPU(std::string_view source, const CompileOptions &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  const Machine &machine = resolveMachine(options);
  if (Status status = checkDevice(options, machine); !status.ok())
    return status;
  FunctionInfo made;
  Result<KernelCache::Image> image =
      getImage(source, options, machine, {EmitRequest::What::Plan, "", {}}, made);
  if (!image)
    return image.takeStatus();
  Expected<FunctionPlan> plan = readPlan((*image)->plan);
  if (!plan)
    return Status{StatusCode::InvalidKernel, toString(plan.takeError()), ""};
  if (!plan->rules)
    return Status{StatusCode::InvalidKernel, "expected a plan with the rules of calls, got none",
                  ""};

  Stopwatch stopwatch;
  LoadOptions load;
  load.device = options.ordinal;
  bool hasWays = !plan->ways.empty();
  auto times = std::make_shared<WayTimes>();
  Result<Kernel> kernel =
      hasWays ? KernelLoader::open(*plan, load,
                                   compileEach(std::string(source), options, machine, times))
              : KernelLoader::load(**image, *plan, load);
  if (!kernel)
    return kernel.takeStatus();
  if (hasWays && !options.lazy)
    if (Status status = KernelLoader::prepareLast(*kernel); !status.ok())
      return status;
  auto state = std::make_shared<CompiledFunction::State>();
  state->rules = std::move(*plan->rules);
  state->info = describe(state->rules);
  state->info.device = DeviceKind::CUDA;
  state->info.ordinal = options.ordinal;
  state->info.passesMs = made.passesMs + times->passesMs;
  state->info.llvmMs = made.llvmMs + times->llvmMs;
  state->info.loadMs = stopwatch.elapsedMs() - times->passesMs - times->llvmMs;
  state->info.isFromDisk = made.isFromDisk && times->areFromDisk;
  state->info.remarks = std::move(made.remarks);
  append_range(state->info.remarks, times->remarks);
  state->info.kernels = kernel->getKernels();
  state->gpu.emplace(std::move(*kernel));
  return CompiledFunction(std::move(state));
}

} // namespace attn
