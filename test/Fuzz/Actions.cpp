//===- Actions.cpp - everything that can be done to a program ---------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "test/Fuzz/Actions.h"
#include "attn/Compiler.h"
#include "lib/Pipelines/Pipelines.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace attn::fuzz {

static constexpr StringRef kDoors[] = {"problem", "grid", "online", "buffers", "vectors",
                                       "llvm",    "tile", "placed", "async",   "thread"};

std::string Action::getCommand() const {
  switch (kind) {
  case RoundTrip:
    return "attn-opt %s --verify-roundtrip";
  case Pipeline:
    return "attn-opt %s --pass-pipeline='" + text + "'";
  case Door:
    return "attn-translate %s --until=" + text;
  case EmitPTX:
    return "attn-translate %s --to-ptx";
  case CompileCPU:
    return "attn-translate %s --until=asm";
  }
  llvm_unreachable("all kinds are above");
}

/// The text between the next two quotation marks; moves `text` behind them.
static StringRef takeQuoted(StringRef &text) {
  StringRef rest = text.split('"').second;
  auto [word, after] = rest.split('"');
  text = after;
  return word;
}

Actions::Actions(StringRef sourceDirectory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator it(sourceDirectory + "/lib", error), end;
       it != end && !error; it.increment(error))
    if (llvm::sys::path::filename(it->path()) == "Passes.td")
      paths.push_back(it->path());
  llvm::sort(paths);
  for (const std::string &path : paths) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer)
      continue;
    SmallVector<StringRef> definitions;
    (*buffer)->getBuffer().split(definitions, " : Pass<");
    for (StringRef text : llvm::drop_begin(definitions)) {
      Pass pass{takeQuoted(text).str(), {}};
      for (size_t at = text.find("Option<\""); at != StringRef::npos; at = text.find("Option<\"")) {
        // Lists are not guessed at.
        bool isList = text.substr(0, at).ends_with("List");
        text = text.substr(at);
        takeQuoted(text);
        std::string flag = takeQuoted(text).str(), type = takeQuoted(text).str();
        if (!isList)
          pass.options.push_back({flag, type});
      }
      passes.push_back(std::move(pass));
    }
  }
}

static std::string getOptionValue(StringRef flag, StringRef type, Rng &rng) {
  static constexpr StringRef kIntegers[] = {
      "0",  "1",   "2",    "3",     "4",      "7",          "8",          "16",
      "32", "48",  "64",   "96",    "128",    "256",        "1000",       "-1",
      "17", "512", "4096", "65536", "232448", "2147483647", "4294967296", "9223372036854775807"};
  static constexpr StringRef kStrings[] = {"cpu", "cuda", "problem", "grid", "online", "x"};
  // What is written goes nowhere.
  if (flag == "ptx" || flag == "plan" || flag == "timeline")
    return "/dev/null";
  if (type == "bool")
    return rng.oneIn(2) ? "true" : "false";
  if (StringRef(type).contains("string"))
    return kStrings[rng.below(std::size(kStrings))].str();
  // Loops that do not end are told from those that do by their work.
  if (flag == "max-work")
    return "100000000";
  // A run for each seed is asked for, so many runs take long.
  return flag == "seeds" ? std::to_string(rng.below(4))
                         : kIntegers[rng.below(std::size(kIntegers))].str();
}

std::string Actions::getPipeline(const Pass &pass, Rng &rng) const {
  std::string text = pass.flag, options;
  for (const Option &option : pass.options)
    if (rng.oneIn(3) || option.flag == "timeline" || option.flag == "ptx" ||
        option.flag == "plan" || option.flag == "max-work")
      options += (options.empty() ? "" : " ") + option.flag + "=" +
                 getOptionValue(option.flag, option.type, rng);
  if (pass.flag == "tile-simulate")
    options += (options.empty() ? "" : " ") +
               std::string("shapes=64x64,320x64,64x64,64x64,64,1x2x128x64,1x2x128x64,1x2x128x64");
  return options.empty() ? text : text + "{" + options + "}";
}

/// Pipelines that other files register, and upstream's passes that ours are called together with.
static std::string getNamedPipeline(Rng &rng) {
  static constexpr StringRef kPipelines[] = {
      "attn-to-online",
      "attn-to-online{target=cuda}",
      "attn-to-online{block-m=1 block-n=16}",
      "attn-to-online{splits=3 lanes=8}",
      "attn-to-online{target=cuda block-m=64 block-n=32 splits=2}",
      "attn-to-reference",
      "attn-to-reference{block-rows=8}",
      "attn-to-thread",
      "attn-to-thread{block-m=64 block-n=64 stages=1}",
      "attn-to-thread{splits=3 stages=4}",
      "online-to-tile",
      "tile-to-async",
      "async-to-thread",
      "canonicalize",
      "canonicalize{test-convergence=true}",
      "cse",
      "attn-to-online,attn-cpu-append-destinations,attn-cpu-bufferize,canonicalize,"
      "attn-cpu-fuse-gradients,attn-cpu-bound-buffers,convert-attn-to-vector,attn-cpu-outline-"
      "forall,attn-cpu-expand-math",
      "attn-cpu-append-destinations,attn-cpu-bufferize,canonicalize,attn-cpu-fuse-gradients,attn-"
      "cpu-bound-buffers",
      "convert-attn-to-linalg,canonicalize,cse",
      "loop-invariant-code-motion"};
  return kPipelines[rng.below(std::size(kPipelines))].str();
}

Action Actions::choose(Rng &rng, const CorpusProgram &program) const {
  auto pipeline = [](const std::string &text) {
    return Action{Action::Pipeline, "builtin.module(" + text + ")"};
  };
  uint64_t kind = rng.below(400);
  if (kind == 0)
    return {Action::EmitPTX, ""};
  if (kind == 1)
    return {Action::CompileCPU, ""};
  if (kind < 30)
    return {Action::RoundTrip, ""};
  if (kind < 70)
    return {Action::Door, kDoors[rng.below(std::size(kDoors))].str()};
  if (kind < 130)
    return pipeline(getNamedPipeline(rng));
  if (kind < 280 && !program.passes.empty()) {
    StringRef flag = rng.pick(program.passes);
    for (const Pass &pass : passes)
      if (pass.flag == flag)
        return pipeline(getPipeline(pass, rng));
    if (flag == "canonicalize" || flag == "cse")
      return pipeline(flag.str());
  }
  return pipeline(getPipeline(rng.pick(passes), rng));
}

namespace {
/// Verifies what each pass leaves, apart from the pass manager, which makes one failure of both.
struct VerifyEach : PassInstrumentation {
  explicit VerifyEach(const ActionWatch &watch) : watch(watch) {}

  void runBeforePass(mlir::Pass *pass, Operation *) override {
    if (pass->getArgument().empty())
      return;
    current = pass->getArgument();
    watch.atPass(current);
  }
  void runAfterPass(mlir::Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    watch.atPass("verifier after " + current);
    std::string why;
    ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &diagnostic) {
      if (why.empty())
        why = diagnostic.str();
      return success();
    });
    if (failed(verify(op)))
      watch.atFault({Fault::Invalid, current + ": " + why});
  }

  const ActionWatch &watch;
  std::string current;
};
} // namespace

static void buildDoor(OpPassManager &pm, StringRef door) {
  std::optional<Room> until = symbolizeRoom(door);
  PipelineOptions options;
  options.target = getInfo(*until).device == RoomDevice::CUDA ? "cuda" : "cpu";
  buildPipeline(pm, options, *until);
}

static bool runPasses(const Action &action, ModuleOp module, const ActionWatch &watch) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  std::string errors;
  llvm::raw_string_ostream os(errors);
  if (action.kind == Action::Door)
    buildDoor(pm, action.text);
  else if (failed(parsePassPipeline(
               StringRef(action.text).drop_front(strlen("builtin.module(")).drop_back(), pm, os)))
    return false;
  auto instrumentation = std::make_unique<VerifyEach>(watch);
  VerifyEach *verifier = instrumentation.get();
  pm.addInstrumentation(std::move(instrumentation));
  bool isDiagnosed = false;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    isDiagnosed |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  if (succeeded(pm.run(module)))
    return true;
  if (!isDiagnosed)
    watch.atFault({Fault::Silent, verifier->current});
  return false;
}

static std::string print(ModuleOp module, bool isGeneric) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  module->print(os, isGeneric ? flags.printGenericOpForm() : flags);
  return text;
}

static void roundTrip(ModuleOp module, const ActionWatch &watch) {
  std::string text = print(module, /*isGeneric=*/false), detail;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    detail += diagnostic.str() + "; ";
    return success();
  });
  if (OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, module.getContext()))
    return;
  // What no text can say is a fault of the mutation.
  std::string details = detail;
  if (OwningOpRef<ModuleOp> generic =
          parseSourceString<ModuleOp>(print(module, /*isGeneric=*/true), module.getContext()))
    watch.atFault({Fault::Invalid, "what was printed: " + details});
}

bool perform(const Action &action, ModuleOp module, const ActionWatch &watch) {
  if (action.kind == Action::Pipeline || action.kind == Action::Door)
    return runPasses(action, module, watch);
  watch.atPass(action.getCommand());
  if (action.kind == Action::RoundTrip) {
    roundTrip(module, watch);
    return true;
  }
  std::string source = print(module, /*isGeneric=*/true);
  CompileOptions options;
  options.cache = false;
  Status status;
  if (action.kind == Action::EmitPTX) {
    options.device = DeviceKind::CUDA;
    status = emit(source, options).getStatus();
  } else {
    status = compile(source, options).getStatus();
  }
  if (!status.ok() && status.message.empty())
    watch.atFault({Fault::Silent, action.getCommand()});
  return status.ok();
}

} // namespace attn::fuzz
