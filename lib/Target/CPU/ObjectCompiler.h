//===- ObjectCompiler.h - from the LLVM dialect to an object file -----------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#ifndef ATTN_LIB_TARGET_CPU_OBJECTCOMPILER_H
#define ATTN_LIB_TARGET_CPU_OBJECTCOMPILER_H

#include "lib/Target/CPU/Jit.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attn {

/// Translates, optimises and compiles a module, and writes the dumps that the options ask for.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compileObject(mlir::ModuleOp module, const JitOptions &options, JitTimings &timings);

} // namespace attn

#endif // ATTN_LIB_TARGET_CPU_OBJECTCOMPILER_H
