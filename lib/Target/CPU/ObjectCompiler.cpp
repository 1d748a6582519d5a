//===- ObjectCompiler.cpp - from the LLVM dialect to an object file ---------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/ObjectCompiler.h"
#include "lib/Support/Guarded.h"
#include "lib/Support/Stopwatch.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/DeadArgumentElimination.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Instrumentation/AddressSanitizer.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"
#include <tuple>

using namespace llvm;

namespace attn {

//===----------------------------------------------------------------------------------------===//
// LLVM's ways of saying no
//===----------------------------------------------------------------------------------------===//

/// Collects LLVM's errors, which its default handler follows by ending the process.
static void collectErrors(LLVMContext &context, std::string &errors) {
  context.setDiagnosticHandlerCallBack(
      [](const DiagnosticInfo *info, void *data) {
        if (info->getSeverity() != DS_Error)
          return;
        raw_string_ostream stream(*static_cast<std::string *>(data));
        DiagnosticPrinterRawOStream printer(stream);
        stream << (stream.str().empty() ? "" : "; ");
        info->print(printer);
      },
      &errors);
}

//===----------------------------------------------------------------------------------------===//
// Translation
//===----------------------------------------------------------------------------------------===//

/// Adds `void _mlir_f(void **arguments)`, which loads the arguments of f and calls it.
static void addPackedWrapper(Function &function) {
  LLVMContext &context = function.getContext();
  IRBuilder<> builder(context);
  PointerType *pointer = builder.getPtrTy();
  auto *type = FunctionType::get(builder.getVoidTy(), {pointer}, false);
  auto *wrapper = Function::Create(type, GlobalValue::ExternalLinkage,
                                   "_mlir_" + function.getName(), function.getParent());
  builder.SetInsertPoint(BasicBlock::Create(context, "", wrapper));
  auto slot = [&](unsigned index) {
    Value *address = builder.CreateConstGEP1_64(pointer, wrapper->getArg(0), index);
    return builder.CreateLoad(pointer, address);
  };
  SmallVector<Value *> arguments;
  for (Argument &argument : function.args())
    arguments.push_back(builder.CreateLoad(argument.getType(), slot(argument.getArgNo())));
  CallInst *call = builder.CreateCall(&function, arguments);
  call->setCallingConv(function.getCallingConv());
  if (!call->getType()->isVoidTy())
    builder.CreateStore(call, slot(arguments.size()));
  builder.CreateRetVoid();
}

static Expected<std::unique_ptr<Module>> translate(mlir::ModuleOp module, LLVMContext &context) {
  mlir::MLIRContext *mlirContext = module.getContext();
  mlir::registerBuiltinDialectTranslation(*mlirContext);
  mlir::registerLLVMDialectTranslation(*mlirContext);
  std::string errors;
  mlir::ScopedDiagnosticHandler handler(mlirContext, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
      return mlir::failure();
    errors += (errors.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  std::unique_ptr<Module> result = mlir::translateModuleToLLVMIR(module, context, "attn");
  if (!result)
    return createStringError("expected a module of the LLVM dialect, got: " + errors);
  return result;
}

static std::unique_ptr<TargetMachine> createMachine(const JitOptions &options) {
  Triple triple(options.host.triple);
  std::string reason;
  const Target *target = TargetRegistry::lookupTarget(triple, reason);
  if (!target)
    return nullptr;
  TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = FPOpFusion::Standard;
  // Code and constants are one allocation. The large model, which JIT compilers have by default,
  // forms the address of each constant and keeps none in a register.
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, options.host.cpu, options.host.features, targetOptions, Reloc::PIC_, CodeModel::Small,
      options.codegenLevel, /*JIT=*/true));
}

static void prepare(Module &module, const JitOptions &options, TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  SmallVector<Function *> wrapped;
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", options.host.cpu);
    if (options.sanitize)
      function.addFnAttr(Attribute::SanitizeAddress);
    if (!options.host.features.empty())
      function.addFnAttr("target-features", options.host.features);
    // LLVM by itself keeps to 256 bits on the first processors with AVX-512.
    if (options.host.f32Lanes == 16) {
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
    if (!function.hasLocalLinkage() && !function.getName().starts_with("_mlir_"))
      wrapped.push_back(&function);
  }
  for (Function *function : wrapped)
    addPackedWrapper(*function);
}

//===----------------------------------------------------------------------------------------===//
// Optimisation and code generation
//===----------------------------------------------------------------------------------------===//

static ModulePassManager buildLeanPipeline() {
  FunctionPassManager functionPasses;
  functionPasses.addPass(SROAPass(SROAOptions::ModifyCFG));
  functionPasses.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  functionPasses.addPass(InstCombinePass());
  functionPasses.addPass(SimplifyCFGPass());
  LoopPassManager loopPasses;
  // Loops arrive tested at their head, out of which a load that might not run cannot be hoisted.
  loopPasses.addPass(LoopRotatePass());
  loopPasses.addPass(LICMPass(LICMOptions()));
  functionPasses.addPass(
      createFunctionToLoopPassAdaptor(std::move(loopPasses), /*UseMemorySSA=*/true));
  functionPasses.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  functionPasses.addPass(InstCombinePass());
  functionPasses.addPass(ADCEPass());
  functionPasses.addPass(SimplifyCFGPass());

  ModulePassManager passes;
  passes.addPass(AlwaysInlinerPass());
  passes.addPass(createModuleToFunctionPassAdaptor(std::move(functionPasses)));
  // Functions that kernels share use a third of what describes their buffers.
  passes.addPass(DeadArgumentEliminationPass());
  return passes;
}

/// Of what is left after optimisation. Constants are not told to the runtime: nobody runs code at
/// the start of a module.
static void addSanitizer(ModulePassManager &passes, Module &module) {
  for (GlobalVariable &variable : module.globals()) {
    GlobalValue::SanitizerMetadata metadata;
    metadata.NoAddress = true;
    variable.setSanitizerMetadata(metadata);
  }
  AddressSanitizerOptions options;
  options.UseAfterReturn = AsanDetectStackUseAfterReturnMode::Never;
  options.InsertVersionCheck = false;
  passes.addPass(AddressSanitizerPass(options, /*UseGlobalGC=*/false, /*UseOdrIndicator=*/false,
                                      AsanDtorKind::None, AsanCtorKind::None));
}

static void optimize(Module &module, const JitOptions &options, TargetMachine &machine) {
  OptLevel level = options.optLevel;
  if (level == OptLevel::None && !options.sanitize)
    return;
  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = level == OptLevel::O3;
  PassBuilder builder(&machine, tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes = level == OptLevel::None   ? ModulePassManager()
                             : level == OptLevel::Lean ? buildLeanPipeline()
                             : level == OptLevel::O2
                                 ? builder.buildPerModuleDefaultPipeline(OptimizationLevel::O2)
                                 : builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3);
  if (options.sanitize)
    addSanitizer(passes, module);
  passes.run(module, modules);
}

/// Instructions of a part of a block. Blocks of attention have 600 at most, but for scores of a
/// hundred functions.
static constexpr int64_t kPart = 1024;

/// Hands the values of a part on to later parts in memory.
static void storeForLaterParts(BasicBlock &part) {
  SmallVector<Instruction *> crossing;
  for (Instruction &instruction : part)
    if (!isa<PHINode, AllocaInst>(instruction) && instruction.isUsedOutsideOfBlock(&part))
      crossing.push_back(&instruction);
  for (Instruction *instruction : crossing)
    DemoteRegToStack(*instruction);
}

/// LLVM selects the instructions of a block together, in a time that grows as the square of their
/// number: half a minute for 100,000. Between parts stands a branch whose condition, always false,
/// only an empty piece of assembly knows: others would be blocks that are merged again. Where
/// values cross it in registers, a chain of functions is one live range, and allocating registers
/// takes the square of its length too.
static void splitBlocks(Module &module) {
  LLVMContext &context = module.getContext();
  auto *opaque = InlineAsm::get(
      FunctionType::get(Type::getInt32Ty(context), {Type::getInt32Ty(context)}, /*isVarArg=*/false),
      "", "=r,0", /*hasSideEffects=*/true);
  SmallVector<BasicBlock *> blocks;
  for (Function &function : module)
    for (BasicBlock &block : function)
      // Stack buffers have to stay in the first block.
      if (block.size() > 2 * kPart && !block.isEntryBlock())
        blocks.push_back(&block);
  for (BasicBlock *block : blocks) {
    SmallVector<BasicBlock *> parts;
    auto *dead = BasicBlock::Create(context, "", block->getParent());
    new UnreachableInst(context, dead);
    while (block->size() > 2 * kPart) {
      BasicBlock *rest = block->splitBasicBlock(std::next(block->begin(), kPart));
      IRBuilder<> builder(block->getTerminator());
      Value *never = builder.CreateCall(opaque, builder.getInt32(0));
      builder.CreateCondBr(builder.CreateICmpNE(never, builder.getInt32(0)), dead, rest);
      block->getTerminator()->eraseFromParent();
      parts.push_back(block);
      block = rest;
    }
    // Once all parts are there, whose instructions are many times those that this adds.
    for (BasicBlock *part : parts)
      storeForLaterParts(*part);
  }
}

static bool emit(Module &module, TargetMachine &machine, CodeGenFileType type,
                 SmallVectorImpl<char> &bytes) {
  splitBlocks(module);
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type))
    return false;
  passes.run(module);
  return true;
}

static Error writeDump(StringRef path, function_ref<void(raw_ostream &)> print) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (!code) {
    print(stream);
    stream.close();
    code = stream.error();
    stream.clear_error();
  }
  if (!code)
    return Error::success();
  return createStringError(code,
                           "'" + path + "': expected a writable file, got: " + code.message());
}

static Error dumpText(Module &module, TargetMachine &machine, const JitOptions &options) {
  if (!options.dumpLLVM.empty())
    if (Error error = writeDump(options.dumpLLVM,
                                [&](raw_ostream &stream) { module.print(stream, nullptr); }))
      return error;
  if (options.dumpAssembly.empty())
    return Error::success();
  // Code generation changes the module, and the object must be made from the same one.
  std::unique_ptr<Module> copy = CloneModule(module);
  SmallVector<char, 0> text;
  emit(*copy, machine, CodeGenFileType::AssemblyFile, text);
  return writeDump(options.dumpAssembly,
                   [&](raw_ostream &stream) { stream << StringRef(text.data(), text.size()); });
}

Expected<std::unique_ptr<MemoryBuffer>>
compileObject(mlir::ModuleOp mlirModule, const JitOptions &options, JitTimings &timings) {
  Stopwatch watch;
  std::string errors;
  // Released to leak after a crash: its contents cannot be trusted to be destroyed.
  auto context = std::make_unique<LLVMContext>();
  collectErrors(*context, errors);
  Expected<std::unique_ptr<Module>> translated = translate(mlirModule, *context);
  if (!translated)
    return translated.takeError();
  std::unique_ptr<Module> module = std::move(*translated);
  std::unique_ptr<TargetMachine> machine = createMachine(options);
  if (!machine)
    return createStringError("expected an LLVM target for this machine, got none for '" +
                             options.host.triple + "'");
  prepare(*module, options, *machine);
  timings.translateMs = watch.lapMs();

  Error failure = runGuarded("optimise", [&] { optimize(*module, options, *machine); });
  timings.optimizeMs = watch.lapMs();
  if (!failure)
    failure = dumpText(*module, *machine, options);
  watch.lapMs();
  SmallVector<char, 0> object;
  bool canEmit = true;
  if (!failure)
    failure = runGuarded(
        "compile", [&] { canEmit = emit(*module, *machine, CodeGenFileType::ObjectFile, object); });
  timings.codegenMs = watch.lapMs();
  if (failure) {
    std::ignore = module.release();
    std::ignore = machine.release();
    std::ignore = context.release();
    return std::move(failure);
  }
  if (!canEmit || !errors.empty())
    return createStringError("expected LLVM to compile the kernel, got: " +
                             (errors.empty() ? "no code generator for this target" : errors));
  if (!options.dumpObject.empty())
    if (Error error = writeDump(options.dumpObject, [&](raw_ostream &stream) {
          stream << StringRef(object.data(), object.size());
        }))
      return std::move(error);
  return std::make_unique<SmallVectorMemoryBuffer>(std::move(object), "attn",
                                                   /*RequiresNullTerminator=*/false);
}

} // namespace attn
