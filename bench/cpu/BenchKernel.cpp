//===- BenchKernel.cpp - compiled kernels for Python to time -------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Four C functions, so that our kernel and PyTorch's alternate in one process on the same tensors.
// Not an API: programs use the installed headers.
//
//===----------------------------------------------------------------------===//

#include "lib/Registration/Registration.h"
#include "lib/Target/CPU/Compile.h"
#include "lib/Target/CPU/ThreadPool.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <chrono>

using namespace attn;

namespace {
struct BenchKernel {
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<CompiledKernel> compiled;
  std::string error;
  double compileMs = 0;
};
} // namespace

/// Compiles the only function of an MLIR file for this machine and `threads` threads. Never null;
/// see attn_bench_error.
extern "C" BenchKernel *attn_bench_compile(const char *source, unsigned threads) {
  auto *kernel = new BenchKernel;
  registerDialects(kernel->registry);
  kernel->context = std::make_unique<mlir::MLIRContext>(kernel->registry);
  kernel->context->loadAllAvailableDialects();
  HostOverride overrides;
  overrides.numThreads = threads;
  llvm::Expected<HostInfo> host = getHostInfo(overrides);
  if (!host) {
    kernel->error = llvm::toString(host.takeError());
    return kernel;
  }
  setThreadCount(threads);
  auto start = std::chrono::steady_clock::now();
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(source, kernel->context.get());
  if (!module) {
    kernel->error = "the source does not parse";
    return kernel;
  }
  CPUOptions options;
  options.jit.host = *host;
  llvm::Expected<std::unique_ptr<CompiledKernel>> compiled = compileForCPU(*module, options);
  if (!compiled) {
    kernel->error = llvm::toString(compiled.takeError());
    return kernel;
  }
  kernel->compiled = std::move(*compiled);
  kernel->compileMs =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return kernel;
}

/// Why there is no kernel; empty when there is one.
extern "C" const char *attn_bench_error(BenchKernel *kernel) { return kernel->error.c_str(); }

/// From IR text to code that can be called.
extern "C" double attn_bench_compile_ms(BenchKernel *kernel) { return kernel->compileMs; }

/// Runs the kernel. `slots[i]` points to the i-th word of the flattened memref descriptors and
/// scalars.
extern "C" void attn_bench_run(BenchKernel *kernel, void **slots) {
  kernel->compiled->function(slots);
}

extern "C" void attn_bench_free(BenchKernel *kernel) { delete kernel; }
