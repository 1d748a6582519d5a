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
#include "lib/Target/CPU/ObjectCompiler.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using llvm::Expected;

namespace attn {

/// Rows of the reference's blocks: scores of 32 x N in f64 stay small, and there are enough blocks
/// for all threads.
static constexpr int64_t kReferenceRows = 32;

/// Whether a tensor is only read element by element, whatever is assumed of it. A contribution
/// names the tensor whose gradient it adds to, and reads nothing of it.
static bool isReadByElement(Value tensor) {
  return llvm::all_of(tensor.getUsers(), [](Operation *user) {
    auto assume = dyn_cast<AssumeOp>(user);
    return assume ? isReadByElement(assume.getResult())
                  : isa<tensor::ExtractOp, tensor::DimOp, ContributeOp>(user);
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

  EnterModule(KernelSignature &signature, SmallVector<bool> &isStrided)
      : signature(signature), isStrided(isStrided) {}

  static std::string prefix(StringRef name) { return ("attn.fn." + name).str(); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      bool isEntry = function.getName() == signature.name;
      if (isEntry) {
        isStrided.assign(function.getNumArguments(), false);
        setResults(function.getResultTypes());
      }
      for (BlockArgument argument : function.getArguments()) {
        bool isRead = isa<RankedTensorType>(argument.getType()) && isReadByElement(argument);
        if (isRead)
          function.setArgAttr(argument.getArgNumber(), kStridedAttrName,
                              UnitAttr::get(&getContext()));
        if (isEntry)
          isStrided[argument.getArgNumber()] = isRead;
      }
      auto name = StringAttr::get(&getContext(), prefix(function.getName()));
      if (failed(SymbolTable::replaceAllSymbolUses(function, name, module)))
        return signalPassFailure();
      function.setSymName(name);
    }
  }

private:
  /// Passes before may have made results f64.
  void setResults(TypeRange types) {
    for (auto [result, type] : zip_equal(signature.results, types))
      if (getElementTypeOrSelf(type).isF64())
        result.kind = ElementKind::F64;
  }

  KernelSignature &signature;
  SmallVector<bool> &isStrided;
};
} // namespace

/// Runs the passes that `build` adds and compiles what they leave.
static Expected<CPUCode> emit(ModuleOp module, const CPUOptions &options,
                              function_ref<void(OpPassManager &, std::unique_ptr<Pass>)> build) {
  Expected<func::FuncOp> entry = findEntry(module, options.entry);
  if (!entry)
    return entry.takeError();
  Expected<KernelSignature> signature = getSignature(*entry);
  if (!signature)
    return signature.takeError();

  CPUCode code;
  code.signature = std::move(*signature);
  Stopwatch stopwatch;
  PassManager pm(module.getContext());
  build(pm, std::make_unique<EnterModule>(code.signature, code.hasAnyStrides));
  if (failed(pm.run(module)))
    return llvm::createStringError("cannot compile '" + code.signature.name + "' for the CPU");
  code.passesMs = stopwatch.elapsedMs();

  Expected<std::unique_ptr<llvm::MemoryBuffer>> object =
      compileObject(module, options.jit, code.timings);
  if (!object)
    return object.takeError();
  code.object = std::move(*object);
  return code;
}

Expected<Jit::PackedFn> lookupFunction(const Jit &jit, StringRef name) {
  return jit.lookupPacked(EnterModule::prefix(name));
}

static Expected<std::unique_ptr<CompiledKernel>> link(Expected<CPUCode> code,
                                                      const JitOptions &options) {
  if (!code)
    return code.takeError();
  auto kernel = std::make_unique<CompiledKernel>();
  Expected<std::unique_ptr<Jit>> jit = Jit::link(std::move(code->object), options, code->timings);
  if (!jit)
    return jit.takeError();
  Expected<Jit::PackedFn> function = lookupFunction(**jit, code->signature.name);
  if (!function)
    return function.takeError();
  kernel->signature = std::move(code->signature);
  kernel->hasAnyStrides = std::move(code->hasAnyStrides);
  kernel->passesMs = code->passesMs;
  kernel->jit = std::move(*jit);
  kernel->function = *function;
  return kernel;
}

Expected<CPUCode> emitForCPU(ModuleOp module, const CPUOptions &options) {
  const HostInfo &host = options.jit.host;
  PipelineOptions pipeline;
  pipeline.lanes = host.f32Lanes;
  pipeline.bf16Dot = host.hasBF16Dot;
  pipeline.schedule = options.schedule;
  return emit(module, options, [&](OpPassManager &pm, std::unique_ptr<Pass> enter) {
    buildPipeline(pm, pipeline, Room::Online, options.visit);
    // Whoever visits sees the names that were given.
    pm.addPass(std::move(enter));
    buildPipeline(pm, pipeline, Room::Buffers, Room::LLVM);
  });
}

Expected<std::unique_ptr<CompiledKernel>> compileForCPU(ModuleOp module,
                                                        const CPUOptions &options) {
  return link(emitForCPU(module, options), options.jit);
}

Expected<std::unique_ptr<CompiledKernel>> compileReference(ModuleOp module,
                                                           const CPUOptions &options) {
  return link(emit(module, options,
                   [](OpPassManager &pm, std::unique_ptr<Pass> enter) {
                     buildToReferencePipeline(pm, kReferenceRows);
                     pm.addPass(std::move(enter));
                     buildReferenceToLLVMPipeline(pm);
                   }),
              options.jit);
}

} // namespace attn
