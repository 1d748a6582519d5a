//===- Compile.cpp - kernels for the processor -------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Target/CPU/Compile.h"
#include "dialects/Attn/IR/AttnArguments.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Support/Stopwatch.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using llvm::Expected;

namespace attn {

/// Rows of the reference's blocks: scores of 32 x N in f64 stay small, and there are enough blocks
/// for all threads.
static constexpr int64_t kReferenceRows = 32;

/// Whether a tensor is only read element by element, whatever is assumed of it.
static bool isReadByElement(Value tensor) {
  return llvm::all_of(tensor.getUsers(), [](Operation *user) {
    auto assume = dyn_cast<AssumeOp>(user);
    return assume ? isReadByElement(assume.getResult())
                  : isa<tensor::ExtractOp, tensor::DimOp>(user);
  });
}

namespace {
/// Readies functions for buffers and for a module of other functions.
///
/// Puts a prefix before their names: those of mathematics and of memory are symbols of the module
/// as well, and a user's @exp would be called for them. Marks the arguments that are only read
/// element by element, and tells which of the entry's they are.
class EnterModule : public PassWrapper<EnterModule, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EnterModule)

  EnterModule(StringRef entry, SmallVector<bool> &isStrided) : entry(entry), isStrided(isStrided) {}

  static std::string prefix(StringRef name) { return ("attn.fn." + name).str(); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      if (function.getName() == entry)
        isStrided.assign(function.getNumArguments(), false);
      for (BlockArgument argument : function.getArguments()) {
        bool isRead = isa<RankedTensorType>(argument.getType()) && isReadByElement(argument);
        if (isRead)
          function.setArgAttr(argument.getArgNumber(), kStridedAttrName,
                              UnitAttr::get(&getContext()));
        if (function.getName() == entry)
          isStrided[argument.getArgNumber()] = isRead;
      }
      auto name = StringAttr::get(&getContext(), prefix(function.getName()));
      if (failed(SymbolTable::replaceAllSymbolUses(function, name, module)))
        return signalPassFailure();
      function.setSymName(name);
    }
  }

private:
  std::string entry;
  SmallVector<bool> &isStrided;
};
} // namespace

/// Runs the passes that `build` adds and compiles what they leave.
static Expected<std::unique_ptr<CompiledKernel>>
compile(ModuleOp module, const CPUOptions &options,
        function_ref<void(OpPassManager &, std::unique_ptr<Pass>)> build,
        std::optional<ElementKind> results) {
  Expected<func::FuncOp> entry = findEntry(module, options.entry);
  if (!entry)
    return entry.takeError();
  Expected<KernelSignature> signature = getSignature(*entry);
  if (!signature)
    return signature.takeError();

  auto kernel = std::make_unique<CompiledKernel>();
  kernel->signature = std::move(*signature);
  if (results)
    for (ValueType &result : kernel->signature.results)
      if (isFloat(result.kind))
        result.kind = *results;

  Stopwatch stopwatch;
  PassManager pm(module.getContext());
  build(pm, std::make_unique<EnterModule>(kernel->signature.name, kernel->hasAnyStrides));
  if (failed(pm.run(module)))
    return llvm::createStringError("cannot compile '" + kernel->signature.name + "' for the CPU");
  kernel->passesMs = stopwatch.elapsedMs();

  Expected<std::unique_ptr<Jit>> jit = Jit::compile(module, options.jit);
  if (!jit)
    return jit.takeError();
  Expected<Jit::PackedFn> function =
      (*jit)->lookupPacked(EnterModule::prefix(kernel->signature.name));
  if (!function)
    return function.takeError();
  kernel->jit = std::move(*jit);
  kernel->function = *function;
  return kernel;
}

Expected<std::unique_ptr<CompiledKernel>> compileForCPU(ModuleOp module,
                                                        const CPUOptions &options) {
  const HostInfo &host = options.jit.host;
  PipelineOptions pipeline;
  pipeline.lanes = host.f32Lanes;
  pipeline.bf16Dot = host.hasBF16Dot;
  copyScheduleOptions(options, pipeline);
  return compile(
      module, options,
      [&](OpPassManager &pm, std::unique_ptr<Pass> enter) {
        buildPipeline(pm, pipeline, Room::Online, options.visit);
        // Whoever visits sees the names that were given.
        pm.addPass(std::move(enter));
        buildPipeline(pm, pipeline, Room::Buffers, Room::LLVM);
      },
      std::nullopt);
}

Expected<std::unique_ptr<CompiledKernel>> compileReference(ModuleOp module,
                                                           const CPUOptions &options) {
  return compile(
      module, options,
      [](OpPassManager &pm, std::unique_ptr<Pass> enter) {
        buildToReferencePipeline(pm, kReferenceRows);
        pm.addPass(std::move(enter));
        buildReferenceToLLVMPipeline(pm);
      },
      ElementKind::F64);
}

} // namespace attn
