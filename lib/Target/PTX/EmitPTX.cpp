//===- EmitPTX.cpp - from the LLVM dialect to PTX ------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Target/PTX/EmitPTX.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "lib/Plan/PlanAttr.h"
#include "lib/Support/Guarded.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include <chrono>
#include <mutex>

using namespace llvm;
using namespace attn;

//===----------------------------------------------------------------------===//
// LLVM's ways of saying no
//===----------------------------------------------------------------------===//

/// Collects LLVM's errors, which its default handler follows by ending the process.
static void collectErrors(LLVMContext &context, std::string &errors) {
  context.setDiagnosticHandlerCallBack(
      [](const DiagnosticInfo *info, void *data) {
        if (info->getSeverity() != DS_Error)
          return;
        raw_string_ostream stream(*static_cast<std::string *>(data));
        DiagnosticPrinterRawOStream printer(stream);
        info->print(printer);
        stream << "; ";
      },
      &errors);
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static Expected<std::unique_ptr<Module>> translate(mlir::ModuleOp module, LLVMContext &context) {
  mlir::MLIRContext *mlirContext = module.getContext();
  mlir::registerBuiltinDialectTranslation(*mlirContext);
  mlir::registerLLVMDialectTranslation(*mlirContext);
  mlir::registerNVVMDialectTranslation(*mlirContext);
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(mlirContext, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return mlir::failure();
    errors += (errors.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(module, context, "attn");
  if (!result)
    return createStringError("expected a module that LLVM IR can say, got " + errors);
  return result;
}

/// Inline assembly is wgmma and barriers: all threads of a warp run it together, and LLVM must not
/// duplicate it or make it conditional. The LLVM dialect's op cannot say so.
static void prepare(Module &module, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
    for (Instruction &instruction : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&instruction); call && call->isInlineAsm()) {
        call->addFnAttr(Attribute::Convergent);
        call->addFnAttr(Attribute::NoUnwind);
      }
  }
}

/// The passes that generated code of one function without calls needs: common subexpressions,
/// folding, invariants out of loops, dead code. A tenth of the time of the default pipeline for the
/// same PTX; unrolling and vectorising were decided above.
static void optimize(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager callGraph;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  FunctionPassManager passes;
  passes.addPass(EarlyCSEPass());
  passes.addPass(SimplifyCFGPass());
  passes.addPass(InstCombinePass());
  passes.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass()));
  passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(InstCombinePass());
  passes.addPass(ADCEPass());
  passes.addPass(SimplifyCFGPass());
  createModuleToFunctionPassAdaptor(std::move(passes)).run(module, modules);
}

static Expected<std::unique_ptr<TargetMachine>> createTargetMachine(const Machine &machine) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return createStringError("expected the NVPTX target, got " + error);
  TargetOptions targetOptions;
  // A product and a sum round once: closer to the definition, and one instruction. Which of them
  // ptxas fuses depends on what stands around them.
  targetOptions.AllowFPOpFusion = FPOpFusion::Fast;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, machine.name, machine.ptx, targetOptions, Reloc::PIC_,
                                  std::nullopt, CodeGenOptLevel::Default));
}

static void generate(Module &module, TargetMachine &machine, SmallVectorImpl<char> &text,
                     bool &isPossible) {
  raw_svector_ostream stream(text);
  legacy::PassManager passes;
  isPossible = !machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::AssemblyFile);
  if (isPossible)
    passes.run(module);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

Expected<std::string> attn::emitPTX(mlir::ModuleOp module, PTXTimings *timings) {
  auto start = std::chrono::steady_clock::now();
  auto lap = [&](double PTXTimings::*field) {
    auto now = std::chrono::steady_clock::now();
    if (timings)
      timings->*field = std::chrono::duration<double, std::milli>(now - start).count();
    start = now;
  };
  Expected<std::unique_ptr<TargetMachine>> machine = createTargetMachine(plan::getMachine(module));
  if (!machine)
    return machine.takeError();
  LLVMContext context;
  std::string errors;
  collectErrors(context, errors);
  Expected<std::unique_ptr<Module>> translated = translate(module, context);
  if (!translated)
    return translated.takeError();
  prepare(**translated, **machine);
  if (llvm::any_of(**translated, [](const Function &function) {
        return function.hasFnAttribute(tile::kUnfusedAttrName);
      }))
    (*machine)->Options.AllowFPOpFusion = FPOpFusion::Standard;
  lap(&PTXTimings::translate);

  if (Error error = runGuarded("optimise", [&] { optimize(**translated, **machine); }))
    return error;
  lap(&PTXTimings::optimize);

  SmallString<0> text;
  bool isPossible = false;
  if (Error error =
          runGuarded("compile", [&] { generate(**translated, **machine, text, isPossible); }))
    return error;
  lap(&PTXTimings::generate);
  if (!isPossible || !errors.empty())
    return createStringError("expected LLVM to compile the kernel, got " +
                             (errors.empty() ? "no PTX" : errors));
  return text.str().str();
}

Expected<std::vector<KernelPlan>> attn::getKernelPlans(mlir::ModuleOp module) {
  std::vector<KernelPlan> plans;
  for (auto function : module.getOps<mlir::LLVM::LLVMFuncOp>())
    if (auto attribute =
            function->getAttrOfType<mlir::DictionaryAttr>(tile::TileDialect::kPlanAttrName)) {
      Expected<KernelPlan> plan = fromAttribute(attribute);
      if (!plan)
        return plan.takeError();
      plans.push_back(std::move(*plan));
    }
  return plans;
}
