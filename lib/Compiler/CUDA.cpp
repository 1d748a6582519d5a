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
#include "lib/Machine/Machine.h"
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
    bool isMatrix = is_contained({Letter::D, Letter::Dv},
                                 value.dims.empty() ? Letter::None : value.dims.back().letter);
    if (isMatrix && value.type != DataType::F16 && value.type != DataType::BF16)
      return {StatusCode::InvalidKernel,
              "source: expected elements of f16 or bf16 on the device cuda, got " +
                  std::string(getName(value.type)) + " in " + value.name,
              "convert query, key and value, or compile for the device cpu"};
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

Result<EmittedImage> emitImage(std::string_view source, const CompileOptions &options,
                               DoorObserver observe) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  Result<ParsedSource> parsed = parseSource(context, source, options);
  if (!parsed)
    return parsed.takeStatus();
  Expected<KernelSignature> signature = getSignature(parsed->entry);
  if (!signature)
    return Status{StatusCode::InvalidKernel, "source: " + toString(signature.takeError()), ""};
  CallRules rules = makeRules(*signature, parsed->argumentNames, parsed->extents);
  if (Status status = checkSignature(rules); !status.ok())
    return status;
  for (unsigned index = 0; index < rules.numArguments; ++index)
    rules.values[index].hasAnyStrides = bool(parsed->entry.getArgAttr(index, kStridedAttrName));

  CUDAOptions cuda;
  cuda.entry = parsed->entry.getName().str();
  cuda.schedule = getOverrides(options);
  cuda.fused = options.fused;
  cuda.pack = options.pack;
  cuda.way = options.way;
  cuda.search = options.search;
  DiagnosticCollector diagnostics(context);
  cuda.visit = observeDoors(context, observe);
  Expected<CUDACode> code = compileForCUDA(*parsed->module, cuda);
  if (!code)
    return diagnostics.fail(code.takeError());
  setAlignments(rules, code->plans);
  rules.maxBatches = getMaxBatches(code->plans);
  FunctionPlan plan{std::move(code->plans), std::move(rules)};
  std::string text = writePlan(plan);
  return EmittedImage{
      {std::move(code->ptx), std::move(text), ""}, std::move(plan), code->passesMs, code->ptxMs};
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

/// From disk, or compiled. `info` is told what it took.
static Result<KernelCache::Image> getImage(std::string_view source, const CompileOptions &options,
                                           FunctionInfo &info) {
  const Machine &machine = getDefaultMachine();
  std::string text =
      formatv("{0} fused={1} pack={2} way={3} entry={4}", getOverrides(options).str(),
              options.fused, options.pack, options.way, options.entry);
  CacheKey key = getDiskKey(source, text, (machine.name + machine.ptx).str());
  return findImage(key, options, info, [&]() -> Result<KernelImage> {
    Result<EmittedImage> emitted = emitImage(source, options);
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
static Status checkDevice(const CompileOptions &options) {
  Result<const Driver *> driver = getDriver();
  if (!driver)
    return driver.takeStatus();
  Result<DeviceInfo> device = queryDevice(**driver, options.ordinal);
  if (!device)
    return device.takeStatus();
  return checkTarget(getDefaultMachine().name.str(), *device);
}

Result<CompiledFunction> compileForGPU(std::string_view source, const CompileOptions &options) {
  if (Status status = checkOptions(options); !status.ok())
    return status;
  if (Status status = checkDevice(options); !status.ok())
    return status;
  FunctionInfo made;
  Result<KernelCache::Image> image = getImage(source, options, made);
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
  Result<Kernel> kernel = KernelLoader::load(**image, *plan, load);
  if (!kernel)
    return kernel.takeStatus();
  auto state = std::make_shared<CompiledFunction::State>();
  state->rules = std::move(*plan->rules);
  state->info = describe(state->rules);
  state->info.device = DeviceKind::CUDA;
  state->info.ordinal = options.ordinal;
  state->info.passesMs = made.passesMs;
  state->info.llvmMs = made.llvmMs;
  state->info.loadMs = stopwatch.elapsedMs();
  state->info.isFromDisk = made.isFromDisk;
  state->info.remarks = std::move(made.remarks);
  state->info.kernels = kernel->getKernels();
  state->gpu.emplace(std::move(*kernel));
  return CompiledFunction(std::move(state));
}

} // namespace attn
