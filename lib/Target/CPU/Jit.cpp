//===- Jit.cpp - machine code for this process ------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Target/CPU/Jit.h"
#include "lib/Support/Stopwatch.h"
#include "lib/Target/CPU/ObjectCompiler.h"
#include "lib/Target/CPU/RuntimeSymbols.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace llvm;

namespace attn {

static Error defineSymbols(orc::LLJIT &engine, const JitOptions &options) {
  orc::MangleAndInterner mangle(engine.getExecutionSession(), engine.getDataLayout());
  orc::SymbolMap symbols;
  auto define = [&](StringRef name, void *address) {
    symbols[mangle(name)] = {orc::ExecutorAddr::fromPtr(address), JITSymbolFlags::Exported};
  };
  for (const auto &[name, address] : getRuntimeSymbols())
    define(name, address);
  for (const auto &[name, address] : options.symbols)
    define(name, address);
  return engine.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

static Expected<std::unique_ptr<orc::LLJIT>> createEngine(const JitOptions &options) {
  orc::JITTargetMachineBuilder machine{Triple(options.host.triple)};
  machine.setCPU(options.host.cpu);
  // No platform: the code has no static constructors, and setting one up compiles a module.
  return orc::LLJITBuilder()
      .setJITTargetMachineBuilder(std::move(machine))
      .setPlatformSetUp(orc::setUpInactivePlatform)
      .create();
}

Jit::Jit() = default;
Jit::~Jit() = default;

Expected<std::unique_ptr<Jit>> Jit::compile(mlir::ModuleOp module, const JitOptions &options) {
  JitTimings timings;
  Expected<std::unique_ptr<MemoryBuffer>> object = compileObject(module, options, timings);
  if (!object)
    return object.takeError();
  return link(std::move(*object), options, timings);
}

Expected<std::unique_ptr<Jit>> Jit::link(std::unique_ptr<MemoryBuffer> object,
                                         const JitOptions &options, const JitTimings &timings) {
  std::unique_ptr<Jit> jit(new Jit);
  jit->timings = timings;
  Stopwatch watch;
  Expected<std::unique_ptr<orc::LLJIT>> engine = createEngine(options);
  if (!engine)
    return engine.takeError();
  jit->engine = std::move(*engine);
  jit->engine->getExecutionSession().setErrorReporter(
      [&details = jit->details](Error error) { details += "; " + toString(std::move(error)); });
  if (Error error = defineSymbols(*jit->engine, options))
    return std::move(error);
  if (Error error = jit->engine->addObjectFile(std::move(object)))
    return std::move(error);
  jit->timings.linkMs = watch.elapsedMs();
  return jit;
}

Expected<void *> Jit::lookup(StringRef name) const {
  Expected<orc::ExecutorAddr> address = engine->lookup(name);
  if (!address)
    return createStringError("expected a compiled function '" + name +
                             "', got: " + toString(address.takeError()) + details);
  return address->toPtr<void *>();
}

Expected<Jit::PackedFn> Jit::lookupPacked(StringRef name) const {
  Expected<void *> address = lookup(("_mlir_" + name).str());
  if (!address)
    return address.takeError();
  return reinterpret_cast<PackedFn>(*address);
}

} // namespace attn
