//===- AttnTranslate.cpp - the body of attn-translate ------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Tools/AttnTranslate/AttnTranslate.h"
#include "lib/Pipelines/CPUPipeline.h"
#include "lib/Pipelines/Pipelines.h"
#include "lib/Target/CPU/HostInfo.h"
#include "lib/Target/CPU/ObjectCompiler.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace attn;
namespace cl = llvm::cl;

namespace {
/// The doors of all rooms on the way to a CPU. `Buffers` and later are the CPU's own.
enum class Until { Problem, Grid, Online, LLVM, LLVMIR, Asm };

struct CommandLine {
  cl::OptionCategory category{"attn-translate options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("FILE.mlir"), cl::init("-"), cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("where to write (default: standard output)"), cl::value_desc("path"),
                              cl::init("-"), cl::cat(category)};
  cl::opt<Until> until{
      "until", cl::desc("the door to stop at (default: online)"), cl::init(Until::Online), cl::cat(category),
      cl::values(clEnumValN(Until::Problem, "problem", "room 1: whole tensors, variants expanded, schedule chosen"),
                 clEnumValN(Until::Grid, "grid", "room 2: one grid of blocks"),
                 clEnumValN(Until::Online, "online", "room 3: the online softmax over key tiles"),
                 clEnumValN(Until::LLVM, "llvm", "CPU: the LLVM dialect"),
                 clEnumValN(Until::LLVMIR, "llvm-ir", "CPU: optimised LLVM IR"),
                 clEnumValN(Until::Asm, "asm", "CPU: assembly"))};
  cl::opt<std::string> cpu{"cpu", cl::desc("compile for this CPU, e.g. x86-64-v3 (default: this machine's)"),
                           cl::value_desc("name"), cl::cat(category)};
  cl::opt<int64_t> blockM{"block-m", cl::desc("query rows of a block (default: the target's rule)"), cl::init(0),
                          cl::cat(category)};
  cl::opt<int64_t> blockN{"block-n", cl::desc("keys of a step (default: the target's rule)"), cl::init(0),
                          cl::cat(category)};
  cl::opt<int64_t> splits{"splits", cl::desc("parts the keys of a block are split into (default: 1)"), cl::init(1),
                          cl::cat(category)};
};
} // namespace

static int fail(llvm::Error error) {
  llvm::errs() << "attn-translate: " << llvm::toString(std::move(error)) << "\n";
  return 1;
}

static Door getDoor(Until until) {
  if (until == Until::Problem)
    return Door::Problem;
  return until == Until::Grid ? Door::Grid : Door::Online;
}

/// The text of the module compiled as far as LLVM IR or assembly.
static llvm::Expected<std::string> printCompiled(ModuleOp module, const HostInfo &host, bool isAssembly) {
  llvm::SmallString<128> path;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile("attn-translate", isAssembly ? "s" : "ll", path))
    return llvm::createStringError(code, "expected to write a temporary file, got %s", code.message().c_str());
  llvm::FileRemover remover(path);
  JitOptions options;
  options.host = host;
  (isAssembly ? options.dumpAssembly : options.dumpLLVM) = path.str().str();
  JitTimings timings;
  if (auto object = compileObject(module, options, timings); !object)
    return object.takeError();
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return llvm::errorCodeToError(text.getError());
  return (*text)->getBuffer().str();
}

int attn::runAttnTranslate(int argc, const char *const *argv, DialectRegistry &registry) {
  static CommandLine *line = new CommandLine;
  cl::HideUnrelatedOptions(line->category);
  if (!cl::ParseCommandLineOptions(argc, argv, "attn-translate: takes attention through the rooms of the compiler\n",
                                   &llvm::errs()))
    return 1;
  HostOverride overrides;
  overrides.isForElsewhere = true;
  if (!line->cpu.empty())
    overrides.cpu = line->cpu;
  llvm::Expected<HostInfo> host = getHostInfo(overrides);
  if (!host)
    return fail(host.takeError());

  MLIRContext context(registry);
  llvm::SourceMgr sources;
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(line->input, /*IsText=*/true);
  if (!buffer)
    return fail(llvm::createStringError("expected to read '" + line->input + "', got " + buffer.getError().message()));
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 1;

  PassManager pm(&context);
  ToOnlineOptions options;
  options.lanes = host->f32Lanes;
  options.bf16Dot = host->hasBF16Dot;
  options.blockM = line->blockM;
  options.blockN = line->blockN;
  options.splits = line->splits;
  buildToOnlinePipeline(pm, options, getDoor(line->until));
  CPUPipelineOptions vectors;
  vectors.lanes = host->f32Lanes;
  vectors.bf16Dot = host->hasBF16Dot;
  if (line->until >= Until::LLVM)
    buildOnlineToLLVMPipeline(pm, vectors);
  if (failed(pm.run(*module)))
    return 1;

  std::error_code code;
  llvm::ToolOutputFile out(line->output, code, llvm::sys::fs::OF_Text);
  if (code)
    return fail(llvm::createStringError("expected to write '" + line->output + "', got " + code.message()));
  if (line->until >= Until::LLVMIR) {
    llvm::Expected<std::string> text = printCompiled(*module, *host, line->until == Until::Asm);
    if (!text)
      return fail(text.takeError());
    out.os() << *text;
  } else {
    module->print(out.os());
  }
  out.keep();
  return 0;
}
